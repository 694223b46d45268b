#include "engine/trainer/step_timer.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/mps.h>

namespace stepladder {
namespace {

// Reaches CUDA through the interface that its library registered; none of its headers is needed.
c10::Stream current_stream(c10::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

c10::Event timing_event(c10::Device device) {
  return c10::Event(device.type(), c10::EventFlag::BACKEND_DEFAULT);
}

}  // namespace

StepTimer::StepTimer(c10::Device device) : device_(device) {
  if (device.is_cuda()) events_.emplace(Events{timing_event(device), timing_event(device)});
}

void StepTimer::start() {
  if (events_) {
    events_->before.record(current_stream(device_));
    return;
  }
  drain();
  started_ = std::chrono::steady_clock::now();
}

double StepTimer::stop_ms() {
  if (events_) {
    events_->after.record(current_stream(device_));
    events_->after.synchronize();
    return events_->before.elapsedTime(events_->after);
  }
  drain();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - started_).count();
}

void StepTimer::drain() const {
  if (device_.is_mps()) torch::mps::synchronize();
}

}  // namespace stepladder
