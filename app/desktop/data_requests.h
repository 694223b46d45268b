// Data that views lack. A view asks for it in every frame until it is there; what no view asks for any more isn't read.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "storage/metric_figure.h"
#include "storage/quantity.h"
#include "storage/records.h"

namespace stepladder {

struct DesktopState;

struct DataRequests {
  struct Excerpt {  // of a run that isn't read whole
    RunId run = 0;
    std::int64_t most = 100'000;  // steps
  };
  // A quantity's curve: the whole run in a few hundred points, or the steps of `zoom` at a window's resolution. Read on
  // another thread, the most urgent first.
  struct Curve {
    RunId run = 0;
    Quantity quantity = Quantity::loss;
    std::optional<std::pair<std::int64_t, std::int64_t>> zoom = {};  // first and last step
  };

  std::vector<RunId> series;   // all steps of these runs
  std::vector<RunId> details;  // their data besides steps: system metrics, samples, checkpoints
  std::vector<RunId> metrics;  // the names of what they logged beside their steps' fields
  std::vector<Excerpt> excerpts;
  std::vector<Curve> curves;
  std::optional<std::vector<MetricFigure>> figures;  // of all runs: these, until a view asks for others
  std::optional<LadderId> tries;                     // a series of them; 0: the newest
  bool bin = false;                                  // which runs are in it
  bool resumable = false;                            // which runs have a checkpoint to continue from
  bool next_frame = false;                           // another thread works for a view: draw again soon

  // Whether anything is asked for that is read between two frames.
  bool reads() const {
    return !series.empty() || !details.empty() || !metrics.empty() || !excerpts.empty() || figures || bin || resumable;
  }
  std::size_t size() const { return series.size() + details.size() + metrics.size() + excerpts.size() + curves.size(); }
  bool empty() const { return !reads() && curves.empty() && !tries && !next_frame; }
};

// Reads it, or starts to, between two frames. Failures become messages. Returns whether the next frame may differ.
bool read_requested(DesktopState& desktop, const DataRequests& asked);

// Shows curves that were read on another thread. Waits at most `patience`; returns whether there were any.
bool take_curves(DesktopState& desktop, std::chrono::milliseconds patience);

}  // namespace stepladder
