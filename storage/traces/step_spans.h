// The ranges of a trace's steps. Inside storage/traces/ only.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "storage/traces/trace.h"

namespace stepladder {

inline constexpr std::size_t most_steps = 10'000;  // of a trace, of all its devices together

// The range of a step, on the CPU or on one GPU.
struct StepSpan {
  std::int64_t number = 0;
  std::int64_t start_ns = 0, end_ns = 0;
};

void require_few_steps(std::size_t steps);  // throws TraceError

// Sorts spans by time and cuts overlaps. Throws TraceError if there are too many.
std::vector<StepSpan> in_order(std::vector<StepSpan> spans);

// Makes the span of this number, or lets it hold this range too.
void widen(std::map<std::int64_t, StepSpan>& spans, std::int64_t number, std::int64_t start, std::int64_t end);

// The steps as the CPU marks them or, with a process, as its streams do.
std::vector<StepSpan> marked_steps(const Trace& trace, SliceKind kind, const std::string* process = nullptr);

// The step in which this moment is; null: none. `steps` are in the order of time and don't overlap.
const StepSpan* step_at(const std::vector<StepSpan>& steps, std::int64_t ns);

}  // namespace stepladder
