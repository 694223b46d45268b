#include "app/import/text_follower.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <type_traits>
#include <utility>

#include "app/import/contents.h"
#include "app/import/follow_rules.h"
#include "app/import/open_files.h"
#include "engine/stage.h"
#include "storage/database/process.h"
#include "storage/importers/journal/journal.h"
#include "storage/importers/journal/journal_reader.h"
#include "storage/importers/trackers/growing_store.h"
#include "storage/regular_file.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t text_piece_bytes = 256 << 10;
constexpr std::int64_t printed_piece_bytes = 4 << 10;    // all lines of a piece get the time of its last
constexpr std::chrono::milliseconds short_silence(500);  // then what may still be completed is stored as it is
constexpr std::int64_t silent_bytes = 4 << 20;  // a table that tells nothing until so much was read is told at its end

// Names and numbers of what an importer has told so far.
class ToldHash {
 public:
  void take(const ImportedEvent& event) {
    ++events_;
    std::visit([this](const auto& told) { take(told); }, event);
  }
  std::int64_t events() const { return events_; }
  std::string text() const { return hash_.text(); }

 private:
  void take(const BegunRun& begun) { take(begun.run.stage); }
  void take(const EndedRun&) {}
  void take(const StepRecord& step) {
    take(step.step);
    for (const double value : {step.loss, step.val_loss, step.dt_ms, step.lr, step.grad_norm}) take(value);
  }
  void take(const ImportedPoints& told) {
    take(told.metric.name);
    for (const MetricPoint& point : told.points) {
      take(point.step);
      take(point.value);
    }
  }
  void take(const std::string& text) { hash_.take(text + "\n"); }
  template <class Number>
  requires std::is_arithmetic_v<Number>
  void take(Number number) { hash_.take({reinterpret_cast<const char*>(&number), sizeof number}); }

  std::int64_t events_ = 0;
  ContentHash hash_;
};

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

class TextFollower::File {
 public:
  File(RunStore& store, const FollowRequest& request, const std::function<void(const std::string&)>& tell,
       fs::path path, std::optional<RunId> joined, std::optional<Printed> printed = std::nullopt)
      : store_(store),
        request_(request),
        tell_(tell),
        path_(std::move(path)),
        source_("text " + path_.string()),
        joined_(joined),
        printed_(std::move(printed)),
        options_(printed_ ? printed_->options : ImportOptions{}) {
    options_.live = true;
    options_.known_stages = &known_stages();
  }

  bool take_in();
  void settle(bool at_end);
  void find_writer(const std::map<fs::path, std::int64_t>& open);
  FollowedRun followed() const {
    return {.run = run_,
            .folder = path_,
            .ranks = 1,
            .values_read = values_,
            .format = importer_->id,
            .newest_at = missing,
            .ended = ended_};
  }
  RunId run() const { return run_; }
  bool is_open() const { return reader_ && !ended_; }

 private:
  enum class Batch {
    lines,  // by the lines so far: in any order of pieces the same
    held,   // what the next lines may complete, and the reader reports again
    end,
  };
  using Losses = std::map<std::int64_t, double>;  // by step

  bool begin();
  bool is_replaced() const;
  bool take_piece();
  void give_rest();
  void store_rest();
  void store_held(std::vector<ImportedEvent> events);
  bool is_another_file(const std::vector<ImportedEvent>& held);
  void start_again(bool as_new_run);
  void end();
  void store(std::vector<ImportedEvent> events, Batch batch);
  std::string state_of(const ToldHash& told, const Losses& held, bool has_ended) const;
  void store(const ImportedEvent& event);
  void begin_run(const Run& told);
  void write_waiting();
  void leave_out_stored(std::vector<ImportedEvent>& events);

  RunStore& store_;
  const FollowRequest& request_;
  const std::function<void(const std::string&)>& tell_;
  const fs::path path_;
  const std::string source_;
  const std::optional<RunId> joined_;
  const std::optional<Printed> printed_;
  ImportOptions options_;
  const Importer of_output_ = importers::step_log();
  const Importer* importer_ = nullptr;
  std::unique_ptr<PiecewiseImport> reader_;
  std::int64_t given_ = 0;  // bytes
  ToldHash told_;
  FollowedSource stored_;
  std::int64_t stored_events_ = 0;  // the reader must tell these again, with this hash
  std::string stored_hash_;
  std::int64_t merge_until_ = -1;  // steps that an end that wasn't one has told already
  Losses held_;                    // steps that were stored while they were held back
  bool is_held_stored_ = true;
  bool rereads_ = false;               // what an earlier reader has stored
  std::unique_ptr<RegularFile> open_;  // while it may grow: also when it has lost its name
  Json mark_;
  std::vector<StepRecord> waiting_;
  RunId run_ = 0;
  bool begun_ = false;  // the importer has begun a run since it began
  bool anew_ = false;
  bool ended_ = false;
  bool not_ours_ = false;
  std::int64_t values_ = 0;
  std::optional<ProcessIdentity> writer_;
  bool is_writer_known_ = false;  // as far as somebody has looked
  Clock::time_point grown_ = Clock::now();
  Clock::time_point next_look_{};
  bool is_looked_at_ = false;
  bool is_rest_due_ = false;
  std::string stamp_ = "?";
};

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
  reader_ = std::make_unique<PiecewiseImport>(*importer_, options_, path_, head.substr(0, 65536));
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
    if (reader_) reader_->finish();
    if (reader_) store_held(reader_->take());
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
  reader_->give(std::move(rest));
}

bool TextFollower::File::take_piece() {
  std::string bytes = lines_at(*open_, given_, printed_ ? printed_piece_bytes : text_piece_bytes);
  if (bytes.empty()) return false;
  given_ += std::ssize(bytes);
  mark_ = mark_of(*open_, given_);
  is_held_stored_ = false;
  reader_->give(std::move(bytes));
  try {
    store(reader_->take(), Batch::lines);
  } catch (...) {  // read again; what is stored is left out
    reader_.reset();
    throw;
  }
  if (!reader_) return true;
  if (!reader_->failure().empty()) {
    tell_(path_.string() + " " + reader_->failure());
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
    std::vector<ImportedEvent> held = reader_->held();
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
  reader_->finish();
  ended_ = true;
  std::vector<ImportedEvent> events = reader_->take();
  const std::string why = told_.events() == 0 && events.empty() ? reader_->failure() : "";
  if (!why.empty() && !printed_) tell_(path_.string() + " " + why);
  if (run_ == 0 && events.empty()) return;
  store(std::move(events), Batch::end);
  if (joined_) return;
  const Run run = store_.existing_run(run_);
  store_.summary(run);  // computes and keeps it
  store_.metrics().of_run(run_);
  tell_("run " + std::to_string(run_) + " has " + std::string(to_string(run.status)) + ": " + run.reason);
}

TextFollower::TextFollower(RunStore& store, FollowRequest request, std::function<void(const std::string&)> tell)
    : store_(store), request_(std::move(request)), tell_(std::move(tell)) {}

TextFollower::~TextFollower() = default;

void TextFollower::look() {
  for (const fs::path& given : request_.paths) {
    std::error_code error;
    fs::path path = fs::weakly_canonical(given, error);
    if (error) path = fs::absolute(given).lexically_normal();
    if (fs::is_directory(path, error))
      folders_.look(path, [this](const fs::path& folder) {
        look_into(folder);
        return true;
      });
    else if (fs::is_regular_file(path, error))
      add(path);
  }
}

void TextFollower::look_into(const fs::path& folder) {
  std::error_code error;
  const auto options = fs::directory_options::skip_permission_denied;
  for (auto it = fs::directory_iterator(folder, options, error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    std::error_code unknown;
    const std::string name = it->path().filename().string();
    if (name.starts_with('.') || it->is_symlink(unknown) || !it->is_regular_file(unknown)) continue;
    const std::string ending = it->path().extension().string();
    if (ending == ".csv" || ending == ".jsonl" || ending == ".ndjson") add(it->path());
  }
}

void TextFollower::add(const fs::path& file, std::optional<RunId> joined) {
  if (journal_place(file) || !known_.insert(file).second) return;
  files_.push_back(std::make_unique<File>(store_, request_, tell_, file, joined));
}

void TextFollower::add(const fs::path& file, Printed printed) {
  const RunId run = printed.run;
  if (known_.insert(file).second)
    files_.push_back(std::make_unique<File>(store_, request_, tell_, file, run, std::move(printed)));
}

bool TextFollower::take_in() {
  find_writers();
  bool more = false;
  for (const auto& file : files_) {
    more = file->take_in() || more;
    file->settle(false);
  }
  return more;
}

void TextFollower::find_writers() {
  const bool any = std::any_of(files_.begin(), files_.end(), [](const auto& file) { return file->is_open(); });
  if (!any || Clock::now() - looked_for_writers_ < between_writer_looks) return;
  looked_for_writers_ = Clock::now();
  const auto open = files_open_for_writing(other_own_processes());
  for (const auto& file : files_)
    if (file->is_open()) file->find_writer(open);
}

void TextFollower::settle(bool at_end) {
  if (at_end) looked_for_writers_ = {};
  find_writers();
  for (const auto& file : files_) file->settle(at_end);
}

std::vector<FollowedRun> TextFollower::runs() const {
  std::vector<FollowedRun> runs;
  for (const auto& file : files_)
    if (file->run() != 0) runs.push_back(file->followed());
  return runs;
}

}  // namespace stepladder
