// The Tries view's model: a series of tries (docs/try.md), read on another thread, and again when the project's file
// has changed. UI thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/desktop/models/background.h"
#include "app/runs/try_history.h"
#include "storage/analysis/statistics.h"

namespace stepladder {

class RunStore;

// What a chart and a list show of a try, in the order of TryHistory::tries.
struct TryFigures {
  double value = missing;  // mean of its runs, in the metric's unit; missing: none ended well
  Interval ci95;           // kept: of that value, from the answer's interval over what was kept before
  std::int64_t runs = 0;
  double wall_s = 0;    // of them
  std::string change;   // as the command line words it, with its interval
  std::string beside;   // what that is a change against: "over 2 turns with the state kept before"; empty without one
  std::string verdict;  // "kept", "cannot-tell", "running"; "first" for the state that the series began with
};

struct TriesView {
  LadderId asked = 0;          // 0: the newest
  std::vector<TrySeries> all;  // oldest first; empty: the project has none
  TryHistory shown;
  std::vector<TryFigures> figures;
  std::string metric;
  bool lower_is_better = true;
  // Half the band around the kept value that holds 95 % of the single runs without a clear change, with the machine's
  // drift; by the noise at the beginning alone while there are few. In the metric's unit; missing: not known.
  double half_band = missing;
  std::int64_t kept = 0;       // how many
  std::int64_t last_kept = 0;  // which state is the kept one
  bool strict = false;         // no false keep in the whole series, else 5 % of the kept
  Json status;                 // as `try status --json` prints it
  std::string problem;         // why nothing could be read
  std::size_t stamp = 0;       // of the project's file when it was read
};

TriesView tries_view(RunStore& store, LadderId asked);

class TriesReader {
  using Clock = std::chrono::steady_clock;

 public:
  // Call in every frame. Reads what a view asks for (nullopt: no view does), once a second again if it has changed.
  void update(std::shared_ptr<const TriesView>& into, RunStore& store, std::optional<LadderId> asked,
              std::chrono::milliseconds patience);
  bool is_pending() const { return background_.is_pending(); }
  bool is_due() const { return Clock::now() >= next_check_; }

 private:
  Clock::time_point next_check_{};
  Background<std::shared_ptr<const TriesView>> background_;
};

}  // namespace stepladder
