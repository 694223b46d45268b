// Attributes the time of a traced step. A GPU's instant belongs to the kernels that compute in it, in equal parts; if
// none does, to the communication, then to the copies; if nothing runs, it is idle. So the rows add up to the step, and
// communication that other work hides costs nothing. In a trace without a GPU, an instant belongs to the innermost
// operator of each thread in the same way.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "storage/analysis/step_profile.h"

namespace stepladder {

class Trace;

// One row of a step: an operator of a CPU, or a kernel. Means over the steps of all ranks.
struct TracedOperator {
  OperatorTime time;       // self_ms: its share of the step; of a GPU, `name` is the kernel
  double busy_ms = 0;      // that it ran for, also beside others
  std::string launcher;    // of a kernel: the operator that launched it; empty: not known
  double bytes = missing;  // that it has to move at least (operator_work.h)
  // The standard deviation of self_ms between the steps of a rank; with several ranks their weighted mean, as if they
  // varied together. missing: fewer than two steps, or kept by a version that didn't know it.
  double sd_ms = missing;
};

using KindArray = std::array<double, all_operator_kinds.size()>;

struct TracedStep {
  int rank = 0;
  std::int64_t step = 0;
  double start_ms = 0;  // since the first step of its rank
  double dt_ms = 0;
  KindArray ms{}, busy_ms{};  // by kind; `ms` adds up to dt_ms
};

struct TraceProfile {
  bool on_gpu = false;
  bool has_steps = false;  // false: the trace marks none, so all of it counts as one
  int ranks = 0;
  std::int64_t calls = 0;  // of all steps: kernels and copies of a GPU, operators of a CPU
  std::vector<TracedStep> steps;
  std::vector<TracedOperator> operators;  // the most expensive first
  std::vector<std::string> notes;         // sentences about what was left out
};

// The operator as a row of a run's step profile: "aten::gelu > KERNEL".
OperatorTime row_of(const TracedOperator& each);
OperatorKind kind_of(const TracedOperator& each);
// Of slices at the same moment only those of the lowest order count: computing, communication, copies, the rest.
int order_of(OperatorKind kind, std::string_view name);
double mean_step_ms(const TraceProfile& profile);

// How a mean step varies. missing: fewer than two steps, or not known.
struct StepSpread {
  int steps = 0;           // of a rank, on average
  double sd_ms = missing;  // between the steps of a rank; of several ranks the mean
};
StepSpread step_spread(const TraceProfile& profile);

// Whether the next of these steps, by rank and time, is the next one of its rank. A GPU's step that none follows has no
// beginning of another one to end it.
bool is_followed(const std::vector<TracedStep>& steps, std::size_t i);

// Sums up one process's trace, sorted (Trace::sort). Each GPU in it is a rank of its own if it has several; otherwise
// the rank is the trace's. Throws TraceError.
TraceProfile attribute(const Trace& trace);

// Puts the profiles of several ranks together, which must be of the same kind of device.
TraceProfile join_ranks(std::vector<TraceProfile> ranks);

}  // namespace stepladder
