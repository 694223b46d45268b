// What is left at all: the shortest time that a traced step could take on its device by roofline, and which kinds of
// work hold the gap. Pure.
#pragma once

#include <span>
#include <vector>

#include "storage/analysis/prediction/stage_law.h"

namespace stepladder {

struct KindFloor {
  OperatorKind kind = OperatorKind::between;
  double ms = 0;        // of the step
  double least_ms = 0;  // at the peaks; of kinds that do no work 0
  double known_ms = 0;  // of `ms`, in rows whose work is known; the rest counts in full
  double gap_ms() const { return ms - least_ms; }
};

struct StepFloor {
  double step_ms = 0;
  double floor_ms = missing;     // missing: the peaks aren't known
  double known_share = 0;        // of the time of work, that is in rows whose work is known
  std::vector<KindFloor> kinds;  // the largest gap first
  double share() const { return is_missing(floor_ms) || step_ms <= 0 ? missing : floor_ms / step_ms; }
};

// Each row takes the longer of its FLOPs at the peak and its bytes at the bandwidth, but never more than it took; a row
// whose work isn't known takes what it took. Exposed communication stays; waiting and time outside operators vanish.
// `rows`: milliseconds of each as shares of the step, which they add up to. missing `tflops` or `bandwidth_gb_s`: no
// floor.
StepFloor step_floor(std::span<const LawRow> rows, double tflops, double bandwidth_gb_s);

}  // namespace stepladder
