// A training of a few steps under LibTorch's profiler (Kineto; on NVIDIA GPUs with CUPTI). Profiling slows a step, so
// such a training is never recorded as a run: only its trace is kept. Plain values, no torch.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>

#include "engine/device.h"
#include "engine/recipe.h"

namespace stepladder {

struct StepTracing {
  Recipe recipe;               // what it says of the number of steps, validation, samples and checkpoints is ignored
  std::int64_t skipped = 3;    // steps before the traced ones, in which libraries set themselves up
  std::int64_t steps = 5;      // traced; they are called ProfilerStep#N
  std::filesystem::path file;  // to be written, by rank 0: JSON as PyTorch's profiler exports it
};

// The file that rank N writes, beside rank 0's.
std::filesystem::path trace_file_of(const std::filesystem::path& file, int rank);

// The request of a worker process that rank 0's `trace_steps` has started, from its environment; nullopt if it trains.
std::optional<StepTracing> tracing_of_worker(const Recipe& recipe, int rank);

// The recipe as such a training needs it.
Recipe recipe_to_trace(const StepTracing& asked);

// This machine, as the trainer sees it. Both of these load LibTorch, and must be called on one thread: Kineto refuses
// to trace from another thread than the one that loaded it. Throws std::runtime_error with a sentence.
DeviceReport probe_to_trace();

// Blocks until the traces of all processes are written; the calling thread trains. Throws std::runtime_error with a
// sentence if the recipe can't be trained or traced here, or if `stop_requested`, which is called after each step,
// returns true.
void trace_steps(const StepTracing& asked, const std::function<bool()>& stop_requested);

}  // namespace stepladder
