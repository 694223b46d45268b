// Computes the rows of call times and the sentences about them, for `stepladder profile` and the Profile view. A
// sentence appears only where the rows support it; thresholds are at the top.
#include "app/profile/call_rows.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <numeric>
#include <sstream>
#include <utility>

#include "app/text/format.h"
#include "storage/analysis/statistics.h"

namespace stepladder {
namespace {

constexpr double large_spread = 0.1;  // standard deviation, of the mean
constexpr double sums_agree = 0.1;    // forward + backward against both together

CallRow row_of(CallTimes times) {
  const std::vector<double>& ms = times.ms;
  const auto n = static_cast<double>(ms.size());
  const double total = std::accumulate(ms.begin(), ms.end(), 0.0);
  double squares = 0;
  for (const double each : ms) squares += (each - total / n) * (each - total / n);
  std::vector<double> sorted = ms;
  std::ranges::sort(sorted);
  // std_ms is the standard deviation of the calls themselves (divided by n).
  return {std::move(times), total / n, quantile(sorted, 0.5), std::sqrt(squares / n), sorted.front(),
          sorted.back(),    total};
}

const CallRow* find(const std::vector<CallRow>& rows, const std::string& computation, const std::string& precision,
                    int warmup) {
  const auto found = std::ranges::find_if(rows, [&](const CallRow& row) {
    return row.times.computation == computation && row.times.precision == precision && row.times.warmup == warmup;
  });
  return found == rows.end() ? nullptr : &*found;
}

std::string name_of(const CallRow& row) {
  return row.times.computation + " " + row.times.precision;
}

constexpr const char* computations[] = {"forward", "backward", "forward_backward"};

// Compares the rows that were timed cold and warm. The example is one of the majority.
std::string warmup_lesson(const std::vector<CallRow>& rows) {
  std::vector<std::pair<const CallRow*, const CallRow*>> pairs;  // cold and warm
  for (const CallRow& row : rows) {
    const CallRow* const warm =
        row.times.warmup == 0 ? find(rows, row.times.computation, row.times.precision, 1) : nullptr;
    if (warm && row.times.ms.size() > 1) pairs.emplace_back(&row, warm);
  }
  if (pairs.empty()) return "";
  const auto lowered_ms = [](const auto& pair) { return pair.first->std_ms - pair.second->std_ms; };
  const auto lowered = std::ranges::count_if(pairs, [&](const auto& pair) { return lowered_ms(pair) > 0; });
  const bool is_lower = 2 * lowered > std::ssize(pairs);
  const auto [cold, warm] = *std::ranges::max_element(pairs, [&](const auto& a, const auto& b) {
    return is_lower ? lowered_ms(a) < lowered_ms(b) : lowered_ms(a) > lowered_ms(b);
  });
  return "Warm-up: one call before the timed ones lowers the spread in " + std::to_string(lowered) + " of " +
         std::to_string(pairs.size()) + " rows; " + (is_lower ? "most" : "it raises it most") + " in " +
         name_of(*cold) + ", from " + milliseconds_text(cold->std_ms) + " to " + milliseconds_text(warm->std_ms) +
         (is_lower ? ". The first call pays for fresh memory and for choosing kernels." : ".");
}

std::string precision_lesson(const std::vector<CallRow>& rows, int warmup) {
  const CallRow* const full = find(rows, "forward_backward", "fp32", warmup);
  const CallRow* const mixed = find(rows, "forward_backward", "bf16", warmup);
  if (!full || !mixed) return "";
  const double factor = full->median_ms / mixed->median_ms;
  const std::string numbers = "forward_backward takes " + milliseconds_text(mixed->median_ms) +
                              " with bf16 instead of " + milliseconds_text(full->median_ms) + " (" +
                              factor_text(factor) + ")";
  if (factor > 1.02) return "Mixed precision pays here: " + numbers + ".";
  if (factor > 0.98) return "Mixed precision changes little here: " + numbers + ".";
  return "Mixed precision does not pay here: " + numbers +
         ". Casts cost time, and products gain only where the device has bf16 units.";
}

std::string sum_lesson(const std::vector<CallRow>& rows, const std::string& precision, int warmup) {
  const CallRow* parts[3];
  for (int i = 0; i < 3; ++i) {
    parts[i] = find(rows, computations[i], precision, warmup);
    if (!parts[i]) return "";
  }
  const double sum = parts[0]->median_ms + parts[1]->median_ms, both = parts[2]->median_ms;
  const std::string numbers = "forward and backward take " + milliseconds_text(sum) + " one by one and " +
                              milliseconds_text(both) + " together (" + precision + ")";
  if (std::fabs(sum / both - 1) <= sums_agree) return "The rows fit each other: " + numbers + ".";
  return "The rows do not fit each other: " + numbers + ". Something else may have used this machine.";
}

std::string spread_warning(const std::vector<CallRow>& rows) {
  std::vector<std::string> wide;
  for (const CallRow& row : rows) {
    // A cold row's first call is expected to differ.
    if (row.times.warmup > 0 && row.std_ms > large_spread * row.mean_ms) wide.push_back(name_of(row));
  }
  if (wide.empty()) return "";
  return fmt::format(
      "Warning: {} of the warm rows spread by more than {} ({}{}): close other programs, or time more calls (--steps).",
      wide.size(), percent_text(large_spread), wide.front(), wide.size() > 1 ? " and others" : "");
}

}  // namespace

std::vector<CallRow> call_rows(std::vector<CallTimes> times) {
  std::vector<CallRow> rows;
  for (CallTimes& each : times) rows.push_back(row_of(std::move(each)));
  std::ranges::stable_sort(rows, {}, &CallRow::mean_ms);
  return rows;
}

std::vector<CallRow> call_rows(const StoredPasses& passes) {
  std::vector<CallTimes> times;
  for (const StoredCalls& each : passes.rows) {
    if (!each.ms.empty())
      times.push_back(
          {.computation = each.computation, .precision = each.precision, .warmup = each.warmup, .ms = each.ms});
  }
  return call_rows(std::move(times));
}

Json rows_json(const std::vector<CallRow>& rows, bool is_synced) {
  Json list = Json::array();
  for (const CallRow& row : rows) {
    list.push_back({{"computation", row.times.computation},
                    {"warmup", row.times.warmup},
                    {"precision", row.times.precision},
                    {"steps", row.times.ms.size()},
                    {"mean_ms", row.mean_ms},
                    {"median_ms", row.median_ms},
                    {"std_ms", row.std_ms},
                    {"min_ms", row.min_ms},
                    {"max_ms", row.max_ms},
                    {"total_ms", row.total_ms},
                    {"sync", is_synced ? "device" : "none"},
                    {"times_ms", row.times.ms}});
  }
  return list;
}

std::string rows_csv(const std::vector<CallRow>& rows) {
  std::ostringstream text;
  text << "computation,warmup,precision,steps,mean_ms,median_ms,std_ms,min_ms,max_ms,total_ms\n";
  for (const CallRow& row : rows) {
    text << row.times.computation << ',' << row.times.warmup << ',' << row.times.precision << ','
         << row.times.ms.size();
    for (const double ms : {row.mean_ms, row.median_ms, row.std_ms, row.min_ms, row.max_ms, row.total_ms})
      text << ',' << Json(ms).dump();
    text << "\n";
  }
  return text.str();
}

std::string significant_ms(double ms, double error_ms) {
  if (!(ms > 0)) return milliseconds_text(ms);
  const double first = std::floor(std::log10(ms));
  const double uncertain = error_ms > 0 ? std::floor(std::log10(error_ms)) : first - 2;
  const double unit = std::pow(10.0, std::clamp(uncertain, first - 2, first));
  const double rounded = std::round(ms / unit) * unit;
  const bool in_seconds = rounded >= 1000;
  const int decimals = std::max(0, -static_cast<int>(std::lround(std::log10(in_seconds ? unit / 1000 : unit))));
  std::ostringstream text;
  text << std::fixed << std::setprecision(decimals) << (in_seconds ? rounded / 1000 : rounded)
       << (in_seconds ? " s" : " ms");
  return text.str();
}

TextTable rows_table(const std::vector<CallRow>& rows) {
  TextTable table{
      .heads = {"computation", "warm-up", "precision", "calls", "mean", "median", "std", "min", "max", "total"},
      .right = {false, true, false, true, true, true, true, true, true, true},
      .rows = {}};
  for (const CallRow& row : rows) {
    const double error = row.std_ms / std::sqrt(static_cast<double>(row.times.ms.size()));
    table.rows.push_back(
        {row.times.computation, std::to_string(row.times.warmup), row.times.precision,
         std::to_string(row.times.ms.size()), significant_ms(row.mean_ms, error), significant_ms(row.median_ms, error),
         row.times.ms.size() > 1 ? significant_ms(row.std_ms, row.std_ms / 10) : "-", milliseconds_text(row.min_ms),
         milliseconds_text(row.max_ms), milliseconds_text(row.total_ms)});
  }
  return table;
}

std::string no_sync_sentence(bool on_cpu) {
  return on_cpu ? "Flagged no-sync, though it has no effect on a CPU: a call returns when it is done."
                : "Flagged no-sync: the clock didn't wait for the device, so these are the times to ask for the work, "
                  "and too small.";
}

std::vector<std::string> lessons_of(const std::vector<CallRow>& rows) {
  int warmup = 0;
  for (const CallRow& row : rows) warmup = std::max(warmup, row.times.warmup);
  std::vector<std::string> lessons{warmup_lesson(rows), precision_lesson(rows, warmup),
                                   sum_lesson(rows, "fp32", warmup), spread_warning(rows)};
  std::erase(lessons, "");
  return lessons;
}

}  // namespace stepladder
