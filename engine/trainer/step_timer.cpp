#include "engine/trainer/step_timer.h"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/mps.h>

namespace stepladder {
namespace {

// Reaches CUDA through the interface that its library registered; none of its headers is needed.
c10::Stream current_stream(c10::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

}  // namespace

StepTimer::StepTimer(c10::Device device) : device_(device) {}

void StepTimer::start() {
  drain();
  marks_.clear();
  events_used_ = 0;
  marks_.push_back({.part = nullptr, .event = record_event()});
  marks_.back().at = Clock::now();
}

void StepTimer::mark(double StepParts::*part) {
  if (device_.is_mps()) return;
  marks_.push_back({.part = part, .at = Clock::now(), .event = record_event()});
}

double StepTimer::stop_ms() {
  const Mark end{.part = nullptr, .event = record_event()};
  if (device_.is_cuda()) {
    events_[end.event].synchronize();
    return ms_between(marks_.front(), end);
  }
  drain();
  return std::chrono::duration<double, std::milli>(Clock::now() - marks_.front().at).count();
}

StepParts StepTimer::parts() const {
  StepParts parts;
  for (std::size_t i = 1; i < marks_.size(); ++i) {
    double& sum = parts.*marks_[i].part;
    sum = (is_missing(sum) ? 0 : sum) + ms_between(marks_[i - 1], marks_[i]);
  }
  return parts;
}

std::size_t StepTimer::record_event() {
  if (!device_.is_cuda()) return 0;
  if (events_used_ == events_.size()) events_.emplace_back(device_.type(), c10::EventFlag::BACKEND_DEFAULT);
  events_[events_used_].record(current_stream(device_));
  return events_used_++;
}

double StepTimer::ms_between(const Mark& from, const Mark& to) const {
  if (device_.is_cuda()) return events_[from.event].elapsedTime(events_[to.event]);
  return std::chrono::duration<double, std::milli>(to.at - from.at).count();
}

void StepTimer::drain() const {
  if (device_.is_mps()) torch::mps::synchronize();
}

}  // namespace stepladder
