#include "app/host/machine_load.h"

#include <thread>

#include "storage/contention.h"
#include "storage/wording.h"

namespace stepladder {
namespace {

constexpr std::chrono::milliseconds shortest_interval{500};
constexpr double worth_naming = 0.1;  // cores of others

}  // namespace

bool MachineLoad::would_disturb(int needed_cores) const {
  Contention with_run = others;
  with_run.needed_cores = needed_cores;
  return is_disturbed(with_run);
}

double MachineLoad::slowdown(int needed_cores) const {
  constexpr double most = 4;
  Contention with_run = others;
  with_run.needed_cores = needed_cores;
  const double lacking = lacking_cores(with_run);
  if (!is_disturbed(with_run) || !(lacking > 0)) return 1;
  return std::min(most, needed_cores / std::max(needed_cores - lacking, needed_cores / most));
}

std::string MachineLoad::text() const {
  if (!is_known()) return "Nobody can tell here how busy other programs keep the machine";
  const std::string names = names_of(busiest);
  return fmt::format("Other programs use {:.1f} of {} cores", others.other_cores, others.cores) +
         (names.empty() ? "" : " (" + names + ")");
}

const MachineLoad& LoadWatch::read() {
  const auto now = std::chrono::steady_clock::now();
  if (now - last_ < shortest_interval) return load_;
  last_ = now;
  load_ = {.others = watch_.sample(), .busiest = {}};
  if (load_.is_known() && load_.others.other_cores > worth_naming) load_.busiest = processes_.sample();
  return load_;
}

const MachineLoad& LoadWatch::wait_and_read() {
  std::this_thread::sleep_until(last_ + shortest_interval);
  return read();
}

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
