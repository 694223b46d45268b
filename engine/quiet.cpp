#include "engine/quiet.h"

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "engine/others_watch.h"
#include "storage/contention.h"

namespace stepladder {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds between_samples{500};
constexpr std::chrono::seconds say_again{30};

// Returns early if the run has to stop.
void sleep_between_samples(const std::stop_token& stopping) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, stopping, between_samples, [] { return false; });
}

std::string with_names(const Contention& contention, const std::vector<BusyProcess>& processes) {
  const std::string names = names_of(processes);
  return contention_text(contention) + (names.empty() ? "" : " (" + names + ")");
}

}  // namespace

bool Quiet::after(const Contention& sample) {
  last_.push_back(sample);
  if (last_.size() > samples) last_.pop_front();
  return last_.size() == samples && !is_disturbed(average());
}

Contention Quiet::average() const {
  Contention mean;
  if (last_.empty()) return mean;
  mean = last_.back();
  mean.other_cores = mean.program_cores = 0;
  for (const Contention& sample : last_) {
    mean.other_cores += sample.other_cores / static_cast<double>(last_.size());
    mean.program_cores += sample.program_cores / static_cast<double>(last_.size());
  }
  return mean;
}

bool wait_until_quiet(int needed_cores, std::chrono::seconds patience, RunControl& control,
                      const std::function<void(const std::string&)>& say) {
  OthersWatch others(OthersWatch::Run::run_threads);
  BusyProcesses processes;
  std::vector<BusyProcess> last_busy;
  Quiet quiet;
  const Clock::time_point begin = Clock::now();
  Clock::time_point said = begin;
  bool has_said = false;
  const auto leave = [&control](bool starts) {
    control.set_quiet_wait(std::nullopt);
    return starts;
  };
  while (true) {
    if (control.starts_anyway()) return leave(true);
    control.wait_while_paused();
    sleep_between_samples(control.stop_token());
    if (control.stop_token().stop_requested()) return leave(false);
    Contention sample = others.sample();
    sample.needed_cores = needed_cores;
    if (!is_known(sample)) {
      say("nobody can tell here whether the machine is quiet, so the run starts");
      return leave(true);
    }
    if (quiet.after(sample)) {
      if (has_said) say("the machine is quiet");
      return leave(true);
    }
    const Clock::time_point now = Clock::now();
    const Contention average = quiet.average();
    if (now - begin > Quiet::samples * between_samples)
      control.set_quiet_wait(QuietWait{begin, patience, with_names(average, last_busy)});
    if (patience != until_quiet && now - begin > patience) {
      control.start_anyway();
      say("waited " + std::to_string(patience.count()) +
          " s for a quiet machine and starts anyway: " + with_names(average, processes.sample()));
      return leave(true);
    }
    const bool may_say = has_said ? now - said > say_again : now - begin > Quiet::samples * between_samples;
    if (!may_say) continue;
    has_said = true;
    said = now;
    last_busy = processes.sample();
    say("waiting for a quiet machine: " + with_names(average, last_busy));
  }
}

}  // namespace stepladder
