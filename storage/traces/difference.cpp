// Matches rows of two profiles in passes from strict to loose (Matcher::run); a row that is matched is gone for later
// passes, so their order is the meaning of the result. Unmatched rows appear or vanish, and the sum of all rows is
// always the whole difference.
#include "storage/traces/difference.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "storage/analysis/means/student_t.h"
#include "storage/by_enum.h"

namespace stepladder {
namespace {

using Rows = std::vector<TracedOperator>;

// "gelu" of aten::gelu, aten::gelu_ and of a kernel that aten::gelu_backward launched.
std::string operation_of(const TracedOperator& row) {
  std::string name = row.launcher.empty() ? row.time.name : row.launcher;
  if (const std::size_t space = name.rfind("::"); space != std::string::npos) name = name.substr(space + 2);
  if (const std::size_t end = name.rfind("_backward"); end != std::string::npos) name.resize(end);
  const auto is_mark = [](char c) { return c == '_'; };
  name.erase(name.begin(), std::ranges::find_if_not(name, is_mark));
  name.erase(std::find_if_not(name.rbegin(), name.rend(), is_mark).base(), name.end());
  return name;
}

// Whether a compiler's name for a loop holds this word between underscores: "triton_poi_fused_add_gelu_3".
bool names(const std::string& fused, const std::string& word) {
  if (word.size() < 2) return false;
  for (std::size_t at = fused.find(word); at != std::string::npos; at = fused.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || fused[at - 1] == '_') && (end == fused.size() || fused[end] == '_')) return true;
  }
  return false;
}

bool is_part_of_attention(const TracedOperator& row) {
  static const std::set<std::string> words{"softmax", "softmax_data", "masked_fill", "bmm",  "baddbmm", "div",
                                           "tril",    "dropout",      "where",       "copy", "matmul"};
  return words.contains(operation_of(row));
}

bool replaces(const TracedOperator& fused, const TracedOperator& row) {
  const std::string& name = fused.time.name;
  const OperatorKind kind = kind_of(row);
  if (kind == OperatorKind::idle || kind == OperatorKind::communication || row.time.name.empty()) return false;
  const bool same_part = fused.time.part.empty() || row.time.part.empty() || fused.time.part == row.time.part;
  if (name.starts_with("## Call CompiledFxGraph"))
    return same_part && kind != OperatorKind::products && kind != OperatorKind::attention;
  if (name.find("_fused_") != std::string::npos) return same_part && names(name, operation_of(row));
  return kind_of(fused) == OperatorKind::attention && same_part && is_part_of_attention(row);
}

class Matcher {
 public:
  Matcher(Rows before, Rows after) : before_(std::move(before)), after_(std::move(after)) {}

  std::vector<RowDifference> run() {
    match([](const TracedOperator& row) { return key(row.time.part, row.time.name, row.launcher, row.time.shapes); });
    const auto has_shapes = [](const TracedOperator& row) { return !row.time.shapes.empty(); };
    match([](const TracedOperator& row) { return key(row.time.part, "", "", row.time.shapes); }, has_shapes,
          RowChange::replaced);
    match([](const TracedOperator& row) { return key(row.time.part, row.time.name, row.launcher, ""); });
    match([](const TracedOperator& row) { return key("", row.time.name, row.launcher, ""); });
    match([](const TracedOperator& row) { return key("", row.time.name, "", ""); });
    const auto of_launcher = [](const TracedOperator& row) { return !row.launcher.empty(); };
    match([](const TracedOperator& row) { return key(row.time.part, "", row.launcher, row.time.shapes); }, of_launcher,
          RowChange::replaced);
    match([](const TracedOperator& row) { return key(row.time.part, "", row.launcher, ""); }, of_launcher,
          RowChange::replaced);
    match_fused(before_, after_, RowChange::fused);
    match_fused(after_, before_, RowChange::split);
    match([](const TracedOperator& row) { return key(row.time.part, std::string(to_string(kind_of(row))), "", ""); },
          [](const TracedOperator& row) { return is_work(kind_of(row)); }, RowChange::replaced);
    for (TracedOperator& row : before_) take({std::move(row)}, {}, RowChange::vanished);
    for (TracedOperator& row : after_) take({}, {std::move(row)}, RowChange::appeared);
    return std::move(matched_);
  }

 private:
  using Key = std::tuple<std::string, std::string, std::string, std::string>;
  static Key key(std::string part, std::string name, std::string launcher, std::string shapes) {
    return {std::move(part), std::move(name), std::move(launcher), std::move(shapes)};
  }

  void take(Rows before, Rows after, RowChange change) {
    RowDifference row{.change = change, .before = std::move(before), .after = std::move(after)};
    const auto sum = [](Rows& rows, double& ms, double& calls) {
      for (const TracedOperator& each : rows) {
        ms += each.time.self_ms;
        calls += each.time.calls;
      }
      std::ranges::stable_sort(
          rows, [](const TracedOperator& a, const TracedOperator& b) { return a.time.self_ms > b.time.self_ms; });
    };
    sum(row.before, row.before_ms, row.before_calls);
    sum(row.after, row.after_ms, row.after_calls);
    row.kind = kind_of(row.after.empty() ? row.before.front() : row.after.front());
    matched_.push_back(std::move(row));
  }

  // Pairs the rows of equal keys that both sides have.
  void match(const std::function<Key(const TracedOperator&)>& key_of,
             const std::function<bool(const TracedOperator&)>& counts = {}, RowChange change = RowChange::same) {
    std::map<Key, std::pair<Rows, Rows>> groups;
    Rows rest_before, rest_after;
    const auto sort_in = [&](Rows& rows, Rows std::pair<Rows, Rows>::*side, Rows& rest) {
      for (TracedOperator& row : rows) {
        Rows& target = counts && !counts(row) ? rest : groups[key_of(row)].*side;
        target.push_back(std::move(row));
      }
    };
    sort_in(before_, &std::pair<Rows, Rows>::first, rest_before);
    sort_in(after_, &std::pair<Rows, Rows>::second, rest_after);
    for (auto& [key, group] : groups) {
      auto& [before, after] = group;
      if (!before.empty() && !after.empty()) {
        take(std::move(before), std::move(after), change);
      } else {
        std::move(before.begin(), before.end(), std::back_inserter(rest_before));
        std::move(after.begin(), after.end(), std::back_inserter(rest_after));
      }
    }
    before_ = std::move(rest_before);
    after_ = std::move(rest_after);
  }

  // Fused rows that may have replaced the same row belong together: their shares of it can't be separated.
  void match_fused(Rows& parts, Rows& fused, RowChange change) {
    std::vector<std::size_t> group_of(parts.size() + fused.size());
    std::iota(group_of.begin(), group_of.end(), std::size_t{0});
    const std::function<std::size_t(std::size_t)> root = [&](std::size_t i) {
      while (group_of[i] != i) i = group_of[i] = group_of[group_of[i]];
      return i;
    };
    constexpr std::size_t most_pairs = 4'000'000;
    if (parts.size() * fused.size() > most_pairs) return;
    for (std::size_t f = 0; f < fused.size(); ++f) {
      for (std::size_t p = 0; p < parts.size(); ++p) {
        if (replaces(fused[f], parts[p])) group_of[root(parts.size() + f)] = root(p);
      }
    }
    std::map<std::size_t, std::pair<Rows, Rows>> groups;
    for (std::size_t p = 0; p < parts.size(); ++p) groups[root(p)].first.push_back(parts[p]);
    for (std::size_t f = 0; f < fused.size(); ++f) groups[root(parts.size() + f)].second.push_back(fused[f]);
    Rows rest_parts, rest_fused;
    for (auto& [number, group] : groups) {
      auto& [several, one] = group;
      if (!several.empty() && !one.empty()) {
        const bool is_fused = change == RowChange::fused;
        take(std::move(is_fused ? several : one), std::move(is_fused ? one : several), change);
      } else {
        std::move(several.begin(), several.end(), std::back_inserter(rest_parts));
        std::move(one.begin(), one.end(), std::back_inserter(rest_fused));
      }
    }
    parts = std::move(rest_parts);
    fused = std::move(rest_fused);
  }

  Rows before_, after_;
  std::vector<RowDifference> matched_;
};

RowChange change_of(const RowDifference& row, double step_ms) {
  if (row.change != RowChange::same) return row.change;
  const double delta = row.delta_ms();
  if (std::fabs(delta) <= std::max(0.01 * row.before_ms, 0.001 * step_ms)) return RowChange::same;
  if (row.before_calls > 0 && row.after_calls > 0 && std::fabs(row.after_calls / row.before_calls - 1) > 0.05 &&
      (row.after_calls < row.before_calls) == (delta < 0))
    return delta < 0 ? RowChange::fewer_calls : RowChange::more_calls;
  return delta < 0 ? RowChange::faster : RowChange::slower;
}

// The text that all rows of both sides have; empty: they differ.
std::string common_text(const RowDifference& row, std::string OperatorTime::*text) {
  std::set<std::string> texts;
  for (const Rows* side : {&row.before, &row.after}) {
    for (const TracedOperator& each : *side) texts.insert(each.time.*text);
  }
  return texts.size() == 1 ? *texts.begin() : "";
}

// Of two means that differ by `delta_ms`: the half-width of the 95 % interval, and the chance of such a difference, by
// Welch's t test with his degrees of freedom. missing: a side's spread isn't known.
struct Noise {
  double ms = missing, chance = missing;
};

Noise noise_of(double delta_ms, const StepSpread& before, const StepSpread& after) {
  if (is_missing(before.sd_ms) || is_missing(after.sd_ms) || before.steps < 2 || after.steps < 2) return {};
  const double a = before.sd_ms * before.sd_ms / before.steps, b = after.sd_ms * after.sd_ms / after.steps;
  if (!(a + b > 0)) return {};  // no step differs from another: the clock's resolution hides the spread
  const double freedom = (a + b) * (a + b) / (a * a / (before.steps - 1) + b * b / (after.steps - 1));
  return {student_t_quantile(0.975, freedom) * std::sqrt(a + b),
          2 * student_t_cdf(-std::fabs(delta_ms) / std::sqrt(a + b), freedom)};
}

// The spread of a group's time, as if its rows varied together.
StepSpread spread_of(const Rows& rows, int steps) {
  StepSpread spread{.steps = steps, .sd_ms = 0};
  for (const TracedOperator& each : rows) {
    if (is_missing(each.sd_ms)) return {};
    spread.sd_ms += each.sd_ms;
  }
  return spread;
}

// Sets noise and is_clear, with Holm's correction over all rows.
void judge_noise(std::vector<RowDifference>& rows, const StepSpreads& spreads) {
  std::vector<std::pair<double, RowDifference*>> chances;
  for (RowDifference& row : rows) {
    const Noise noise = noise_of(row.delta_ms(), spread_of(row.before, spreads.before.steps),
                                 spread_of(row.after, spreads.after.steps));
    row.noise_ms = noise.ms;
    if (!is_missing(noise.chance)) chances.emplace_back(noise.chance, &row);
  }
  std::ranges::stable_sort(chances, [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t i = 0; i < chances.size(); ++i) {
    if (chances[i].first * static_cast<double>(chances.size() - i) > 0.05) break;
    chances[i].second->is_clear = true;
  }
}

double sum_of(std::span<const TracedOperator> rows) {
  return std::accumulate(rows.begin(), rows.end(), 0.0,
                         [](double sum, const TracedOperator& row) { return sum + row.time.self_ms; });
}

}  // namespace

std::string_view to_string(RowChange change) {
  return by_enum<RowChange>("same", "faster", "slower", "fewer calls", "more calls", "replaced", "fused", "split",
                            "appeared", "vanished")[change];
}

ProfileDifference difference(std::span<const TracedOperator> before, std::span<const TracedOperator> after,
                             const StepSpreads& spreads) {
  ProfileDifference made{.before_ms = sum_of(before), .after_ms = sum_of(after)};
  made.rows = Matcher({before.begin(), before.end()}, {after.begin(), after.end()}).run();
  for (RowDifference& row : made.rows) row.change = change_of(row, made.before_ms);
  judge_noise(made.rows, spreads);
  made.noise_ms = noise_of(made.after_ms - made.before_ms, spreads.before, spreads.after).ms;
  std::ranges::stable_sort(made.rows, [](const RowDifference& a, const RowDifference& b) {
    return std::fabs(a.delta_ms()) > std::fabs(b.delta_ms());
  });
  return made;
}

bool ProfileDifference::is_clear() const {
  return !is_missing(noise_ms) && std::fabs(delta_ms()) > noise_ms;
}

std::size_t ProfileDifference::clear_rows() const {
  return static_cast<std::size_t>(std::ranges::count_if(rows, &RowDifference::is_clear));
}

std::string part_of(const RowDifference& row) {
  return common_text(row, &OperatorTime::part);
}

std::string shapes_of(const RowDifference& row) {
  return common_text(row, &OperatorTime::shapes);
}

std::vector<TracedOperator> traced(const StepProfile& profile) {
  std::vector<TracedOperator> rows;
  for (const OperatorTime& each : profile.operators) {
    TracedOperator row{.time = each, .busy_ms = each.self_ms};
    if (const std::size_t arrow = each.name.find(launches); arrow != std::string::npos) {
      row.launcher = each.name.substr(0, arrow);
      row.time.name = each.name.substr(arrow + launches.size());
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace stepladder
