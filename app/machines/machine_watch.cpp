// The window's thread for machines: each round runs the UI's requests, connects, publishes what has changed, and brings
// ssh's questions. It asks for reports only while a view looks. The UI's functions only queue work or take values under
// a lock.
#include "app/machines/machine_watch.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "app/machines/far_kind.h"
#include "app/machines/machine_check.h"
#include "app/text/format.h"

namespace stepladder {
namespace {

constexpr std::chrono::milliseconds poll_patience(50);
constexpr std::chrono::milliseconds nothing_to_do(500);
constexpr double between_reports_s = 5;
constexpr double look_lasts_s = 3;

bool equal(const MachineStatus& a, const MachineStatus& b) {
  if (a.link != b.link || a.why != b.why || a.is_asking != b.is_asking || a.reported_at != b.reported_at) return false;
  if (a.work.size() != b.work.size() || a.machine.uses_slurm != b.machine.uses_slurm) return false;
  for (std::size_t i = 0; i < a.work.size(); ++i)
    if (a.work[i].phase != b.work[i].phase || a.work[i].runs != b.work[i].runs || a.work[i].job != b.work[i].job)
      return false;
  return true;
}

std::string job_in(const FarRun& run) {
  const auto state = nlohmann::json::parse(run.state, nullptr, false);
  if (!state.is_object() || !state.contains("job") || !state["job"].is_object()) return {};
  const auto id = state["job"].find("id");
  if (id == state["job"].end()) return {};
  return harmless(id->is_string() ? id->get<std::string>() : id->dump()).substr(0, 40);
}

}  // namespace

MachineWatch::MachineWatch(std::filesystem::path database, std::function<void()> wake)
    : database_(std::move(database)), wake_(std::move(wake)), thread_([this] { run(); }) {}

MachineWatch::~MachineWatch() {
  ends_ = true;
  changed_.notify_all();
  thread_.join();
}

void MachineWatch::look() {
  if (unix_now() - looked_at_.exchange(unix_now()) > look_lasts_s) changed_.notify_all();
}

void MachineWatch::post(Work work) {
  {
    const MutexLock lock(mutex_);
    work_.push_back(std::move(work));
  }
  changed_.notify_all();
}

void MachineWatch::report(const std::string& text, bool is_error) {
  {
    const MutexLock lock(mutex_);
    messages_.push_back({harmless(text), is_error});
  }
  wake_();
}

void MachineWatch::add(const Machine& machine) {
  post([this, machine](RunStore& store, FarRuns&) {
    store.machines().save(machine);
    ask_now_.insert(machine.alias);
  });
}

void MachineWatch::remove(const MachineAlias& alias) {
  post([this, alias](RunStore& store, FarRuns&) {
    for (const FarRun& run : store.machines().open_runs())
      if (run.alias == alias && has_runs_here(run.kind))
        return report("Runs at " + alias.text() + " may still have steps that aren't here", true);
    store.machines().remove(alias);
  });
}

void MachineWatch::adopt(const MachineInFile& shown) {
  post([this, shown](RunStore& store, FarRuns&) {
    ask_now_.insert(store.machines().adopt(shown).alias);
    const MutexLock lock(mutex_);
    published_in_file_ = store.machines().machines_in_file();
  });
}

void MachineWatch::ask_again(const MachineAlias& alias) {
  post([this, alias](RunStore& store, FarRuns& runs) {
    const auto machine = store.machines().machine(alias);
    if (!machine) return;
    runs.link(*machine).try_now();
    ask_now_.insert(alias);
  });
}

void MachineWatch::start(const MachineAlias& alias, std::shared_ptr<const FarLadder> ladder) {
  post([this, alias, ladder](RunStore& store, FarRuns& runs) {
    const auto machine = store.machines().machine(alias);
    if (!machine) return report(alias.text() + " is no longer among the machines", true);
    runs.start(*machine, ladder->command);
    report(alias.text() + " will run it; its steps appear here as they arrive", false);
  });
}

void MachineWatch::signal(RunId run, const std::string& signal) {
  post([this, run, signal](RunStore& store, FarRuns& runs) {
    const auto far_run = store.machines().far_run_of(run);
    if (!far_run) return report("Run " + std::to_string(run) + " isn't followed from here", true);
    runs.signal(far_run->uid, signal, [this, alias = far_run->alias](const std::string& error) {
      if (!error.empty()) report(alias.text() + ": " + error, true);
    });
  });
}

std::optional<std::vector<MachineStatus>> MachineWatch::take_statuses() {
  const MutexLock lock(mutex_);
  return std::exchange(published_, std::nullopt);
}

std::optional<std::vector<MachineInFile>> MachineWatch::take_machines_in_file() {
  const MutexLock lock(mutex_);
  return std::exchange(published_in_file_, std::nullopt);
}

std::optional<std::vector<SshQuestion>> MachineWatch::take_questions() {
  const MutexLock lock(mutex_);
  return std::exchange(asked_questions_, std::nullopt);
}

void MachineWatch::answer(const std::string& id, std::optional<std::string> text) {
  post([this, id, text = std::move(text)](RunStore&, FarRuns& runs) {
    questions_->answer(id, text);
    if (text) return;
    for (const auto& [alias, link] : runs.links())
      if (!link->is_up()) link->ask_nothing();
  });
}

void MachineWatch::bring_questions() {
  std::vector<SshQuestion> open = questions_->open();
  if (open == open_questions_) return;
  open_questions_ = std::move(open);
  {
    const MutexLock lock(mutex_);
    asked_questions_ = open_questions_;
  }
  wake_();
}

std::vector<MachineWatch::Message> MachineWatch::take_messages() {
  const MutexLock lock(mutex_);
  return std::exchange(messages_, {});
}

// Answers are collected in a report of their own, so that the last complete one stays on the screen meanwhile.
void MachineWatch::update_report(FarRuns& runs, MachineStatus& status) {
  Link& link = runs.link(status.machine);
  const MachineAlias& alias = status.machine.alias;
  auto& asked = asked_[alias];
  if (asked && asked->is_complete) {
    status.report = *asked;
    status.reported_at = unix_now();
    status.checks = checks_of(status.report, status.machine);
    status.is_asking = false;
    asked.reset();
  }
  const bool is_due = is_missing(status.reported_at) || unix_now() - status.reported_at > between_reports_s;
  if (link.is_up() && !asked && (is_due || ask_now_.erase(alias) > 0)) {
    asked = std::make_unique<MachineReport>();
    status.is_asking = is_missing(status.reported_at);
    ask_for_report(link, *asked);
  }
  if (!link.is_up() && !is_missing(link.lost_at())) {
    status.why = unreachable(link).reason;
    status.checks = checks_of(unreachable(link), status.machine);
  }
}

void MachineWatch::publish(RunStore& store, FarRuns& runs) {
  const std::vector<Machine> machines = store.machines().machines();
  const bool is_looked_at = unix_now() - looked_at_ < look_lasts_s;
  std::map<MachineAlias, MachineStatus> before = statuses_;
  std::erase_if(statuses_, [&](const auto& each) {
    return std::ranges::none_of(machines, [&](const Machine& m) { return m.alias == each.first; });
  });
  bool changed = before.size() != statuses_.size();
  for (const Machine& machine : machines) {
    MachineStatus& status = statuses_[machine.alias];
    status.machine = machine;
    const auto link = runs.links().find(machine.alias.text());
    status.link = link == runs.links().end()            ? MachineStatus::Link::idle
                  : link->second->is_up()               ? MachineStatus::Link::up
                  : is_missing(link->second->lost_at()) ? MachineStatus::Link::connecting
                                                        : MachineStatus::Link::lost;
    status.lost_at = link == runs.links().end() ? machine.lost_at : link->second->lost_at();
    if (status.link == MachineStatus::Link::up) status.why.clear();
    if (is_looked_at) update_report(runs, status);
    status.work.clear();
  }
  for (const FarRun& run : store.machines().open_runs())
    if (const auto progress = runs.progress(run.uid); progress && statuses_.contains(run.alias))
      statuses_[run.alias].work.push_back({.uid = run.uid.text(),
                                           .kind = run.kind,
                                           .name = run.name,
                                           .phase = progress->phase,
                                           .job = job_in(progress->run),
                                           .runs = progress->runs});
  for (const auto& [alias, status] : statuses_) {
    const auto old = before.find(alias);
    changed = changed || old == before.end() || !equal(old->second, status);
  }
  if (!changed) return;
  std::vector<MachineStatus> all;
  for (const Machine& machine : machines) all.push_back(statuses_[machine.alias]);  // in the order of the store
  {
    const MutexLock lock(mutex_);
    published_ = std::move(all);
  }
  wake_();
}

void MachineWatch::run() {
  std::optional<RunStore> store;
  std::optional<FarRuns> runs;
  std::string trouble;
  while (!ends_) {
    try {
      if (!store) store = RunStore::open(database_);
      const bool is_looked_at = unix_now() - looked_at_ < look_lasts_s;
      std::deque<Work> work;
      {
        const MutexLock lock(mutex_);
        work = std::exchange(work_, {});
      }
      const bool has_machines = !store->machines().machines().empty();
      if (!runs && (!work.empty() || (has_machines && (is_looked_at || !store->machines().open_runs().empty())))) {
        if (!questions_) questions_ = std::make_unique<SshQuestions>();
        runs.emplace(*store, FarRuns::Callbacks{.report = [this](const std::string& text) { report(text, false); }},
                     SshAsks{.environment = questions_->environment()});
      }
      for (const Work& each : work) each(*store, *runs);
      if (runs) {
        runs->scan(is_looked_at);
        publish(*store, *runs);
        bring_questions();
        runs->poll(poll_patience);
      } else {
        MutexLock lock(mutex_);
        changed_.wait_for(mutex_, nothing_to_do);
      }
      trouble.clear();
    } catch (const std::exception& error) {
      if (trouble != error.what()) report(error.what(), true);
      trouble = error.what();
      MutexLock lock(mutex_);
      changed_.wait_for(mutex_, nothing_to_do);
    }
  }
}

}  // namespace stepladder
