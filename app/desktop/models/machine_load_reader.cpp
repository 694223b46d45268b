// Keeps /proc out of the frames: Launch shows the last reading, and a finished one causes a frame.
#include "app/desktop/models/machine_load_reader.h"

namespace stepladder {

void MachineLoadReader::update(MachineLoad& load) {
  using namespace std::chrono_literals;
  const auto now = std::chrono::steady_clock::now();
  if (reading_.is_active()) {
    const std::optional<MachineLoad> read = reading_.take();
    if (!read) return;
    load = *read;
    due_ = now + 500ms;  // not before, since each reading causes a frame
  }
  if (now < due_) return;
  const auto read = [this](JobControl&) {
    if (!watch_) watch_ = std::make_unique<LoadWatch>();
    return watch_->wait_and_read();
  };
  reading_.start(read, wake_);
}

}  // namespace stepladder
