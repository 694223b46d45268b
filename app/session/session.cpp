// What a session is while runs train: events go from the engine's thread to recorder, journals and window, and requests
// of other processes to the engine. launching.cpp has the verbs that make runs.
#include "app/session/session.h"

#include <algorithm>

#include "app/host/environment.h"

namespace stepladder {
namespace {

// The time that a checkpoint waits for its steps once somebody waits for the end of the run. Until then there is no
// limit.
constexpr std::chrono::seconds checkpoint_patience{10};

// Removes what killed processes left in the folders of runs that nobody trains.
void remove_leftovers(RunStore& store) {
  for (const RunId id : runs_with_checkpoint_folders(store.file())) {
    const std::optional<Run> run = store.run(id);
    if (run && is_over(run->status)) remove_checkpoint_leftovers(checkpoint_owner(store.file(), *run));
  }
}

}  // namespace

Session::Session(const std::filesystem::path& database, std::function<void()> wake, const TrainerLibrary* library,
                 RunFolders folders)
    : store_(RunStore::open(database)),
      wake_(wake ? std::move(wake) : [] {}),
      folders_(std::move(folders)),
      launched_(store_, folders_.checkpoints.empty() ? std::filesystem::path() : folders_.journals),
      engine_([this](const RunEvent& event) { take_event(event); }, library),
      recorder_(
          database, [this](const std::string&) { wake_(); },
          [this](RunId run, const RunChange& change) { apply(run, change); }, [this] { return queue_to_publish(); }) {
  store_.processes().close_dead_runs();
  remove_leftovers(store_);
  if (!folders_.journals.empty()) journals_.emplace(folders_.journals);
}

Session::~Session() {
  stops_ = true;
  engine_.close();
}

void Session::take_event(const RunEvent& event) {
  recorder_.post(event);
  if (journals_) journals_->post(event);
  events_.post(event);
  if (const auto* saved = std::get_if<CheckpointSaved>(&event); saved && !saved->error.empty()) {
    const ConsoleText note{
        .run = saved->run,
        .at = saved->at,
        .text = "the checkpoint of step " + std::to_string(saved->step) + " was not saved: " + saved->error + "\n"};
    recorder_.post(note);
    if (journals_) journals_->post(note);
  }
  if (std::holds_alternative<RunStarted>(event) || std::holds_alternative<RunEnded>(event) ||
      std::holds_alternative<CheckpointSaved>(event) || std::holds_alternative<ConsoleText>(event))
    wake_();
}

void Session::note(RunId run, const std::vector<std::string>& sentences) {
  for (const std::string& sentence : sentences)
    take_event(ConsoleText{.run = run, .at = unix_now(), .text = sentence + "\n"});
}

Session::Position Session::posted() const {
  return {.recorder = recorder_.posted(), .journals = journals_ ? journals_->posted() : EventRing::Position{}};
}

bool Session::flush(std::chrono::milliseconds patience, const Position& until) {
  const auto end = std::chrono::steady_clock::now() + patience;
  if (!recorder_.flush(patience, until.recorder)) return false;
  if (!journals_) return true;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
  return journals_->flush(std::max(std::chrono::milliseconds(1), left), until.journals);
}

void Session::leave_unstored() {
  recorder_.give_up();
  if (journals_) journals_->give_up();
}

std::string Session::store_steps() {
  using Clock = std::chrono::steady_clock;
  const Position until = posted();
  for (Clock::time_point since = Clock::now();;) {
    if (flush(std::chrono::milliseconds(500), until)) return "";
    if (!stops_) since = Clock::now();
    if (Clock::now() - since < checkpoint_patience) continue;
    const std::string why = recorder_.unstored().why.empty() ? journal_trouble() : recorder_.unstored().why;
    return "its steps are not stored yet" + (why.empty() ? "" : ": " + why);
  }
}

void Session::stop(RunId run) {
  stops_ = true;
  engine_.stop(run);
}

void Session::stop_all(AtStop at_stop) {
  stops_ = true;
  engine_.stop_all(at_stop);
}

void Session::confirm(const SpeedupQuestion& question) {
  owner_.check();
  std::vector<Run> sides = {store_.existing_run(question.run), store_.existing_run(question.base)};
  std::erase_if(sides, [](const Run& run) { return run.source != "launched"; });  // which it refuses itself
  refuse_others(sides, "run " + std::to_string(question.run));
  stop_confirming();
  judge_after_.reset();
  waits_for_quiet_ = true;
  HardwareTable hardware = HardwareTable::load(assets_folder());
  hardware.spreads.learn_from(store_.runs_with_kept_summaries());
  confirmation_.emplace(store_, question, std::move(hardware),
                        [this, patience = question.quiet_patience](RunId run, const Repeats& how) {
                          owner_.check();
                          return repeat({run}, 1, waits_for_quiet_ ? patience : std::nullopt, how).front();
                        });
  confirmation_->look();
}

bool Session::idle() const {
  owner_.check();
  return engine_.idle() && !(confirmation_ && confirmation_->is_open());
}

void Session::stop_confirming() {
  owner_.check();
  if (!confirmation_ || !confirmation_->is_open()) return;
  confirmation_->stop();
  for (const RunId run : confirmation_->round()) engine_.stop(run);
}

void Session::start_anyway() {
  owner_.check();
  waits_for_quiet_ = false;
  engine_.start_anyway();
}

const SpeedupConfirmation* Session::confirmation() const {
  owner_.check();
  return confirmation_ ? &*confirmation_ : nullptr;
}

std::vector<RunEvent> Session::drain() {
  std::vector<RunEvent> events = events_.drain();
  advance_confirmation(events);
  return events;
}

std::vector<RunEvent> Session::wait_and_drain(std::chrono::milliseconds patience) {
  events_.wait(patience);
  std::vector<RunEvent> events = events_.drain();
  advance_confirmation(events);
  return events;
}

// Runs that ended are judged from the database, so this waits, without blocking, until the writer has written them.
void Session::advance_confirmation(const std::vector<RunEvent>& events) {
  owner_.check();
  for (const RunEvent& event : events)
    if (const auto* end = std::get_if<RunEnded>(&event)) ended_.insert(end->run);
  if (!confirmation_ || !confirmation_->is_open()) return;
  // A machine that did not become quiet once won't be waited for again: the runs in turns see the same disturbance.
  if (waits_for_quiet_ && engine_.gave_up_quiet()) start_anyway();
  const bool has_ended =
      std::ranges::any_of(events, [](const RunEvent& event) { return std::holds_alternative<RunEnded>(event); });
  if (has_ended) judge_after_ = recorder_.posted();
  if (!judge_after_ || !recorder_.has_written(*judge_after_)) return;
  judge_after_.reset();
  confirmation_->look();
}

std::vector<QueuedRun> Session::queue_to_publish() const {
  std::vector<RunId> runs = engine_.queue();
  if (const auto running = engine_.running()) runs.insert(runs.begin(), *running);
  std::vector<QueuedRun> queue;
  for (const RunId run : runs) queue.push_back({.run = run, .is_paused = engine_.paused(run)});
  return queue;
}

void Session::apply(RunId run, const RunChange& change) {
  if (const auto* to = std::get_if<QueuePlace>(&change)) return engine_.move_to(run, to->place);
  switch (std::get<RunRequest>(change)) {
    case RunRequest::pause:
      return engine_.pause(run, true);
    case RunRequest::resume:
      return engine_.pause(run, false);
    case RunRequest::stop:
      return stop(run);
  }
}

}  // namespace stepladder
