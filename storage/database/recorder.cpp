// The writer thread's loop: commit when due, spill when failing for long, answer requests, sleep. Events leave the ring
// or the spill file only after their commit, oldest first. `failing_` and the pauses belong to the writer thread;
// everything under mutex_ is shared with posters.
#include "storage/database/recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "storage/wording.h"

namespace stepladder {
namespace {

using namespace std::chrono_literals;

// While a run trains the writer wakes this often. Steps needn't wake it sooner: the ring does when it is half full.
constexpr std::chrono::milliseconds look_interval = 500ms;
// A commit costs a write of whole pages and a wait for the disk, so steps are committed together.
constexpr auto between_commits = 3 * look_interval - 50ms;
constexpr std::chrono::milliseconds look_interval_in_trouble = 200ms;
constexpr auto between_spills = 1000ms;
constexpr auto between_requests = look_interval - 50ms;
constexpr std::chrono::milliseconds look_interval_when_idle = 2s;
constexpr auto lock_patience = 250ms;  // the writer tries again, so it needn't wait long
constexpr std::size_t at_once = 4096;  // events in a transaction, so that nobody waits long for the lock
constexpr std::chrono::milliseconds first_pause = 100ms;
constexpr std::chrono::milliseconds longest_pause = 5s;
constexpr std::chrono::milliseconds longest_pause_while_flushing = 250ms;
constexpr double worth_saying_s = 1;
constexpr double patience_at_the_end_s = 5;

}  // namespace

Recorder::Recorder(const std::filesystem::path& file, std::function<void(const std::string&)> on_trouble,
                   std::function<void(RunId, const RunChange&)> on_request,
                   std::function<std::vector<QueuedRun>()> queue)
    : store_(RunStore::open(file)),
      on_trouble_(std::move(on_trouble)),
      on_request_(std::move(on_request)),
      queue_(std::move(queue)),
      ring_(origin_of_this_process(file)),
      spill_(origin_of_this_process(file), "events"),
      apart_(origin_of_this_process(file), "apart"),
      writer_([this] { write_until_closed(); }) {}

Recorder::~Recorder() {
  {
    const MutexLock lock(mutex_);
    closing_ = true;
  }
  ring_.wake();
  writer_.join();
}

void Recorder::post(const RunEvent& event) {
  if (!ring_.post(event)) refuse(run_of(event));
}

void Recorder::refuse(RunId run) {
  const MutexLock lock(mutex_);
  ++refused_[run];
  ++unstored_.refused;
}

bool Recorder::flush(std::chrono::milliseconds patience, const EventRing::Position& until) {
  MutexLock lock(mutex_);
  if (stored_.reaches(until)) return true;
  hurry_ = true;
  ++flushing_;
  lock.unlock();
  ring_.wake();
  lock.lock();
  const bool is_stored = written_.wait_for(lock, patience, [&]() REQUIRES(mutex_) { return stored_.reaches(until); });
  --flushing_;
  return is_stored;
}

bool Recorder::has_written(const EventRing::Position& position) const {
  const MutexLock lock(mutex_);
  return stored_.reaches(position);
}

Unstored Recorder::unstored() const {
  const MutexLock lock(mutex_);
  return unstored_;
}

void Recorder::give_up() {
  const MutexLock lock(mutex_);
  gives_up_ = true;
}

void Recorder::write_until_closed() {
  writer_thread_.enter();
  store_.upkeep().set_patience(lock_patience);
  bool loud = false;
  while (true) {
    bool closing = false;
    bool hurry = false;
    bool gives_up = false;
    {
      const MutexLock lock(mutex_);
      closing = closing_;
      hurry = std::exchange(hurry_, false);
      gives_up = gives_up_;
    }
    // Read after `closing`: nothing is posted after closing.
    const bool waits = ring_.size() > 0 || !spill_.empty();
    if (!waits) empty_at_ = Clock::now();
    something_waits_ = waits;
    const bool is_failing = !failing_.why.empty();
    const bool in_haste = hurry || closing || (loud && !is_failing);
    if (waits && (in_haste || is_due()) && write_everything()) something_waits_ = ring_.size() > 0;
    if (!failing_.why.empty()) {
      const double failing_for_s = unix_now() - failing_.since;
      const bool ends = closing && (gives_up || failing_for_s > patience_at_the_end_s);
      const bool waits_long = failing_for_s > worth_saying_s && Clock::now() - last_spill_ > between_spills;
      if (ends || waits_long || ring_.size() > EventRing::slot_count / 2) spill();
      publish_trouble();
      if (ends) return;
    } else if (closing && !something_waits_) {
      return;
    }
    if (!under_way_.empty() && Clock::now() >= next_look_) {
      look_for_requests();
      next_look_ = Clock::now() + between_requests;
    }
    fold_log_when_idle();
    const auto pause = pause_until_next(closing);
    const auto before = Clock::now();
    ring_.wait(pause, is_idle());
    loud = Clock::now() - before < pause;
  }
}

bool Recorder::is_due() {
  if (!failing_.why.empty()) return Clock::now() >= retry_at_;
  return Clock::now() - empty_at_ >= between_commits || ring_.size() >= EventRing::slot_count / 2;
}

std::chrono::milliseconds Recorder::pause_until_next(bool closing) {
  if (!failing_.why.empty()) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(retry_at_ - Clock::now());
    return std::clamp<std::chrono::milliseconds>(left, 1ms, look_interval_in_trouble);
  }
  if (closing) return 1ms;
  return is_idle() ? look_interval_when_idle : look_interval;
}

bool Recorder::is_idle() const {
  return !something_waits_ && under_way_.empty() && failing_.why.empty();
}

// Another process that trains commits more often than this looks, so the log is never folded meanwhile.
void Recorder::fold_log_when_idle() {
  if (!is_idle()) {
    last_write_ = Clock::now();
    is_folded_ = false;
    return;
  }
  try {
    if (const std::int64_t now = store_.upkeep().version(); std::exchange(seen_version_, now) != now) {
      last_write_ = Clock::now();
      is_folded_ = false;
    }
    if (!is_folded_ && Clock::now() - last_write_ >= look_interval_when_idle) is_folded_ = store_.upkeep().fold_log();
  } catch (const StorageError&) {
    // As for requests: it is tried again, and a broken file fails the next write.
  }
}

// Oldest first: what was spilled, then the ring. Returns whether everything that was there is committed.
bool Recorder::write_everything() {
  try {
    while (!spill_.empty()) {
      if (!spill_.read(batch_, at_once)) throw StorageError(spill_.file().string() + " could not be read");
      write(batch_);
      spill_.forget();
    }
    const EventRing::Position until = ring_.posted();
    while (!ring_.released().reaches(until)) {
      ring_.peek(batch_, at_once);
      if (batch_.empty()) break;  // a slot is being filled right now
      write(batch_);
      ring_.release();
      note_success();
    }
    note_success();
    return true;
  } catch (const std::exception& error) {
    note_failure(error.what());
    return false;
  }
}

void Recorder::write(std::vector<RunEvent>& events) {
  note_refused(events);
  const std::vector<RunId> missing_runs = store_.apply(events);
  if (!missing_runs.empty()) keep_apart(events, missing_runs);
  for (const RunEvent& event : events) {
    if (const auto* started = std::get_if<RunStarted>(&event)) under_way_.insert(started->run);
    if (const auto* ended = std::get_if<RunEnded>(&event)) under_way_.erase(ended->run);
  }
}

// A run that lacks steps isn't finished, whatever its training says.
void Recorder::note_refused(std::vector<RunEvent>& events) {
  for (RunEvent& event : events) {
    auto* ended = std::get_if<RunEnded>(&event);
    if (!ended) continue;
    const MutexLock lock(mutex_);
    const auto refused = refused_.find(ended->run);
    if (refused == refused_.end()) continue;
    ended->status = RunStatus::failed;
    ended->reason = grouped(refused->second) +
                    " of its events are lost, since memory and disk were full while the database could not be written" +
                    (failing_.why.empty() ? "" : ": " + failing_.why);
  }
}

void Recorder::keep_apart(const std::vector<RunEvent>& events, const std::vector<RunId>& runs) {
  std::vector<RunEvent> without_run;
  for (const RunEvent& event : events)
    if (std::ranges::find(runs, run_of(event)) != runs.end()) without_run.push_back(event);
  runs_apart_.insert(runs.begin(), runs.end());
  const bool one = runs_apart_.size() == 1;
  std::string text = fmt::format("run{} {} {} not in {}", one ? "" : "s", fmt::join(runs_apart_, ", "),
                                 one ? "is" : "are", store_.file().string());
  // The others' events are committed, so this must not fail.
  if (apart_.append(without_run, text))
    text += "; " + grouped(apart_.steps()) + " steps are kept in " + apart_.file().string();
  else
    text += "; steps are lost, since no file could be written for them";
  const MutexLock lock(mutex_);
  unstored_.kept_apart = text;
}

void Recorder::note_success() {
  if (!failing_.why.empty() || pause_ > 0ms) {
    failing_ = {};
    pause_ = 0ms;
    publish_trouble();
  }
  empty_at_ = Clock::now();
  {
    const MutexLock lock(mutex_);
    stored_ = ring_.released();
  }
  written_.notify_all();
}

void Recorder::note_failure(const std::string& why) {
  if (failing_.why.empty()) failing_.since = unix_now();
  failing_.why = why;
  pause_ = std::clamp(2 * pause_, first_pause, longest_pause);
  const MutexLock lock(mutex_);
  retry_at_ = Clock::now() + (flushing_ > 0 || closing_ ? std::min(pause_, longest_pause_while_flushing) : pause_);
}

// Moves what waits from the ring into the file, so that the ring has room again. If that fails, it stays there.
void Recorder::spill() {
  last_spill_ = Clock::now();
  while (ring_.size() > 0) {
    ring_.peek(batch_, at_once);
    if (batch_.empty()) return;
    note_refused(batch_);
    if (!spill_.append(batch_, failing_.why)) return;
    ring_.release();
  }
}

void Recorder::publish_trouble() {
  const bool is_worth_saying = !failing_.why.empty() && unix_now() - failing_.since > worth_saying_s;
  std::string why;
  {
    const MutexLock lock(mutex_);
    const bool was_said = !unstored_.why.empty();
    unstored_.why = is_worth_saying ? failing_.why : "";
    unstored_.since = failing_.since;
    unstored_.steps = spill_.steps() + static_cast<std::int64_t>(ring_.size());
    unstored_.kept_in = spill_.file();
    if (was_said == is_worth_saying) return;
    why = unstored_.why;
  }
  if (on_trouble_) on_trouble_(why);
}

void Recorder::look_for_requests() {
  try {
    if (on_request_) {
      for (const auto& [run, change] : store_.processes().take_requests()) on_request_(run, change);
    }
    if (!queue_) return;
    const std::vector<QueuedRun> now = queue_();
    if (now == told_queue_) return;
    store_.processes().publish_queue(now);
    told_queue_ = now;
  } catch (const std::exception&) {
    // A busy file is free again at the next attempt; a broken one fails the next write, which reports it.
  }
}

}  // namespace stepladder
