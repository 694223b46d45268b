// The results of a sweep: each combination's figures over its runs, and one of them as lines over a swept value. The
// command line and the Ladder view take their answer from here. Pure: no thread, no file.
#pragma once

#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "storage/analysis/compare.h"
#include "storage/analysis/plausibility.h"
#include "storage/analysis/summary.h"
#include "storage/analysis/verdict/picked_best.h"
#include "storage/by_enum.h"
#include "storage/records.h"

namespace stepladder {

// The names of the values that a ladder's rungs set, in the order of their text; empty if a rung has a stage or a name,
// or if the rungs set different values: then it isn't a sweep. Seeds are never among them. `runs` by rung. Of an import
// these are swept_settings (storage/analysis/file_grouping.h).
std::vector<std::string> swept_names(std::span<const Run* const> runs);

// The figures that the runs of a sweep are compared by. target_*: the steps, time or tokens until a loss was reached.
enum class SweepResult {
  loss_last,
  loss_min,
  val_loss_last,
  val_loss_min,
  tokens_per_s,
  dt_ms_median,
  peak_memory_bytes,
  target_steps,
  target_seconds,
  target_tokens
};
inline constexpr std::size_t sweep_result_count = enum_count<SweepResult>();

struct SweepResultKind {
  SweepResult result;
  const char* id;     // in JSON: "loss_last"
  const char* title;  // "Loss at the end"
  const char* unit;   // of the value: "ms"
  bool is_loss = false;
  bool higher_is_better = false;

  bool needs_target() const { return result >= SweepResult::target_steps; }
  bool is_timed() const {
    return result == SweepResult::tokens_per_s || result == SweepResult::dt_ms_median ||
           result == SweepResult::target_seconds;
  }
  std::string text(double value) const;  // for people, without the unit; "-" if missing
};
const std::array<SweepResultKind, sweep_result_count>& sweep_result_kinds();
const SweepResultKind& kind_of(SweepResult result);

// A run of a sweep. `target` is unset if it isn't known.
struct SweptRun {
  const Run* run = nullptr;
  const Summary* summary = nullptr;
  std::optional<TargetReached> target = {};
};

// The mean over a combination's finished runs, and the range that they span; missing without any.
struct SweptFigure {
  double mean = missing;
  double low = missing;
  double high = missing;
  int runs = 0;      // that have a finite value
  int left_out = 0;  // runs with NaN or infinity, or that never reached the target
  int once = 0;      // runs that reached it by their last evaluation alone
};
SweptFigure figure_of(std::span<const double> values);  // missing values don't count; infinities and NaN are excluded

// One combination's results, in the order of its ladder's rungs.
struct SweptRung {
  int rung = 0;
  std::vector<nlohmann::ordered_json> values;  // of the swept names; as the recipe has them
  std::size_t runs = 0;
  std::size_t finished = 0;
  std::string trouble;           // "NaN", "1 of 3 failed"; empty: none. Such a combination is never the best
  Trust trust = Trust::trusted;  // the worst of its finished runs'; an impossible one is never the best by its times
  std::string doubt;             // the flag behind it: "Timed without device sync"
  double tokens = missing;       // that its first finished run trained on
  std::array<SweptFigure, sweep_result_count> figures;

  const SweptFigure& of(SweepResult result) const { return figures[static_cast<std::size_t>(result)]; }
};
struct SweepResults {
  std::vector<std::string> names;  // of the columns in SweptRung::values
  std::vector<SweptRung> rungs;

  std::array<PickedBest, sweep_result_count> picked;
  bool are_cut = false;  // none finished; runs whose logs just end count instead

  bool has(SweepResult result) const;  // whether any rung has a value of it
  bool may_be_best(const SweptRung& rung, SweepResult result) const;
  // The places of the rungs, the best mean first; those without one, then those that can't be the best are last.
  std::vector<std::size_t> ranked(SweepResult result) const;
  int best(SweepResult result) const;  // the first of these; -1: none has a mean
};
// The spread between runs is that of the combinations' repeats, else the one that `hardware` has for such runs.
SweepResults sweep_results(std::span<const SweptRun> runs, const std::vector<std::string>& names,
                           const HardwareTable& hardware);

// "Lowest at lr 0.001: 3.2100 (3.1900 - 3.2300, 3 runs). 4 of the 11 others may be as good: expect about 3.2235 when it
// is trained again." Then what it doesn't show: times that are doubtful, losses after other numbers of tokens. Empty
// for fewer than two rungs with a value.
std::string best_text(const SweepResults& results, SweepResult result);

// A combination in words: "lr 0.001, batch 8"; skips the name `without`.
std::string values_text(const SweepResults& results, const SweptRung& rung, const std::string& without = "");
std::string value_text(const nlohmann::ordered_json& value);

// One result against one swept value: a line for each combination of the other values.
struct SweepLine {
  std::string label;  // empty: there are no others
  int rung = 0;       // the first of its rungs
  std::vector<double> x, y, low, high;
  std::vector<int> runs;
};
struct SweepLines {
  std::map<double, std::string> ticks;  // the swept values; those that aren't numbers are at 0, 1, 2 ...
  bool log_x = false;                   // the values span a factor of 8 or more
  bool log_y = false;                   // 20 or more
  std::vector<SweepLine> lines;
};
SweepLines sweep_lines(const SweepResults& results, SweepResult result, const std::string& against);

// A run's value by its name in the recipe; null if it has none.
nlohmann::ordered_json recipe_value(const Run& run, const std::string& name);

}  // namespace stepladder
