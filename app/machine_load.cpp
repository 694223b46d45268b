#include "app/machine_load.h"

#include <cstdio>
#include <thread>

#include "storage/contention.h"

namespace stepladder {
namespace {

constexpr std::chrono::milliseconds shortest_look{500};
constexpr double worth_naming = 0.1;  // cores of others

}  // namespace

bool MachineLoad::look() {
  const auto now = std::chrono::steady_clock::now();
  if (now - last_look_ < shortest_look) return false;
  last_look_ = now;
  others_ = watch_.look();
  busiest_.clear();
  if (is_known() && others_.other_cores > worth_naming) busiest_ = processes_.look();
  return true;
}

void MachineLoad::wait_and_look() {
  std::this_thread::sleep_until(last_look_ + shortest_look);
  look();
}

bool MachineLoad::would_disturb(int needed_cores) const {
  Contention with_run = others_;
  with_run.needed_cores = needed_cores;
  return is_disturbed(with_run);
}

std::string MachineLoad::text() const {
  if (!is_known()) return "Nobody can tell here how busy other programs keep the machine";
  char used[96];
  std::snprintf(used, sizeof used, "Other programs use %.1f of %d cores", others_.other_cores, others_.cores);
  const std::string names = names_of(busiest_);
  return used + (names.empty() ? "" : " (" + names + ")");
}

}  // namespace stepladder
