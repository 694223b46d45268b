#include "engine/trainer/profile/step_tracer.h"

#include <c10/util/Logging.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include <set>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace stepladder {
namespace {

namespace profiler = torch::autograd::profiler;
using torch::profiler::impl::ActivityType;

// The profiler's activities, which are the only difference between devices.
std::set<ActivityType> activities(bool on_cuda) {
  return on_cuda ? std::set{ActivityType::CPU, ActivityType::CUDA} : std::set{ActivityType::CPU};
}

torch::profiler::impl::ProfilerConfig config() {
  return torch::profiler::impl::ProfilerConfig(torch::profiler::impl::ProfilerState::KINETO,
                                               /*report_input_shapes=*/true, /*profile_memory=*/true);
}

void open(std::optional<at::RecordFunction>& range, const std::string& name) {
  range.emplace(at::RecordScope::USER_SCOPE);
  if (range->isActive()) range->before(name);
}

}  // namespace

StepTracer::StepTracer(std::int64_t skipped, std::int64_t steps, std::filesystem::path file)
    : skipped_(skipped), steps_(steps), file_(std::move(file)) {}

StepTracer::~StepTracer() {
  part_.reset();
  step_.reset();
  if (!is_prepared_) return;
  try {  // a profiler that was prepared but never began can't be prepared again
    if (!is_recording_) profiler::enableProfiler(config(), activities(on_cuda_));
    profiler::disableProfiler();
  } catch (const std::exception&) {  // nothing is kept of this training
  }
}

void StepTracer::prepare(at::Device device) {
  c10::initLogging();  // heeds TORCH_CPP_LOG_LEVEL
  on_cuda_ = device.is_cuda();
  profiler::prepareProfiler(config(), activities(on_cuda_));
  is_prepared_ = true;
}

void StepTracer::begin_step(std::int64_t step, int micro_batches) {
  if (step == skipped_ + 1) {
    profiler::enableProfiler(config(), activities(on_cuda_));
    is_recording_ = true;
  }
  if (!is_recording_) return;
  micro_batches_left_ = micro_batches;
  open(step_, "ProfilerStep#" + std::to_string(step));
  open_part("data");
}

void StepTracer::open_part(const char* name) {
  part_.reset();  // before the next one begins
  open(part_, name);
}

// The update's range ends with the step, since it is the last part.
void StepTracer::end_part(double StepParts::*part) {
  if (!is_recording_) return;
  if (part == &StepParts::data_ms) open_part("forward");
  if (part == &StepParts::forward_ms) open_part("backward");
  if (part == &StepParts::backward_ms) open_part(--micro_batches_left_ > 0 ? "data" : "optimiser");
}

void StepTracer::replay_begins() {
  if (is_recording_) open_part("captured step");
}

void StepTracer::end_step(std::int64_t step) {
  if (!is_recording_) return;
  part_.reset();
  step_.reset();
  if (step == skipped_ + steps_) write();
}

void StepTracer::write() {
  is_recording_ = is_prepared_ = false;
  const std::unique_ptr<profiler::ProfilerResult> result = profiler::disableProfiler();
  result->save(file_.string());
  std::error_code error;  // Kineto only logs that it couldn't write
  if (const auto size = std::filesystem::file_size(file_, error); error || size == 0)
    throw std::runtime_error(file_.string() + " could not be written by LibTorch's profiler");
  is_done_ = true;
}

}  // namespace stepladder
