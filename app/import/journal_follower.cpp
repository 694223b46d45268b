#include "app/import/journal_follower.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <utility>

#include "app/import/follow_rules.h"
#include "storage/database/process.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t bytes_at_once = 512 << 10;  // of a journal, stored in one transaction of about 50 ms

constexpr std::int64_t longest_kept_output = 16 << 20;  // of a journal: later output is only read for steps

std::uint64_t journal_size(const fs::path& path) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  return error ? 0 : static_cast<std::uint64_t>(size);
}

std::string bytes_at(const fs::path& path, std::uint64_t offset, std::size_t most) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes(most, '\0');
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(bytes.data(), static_cast<std::streamsize>(most));
  bytes.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, file.gcount())));
  return bytes;
}

bool is_uid(const std::string& uid) {
  return uid.size() == 32 && uid.find_first_not_of("0123456789abcdef") == std::string::npos;
}

bool is_journal(std::string_view head) {
  return head.starts_with("{\"e\":\"run\",\"v\":");
}

ProcessIdentity writer_of(const JournalHeader& header) {
  return {.pid = header.pid, .start = header.pid_start, .boot = header.boot};
}

bool is_on_this_machine(const JournalHeader& header) {
  return !header.boot.empty() && header.boot == this_process().boot;
}

bool is_alive_here(const JournalHeader& header) {
  return header.pid > 0 && is_on_this_machine(header) && is_alive(writer_of(header));
}

bool has_end(const std::vector<JournalEvent>& events) {
  return std::any_of(events.begin(), events.end(), [](const auto& event) { return event.kind == "end"; });
}

}  // namespace

JournalFollower::JournalFollower(RunStore& store, FollowRequest request, std::function<void(const std::string&)> tell)
    : store_(store), request_(std::move(request)), tell_(std::move(tell)) {}

void JournalFollower::look() {
  for (const fs::path& path : request_.paths) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      if (journal_place(path) || is_journal(bytes_at(path, 0, 64))) add(path);
      continue;
    }
    const auto options = fs::directory_options::skip_permission_denied;
    for (auto it = fs::recursive_directory_iterator(path, options, error);
         !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
      if (it.depth() >= deepest_followed_folder || it->path().filename().string().starts_with('.'))
        it.disable_recursion_pending();
      if (journal_place(it->path())) add(it->path());
    }
  }
}

void JournalFollower::add(const fs::path& given, std::optional<RunId> joined) {
  const fs::path path = fs::absolute(given).lexically_normal();
  Group& group = groups_[path.parent_path()];
  group.folder = path.parent_path();
  if (joined) group.joined = joined;
  const JournalPlace place = journal_place(path).value_or(JournalPlace{.rank = 0, .attempt = 1});
  const auto [found, is_new] = group.files.try_emplace(place);
  if (!is_new) return;
  found->second.path = path;
  found->second.grown = Clock::now();
  group.settled = false;
}

std::optional<fs::path> JournalFollower::joined_journal(RunStore& store, const std::string& source) {
  if (!source.starts_with("journal ")) return std::nullopt;
  const auto position = store.following().position(source);
  const Json state = Json::parse(position ? position->state : "", nullptr, false);
  if (!state.is_object() || !state.contains("joined") || !state["joined"].is_string()) return std::nullopt;
  return state["joined"].get<std::string>();
}

bool JournalFollower::take_in() {
  bool more = false;
  for (auto& [folder, group] : groups_) more = take_in(group) || more;
  return more;
}

bool JournalFollower::take_in(Group& group) {
  bool more = false;
  std::optional<std::int64_t> unread_rank;
  for (auto& [place, file] : group.files) {
    if (place.rank == unread_rank) continue;  // its earlier attempt comes first, since the later one supersedes it
    if (!file.header && !read_header(file)) continue;
    if (file.is_recorded_here) continue;
    const std::uint64_t size = journal_size(file.path);
    if (size == file.size && file.drained && !file.stuck_since) continue;
    if (size != file.size) file.grown = Clock::now();
    file.drained = false;
    file.size = size;
    group.settled = false;
    try {
      if (!file.position_known) know_position(group, file);
      if (file.is_recorded_here) continue;
      const Piece piece = read_piece(file);
      if (piece.end != static_cast<std::uint64_t>(file.stored.bytes)) store(group, file, piece);
      file.drained = !piece.more && !piece.held_back;
      more = more || piece.more;
    } catch (const MovedOn&) {
      file.position_known = false;
      more = true;
    }
    if (!file.drained || file.stuck_since) unread_rank = place.rank;
  }
  settle(group);
  return more;
}

bool JournalFollower::read_header(File& file) {
  JournalReader reader;
  reader.take(bytes_at(file.path, 0, JournalReader::longest_line));
  JournalEvent event;
  if (!reader.next(event)) return false;
  try {
    file.header = journal_header(event);
    if (!file.header || !is_uid(file.header->uid)) throw ImportError("is not a journal");
    file.planned = PlannedRun::of(event.fields);
  } catch (const ImportError& error) {
    file.header.reset();
    if (file.size == 0) tell_(file.path.string() + " " + error.what());
    file.size = 1;  // told
    return false;
  }
  file.source = "journal " + file.header->uid + " " + std::to_string(file.header->rank) + " " +
                std::to_string(file.header->attempt);
  file.size = 0;
  return true;
}

// Where an earlier reader, or another one, has got to.
void JournalFollower::know_position(Group& group, File& file) {
  const auto stored = store_.following().position(file.source);
  file.stored = stored.value_or(FollowedSource{});
  const Json state = Json::parse(file.stored.state, nullptr, false);
  const bool has_state = state.is_object();
  file.steps = LoggedSteps(has_state && state.contains("steps") ? state["steps"].dump() : "");
  file.heals = has_state && state.contains("heals");
  if (has_state && state.contains("metrics")) group.descriptions = state["metrics"];
  file.told = has_state && text_in(state, "told") == "running" ? RunStatus::running : RunStatus::queued;
  if (group.joined) return void(file.position_known = true);
  if (stored) group.run = stored->run;
  if (const auto run = store_.following().run_with_uid(file.header->uid); run && !stored) {
    file.heals = !store_.following().is_followed(*run);
    file.is_recorded_here = file.heals && file.planned;
    group.run = *run;
  }
  file.position_known = true;
}

JournalFollower::Piece JournalFollower::read_piece(File& file) {
  const auto begin = static_cast<std::uint64_t>(file.stored.bytes);
  const std::string bytes = bytes_at(file.path, begin, std::max(bytes_at_once, JournalReader::longest_line + 1));
  JournalReader reader(begin);
  reader.take(bytes);
  Piece piece;
  JournalEvent event;
  std::uint64_t before_last = begin;
  while (reader.good() - begin < bytes_at_once) {
    const std::uint64_t before = reader.good();
    if (reader.next(event)) {
      piece.events.push_back(std::move(event));
      before_last = before;
      continue;
    }
    if (!reader.is_stuck() || !is_given_up(file)) break;
    reader.skip();
  }
  file.skipped += reader.skipped_bytes();
  if (!reader.is_stuck())
    file.stuck_since.reset();
  else if (!file.stuck_since || reader.good() > begin)
    file.stuck_since = Clock::now();
  piece.end = reader.good();
  piece.more = piece.end > begin && begin + bytes.size() > piece.end && !reader.is_stuck();
  // The numbers of a timed step follow at once: a window that shows the run would see the step without its loss.
  if (!file.planned && !piece.more && piece.events.size() > 1 && piece.events.back().kind == "step" && may_grow(file)) {
    piece.events.pop_back();
    piece.end = before_last;
    piece.held_back = true;
  }
  return piece;
}

// A bad line is "not yet" for a minute; on this machine a dead writer's file will not change.
bool JournalFollower::is_given_up(const File& file) const {
  if (request_.is_far ? !gone_.empty() : is_on_this_machine(*file.header) && !is_alive_here(*file.header)) return true;
  return file.stuck_since && Clock::now() - *file.stuck_since > give_up_after;
}

void JournalFollower::store(Group& group, File& file, const Piece& piece) {
  LoggedSteps steps = file.steps;
  const RunId before = group.run;
  FollowedSource position = file.stored;
  bool ended = false;
  try {
    store_.in_one_transaction([&] {
      const auto stored = store_.following().position(file.source);
      if (stored.value_or(FollowedSource{}).bytes != file.stored.bytes) throw MovedOn();
      if (group.joined)
        group.run = *group.joined;
      else if (const auto known = store_.following().run_with_uid(file.header->uid))
        group.run = *known;
      if (file.planned && !group.joined)
        store_own(group, file, piece);
      else
        store_script(group, file, piece, steps);
      if (request_.is_far && group.run != 0 && !group.joined) store_.following().disown(group.run);
      if (request_.created && before != group.run) request_.created(group.run);
      ended = has_end(piece.events);
      position = {group.run, static_cast<std::int64_t>(piece.end), state_of(group, file, steps)};
      store_.following().set_position(file.source, position);
    });
  } catch (...) {
    group.run = before;
    throw;
  }
  file.steps = std::move(steps);
  file.stored = std::move(position);
  group.values_read += std::ssize(piece.events);
  if (before != group.run && !request_.is_far)
    tell_("run " + std::to_string(group.run) + (group.joined ? " takes in " : " is ") +
          group.folder.filename().string());
  if (!ended || group.joined || file.header->rank > 0) return;
  const Run run = store_.existing_run(group.run);
  store_.summary(run);  // computes and keeps it
  store_.metrics().of_run(run.id);
  tell_("run " + std::to_string(group.run) + " has " + std::string(to_string(run.status)) +
        (run.reason.empty() ? "" : ": " + run.reason));
}

void JournalFollower::store_script(Group& group, File& file, const Piece& piece, LoggedSteps& steps) {
  if (group.run == 0 || !store_.run(group.run)) create_run(group, file);
  JournalRun run(store_.existing_run(group.run));
  run.take_descriptions(group.descriptions);
  for (const JournalEvent& event : piece.events) run.take(event, *file.header, steps);
  group.descriptions = run.descriptions();
  LoggedBatch batch = steps.take(run.tokens_per_sample());
  run.describe(batch);
  store_batch(group, file, batch);
  for (TextSample& text : run.take_texts()) {
    text.run = group.run;
    store_.apply(std::vector<RunEvent>{text});
  }
  for (ConsoleText& output : run.take_outputs()) {
    output.run = group.run;
    if (file.stored.bytes < longest_kept_output) store_.apply(std::vector<RunEvent>{output});
  }
  if (group.joined)
    update_joined_run(group.run, run, batch);
  else
    update_run(group.run, file, run, batch);
}

// One of Stepladder's own runs becomes what it is in the database of the process that trains it: the same row, and the
// same events.
void JournalFollower::store_own(Group& group, File& file, const Piece& piece) {
  if (group.run == 0 || !store_.run(group.run) || file.stored.bytes == 0) queue_own(group, file);
  if (file.stored.bytes == 0) file.told = RunStatus::queued;
  Run run = store_.existing_run(group.run);
  if (run.status == RunStatus::interrupted && !is_over(file.told)) {  // by a follower that was gone meanwhile
    run.status = file.told;
    run.reason.clear();
    run.ended_at = missing;
    store_.update_run(run);
  }
  std::vector<RunEvent> events;
  for (const JournalEvent& event : piece.events) {
    if (auto told = run_event_of(event, group.run)) events.push_back(std::move(*told));
    if (event.kind == "started") file.told = RunStatus::running;
  }
  store_.following().apply(events);
  if (!request_.is_far)
    store_.following().own(group.run, is_alive_here(*file.header) ? writer_of(*file.header) : this_process());
}

// A new run, or the next attempt of one.
void JournalFollower::queue_own(Group& group, const File& file) {
  if (group.run != 0 && store_.run(group.run)) {
    Run again = store_.existing_run(group.run);
    again.status = RunStatus::queued;
    again.planned_steps = file.planned->run.planned_steps;
    again.environment = file.planned->run.environment;
    store_.update_run(again);
    return;
  }
  Run run = file.planned->run;
  run.uid = file.header->uid;
  if (!request_.name.empty()) run.name = request_.name;
  if (!file.planned->parent_uid.empty()) run.parent = store_.following().run_with_uid(file.planned->parent_uid);
  if (const auto& ladder = file.planned->ladder; ladder && is_uid(ladder->uid)) {
    run.ladder = store_.following().ladder_with_uid(ladder->uid);
    if (!run.ladder) run.ladder = store_.create_ladder(*ladder);
  }
  group.run = store_.create_run(run);
}

// What a later follower needs to go on.
std::string JournalFollower::state_of(const Group& group, const File& file, const LoggedSteps& steps) const {
  if (file.planned && !group.joined) return Json{{"told", to_string(file.told)}}.dump();
  Json state = {{"steps", Json::parse(steps.state())}, {"metrics", group.descriptions}};
  if (group.joined) state["joined"] = file.path.string();
  if (file.heals) state["heals"] = true;
  return state.dump();
}

void JournalFollower::create_run(Group& group, const File& file) {
  Run run{.uid = file.header->uid,
          .name = !request_.name.empty()      ? request_.name
                  : file.header->name.empty() ? group.folder.filename().string()
                                              : file.header->name,
          .status = RunStatus::running,
          .source = "import",
          .source_path = group.folder.string(),
          .created_at = file.header->started_at,
          .started_at = file.header->started_at};
  group.run = store_.create_run(run);
}

// A run that was taken for interrupted goes on. Its owner is the process that logs it or, of another machine, this one.
void JournalFollower::update_run(RunId id, const File& file, const JournalRun& journal, const LoggedBatch& batch) {
  const Run before = store_.existing_run(id);
  Run run = journal.run();
  if (before.status == RunStatus::interrupted && run.status == RunStatus::interrupted) {
    run.status = RunStatus::running;
    run.reason.clear();
    run.ended_at = missing;
  }
  if (file.header->rank == 0 && run.tokens_per_step == 0 && !batch.steps.empty())
    run.tokens_per_step = batch.steps.front().tokens;
  if (journal.changed() || run.status != before.status || run.tokens_per_step != before.tokens_per_step)
    store_.update_run(run);
  if (file.header->rank == 0 && !request_.is_far)
    store_.following().own(id, is_alive_here(*file.header) ? writer_of(*file.header) : this_process());
}

void JournalFollower::update_joined_run(RunId id, const JournalRun& journal, const LoggedBatch& batch) {
  Run run = store_.existing_run(id);
  const Run told = journal.run();
  run.recipe = told.recipe;
  run.environment = told.environment;
  run.sync = told.sync;
  if (run.tokens_per_step == 0 && !batch.steps.empty()) run.tokens_per_step = batch.steps.front().tokens;
  store_.update_run(run);
}

// A step's parts may come in several pieces: they make one record. A new attempt supersedes the older one's.
void JournalFollower::store_batch(const Group& group, File& file, LoggedBatch& batch) {
  const RunId run = group.run;
  if (file.header->rank == 0 && group.joined) {
    complete_joined(store_, run, batch);
    if (file.steps.has_timed_steps()) has_joined_times_ = true;
  } else if (file.header->rank == 0) {
    std::vector<StepRecord> fresh, parts;
    for (const StepRecord& record : batch.steps)
      (file.heals || batch.may_have(record.step) ? parts : fresh).push_back(record);
    if (!fresh.empty()) store_.append_steps(run, fresh);
    if (!parts.empty()) store_.following().complete_steps(run, parts);
  }
  for (auto& [metric, points] : batch.metrics) {
    if (file.header->rank > 0 && !metric.field.empty()) continue;
    if (group.joined) joined_metrics_.insert(metric.name);
    store_.metrics().describe(run, metric);
    if (!points.empty()) store_.metrics().append(run, metric.name, points);
  }
}

bool JournalFollower::may_grow(const File& file) const {
  if (!file.header) return false;
  if (request_.is_far) return gone_.empty();
  if (is_on_this_machine(*file.header)) return is_alive_here(*file.header);
  return Clock::now() - file.grown < give_up_after;
}

void JournalFollower::writers_are_gone(const std::string& why) {
  gone_ = why;
}

void JournalFollower::settle() {
  for (auto& [folder, group] : groups_) settle(group);
}

// Rank 0's newest attempt tells whether the run goes on.
void JournalFollower::settle(Group& group) {
  if (group.settled || group.joined || group.run == 0 || group.files.empty()) return;
  const File* newest = nullptr;
  for (const auto& [place, file] : group.files)
    if (file.header && (!newest || place.rank == newest->header->rank)) newest = &file;
  if (!newest || newest->is_recorded_here || may_grow(*newest)) return;
  if (!newest->drained || journal_size(newest->path) != newest->size) return;  // read that first
  group.settled = true;
  const auto run = store_.run(group.run);
  if (!run || is_over(run->status)) return;
  const auto last = store_.recorded_steps(run->id).last_step;
  Run over = *run;
  over.status = RunStatus::interrupted;
  over.reason = (request_.is_far ? gone_
                                 : "the process that logged it (pid " + std::to_string(newest->header->pid) +
                                       ") ended without ending the run") +
                "; last step " + std::to_string(last);
  over.ended_at = unix_now();
  store_.update_run(over);
  tell_("run " + std::to_string(over.id) + " is interrupted: " + over.reason);
}

std::vector<FollowedRun> JournalFollower::runs() const {
  std::vector<FollowedRun> runs;
  for (const auto& [folder, group] : groups_) {
    if (group.run == 0) continue;
    std::set<std::int64_t> ranks;
    for (const auto& [place, file] : group.files) ranks.insert(place.rank);
    runs.push_back({group.run, folder, std::ssize(ranks), group.values_read});
  }
  return runs;
}

bool JournalFollower::any_is_open() const {
  return std::any_of(groups_.begin(), groups_.end(), [&](const auto& each) {
    const auto& files = each.second.files;
    return std::any_of(files.begin(), files.end(), [&](const auto& file) { return may_grow(file.second); });
  });
}

}  // namespace stepladder
