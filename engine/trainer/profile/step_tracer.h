// Records what training steps do, with LibTorch's profiler (Kineto): operators, our own kernels, memory and, on NVIDIA
// GPUs through CUPTI, launches, kernels and copies. Each step is a range ProfilerStep#N with ranges of its parts
// inside, as a Python script under torch.profiler has them. The profiler slows steps, so traced ones are never timed.
#pragma once

#include <ATen/record_function.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <filesystem>
#include <optional>

#include "storage/records.h"

namespace stepladder {

// Used by the training thread only; at most one at a time in a process.
class StepTracer {
 public:
  // Steps count from 1. Traces `steps` of them after the first `skipped`.
  StepTracer(std::int64_t skipped, std::int64_t steps, std::filesystem::path file);
  ~StepTracer();  // ends the profiler if it runs; writes nothing
  StepTracer(const StepTracer&) = delete;
  StepTracer& operator=(const StepTracer&) = delete;

  // Sets the profiler up for this device. Before the first step, and before a step is captured as a graph.
  void prepare(at::Device device);

  void begin_step(std::int64_t step, int micro_batches);
  // The same marks as StepTimer::mark gets.
  void end_part(double StepParts::*part);
  // From here to the step's end one call starts everything, so its parts can't be distinguished.
  void replay_begins();
  // The device must have finished. After the last traced step, writes the file; throws std::runtime_error if it can't.
  void end_step(std::int64_t step);

  // True once the file has been written.
  bool is_done() const { return is_done_; }

 private:
  void open_part(const char* name);
  void write();

  const std::int64_t skipped_, steps_;
  const std::filesystem::path file_;
  bool on_cuda_ = false;
  bool is_prepared_ = false, is_recording_ = false, is_done_ = false;
  int micro_batches_left_ = 0;
  std::optional<at::RecordFunction> step_, part_;  // the ranges that are open
};

}  // namespace stepladder
