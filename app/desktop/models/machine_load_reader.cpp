// Keeps /proc out of the frames: Launch shows the last reading, and a finished one causes a frame.
#include "app/desktop/models/machine_load_reader.h"

namespace stepladder {

void MachineLoadReader::update(MachineLoad& load) {
  using namespace std::chrono_literals;
  const auto now = std::chrono::steady_clock::now();
  if (reading_.valid()) {
    if (reading_.wait_for(0s) != std::future_status::ready) return;
    load = reading_.get();
    due_ = now + 500ms;  // not before, since each reading causes a frame
  }
  if (now < due_) return;
  reading_ = std::async(std::launch::async, [this] {
    if (!watch_) watch_ = std::make_shared<LoadWatch>();
    MachineLoad read = watch_->read();
    wake_();
    return read;
  });
}

}  // namespace stepladder
