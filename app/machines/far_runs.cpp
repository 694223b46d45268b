// Follows what was started on machines: copies journals into DATABASE.machines at their offsets, has the followers of
// local files store them, and ends a run once the machine has sent everything. Everything that a machine sends is
// bounded and checked, and only journals' names become files here.
#include "app/machines/far_runs.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <regex>
#include <stdexcept>
#include <utility>

#include "app/machines/followed_run.h"
#include "app/text/format.h"
#include "engine/stage.h"
#include "storage/base64.h"
#include "storage/bounded_text.h"
#include "storage/importers/logs/growing_text.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t most_files = 4096;                              // of one far run
constexpr std::uint64_t most_copied_bytes = std::uint64_t{16} << 30;  // of one far run, until it is over
constexpr std::size_t most_state_bytes = 64 << 10;
constexpr double between_notes_s = 20;
constexpr std::chrono::seconds scan_interval(2);
constexpr std::chrono::seconds follow_again_after(3);

// "keeper/rank-0.1.jsonl", "journals/ID/rank-0.1.jsonl": nothing else becomes a file here.
bool is_journal_name(const std::string& name) {
  static const std::regex journal(
      R"((keeper|journals(/[A-Za-z0-9_][A-Za-z0-9._+=@-]{0,199}){1,3})/rank-[0-9]{1,6}\.[0-9]{1,6}\.jsonl)");
  return name.size() < 1000 && std::regex_match(name, journal);
}

std::uint64_t size_of(const fs::path& file) {
  std::error_code error;
  const auto size = fs::file_size(file, error);
  return error ? 0 : static_cast<std::uint64_t>(size);
}

ImportOptions options_in(const Json& request) {
  const auto here = request.find("here");
  if (here == request.end() || !here->is_object()) return {};
  return {.tokens_per_step = integer_in(*here, "tokens_per_step"),
          .params = integer_in(*here, "params"),
          .hardware = text_in(*here, "hardware")};
}

}  // namespace

FarRuns::FarRuns(RunStore& store, Callbacks callbacks, SshAsks asks)
    : store_(store), callbacks_(std::move(callbacks)), asks_(std::move(asks)), program_(far_program()) {}

FarRuns::~FarRuns() = default;

Link& FarRuns::link(const Machine& machine) {
  auto& link = links_[machine.alias.text()];
  if (!link)
    link = std::make_unique<Link>(
        machine, program_,
        Link::Callbacks{.on_line = [this, alias = machine.alias.text()](const Json& line) { on_line(alias, line); },
                        .on_up =
                            [this, alias = machine.alias.text()] {
                              to_follow_.insert(alias);
                              ask_again_ = {};
                            }},
        asks_);
  return *link;
}

FarRuns::Followed& FarRuns::follow(const FarRun& run) {
  auto& place = followed_[run.uid.text()];
  if (place) return *place;
  place = std::make_unique<Followed>(run, mirrors_folder(store_) / run.uid.text());
  Followed& followed = *place;
  const auto report = callbacks_.report;
  FollowRequest request{.is_far = true, .origin = "far " + run.uid.text()};
  request.created = [this, run](RunId id) { register_run(run, id); };
  followed.journals = std::make_unique<JournalFollower>(store_, request, report);
  request.created = [this, run](RunId id) {
    register_run(run, id);
    join_repeats(run, id);
  };
  request.name = run.name;
  followed.keeper = std::make_unique<JournalFollower>(store_, request, report);
  followed.text = std::make_unique<SourceFollower>(store_, request, report);
  std::error_code error;
  const bool is_ours = bool(open_own_folder(mirrors_folder(store_)));
  for (auto it = is_ours ? fs::recursive_directory_iterator(followed.folder, error)
                         : fs::recursive_directory_iterator();
       !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    const std::string name = it->path().lexically_relative(followed.folder).generic_string();
    if (is_journal_name(name) && fs::is_regular_file(it->symlink_status(error)))
      followed.sizes[name] = size_of(it->path());
  }
  if (const Json state = Json::parse(run.state, nullptr, false); state.is_object()) on_state(followed, state);
  return followed;
}

void FarRuns::scan(bool at_all_machines) {
  for (const FarRun& run : store_.machines().open_runs()) {
    if (followed_.contains(run.uid.text())) continue;
    const auto machine = store_.machines().machine(run.alias);
    if (!machine) continue;
    Followed& followed = follow(run);
    if (!link(*machine).is_up()) continue;
    to_follow_.insert(run.alias.text());
    if (!run.is_started) send_tree(followed);
  }
  if (!at_all_machines) return;
  for (const Machine& machine : store_.machines().machines()) link(machine);
}

// Registers a run. Called in the transaction that creates it, or first adds to it.
void FarRuns::register_run(const FarRun& far_run, RunId id) {
  const auto members = store_.machines().members(far_run.uid);
  if (std::ranges::find(members, id) != members.end()) return;
  store_.machines().add_member(id, far_run.uid);
  Run run = store_.existing_run(id);
  Json environment = object_in(run.environment);
  environment["machine"] = far_run.alias.text();
  if (const Json sent = Json::parse(far_run.sent, nullptr, false); sent.is_object()) environment["sent"] = sent;
  run.environment = json_text(environment);
  run.source_path = far_run.alias.text() + ":runs/" + far_run.uid.text();
  store_.update_run(run);
  callbacks_.report("run " + std::to_string(id) + " is " + run.name + " at " + far_run.alias.text());
}

// Makes the repeats of a command repeats of one rung, the only one of a ladder with the first repeat's uid.
void FarRuns::join_repeats(const FarRun& far_run, RunId id) {
  const Json request = Json::parse(far_run.request, nullptr, false);
  const std::vector<Uid> repeats = request.is_object() ? repeats_of(request) : std::vector<Uid>();
  const auto at = std::ranges::find(repeats, far_run.uid);
  if (at == repeats.end()) return;
  Run run = store_.existing_run(id);
  if (run.ladder) return;
  const std::string name = bounded(text_in(request, "name"), longest_name);
  run.ladder = store_.following().ladder_with_uid(repeats.front().text());
  if (!run.ladder)
    run.ladder = store_.create_ladder(
        {.uid = repeats.front().text(), .name = name, .source = "import", .source_path = run.source_path});
  run.repeat = static_cast<int>(at - repeats.begin());
  run.stage = run.title = name;
  store_.update_run(run);
}

// Runs keep their status while their machine is out of reach; the reason says that it is.
void FarRuns::set_reason_of_runs(const std::string& alias, const std::string& reason) {
  for (const auto& [uid, followed] : followed_) {
    if (followed->row.alias.text() != alias) continue;
    for (const RunId id : store_.machines().members(followed->row.uid)) {
      auto run = store_.run(id);
      if (!run || is_over(run->status)) continue;
      run->reason = reason.empty() ? "" : reason + "; last step " + std::to_string(store_.recorded_steps(id).last_step);
      store_.update_run(*run);
    }
  }
}

void FarRuns::ask_to_follow(const std::string& alias) {
  Json runs = Json::object();
  for (const auto& [uid, followed] : followed_) {
    if (followed->row.alias.text() != alias || !followed->row.is_started) continue;
    Json offsets = Json::object();
    for (const auto& [name, size] : followed->sizes) offsets[name] = size;
    runs[uid] = std::move(offsets);
  }
  links_.at(alias)->ask(
      "follow", {{"runs", std::move(runs)}}, [](const Json&, const std::string&) {}, Link::WhenLost::fail);
}

void FarRuns::on_line(const std::string& alias, const Json& line) {
  for (const char* kind : {"file", "state"}) {
    const auto content = line.find(kind);
    if (content == line.end() || !content->is_object()) continue;
    const auto found = followed_.find(text_in(*content, "run"));
    if (found == followed_.end() || found->second->row.alias.text() != alias) continue;
    if (kind == std::string_view("file"))
      on_file(*found->second, *content);
    else {
      on_state(*found->second, *content);
      // Such a line follows the last bytes.
      found->second->is_all_here = found->second->phase == "ended" || found->second->phase == "gone";
    }
  }
}

void FarRuns::on_file(Followed& followed, const Json& file) {
  const std::string name = text_in(file, "name");
  const std::int64_t at = integer_in(file, "at", -1);
  const auto data = from_base64(text_in(file, "data"));
  if (!is_journal_name(name) || at < 0 || !data) return;
  if (!followed.sizes.contains(name) && followed.sizes.size() >= most_files) return;
  std::uint64_t& size = followed.sizes[name];
  const auto begin = static_cast<std::uint64_t>(at);
  if (begin > size) return void(to_follow_.insert(followed.row.alias.text()));  // a piece before it is missing
  const std::uint64_t known = size - begin;
  if (known >= data->size()) return;
  std::uint64_t copied = data->size();
  for (const auto& [each, bytes] : followed.sizes) copied += bytes;
  if (copied > most_copied_bytes) {
    const std::string why = followed.row.alias.text() + " sends more than " + bytes_text(double(most_copied_bytes)) +
                            " of journals for one run: the rest isn't taken in";
    if (followed.reason != why) callbacks_.report(why);
    followed.reason = why;
    return;
  }
  try {
    const Descriptor copy =
        open_mirrored(mirrors_folder(store_), fs::path(followed.row.uid.text()) / name, O_WRONLY | O_CREAT);
    if (!write_at(copy.get(), size, std::string_view(*data).substr(known)))  // then it has a part, which is right
      throw std::runtime_error((followed.folder / name).string() + " can't be written: " + std::strerror(errno));
    size = begin + data->size();
  } catch (const std::exception& error) {
    if (trouble_ != error.what()) callbacks_.report(std::string(error.what()) + "; trying again");
    trouble_ = error.what();
    to_follow_.insert(followed.row.alias.text());
    follow_again_ = Clock::now() + follow_again_after;
  }
}

void FarRuns::on_state(Followed& followed, const Json& state) {
  const std::string text = json_text(state);
  if (text.size() > most_state_bytes) return;
  followed.phase = bounded(harmless(text_in(state, "phase")), 40);
  followed.reason = bounded(harmless(text_in(state, "reason")), longest_line);
  followed.exit_status = integer_in(state, "code");
  if (text == followed.row.state) return;
  followed.row.state = text;
  try {
    store_.machines().update(followed.row);
  } catch (const StorageError&) {  // the next state is written, too; and it can be asked for again
    followed.row.state.clear();
  }
}

// Gives new journals to the followers. The first one that a watched program writes completes its run, which its output
// began.
void FarRuns::join(Followed& followed) {
  if (followed.is_try()) return;
  for (const auto& [name, size] : followed.sizes) {
    if (followed.known.contains(name)) continue;
    const fs::path path = followed.folder / name;
    if (name.starts_with("keeper/")) {
      if (followed.is_watch()) followed.keeper->add(path);
    } else if (!followed.is_watch()) {
      followed.journals->add(path);
    } else {
      if (followed.run == 0) continue;
      const std::string folder = fs::path(name).parent_path().string();
      if (followed.joined.empty()) followed.joined = folder;
      const bool joins = followed.joined == folder;
      followed.journals->add(path, joins ? std::optional(followed.run) : std::nullopt);
    }
    followed.known.insert(name);
  }
}

bool FarRuns::ingest(Followed& followed) {
  join(followed);
  for (const auto& [name, size] : followed.sizes)
    if (name.starts_with("keeper/rank-0."))
      followed.output.ingest(followed.folder / name, size, [&](std::string_view bytes) {
        if (callbacks_.output) callbacks_.output(followed.row.uid, bytes);
      });
  bool more = followed.keeper->poll();
  if (followed.is_watch() && followed.run == 0)
    if (const auto runs = followed.keeper->runs(); !runs.empty()) followed.run = runs.front().run;
  more = followed.journals->poll() || more;
  if (followed.run != 0 && !followed.reads_text && followed.output.size() > 0) {
    followed.reads_text = true;
    ImportOptions options = options_in(followed.request);
    options.known_stages = &known_stages();
    const auto written_at = [&output = followed.output](std::int64_t byte) { return output.written_at(byte); };
    followed.text->add(growing_output(followed.output.path(), options, written_at), followed.run, Merge::printed);
  }
  return followed.text->poll() || more;
}

void FarRuns::ingest() {
  std::vector<std::string> uids;
  for (const auto& [uid, followed] : followed_) uids.push_back(uid);
  for (const std::string& uid : uids) {
    Followed& followed = *followed_.at(uid);
    try {
      const bool more = ingest(followed);
      if (!trouble_.empty()) callbacks_.report("everything is stored again");
      trouble_.clear();
      if (!more && followed.is_all_here) end(followed);
    } catch (const std::exception& error) {
      if (trouble_ != error.what()) callbacks_.report(std::string(error.what()) + "; trying again");
      trouble_ = error.what();
    }
  }
}

// Ends it here; called once everything that the machine has of it is stored.
void FarRuns::end(Followed& followed) {
  if (followed.phase != "refused") {
    followed.text->finish_idle_runs(true);
    while (followed.text->poll()) {
    }
    const std::string why =
        followed.phase == "gone"
            ? followed.reason.empty() ? "its process there is gone" : followed.reason
            : "its program there has ended (" +
                  (followed.reason.empty() ? "exit status " + std::to_string(followed.exit_status) : followed.reason) +
                  ") without ending it";
    for (JournalFollower* each : {followed.keeper.get(), followed.journals.get()}) {
      each->writers_are_gone(why);
      while (each->poll()) {
      }
      each->finish_idle_runs();
    }
    if (followed.run != 0) {
      Run run = store_.existing_run(followed.run);
      if (run.status == RunStatus::finished && store_.recorded_steps(run.id).records == 0) {
        run.status = RunStatus::failed;
        run.reason = "no step was recorded: the output contains no training step";
        store_.update_run(run);
        callbacks_.report("run " + std::to_string(run.id) + " has failed: " + run.reason);
      }
    }
  }
  followed.row.is_over = true;
  store_.machines().update(followed.row);
  const Uid uid = followed.row.uid;
  ended_[uid.text()] = *progress(uid);
  const Descriptor mirrors = open_own_folder(mirrors_folder(store_));
  if (mirrors && !followed.is_try()) remove_tree(mirrors.get(), uid.text());
  to_follow_.insert(followed.row.alias.text());
  followed_.erase(uid.text());
}

std::optional<FarProgress> FarRuns::progress(const Uid& uid) {
  if (const auto ended = ended_.find(uid.text()); ended != ended_.end()) return ended->second;
  const auto found = followed_.find(uid.text());
  if (found == followed_.end()) return std::nullopt;
  const Followed& followed = *found->second;
  return FarProgress{.run = followed.row,
                     .phase = followed.phase,
                     .reason = followed.reason,
                     .exit_status = followed.exit_status,
                     .runs = store_.machines().members(uid),
                     .output_tail = followed.output.tail(4 << 10)};
}

void FarRuns::signal(const Uid& uid, const std::string& signal, std::function<void(const std::string&)> done) {
  const auto far_run = store_.machines().far_run(uid);
  const auto machine = far_run ? store_.machines().machine(far_run->alias) : std::nullopt;
  if (!machine) return done("its machine has been removed from the list");
  // Not sent again after a lost link: a second interrupt means more than the first one.
  link(*machine).ask(
      "signal", {{"run", uid.text()}, {"signal", signal}},
      [done = std::move(done)](const Json&, const std::string& error) { done(error); }, Link::WhenLost::fail);
}

// Stores how long machines have been out of reach, for other processes.
void FarRuns::note_links() {
  const double now = unix_now();
  for (const auto& [alias, link] : links_) {
    const bool is_lost = !is_missing(link->lost_at()) && !link->is_up();
    const auto noted = noted_.find(alias);
    if (link->is_up()) {
      if (link->is_garbled()) continue;  // its greeting alone is no sign that it's well again
      if (noted != noted_.end() && noted->second > 0 && now - noted->second < between_notes_s) continue;
      if (noted != noted_.end() && noted->second < 0) {
        callbacks_.report(alias + " can be reached again");
        set_reason_of_runs(alias, "");
      }
      store_.machines().heard(link->machine().alias, now,
                              noted == noted_.end() || noted->second <= 0 ? Json{{"hello", link->hello()}}.dump() : "");
      noted_[alias] = now;
    } else if (is_lost && (noted == noted_.end() || noted->second > 0)) {
      store_.machines().lost(link->machine().alias, link->lost_at(), link->why());
      set_reason_of_runs(alias, alias + " is unreachable since " + local_time_text(link->lost_at()));
      const char* next = link->is_hopeless()  ? ""
                         : link->is_garbled() ? "; trying again ever more rarely"
                                              : "; trying again";
      callbacks_.report(alias + " can't be reached: " + link->why() + next);
      noted_[alias] = -now;
    }
  }
}

void FarRuns::poll_links(std::chrono::milliseconds patience) {
  std::vector<pollfd> waiting;
  for (const auto& [alias, link] : links_) link->add_to(waiting);
  ::poll(waiting.data(), waiting.size(), static_cast<int>(patience.count()));
  for (const auto& [alias, link] : links_) link->poll();
}

void FarRuns::poll(std::chrono::milliseconds patience) {
  poll_links(patience);
  if (Clock::now() >= ask_again_) {
    ask_again_ = Clock::now() + scan_interval;
    std::vector<std::string> not_started;  // one that is refused is no longer followed
    for (const auto& [uid, followed] : followed_)
      if (const auto link = links_.find(followed->row.alias.text());
          !followed->row.is_started && link != links_.end() && link->second->is_up())
        not_started.push_back(uid);
    for (const std::string& uid : not_started) send_tree(*followed_.at(uid));
  }
  if (Clock::now() >= follow_again_) {
    for (const std::string& alias : std::exchange(to_follow_, {}))
      if (links_.at(alias)->is_up()) ask_to_follow(alias);
  }
  ingest();
  try {
    note_links();
    if (Clock::now() - scanned_ > scan_interval) {
      scanned_ = Clock::now();
      scan(false);
    }
  } catch (const StorageError& error) {
    if (trouble_ != error.what()) callbacks_.report(std::string(error.what()) + "; trying again");
    trouble_ = error.what();
  }
}

}  // namespace stepladder
