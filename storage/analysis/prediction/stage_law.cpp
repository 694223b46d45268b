// Sums the rows that a term of a law matches, then asks its rule for their new time; what it lacks becomes a reason.
#include "storage/analysis/prediction/stage_law.h"

#include <algorithm>
#include <utility>

namespace stepladder {
namespace {

bool contains(const auto& list, const auto& wanted) {
  return std::ranges::find(list, wanted) != list.end();
}

struct Sums {
  double ms = 0, flops = 0, bytes = 0;
  double flops_ms = 0, bytes_ms = 0;  // of the rows whose work is known
  double calls_ms = 0;                // of bytes_ms, that the calls take however little they do
};

Sums sums_of(const WorkChange& change, std::span<const LawRow> rows) {
  Sums sums;
  for (const LawRow& row : rows) {
    if (!change.matches(row.kind, row.part, row.name)) continue;
    sums.ms += row.ms;
    if (!is_missing(row.flops)) {
      sums.flops += row.flops;
      sums.flops_ms += row.ms;
    }
    if (!is_missing(row.bytes)) {
      sums.bytes += row.bytes;
      sums.bytes_ms += row.ms;
      constexpr double most = 0.9;
      sums.calls_ms += std::min(row.calls * row.call_ms, most * row.ms);
    }
  }
  return sums;
}

// The new milliseconds of the rows, or the reason why they aren't known.
class LawArithmetic {
 public:
  LawArithmetic(const LawTerm& term, const LawFacts& facts, const Sums& sums)
      : term_(term), facts_(facts), sums_(sums) {}

  std::pair<double, std::string> after_ms() const {
    switch (term_.rule) {
      case LawRule::unchanged:
        return {sums_.ms, ""};
      case LawRule::vanishes:
        return {0, ""};
      case LawRule::times:
        return {sums_.ms * term_.amount, ""};
      case LawRule::at_peak:
        return at_peak();
      case LawRule::moves_bytes:
        return bytes(0, facts_.parameters_before);
      case LawRule::adds_bytes:
        return bytes(sums_.ms, facts_.parameters_after);
      case LawRule::by_parameters:
        return in_proportion(facts_.parameters_before, facts_.parameters_after);
    }
    return {sums_.ms, ""};
  }

 private:
  std::pair<double, std::string> at_peak() const {
    const std::string precision(term_.precision.empty() ? std::string_view(facts_.precision) : term_.precision);
    const double peak = facts_.peak(precision);
    if (is_missing(peak))
      return {missing, precision.empty() ? "nothing says in which precision its products ran"
                                         : "the peak in " + precision + " isn't known"};
    if (sums_.ms > 0 && sums_.flops_ms <= 0) return {missing, "the trace doesn't have the shapes of its products"};
    // Rows without counted FLOPs stay.
    const double least = sums_.flops / peak / 1e9;
    return {sums_.ms - sums_.flops_ms + std::min(least, sums_.flops_ms), ""};
  }

  std::pair<double, std::string> bytes(double before, double parameters) const {
    if (!(parameters > 0)) return {missing, std::string(no_recipe)};
    const double moving_ms = sums_.bytes_ms - sums_.calls_ms;
    const double bandwidth = moving_ms > 0 ? sums_.bytes / moving_ms / 1e6 : facts_.bandwidth_gb_s;
    if (is_missing(bandwidth) || !(bandwidth > 0)) return {missing, "the bandwidth of these rows isn't known"};
    return {before + term_.amount * parameters / bandwidth / 1e6, ""};
  }

  std::pair<double, std::string> in_proportion(double before, double after) const {
    if (!(before > 0) || !(after > 0)) return {missing, std::string(no_recipe)};
    return {sums_.ms * after / before, ""};
  }

  const LawTerm& term_;
  const LawFacts& facts_;
  const Sums& sums_;
};

}  // namespace

double LawFacts::peak(std::string_view wanted) const {
  for (const auto& [name, value] : tflops)
    if (name == wanted) return value;
  return missing;
}

bool WorkChange::matches(OperatorKind kind, ModelPart of_part, std::string_view name) const {
  if (kinds.empty() ? !is_work(kind) : !contains(kinds, kind)) return false;
  if (part != ModelPart::unknown && part != of_part) return false;
  return operators.empty() || contains(operators, name);
}

LawAnswer apply(const StageLaw& law, const LawFacts& facts, std::span<const LawRow> rows) {
  LawAnswer answer;
  bool is_about_device = false;
  for (const LawTerm& term : law.terms) {
    if (!term.device.empty() && term.device != facts.device) continue;
    is_about_device = true;
    WorkChange change{.kinds = term.kinds,
                      .part = term.part,
                      .operators = {term.operators.begin(), term.operators.end()},
                      .at_most = term.at_most,
                      .why = std::string(term.why)};
    const auto has_part = [](const LawRow& row) { return row.part != ModelPart::unknown; };
    if (term.part != ModelPart::unknown && std::ranges::none_of(rows, has_part)) {
      answer.unknown = "nothing in the trace shows which work belongs to which part of the model";
      return answer;
    }
    const Sums sums = sums_of(change, rows);
    auto [after, unknown] = LawArithmetic(term, facts, sums).after_ms();
    if (!unknown.empty()) {
      answer.unknown = std::move(unknown);
      return answer;
    }
    answer.at_most = answer.at_most || term.at_most;
    change.before_ms = sums.ms;
    change.after_ms = after;
    change.factor = sums.ms > 0 ? after / sums.ms : 1;
    answer.changes.push_back(std::move(change));
  }
  if (!is_about_device)
    answer.unknown = law.unknown.empty() ? "its law isn't about this device" : std::string(law.unknown);
  return answer;
}

}  // namespace stepladder
