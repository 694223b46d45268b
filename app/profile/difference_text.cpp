#include "app/profile/difference_text.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "app/text/format.h"
#include "storage/traces/anatomy.h"
#include "storage/wording.h"

namespace stepladder {
namespace {

// Rows below this share of a step are summed in one line.
constexpr double least_share = 0.005;

std::string signed_ms(double ms) {
  return (ms < 0 ? "-" : "+") + milliseconds_text(std::fabs(ms));
}

// "* +/- 0.04 ms": beyond the noise; without the star it may be noise. "-": not known.
std::string noise_text(const RowDifference& row) {
  return is_missing(row.noise_ms) ? "-" : (row.is_clear ? "* +/- " : "  +/- ") + milliseconds_text(row.noise_ms);
}

std::string side_text(const std::vector<TracedOperator>& rows) {
  if (rows.empty()) return "";
  const std::string more = rows.size() > 1 ? fmt::format(" and {} more", rows.size() - 1) : "";
  return title_of(row_of(rows.front())) + more;
}

}  // namespace

std::string title_of(const RowDifference& row, const std::string& arrow) {
  const std::string before = side_text(row.before), after = side_text(row.after);
  if (before.empty() || after.empty() || before == after) return before.empty() ? after : before;
  return before + arrow + after;
}

std::string title_with_shapes(const RowDifference& row, const std::string& arrow) {
  const std::string shapes = shapes_of(row);
  return title_of(row, arrow) + (shapes.empty() ? "" : "  " + shapes);
}

TextTable difference_table(const ProfileDifference& difference, bool all) {
  TextTable table{.heads = {"change", "kind", "part", "operator", "calls", "before", "after", "difference", "noise"},
                  .right = {false, false, false, false, true, true, true, true, false},
                  .rows = {}};
  std::size_t small = 0;
  double small_ms = 0;
  for (const RowDifference& row : difference.rows) {
    if (!all && (row.change == RowChange::same || std::fabs(row.delta_ms()) < least_share * difference.before_ms)) {
      ++small;
      small_ms += row.delta_ms();
      continue;
    }
    table.rows.push_back({std::string(to_string(row.change)), std::string(to_string(row.kind)), part_of(row),
                          title_with_shapes(row), calls_text(row), milliseconds_text(row.before_ms),
                          milliseconds_text(row.after_ms), signed_ms(row.delta_ms()), noise_text(row)});
  }
  if (small > 0)
    table.rows.push_back({"", "", "", fmt::format("{} smaller rows", small), "", "", "", signed_ms(small_ms), ""});
  table.rows.push_back({"", "", "", "a step", "", milliseconds_text(difference.before_ms),
                        milliseconds_text(difference.after_ms), signed_ms(difference.after_ms - difference.before_ms),
                        is_missing(difference.noise_ms) ? "-" : "  +/- " + milliseconds_text(difference.noise_ms)});
  return table;
}

std::string clear_rows_text(const ProfileDifference& difference) {
  if (std::ranges::all_of(difference.rows, [](const RowDifference& row) { return is_missing(row.noise_ms); }))
    return "Noise isn't known: it needs two steps a side, of traces imported by this version";
  const std::size_t clear = difference.clear_rows();
  if (clear == 0) return "Nothing differs beyond the noise between the steps of each trace";
  return fmt::format("{} of {} {} beyond the noise between the steps of each trace",
                     grouped(static_cast<std::int64_t>(clear)), plural(std::ssize(difference.rows), "row"),
                     clear == 1 ? "differs" : "differ");
}

TextTable kinds_table(const ProfileDifference& difference) {
  TextTable table{.heads = {"kind", "before", "after", "difference"}, .right = {false, true, true, true}, .rows = {}};
  std::map<OperatorKind, std::pair<double, double>> sums;
  for (const RowDifference& row : difference.rows) {
    for (const TracedOperator& each : row.before) sums[kind_of(each)].first += each.time.self_ms;
    for (const TracedOperator& each : row.after) sums[kind_of(each)].second += each.time.self_ms;
  }
  std::vector<std::pair<OperatorKind, std::pair<double, double>>> kinds(sums.begin(), sums.end());
  const auto delta_of = [](const auto& kind) { return kind.second.second - kind.second.first; };
  std::ranges::stable_sort(
      kinds, [&](const auto& a, const auto& b) { return std::fabs(delta_of(a)) > std::fabs(delta_of(b)); });
  for (const auto& kind : kinds)
    table.rows.push_back({std::string(to_string(kind.first)), milliseconds_text(kind.second.first),
                          milliseconds_text(kind.second.second), signed_ms(delta_of(kind))});
  table.rows.push_back({"a step", milliseconds_text(difference.before_ms), milliseconds_text(difference.after_ms),
                        signed_ms(difference.after_ms - difference.before_ms)});
  return table;
}

bool has_graphs(const std::vector<TracedOperator>& operators) {
  return std::ranges::any_of(
      operators, [](const TracedOperator& each) { return is_compiled(each.time.name) || is_compiled(each.launcher); });
}

std::string traced_calls_text(const TraceProfile& profile) {
  return plural(profile.calls, profile.on_gpu ? "kernel call" : "operator call");
}

std::string calls_text(double calls) {
  if (!(calls > 0)) return "-";
  return calls == std::floor(calls) && calls < 1e5 ? grouped(std::llround(calls)) : compact(calls);
}

std::string calls_text(const RowDifference& row) {
  const std::string before = calls_text(row.before_calls), after = calls_text(row.after_calls);
  return before == after ? before : before + " -> " + after;
}

}  // namespace stepladder
