// A prediction is a ratio of step times; its errors are taken around zero and joined with the scatter of steps and run.
#include "storage/analysis/prediction/prediction.h"

#include <algorithm>
#include <cmath>

#include "storage/by_enum.h"
#include "storage/csv.h"

namespace stepladder {
namespace {

constexpr std::string_view columns = "stage,device,bound,predicted,measured,setting,source";
constexpr double noise = 0.03;       // between two runs of a quiet CPU, and of most GPUs less
constexpr std::size_t enough = 3;    // pairs of one stage
constexpr double most_error = 0.25;  // of the step: an estimate that is farther away in the median says nothing

struct Spread {
  double variance = 0, freedom = 0;
};

// Of errors around zero, not around their mean: a law that is always wrong to one side is wrong.
Spread spread_of_errors(std::span<const double> errors) {
  Spread spread{.freedom = static_cast<double>(errors.size())};
  for (const double each : errors) spread.variance += each * each / spread.freedom;
  return spread;
}

double half_width(const Spread& spread) {
  return spread.freedom > 0 ? t_critical(spread.freedom) * std::sqrt(spread.variance) : 0;
}

}  // namespace

std::vector<PastPrediction> read_past_predictions(const std::filesystem::path& file) {
  std::vector<PastPrediction> past;
  CsvFile rows(file, columns);
  while (rows.next()) {
    PastPrediction each{.stage = std::string(rows.text(0)),
                        .device = std::string(rows.text(1)),
                        .predicted = rows.number<double>(3),
                        .measured = rows.number<double>(4),
                        .at_most = rows.text(2) == to_string(Bound::at_most)};
    if (!each.at_most && rows.text(2) != to_string(Bound::estimate)) rows.refuse("has no such bound");
    if (!(each.predicted > 0) || !(each.measured > 0)) rows.refuse("has a step that takes no time");
    past.push_back(std::move(each));
  }
  return past;
}

double PastPrediction::log_error() const {
  return std::log(measured / predicted);
}

bool PastPrediction::breaks() const {
  return at_most && log_error() < -noise;
}

bool LawRecord::fails() const {
  if (n < enough) return false;
  return is_missing(log_error) ? broken * 3 > n : median_error > most_error;
}

LawRecord record_of(std::string_view stage, std::string_view device, bool at_most,
                    std::span<const PastPrediction> past) {
  LawRecord record;
  std::vector<double> own, of_device, all, shares;
  for (const PastPrediction& each : past) {
    if (each.at_most != at_most) continue;
    const double error = each.log_error();
    all.push_back(error);
    if (each.device != device) continue;
    of_device.push_back(error);
    if (each.stage != stage) continue;
    own.push_back(error);
    shares.push_back(at_most ? std::max(0.0, 1 - each.measured / each.predicted)
                             : std::abs(each.predicted / each.measured - 1));
    record.here += each.is_from_here;
    record.broken += each.breaks();
  }
  record.n = own.size();
  if (!shares.empty()) record.median_error = median_of(shares);
  if (at_most) return record;
  record.is_of_all_stages = own.size() < enough;
  const std::vector<double>& most = of_device.size() < enough ? all : of_device;
  const Spread spread = spread_of_errors(record.is_of_all_stages ? most : own);
  record.freedom = spread.freedom;
  if (spread.freedom > 0) record.log_error = std::sqrt(spread.variance);
  return record;
}

Interval error_band(const LawRecord& record) {
  if (is_missing(record.log_error)) return {};
  const double half = half_width({record.log_error * record.log_error, record.freedom});
  return {std::exp(-half), std::exp(half)};
}

std::string_view to_string(Bound bound) {
  return by_enum<Bound>("estimate", "at most", "unknown")[bound];
}

PredictedStep predicted_step(std::span<const double> ratios, bool at_most, double step_ms, const Interval& step,
                             const LawRecord& record) {
  PredictedStep made;
  if (ratios.empty() || !(step_ms > 0)) {
    made.why_unknown = "the trace has no step with a length";
    return made;
  }
  if (record.fails()) {
    made.why_unknown = at_most ? "measured steps were below its past bounds" : "its past predictions were too far off";
    return made;
  }
  // A step that would take no time at all is one of a microsecond, so that ratios stay finite.
  constexpr double least = 1e-6;
  std::vector<double> logs;
  for (const double each : ratios) logs.push_back(std::log(std::max(each, least)));
  const double middle = median_of(logs);
  double of_steps = 0;
  if (logs.size() > 1) {
    std::vector<double> errors;
    for (const double each : logs) errors.push_back(each - middle);
    Spread spread = spread_of_errors(errors);
    spread.freedom -= 1;
    spread.variance /= spread.freedom;  // of the mean
    of_steps = half_width(spread);
    constexpr std::size_t few = 5;  // whose own scatter says little: their range, then
    const auto [low, high] = std::minmax_element(errors.begin(), errors.end());
    if (errors.size() < few) of_steps = std::max(*high, -*low);
  }
  made.bound = at_most ? Bound::at_most : Bound::estimate;
  const double ratio = std::exp(middle);
  made.ms = step_ms * ratio;
  made.factor = 1 / ratio;
  const Interval band = at_most ? Interval{} : error_band(record);
  const double of_law = band.known() ? std::log(band.high) : 0;
  const double half = std::hypot(of_steps, of_law);
  made.factor_ci95 = {std::exp(-middle - half), std::exp(-middle + half)};
  const double own_low = step.known() ? std::log(step_ms / step.low) : 0;
  const double own_high = step.known() ? std::log(step.high / step_ms) : 0;
  made.ci95 = {made.ms * std::exp(-std::hypot(half, own_low)), made.ms * std::exp(std::hypot(half, own_high))};
  if (at_most) {  // anything from no gain to the bound
    made.factor_ci95 = {std::min(1.0, made.factor), made.factor};
    made.ci95.low = made.ms;
    made.ci95.high = std::max(step.known() ? step.high : step_ms, made.ms);
  }
  return made;
}

}  // namespace stepladder
