// Reads one followed text piece by piece and stores what is new in it, with its position, in one transaction.
// TextFollower holds one for each file; the text may be rotated, cut or replaced meanwhile.
#include "app/import/followed_text.h"

#include <algorithm>
#include <cmath>

#include "app/import/follow_rules.h"
#include "storage/importers/journal/journal_reader.h"
#include "storage/importers/trackers/growing_store.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t text_piece_bytes = 256 << 10;
constexpr std::int64_t printed_piece_bytes = 4 << 10;    // all lines of a piece get the time of its last
constexpr std::chrono::milliseconds short_silence(500);  // then what may still be completed is stored as it is
constexpr std::int64_t silent_bytes = 4 << 20;  // of a table without an event so far: then it is left to `import`

// Whole lines only; empty if there is none yet. A line longer than a piece is taken in parts.
std::string lines_at(const RegularFile& file, std::int64_t begin, std::int64_t most = text_piece_bytes) {
  std::string bytes = file.read_at(begin, static_cast<std::size_t>(most));
  const std::size_t end = bytes.rfind('\n');
  if (end != std::string::npos)
    bytes.resize(end + 1);
  else if (std::ssize(bytes) < most)
    bytes.clear();
  return bytes;
}

bool are_equal(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

// What a log says of its run.
void add_facts(const Run& from, Run& run) {
  for (std::string Run::*text :
       {&Run::stage, &Run::title, &Run::changed, &Run::device, &Run::hardware, &Run::precision, &Run::recipe})
    if (!(from.*text).empty()) run.*text = from.*text;
  for (std::int64_t Run::*count : {&Run::planned_steps, &Run::tokens_per_step, &Run::params})
    if (from.*count > 0) run.*count = from.*count;
  if (!is_missing(from.model_flops_per_token)) run.model_flops_per_token = from.model_flops_per_token;
  if (from.printed.known()) run.printed = from.printed;
}

}  // namespace

// Chooses the importer by the first whole lines; false if there is none yet, or none that reads such a file.
bool TextFollower::File::begin() {
  if (not_ours_) return false;
  if (!open_) open_ = std::make_unique<RegularFile>(path_);
  if (!*open_) open_.reset();
  const std::string head = open_ ? lines_at(*open_, 0) : "";
  if (head.empty()) return false;
  try {
    MemoryInput input(head, path_);
    importer_ = printed_ ? &of_output_ : &importer_for(input, options_);
  } catch (const ImportError&) {
    importer_ = nullptr;
  }
  if (!importer_ || (importer_->id != "csv" && importer_->id != "log")) {
    importer_ = nullptr;
    not_ours_ = true;
    open_.reset();
    return false;
  }
  const auto stored = store_.following().position(source_);
  stored_ = stored.value_or(FollowedSource{});
  const Json state = Json::parse(stored_.state, nullptr, false);
  stored_events_ = state.is_object() && !anew_ ? integer_in(state, "events") : 0;
  stored_hash_ = state.is_object() && !anew_ ? text_in(state, "hash") : "";
  run_ = stored_.run;
  merge_until_ = state.is_object() && state.contains("ended") && run_ != 0 ? store_.recorded_steps(run_).last_step : -1;
  held_.clear();
  if (state.is_object() && state.contains("held") && state["held"].is_array() && !anew_)
    for (const Json& each : state["held"])
      if (each.is_object()) held_[integer_in(each, "step")] = number_in(each, "loss");
  rereads_ = run_ != 0 && !anew_;
  is_writer_known_ = false;
  is_held_stored_ = true;
  told_ = {};
  given_ = 0;
  mark_ = {};
  waiting_.clear();
  begun_ = false;
  events_.take();
  reader_ = importer_->reader(path_, options_, events_);
  return true;
}

void TextFollower::File::start_again(bool as_new_run) {
  reader_.reset();
  ended_ = false;
  next_look_ = {};
  anew_ = as_new_run;
  if (!as_new_run) return;
  tell_(path_.string() + ": its beginning isn't what it was, so it is read from its start into a new run");
  if (auto run = store_.run(run_); run && !is_over(run->status)) {
    run->status = RunStatus::interrupted;
    run->reason = "its file was replaced";
    run->ended_at = unix_now();
    store_.update_run(*run);
  }
}

// Another file has its name, or it was written again.
bool TextFollower::File::is_replaced() const {
  std::error_code error;
  if (!open_->is_at(path_)) return fs::exists(path_, error);
  return given_ > 0 && !replaced_since(*open_, mark_).empty();
}

bool TextFollower::File::take_in() {
  const auto now = Clock::now();
  if (now < next_look_) return false;
  std::string stamp = stamp_of({path_});
  if (open_) stamp += std::to_string(open_->size());
  if (stamp != std::exchange(stamp_, stamp)) {
    std::error_code error;
    const auto written = fs::last_write_time(path_, error);
    grown_ = now - (std::exchange(is_looked_at_, true) || error ? Clock::duration::zero() : quiet_since(written));
    is_rest_due_ = is_rest_due_ || (reader_ && is_replaced());
    if (ended_ && !error) start_again(false);  // it goes on after all
  }
  if (is_rest_due_ && reader_) {
    store_rest();
    start_again(false);  // it may have been written again
  }
  if (ended_ || not_ours_) next_look_ = now + look_again_after(now - grown_);
  if (ended_) return false;
  if (!reader_ && !begin()) return false;
  return take_piece();
}

// What was read of a file that was replaced, but held back.
void TextFollower::File::store_rest() {
  try {
    if (!open_->is_at(path_)) give_rest();
    if (reader_) why_refused([&] { reader_->finish(); });
    if (reader_) store_held(events_.take());
  } catch (...) {  // read again
    reader_.reset();
    throw;
  }
  if (!reader_) return;  // it has to be read again
  is_rest_due_ = false;
  open_.reset();
}

// All that there is, and a last line without an end, since no more of it comes.
void TextFollower::File::give_rest() {
  while (reader_ && take_piece()) {
  }
  std::string rest = reader_ ? open_->read_at(given_, text_piece_bytes) : "";
  if (rest.empty()) return;
  given_ += std::ssize(rest);
  why_refused([&] { reader_->take(rest); });
}

// Empty, or why the importer reads no further.
std::string TextFollower::File::why_refused(const std::function<void()>& read) {
  try {
    read();
  } catch (const ImportError& error) {
    return error.what();
  }
  return {};
}

bool TextFollower::File::take_piece() {
  std::string bytes = lines_at(*open_, given_, printed_ ? printed_piece_bytes : text_piece_bytes);
  if (bytes.empty()) return false;
  given_ += std::ssize(bytes);
  mark_ = mark_of(*open_, given_);
  is_held_stored_ = false;
  const std::string refused = why_refused([&] { reader_->take(bytes); });
  try {
    store(events_.take(), Batch::lines);
  } catch (...) {  // read again; what is stored is left out
    reader_.reset();
    throw;
  }
  if (!reader_) return true;
  if (!refused.empty()) {
    tell_(path_.string() + " " + refused);
    not_ours_ = true;
    reader_.reset();
    open_.reset();
    return false;
  }
  if (told_.events() == 0 && given_ > silent_bytes && !printed_) {
    tell_(path_.string() + " holds several runs in one table, which only an import of the whole file reads");
    not_ours_ = true;
    reader_.reset();
    open_.reset();
  }
  return !not_ours_;
}

// Drops what is stored already. Throws MovedOn after the beginning turned out to be another one.
void TextFollower::File::leave_out_stored(std::vector<ImportedEvent>& events) {
  std::size_t known = 0;
  for (const ImportedEvent& event : events) {
    if (told_.events() >= stored_events_) break;
    told_.take(event);
    ++known;
    if (std::holds_alternative<BegunRun>(event)) begun_ = true;
    if (told_.events() == stored_events_ && told_.text() != stored_hash_) {
      start_again(true);
      throw MovedOn();
    }
  }
  events.erase(events.begin(), events.begin() + static_cast<std::ptrdiff_t>(known));
  const auto is_another = [&](const ImportedEvent& event) {
    const auto* step = std::get_if<StepRecord>(&event);
    const auto held = step ? held_.find(step->step) : held_.end();
    return held != held_.end() && !are_equal(held->second, step->loss);
  };
  if (rereads_ && told_.events() == 0 && std::any_of(events.begin(), events.end(), is_another)) {
    start_again(true);
    throw MovedOn();
  }
  for (const ImportedEvent& event : events) told_.take(event);
}

// Of a file that is too short yet to tell by its hash: whether a step isn't as it is stored.
bool TextFollower::File::is_another_file(const std::vector<ImportedEvent>& held) {
  return std::any_of(held.begin(), held.end(), [&](const ImportedEvent& event) {
    const auto* const step = std::get_if<StepRecord>(&event);
    if (!step || joined_) return false;
    const Series stored = store_.series(run_, step->step, step->step);
    return stored.size() == 0 || !are_equal(stored.loss.front(), step->loss);
  });
}

void TextFollower::File::store_held(std::vector<ImportedEvent> events) {
  is_held_stored_ = true;
  const auto runs = std::count_if(events.begin(), events.end(),
                                  [](const auto& event) { return std::holds_alternative<BegunRun>(event); });
  if (events.empty() || told_.events() < stored_events_ || runs > (begun_ ? 0 : 1)) return;
  const bool had_begun = begun_;
  try {
    store(std::move(events), Batch::held);
  } catch (...) {
    is_held_stored_ = false;
    begun_ = had_begun;
    throw;
  }
  begun_ = had_begun;
}

std::string TextFollower::File::state_of(const ToldHash& told, const Losses& held, bool has_ended) const {
  Json state = {{"events", told.events()}, {"hash", told.text()}};
  if (has_ended) state["ended"] = true;
  for (const auto& [step, loss] : held) {
    Json each = {{"step", step}};
    if (!is_missing(loss))
      each["loss"] = std::isfinite(loss) ? Json(loss) : std::isnan(loss) ? "NaN" : loss > 0 ? "Infinity" : "-Infinity";
    state["held"].push_back(std::move(each));
  }
  return state.dump();
}

void TextFollower::File::store(std::vector<ImportedEvent> events, Batch batch) {
  const bool at_end = batch == Batch::end;
  const ToldHash before = told_;
  const Losses held_before = held_;
  const RunId run_before = run_;
  try {
    if (batch == Batch::lines) leave_out_stored(events);
    if (events.empty() && !at_end) return;
    FollowedSource position;
    store_.in_one_transaction([&] {
      if (store_.following().position(source_).value_or(FollowedSource{}) != stored_) {
        reader_.reset();
        throw MovedOn();
      }
      for (const ImportedEvent& event : events) store(event);
      write_waiting();
      for (const ImportedEvent& event : events)
        if (const auto* step = std::get_if<StepRecord>(&event); step && batch == Batch::held)
          held_[step->step] = step->loss;
        else if (step)
          held_.erase(step->step);
      if (run_ == 0) return;
      Run run = store_.existing_run(run_);
      if (joined_) {  // it has an end of its own
      } else if (at_end) {
        run.status = RunStatus::finished;
        run.reason = "no process writes its file any more, which doesn't say how the run ended";
        run.ended_at = unix_now();
      } else if (is_over(run.status)) {
        run.status = RunStatus::running;
        run.reason.clear();
        run.ended_at = missing;
      }
      store_.update_run(run);
      if (!at_end && !joined_) store_.following().own(run_, writer_ ? *writer_ : this_process());
      position = {run_, given_, state_of(at_end ? before : told_, held_, at_end)};
      store_.following().set_position(source_, position);
    });
    if (run_ == 0) return;
    stored_ = position;
    stored_events_ = 0;
    rereads_ = false;
    anew_ = false;
    if (run_ != run_before && !printed_) tell_("run " + std::to_string(run_) + " is " + path_.string());
  } catch (const MovedOn&) {
  } catch (...) {
    held_ = held_before;
    run_ = run_before;
    waiting_.clear();
    throw;
  }
}

void TextFollower::File::store(const ImportedEvent& event) {
  if (const auto* begun = std::get_if<BegunRun>(&event)) {
    write_waiting();
    begin_run(begun->run);
  } else if (const auto* step = std::get_if<StepRecord>(&event)) {
    waiting_.push_back(*step);
    if (is_missing(waiting_.back().at)) waiting_.back().at = printed_ ? printed_->written_at(given_ - 1) : unix_now();
    ++values_;
  } else if (const auto* logged = std::get_if<ImportedPoints>(&event)) {
    write_waiting();  // points share their steps' times
    store_.metrics().describe(run_, logged->metric);
    store_.metrics().append(run_, logged->metric.name, logged->points);
    values_ += std::ssize(logged->points);
  } else {
    write_waiting();
    if (joined_ && !printed_) return;
    Run run = store_.existing_run(run_);
    add_facts(std::get<EndedRun>(event).run, run);
    store_.update_run(run);
  }
}

// Every run after the first ends the one before it.
void TextFollower::File::begin_run(const Run& told) {
  const bool goes_on = !std::exchange(begun_, true) && run_ != 0 && !anew_ && store_.run(run_).has_value();
  if (joined_) {
    run_ = *joined_;
  } else if (!goes_on) {
    if (run_ != 0 && !anew_) {
      Run last = store_.existing_run(run_);
      last.status = RunStatus::finished;
      last.ended_at = unix_now();
      store_.update_run(last);
    }
    run_ = store_.create_run({.name = !request_.name.empty() ? request_.name : path_.stem().string(),
                              .status = RunStatus::running,
                              .source = "import",
                              .source_path = path_.string(),
                              .created_at = unix_now(),
                              .started_at = unix_now()});
  }
  if (joined_ && !printed_) return;
  Run run = store_.existing_run(run_);
  add_facts(told, run);
  if (!printed_) run.environment = Json{{"followed_store", importer_->id}}.dump();
  store_.update_run(run);
}

void TextFollower::File::write_waiting() {
  std::vector<StepRecord> fresh, parts;
  for (const StepRecord& step : waiting_)
    (joined_ || step.step <= merge_until_ || held_.contains(step.step) ? parts : fresh).push_back(step);
  const Completion how = printed_ ? Completion::fill : joined_ ? Completion::replace : Completion::keep_repeated;
  if (!parts.empty()) store_.following().complete_steps(run_, parts, how);
  if (!fresh.empty()) store_.append_steps(run_, fresh);
  waiting_.clear();
}

void TextFollower::File::find_writer(const std::map<fs::path, std::int64_t>& open) {
  is_writer_known_ = true;
  if (printed_) return;
  const auto found = open.find(path_);
  if (found == open.end() || (writer_ && writer_->pid == found->second && is_alive(*writer_))) return;
  writer_ = process_identity(found->second);
  if (const auto run = store_.run(run_); run && !is_over(run->status)) store_.following().own(run_, *writer_);
}

void TextFollower::File::settle(bool at_end) {
  if (!reader_ || ended_) return;
  const auto quiet = Clock::now() - grown_;
  if (!is_held_stored_ && (at_end || quiet > short_silence)) {
    EventSink sink;
    reader_->pass_held(sink);
    std::vector<ImportedEvent> held = sink.take();
    if (told_.events() < stored_events_ && is_another_file(held)) return start_again(true);
    store_held(std::move(held));
  }
  if (!reader_ || (writer_ && is_alive(*writer_))) return;
  if (!at_end && (printed_ || !is_writer_known_ || quiet < (writer_ ? after_the_writer : give_up_after))) return;
  if (told_.events() < stored_events_) {  // it is shorter than what was stored
    start_again(true);
    while (take_in()) {
    }
    if (!reader_) return;
  }
  try {
    end();
  } catch (...) {  // read again
    ended_ = false;
    reader_.reset();
    throw;
  }
  reader_.reset();
  open_.reset();
}

void TextFollower::File::end() {
  give_rest();
  if (!reader_) return;
  const std::string refused = why_refused([&] { reader_->finish(); });
  ended_ = true;
  std::vector<ImportedEvent> events = events_.take();
  if (told_.events() == 0 && events.empty() && !refused.empty() && !printed_) tell_(path_.string() + " " + refused);
  if (run_ == 0 && events.empty()) return;
  store(std::move(events), Batch::end);
  if (joined_) return;
  const Run run = store_.existing_run(run_);
  store_.summary(run);  // computes and keeps it
  store_.metrics().of_run(run_);
  tell_("run " + std::to_string(run_) + " has " + std::string(to_string(run.status)) + ": " + run.reason);
}

}  // namespace stepladder
