// The spread between runs of one program. The scatter of one run's steps doesn't show it, so a comparison of single
// runs takes it from this project's repeats or from a table of what was published.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "storage/analysis/statistics.h"
#include "storage/analysis/summary.h"
#include "storage/records.h"

namespace stepladder {

enum class SpreadFrom { unknown, prior, project, repeats };
std::string_view to_string(SpreadFrom from);  // "prior"; empty for unknown

// The deviation of one run's logarithm from its program's, as an estimate with Student's degrees of freedom.
struct RunSpread {
  double squares = 0;  // the sum that a variance of `freedom` degrees of freedom is estimated from
  double freedom = 0;  // 0: nothing is known
  SpreadFrom from = SpreadFrom::unknown;

  bool known() const { return freedom > 0; }
  double variance() const { return squares / freedom; }
};

// Estimates from independent evidence together; `from` is the second one's if it knows anything.
RunSpread pooled(const RunSpread& known, const RunSpread& more);

// The spread of repeats of one program: their squares around the mean of their logarithms. Unknown for fewer than two,
// or if all are equal, since such runs are copies.
RunSpread spread_of(std::span<const double> figures);

// The same of the figures themselves, which differ by no more than rounding where they differ by a millionth of a
// millionth of them or of the values that they are differences of.
RunSpread spread_of_repeats(std::span<const double> figures, double of_values);

// 95 % interval of the standard deviation, by chi-squared (Wilson and Hilferty 1931); unknown if nothing is known.
Interval deviation_interval(const RunSpread& spread);

// How many more runs than the `have` of each side bring half an interval's width down to `distance`: at least 1, and 0
// if a thousand runs are too few. `half_width` falls with the number of runs, which is 2 or more.
std::int64_t more_runs_for(double distance, std::size_t have,
                           const std::function<double(std::size_t runs)>& half_width);

class SpreadTable {
 public:
  // CSV with the columns of assets/spread.csv. Throws StorageError, with the file's name and the line.
  static SpreadTable read(const std::filesystem::path& file);

  // Replaces what was known by the spread of each rung's finished and undisturbed repeats, by their hardware; where it
  // is unknown, by their ladder.
  void learn_from(std::span<const RunAndSummary> runs);
  void learn_from(const std::vector<std::pair<const Run*, const Summary*>>& runs);

  // Step times on this run's hardware: the project's repeats shrunk towards the table's row for its kind of device (a
  // server's GPU, another one, a GPU with steps below 20 ms, a CPU, or a CPU that was watched and left alone). An
  // unknown device counts as a GPU: most logs come from one.
  RunSpread step_time(const Run& run, const Summary& summary) const;

  // The mean loss, in nats, of runs of this many steps that differ in their seed. The deviation falls with the number
  // of steps, down to that of a long run.
  RunSpread loss(std::int64_t steps) const;

 private:
  std::map<std::string, RunSpread, std::less<>> priors_;    // "step-time,gpu"
  std::map<std::string, RunSpread, std::less<>> projects_;  // by hardware
};

// The noise of a machine by equal runs on it: within a run, between runs, and its drift.

struct MachineNoise {
  std::size_t runs = 0;       // finished, with a step time
  std::size_t disturbed = 0;  // of these, by other programs; they count like the others
  double seconds = missing;   // from the start of the first to the end of the last

  double within = missing;  // standard deviation of a step, of its run's median: the quartiles' distance over 1.349
  RunSpread between;        // of the runs' medians
  Interval between_ci95;    // of its standard deviation
  double drift = missing;   // change of the step time from the first run to the last, by least squares
  Interval drift_ci95;      // by Student's t
};

// `runs`: equal runs, in the order in which they ran. Figures that need more runs stay missing: between runs 2, drift
// 4.
MachineNoise noise_of(std::span<const RunAndSummary> runs);

}  // namespace stepladder
