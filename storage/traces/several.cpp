// Names the rank that the others wait for, and lists the rows of several traces in one table. A rank that is late waits
// least in communication, so its own time, not its step, tells.
#include "storage/traces/several.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "storage/analysis/means/student_t.h"
#include "storage/wording.h"

namespace stepladder {
namespace {

double of(const KindArray& ms, OperatorKind kind) {
  return ms[static_cast<std::size_t>(kind)];
}

// The own times of each step that all ranks have: [step][rank].
std::vector<std::vector<double>> shared_steps(const TraceProfile& profile, const std::vector<RankRow>& ranks) {
  std::map<std::int64_t, std::map<int, double>> found;
  for (const TracedStep& step : profile.steps)
    found[step.step][step.rank] = step.dt_ms - of(step.ms, OperatorKind::communication);
  std::vector<std::vector<double>> steps;
  for (const auto& [number, own] : found) {
    if (own.size() != ranks.size()) continue;
    std::vector<double> row;
    for (const auto& [rank, ms] : own) row.push_back(ms);
    steps.push_back(std::move(row));
  }
  return steps;
}

void name_straggler(RankReport& report, const std::vector<std::vector<double>>& steps) {
  const auto latest = std::ranges::max_element(report.rows, {}, &RankRow::own_ms);
  if (steps.size() < 2) {
    report.sentence = "Whether the ranks wait for one of them can't be told from fewer than two steps of all ranks.";
    return;
  }
  if (std::ranges::all_of(report.rows, [](const RankRow& row) { return row.communication_ms <= 0; })) {
    report.sentence = "The trace shows no communication, so no rank is known to wait for another.";
    return;
  }
  const auto place = static_cast<std::size_t>(latest - report.rows.begin());
  const auto others = static_cast<double>(report.rows.size() - 1), count = static_cast<double>(steps.size());
  double sum = 0, squares = 0;
  for (const std::vector<double>& own : steps) {
    double rest = 0;
    for (std::size_t i = 0; i < own.size(); ++i) rest += i == place ? 0 : own[i];
    const double late = own[place] - rest / others;
    sum += late;
    squares += late * late;
  }
  report.late_ms = sum / count;
  const double error = std::sqrt(std::max(squares - sum * sum / count, 0.0) / (count - 1) / count);
  report.noise_ms = student_t_quantile(0.975, count - 1) * error;
  const double limit = student_t_quantile(1 - 0.025 / static_cast<double>(report.rows.size()), count - 1) * error;
  const std::string late =
      fmt::format("{} +/- {}", milliseconds_text(report.late_ms), milliseconds_text(report.noise_ms));
  if (report.late_ms > limit && report.late_ms > 0.01 * latest->step_ms) {
    report.straggler = latest->rank;
    report.sentence =
        fmt::format("The others wait for rank {}: it is ready to exchange {} later than they are, by {} of all ranks.",
                    latest->rank, late, plural(std::ssize(steps), "step"));
  } else {
    report.sentence =
        fmt::format("No rank is clearly later than the others; the latest, rank {}, by {}, by {} of all ranks.",
                    latest->rank, late, plural(std::ssize(steps), "step"));
  }
}

}  // namespace

RankReport rank_report(const TraceProfile& profile) {
  std::map<int, RankRow> ranks;
  for (const TracedStep& step : profile.steps) {
    RankRow& row = ranks[step.rank];
    row.rank = step.rank;
    ++row.steps;
    row.step_ms += step.dt_ms;
    row.idle_ms += of(step.ms, OperatorKind::idle);
    row.communication_ms += of(step.ms, OperatorKind::communication);
  }
  RankReport report;
  if (ranks.size() < 2) return report;
  for (auto& [number, row] : ranks) {
    for (double* const ms : {&row.step_ms, &row.idle_ms, &row.communication_ms}) *ms /= row.steps;
    report.rows.push_back(row);
  }
  name_straggler(report, shared_steps(profile, report.rows));
  return report;
}

SeveralTraces beside_each_other(std::span<const std::span<const TracedOperator>> traces) {
  SeveralTraces made;
  std::map<std::pair<std::string, std::string>, SharedRow> rows;
  for (std::size_t i = 0; i < traces.size(); ++i) {
    made.step_ms.push_back(0);
    made.kinds.emplace_back(all_operator_kinds.size());
    for (const TracedOperator& each : traces[i]) {
      made.step_ms[i] += each.time.self_ms;
      const OperatorKind kind = kind_of(each);
      made.kinds[i][static_cast<std::size_t>(kind)] += each.time.self_ms;
      const OperatorTime time = row_of(each);
      SharedRow& row = rows[{time.part, time.name}];
      if (row.ms.empty()) row = {.part = time.part, .name = time.name, .kind = kind, .ms = {}};
      row.ms.resize(traces.size(), missing);
      row.ms[i] = (is_missing(row.ms[i]) ? 0 : row.ms[i]) + each.time.self_ms;
    }
  }
  const auto most = [](const SharedRow& row) {
    double ms = 0;
    for (const double each : row.ms) ms = std::max(ms, is_missing(each) ? 0 : each);
    return ms;
  };
  for (auto& [key, row] : rows) made.rows.push_back(std::move(row));
  std::ranges::stable_sort(made.rows, [&](const SharedRow& a, const SharedRow& b) { return most(a) > most(b); });
  return made;
}

}  // namespace stepladder
