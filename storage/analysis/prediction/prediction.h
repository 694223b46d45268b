// What a change of a step would buy, with an interval: from the scatter of the traced steps, the error of past
// predictions, and the run's own step. Pure, but for reading the table of past predictions.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "storage/analysis/statistics.h"
#include "storage/errors.h"

namespace stepladder {

// A prediction and what was measured then. Ratios of step times, after over before.
struct PastPrediction {
  std::string stage;
  std::string device;
  double predicted = 1, measured = 1;
  bool at_most = false;
  bool is_from_here = false;  // of this project
  double log_error() const;   // of the predicted step
  bool breaks() const;        // a bound: the measured step was below it by more than noise
};

// CSV with the columns of assets/predictions.csv. Throws StorageError, with the file's name and the line.
std::vector<PastPrediction> read_past_predictions(const std::filesystem::path& file);

// How good the past predictions of a stage's law were.
struct LawRecord {
  std::size_t n = 0;              // of this stage on this kind of device
  std::size_t here = 0;           // of these, of this project
  double median_error = missing;  // of the predicted step, as a share of the measured one; of bounds, by how much the
                                  // measured step was shorter than the bound
  double log_error = missing;     // standard deviation of the logarithm's error, for an estimate's interval
  double freedom = 0;             // with so many degrees of freedom
  std::size_t broken = 0;         // bounds that the measured step was below by more than `noise`
  bool is_of_all_stages = false;  // log_error is that of all stages' estimates on this device, or of all, since this
                                  // one has too few
  bool fails() const;
};
LawRecord record_of(std::string_view stage, std::string_view device, bool at_most,
                    std::span<const PastPrediction> past);

// A factor of step time around an estimate: the 95 % interval that its past errors give. Not known without any.
Interval error_band(const LawRecord& record);

enum class Bound { estimate, at_most, unknown };
std::string_view to_string(Bound bound);  // "estimate", "at most", "unknown"

struct PredictedStep {
  Bound bound = Bound::unknown;
  double ms = missing;      // of the predicted step
  Interval ci95;            // of it, in ms. Of a bound: from the bound to the step as it is
  double factor = missing;  // of throughput, over the step as it is
  Interval factor_ci95;
  std::string why_unknown;  // a clause; empty: it is known
};

// `ratios`: of each traced step, its new length over the traced one. `step`: as it is, in ms, and its interval, which
// may be unknown.
PredictedStep predicted_step(std::span<const double> ratios, bool at_most, double step_ms, const Interval& step,
                             const LawRecord& record);

}  // namespace stepladder
