// Finds journals, reads a piece of each, and ends runs whose writers are gone; app/import/journal_storing.cpp stores
// the pieces. Journals in one folder are one run's, by rank and attempt. A position that another follower has moved
// (MovedOn) is read again, so two followers never store a value twice.
#include "app/import/journal_follower.h"

#include <algorithm>
#include <utility>

#include "storage/importers/trackers/foreign_run.h"
#include "storage/wording.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t bytes_at_once = 512 << 10;  // of a journal, stored in one transaction of about 50 ms

constexpr std::int64_t searched_for_header = 64 << 20;  // bytes: the first line may be behind damage

bool is_journal(std::string_view head) {
  return head.starts_with("{\"e\":\"run\",\"v\":");
}

bool is_on_this_machine(const JournalHeader& header) {
  return header.pid > 0 && !header.boot.empty() && header.boot == this_process().boot;
}

}  // namespace

ProcessIdentity writer_of(const JournalHeader& header) {
  return {.pid = header.pid, .start = header.pid_start, .boot = header.boot};
}

bool is_alive_here(const JournalHeader& header) {
  return is_on_this_machine(header) && is_alive(writer_of(header));
}

JournalFollower::JournalFollower(RunStore& store, FollowRequest request, std::function<void(const std::string&)> report)
    : store_(store),
      request_(std::move(request)),
      intake_(store, std::move(report)),
      folders_(deepest_followed_folder) {}

void JournalFollower::scan() {
  for (const fs::path& path : request_.paths) {
    std::error_code error;
    if (fs::is_directory(path, error))
      folders_.look(path, [this](const fs::path& folder) {
        for (const fs::path& file : journals_in(folder)) add(file);
        return true;
      });
    else if (journal_place(path) || is_journal(RegularFile(path).read_at(0, 64)))
      add(path);
  }
}

void JournalFollower::add(const fs::path& given, std::optional<RunId> joined) {
  const fs::path path = fs::absolute(given).lexically_normal();
  Group& group = groups_[path.parent_path()];
  group.folder = path.parent_path();
  if (group.origin.folder.name.empty())
    group.origin = request_.is_far ? JournalOrigin::far(request_.origin) : JournalOrigin::of_folder(group.folder);
  if (joined) group.joined = joined;
  const JournalPlace place = journal_place(path).value_or(JournalPlace{.rank = 0, .attempt = 1});
  const auto [found, is_new] = group.files.try_emplace(place);
  if (!is_new) return;
  std::error_code error;
  const fs::file_time_type written = fs::last_write_time(path, error);
  group.next_look = {};
  found->second.path = path;
  found->second.grown = Clock::now() - (error ? Clock::duration::zero() : quiet_since(written));
  group.settled = false;
}

std::optional<fs::path> JournalFollower::joined_journal(RunStore& store, const std::string& source) {
  if (!source.starts_with("journal ")) return std::nullopt;
  const auto position = store.following().position(source);
  const Json state = Json::parse(position ? position->state : "", nullptr, false);
  if (!state.is_object() || !state.contains("joined") || !state["joined"].is_string()) return std::nullopt;
  return state["joined"].get<std::string>();
}

bool JournalFollower::poll() {
  bool more = false;
  const Clock::time_point now = Clock::now();
  for (auto& [folder, group] : groups_)
    if (now >= group.next_look || at_end_) more = poll(group) || more;
  return more;
}

bool JournalFollower::poll(Group& group) {
  bool more = false;
  std::optional<std::int64_t> unread_rank;
  const Clock::time_point now = Clock::now();
  for (auto& [place, file] : group.files) {
    if (place.rank == unread_rank) continue;  // its earlier attempt comes first, since the later one supersedes it
    if (file.is_left_out || (now < file.next_look && !at_end_)) continue;
    if (!file.open) {
      file.open = std::make_unique<RegularFile>(file.path);
      if (!*file.open) file.open.reset();
    }
    if (!file.open || (!file.header && !read_header(file))) {
      look_again_later(file);
      continue;
    }
    more = poll(group, file) || more;
    if (file.is_left_out) continue;
    if (!file.drained || file.stuck_since) unread_rank = place.rank;
  }
  finish_if_idle(group);
  if (!group.settled) return more;
  group.next_look = Clock::time_point::max();
  for (const auto& [place, file] : group.files)
    if (!file.is_left_out) group.next_look = std::min(group.next_look, file.next_look);
  return more;
}

bool JournalFollower::poll(Group& group, File& file) {
  const auto size = static_cast<std::uint64_t>(file.open->size());
  if (size == file.size && file.drained && !file.stuck_since) {
    look_again_later(file);
    return false;
  }
  if (size != file.size && file.position_known) file.grown = Clock::now();
  file.drained = false;
  file.size = size;
  group.settled = false;
  try {
    if (!file.position_known) load_position(group, file);
    if (file.is_left_out) {
      file.open.reset();
      return false;
    }
    const Piece piece = read_piece(file);
    if (piece.end != static_cast<std::uint64_t>(file.stored.bytes)) store(group, file, piece);
    file.drained = !piece.more && !piece.held_back;
    if (file.drained) report_skipped(file);
    return piece.more;
  } catch (const PositionConflict&) {
    file.position_known = false;
    return true;
  }
}

// Plans the next look at a file that was read to its end: never after its last line, seldom if it has no writer.
void JournalFollower::look_again_later(File& file) {
  const auto quiet = Clock::now() - file.grown;
  if (file.ended && !request_.is_far) {
    file.next_look = Clock::time_point::max();
  } else if (!may_grow(file)) {
    file.next_look = Clock::now() + look_again_after(quiet);
  } else {
    if (file.open && !file.open->is_at(file.path) && fs::exists(file.path)) file.open.reset();  // another file's by now
    return;
  }
  file.open.reset();
}

void JournalFollower::report_skipped(File& file) {
  if (file.skipped == std::exchange(file.skipped_reported, file.skipped)) return;
  intake_.report(file.path.string() + ": left out " + plural(file.skipped, "damaged byte"));
}

// Finds the first line, if it is whole. Skips damage before it, and any other lines before it, as an import does.
std::optional<JournalHeader> JournalFollower::find_header(File& file) {
  JournalReader reader;
  JournalEvent event;
  std::size_t at_once = 64 << 10;
  for (std::int64_t offset = 0; offset < searched_for_header; at_once = JournalReader::longest_line) {
    const std::string bytes = file.open->read_at(offset, at_once);
    if (bytes.empty()) break;
    offset += std::ssize(bytes);
    reader.take(bytes);
    while (true) {
      if (reader.is_stuck()) {
        reader.skip();
      } else if (reader.next(event)) {
        const bool is_first = reader.skipped_bytes() == 0;
        if (event.kind != "run" && !is_first) continue;
        const auto header = journal_header(event);
        if (!header || !Uid::allows(header->uid)) throw ImportError("is not a journal");
        file.planned = PlannedRun::of(event.fields);
        file.header_end = reader.good();
        return header;
      } else if (!reader.is_stuck()) {
        break;
      }
    }
  }
  if (reader.skipped_bytes() > 0 && (at_end_ || Clock::now() - file.grown > give_up_after))
    throw ImportError("is not a journal: its first line is missing or damaged");
  return std::nullopt;
}

bool JournalFollower::read_header(File& file) {
  try {
    file.header = find_header(file);
  } catch (const ImportError& error) {
    intake_.report(file.path.string() + " " + error.what());
    file.is_left_out = true;
    file.open.reset();
  }
  if (!file.header) return false;
  file.source = "journal " + file.header->uid + " " + std::to_string(file.header->rank) + " " +
                std::to_string(file.header->attempt);
  return true;
}

// Loads the position that an earlier or another reader has reached.
void JournalFollower::load_position(Group& group, File& file) {
  const auto stored = store_.following().position(file.source);
  file.stored = stored.value_or(FollowedSource{});
  const Json state = Json::parse(file.stored.state, nullptr, false);
  const bool has_state = state.is_object();
  file.steps = LoggedSteps(has_state && state.contains("steps") ? state["steps"].dump() : "", RepeatedLoss::is_kept);
  file.completes_existing = has_state && state.contains("heals");
  file.skipped = file.skipped_reported = has_state ? static_cast<std::uint64_t>(integer_in(state, "skipped")) : 0;
  if (has_state && state.contains("metrics")) group.descriptions = state["metrics"];
  file.status = has_state && text_in(state, "told") == "running" ? RunStatus::running : RunStatus::queued;
  file.position_known = true;
  const RunId run = run_of(group, file, stored);
  file.is_left_out = leaves_out(group, file, run, stored);
  if (file.is_left_out || group.joined) return;
  const auto known = store_.run(run);
  file.ended = has_state && state.contains("ended");
  if (known && stored && file.header->rank == 0 && !is_alive_here(*file.header) && is_over(known->status) &&
      known->status != RunStatus::interrupted)
    file.ended = true;
  if (!stored) file.completes_existing = known && !store_.following().is_followed(run);
  if (run != 0) group.run = run;
}

// The run that the journal belongs to; 0 if there is none yet.
RunId JournalFollower::run_of(const Group& group, const File& file, const std::optional<FollowedSource>& stored) {
  if (stored) return stored->run;
  if (group.joined) return *group.joined;
  return store_.following().run_with_uid(file.header->uid).value_or(group.run);
}

// True if the run was created by something else, so nothing may be added to it. Says so once for each run that the
// group's journals name.
bool JournalFollower::leaves_out(Group& group, File& file, RunId id, const std::optional<FollowedSource>& stored) {
  const auto run = store_.run(id);
  if (!run) return !stored && was_imported(group, file);
  std::string why;
  if (group.joined) {
    if (id == *group.joined) return false;
    why = "is taken in by run " + std::to_string(id) + " already";
  } else {
    const MayAdd may = may_add(store_, *run, file.header->uid, group.origin);
    if (may != MayAdd::no) {
      if (stored && may == MayAdd::as_first)
        store_.in_one_transaction([&] {
          if (store_.following().position(file.source) != stored) throw PositionConflict();
          file.stored.state = state_of(group, file, file.steps);
          store_.following().set_position(file.source, file.stored);
        });
      return false;
    }
    const bool is_own = !request_.is_far && file.planned && run->source == "launched";
    if (is_own) group.run = id;  // the journal of a run that is trained here, most likely
    why = "names run " + std::to_string(id) + " as its own, which " + maker_of(store_, *run, file.header->uid);
  }
  if (!group.refused.insert(id).second) return true;
  const std::string advice = group.joined || file.planned ? "" : "; `stepladder import` makes it a run of its own";
  intake_.report(file.path.string() + " " + why + ": nothing is taken from it" + advice);
  return true;
}

// True if `import` has read the journal. Says so once.
bool JournalFollower::was_imported(Group& group, const File& file) {
  if (group.joined || request_.is_far) return false;
  if (!contents_) contents_ = imported_contents(store_);
  const std::vector<RunId>* const runs = runs_of_journal(*contents_, file.header->uid);
  if (!runs) return false;
  has_imported_ = true;
  if (group.refused.insert(runs->front()).second) intake_.report(in_project_text(group.folder.string(), *runs));
  return true;
}

JournalFollower::Piece JournalFollower::read_piece(File& file) {
  const auto begin = static_cast<std::uint64_t>(file.stored.bytes);
  const std::size_t before_begin = begin > 0 ? 1 : 0;
  std::string bytes = file.open->read_at(static_cast<std::int64_t>(begin - before_begin),
                                         before_begin + std::max(bytes_at_once, JournalReader::longest_line + 1));
  JournalReader reader(begin, before_begin > 0 && !bytes.empty() ? bytes.front() : '\n');
  reader.take(std::string_view(bytes).substr(std::min(bytes.size(), before_begin)));
  Piece piece;
  JournalEvent event;
  std::uint64_t before_last = begin;
  while (reader.good() - begin < bytes_at_once) {
    const std::uint64_t before = reader.good();
    if (reader.next(event)) {
      if (reader.good() >= file.header_end) piece.events.push_back(std::move(event));
      before_last = before;
      continue;
    }
    if (!reader.is_stuck() || !is_abandoned(file)) break;
    reader.skip();
  }
  piece.skipped = reader.skipped_bytes();
  if (!reader.is_stuck())
    file.stuck_since.reset();
  else if (!file.stuck_since || reader.good() > begin)
    file.stuck_since = Clock::now();
  piece.end = reader.good();
  piece.more = piece.end > begin && file.size > piece.end && !reader.is_stuck();
  // A timed step's numbers follow at once: without waiting, a window would see the step without its loss.
  if (!file.planned && !piece.more && piece.events.size() > 1 && piece.events.back().kind == "step" && may_grow(file) &&
      !at_end_) {
    piece.events.pop_back();
    piece.end = before_last;
    piece.held_back = true;
  }
  return piece;
}

// A bad line may become good for a minute; on this machine the file of an exited writer will not change.
bool JournalFollower::is_abandoned(const File& file) const {
  if (request_.is_far ? !gone_.empty() : is_on_this_machine(*file.header) && !is_alive_here(*file.header)) return true;
  if (!may_grow(file) || (at_end_ && file.header->pid <= 0)) return true;
  return file.stuck_since && Clock::now() - *file.stuck_since > give_up_after;
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

void JournalFollower::finish_idle_runs(bool at_end) {
  at_end_ = at_end;
  while (at_end && poll()) {
  }
  for (auto& [folder, group] : groups_) {
    for (const auto& [place, file] : group.files)
      if (at_end && file.stuck_since)
        intake_.report(file.path.string() + " isn't read to its end: what is behind byte " +
                       std::to_string(file.stored.bytes) + " is damaged or not yet whole");
    finish_if_idle(group);
  }
}

// The reason of a run that has become interrupted.
std::string JournalFollower::why_over(const File& newest) const {
  if (request_.is_far) return gone_;
  if (is_on_this_machine(*newest.header))
    return "the process that logged it (pid " + std::to_string(newest.header->pid) + ") ended without ending the run";
  return std::string("no end was logged, and ") +
         (newest.header->boot.empty() ? "its journal doesn't say which process logs it"
                                      : "the process that logs it isn't on this machine") +
         (at_end_ ? "; nobody follows it any more" : "; nothing was logged for a minute");
}

// Ends the run if it is over; rank 0's newest attempt decides.
void JournalFollower::finish_if_idle(Group& group) {
  if (group.settled || group.joined || group.run == 0 || group.files.empty()) return;
  const File* newest = nullptr;
  for (const auto& [place, file] : group.files)
    if (file.header && !file.is_left_out && (!newest || place.rank == newest->header->rank)) newest = &file;
  if (!newest) return;
  const bool is_left = at_end_ && !request_.is_far && !is_alive_here(*newest->header) && group.values_read > 0;
  if (may_grow(*newest) && !is_left) return;
  if (!newest->drained || (newest->open && static_cast<std::uint64_t>(newest->open->size()) != newest->size))
    return;  // read that first
  group.settled = true;
  const auto run = store_.run(group.run);
  if (!run || is_over(run->status)) return;
  const auto last = store_.recorded_steps(run->id).last_step;
  intake_.end(run->id, RunStatus::interrupted, why_over(*newest) + "; last step " + std::to_string(last));
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

}  // namespace stepladder
