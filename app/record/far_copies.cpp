// Runs the commands of a series of tries on another machine. A copy there is changed by a request of its own, so that a
// command's time is the command's alone; the machine keeps the name of the state that a copy holds, and refuses a
// change to another one. The output that FarRuns puts together stays until it is a log of the series.
#include "app/record/far_copies.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <set>
#include <span>
#include <utility>

#include "app/exit_status.h"
#include "app/host/held_folder.h"
#include "app/machines/far_kind.h"
#include "app/machines/output_file.h"
#include "app/machines/packed_files.h"
#include "app/text/format.h"
#include "engine/files/files.h"
#include "storage/bounded_text.h"
#include "storage/errors.h"
#include "storage/importers/journal/journal_reader.h"
#include "storage/json_values.h"

namespace stepladder {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr auto poll_interval = std::chrono::milliseconds(200);
constexpr auto ask_interval = std::chrono::seconds(1);
constexpr auto before_kill = std::chrono::seconds(10);
constexpr auto removal_patience = std::chrono::seconds(20);
constexpr std::size_t most_changed_files = 1000;  // that a request names; else all files are sent
constexpr std::uintmax_t most_sent_bytes = 100u << 20;
constexpr std::size_t piece = 1 << 20;
constexpr const char* given_up = "\ngiven up\n";  // ends the file of a request that was signalled
constexpr double longest_s = 1e9;                 // that a project stores for a run

// Arguments: UID/NAME of the copy, the state that it holds (empty: not known, so it is made anew), its new state, the
// folder with the ignored files, the number of changed files, those files, the ignored ones. Works in the folder with
// the files that were sent, FOLDER/runs/UID/work. NAME.files gets the state's files, which no run sees, and the copy
// gets all of them again: a run may have changed or linked them. Nothing is removed or written through a link, as it
// may lead to the user's data. Prints the copy's folder.
constexpr const char* hold_script = R"sh(set -e
copy=$1 held=$2 tree=$3 ignored=$4 changed=$5
shift 5
case $ignored in "~/"*) ignored=$HOME/${ignored#"~/"} ;; esac
sent=$(pwd -P)
cd "$sent/../../.."
mkdir -p "tries/${copy%/*}"
cd tries
is_inside() {
  above=$2
  while [ "$above" != "${above%/*}" ]; do
    above=${above%/*}
    if [ -L "$1/$above" ]; then return 1; fi
  done
}
remove() {
  if ! is_inside "$1" "$2"; then return 0; fi
  rm -rf "$1/$2"
  above=$2
  while [ "$above" != "${above%/*}" ]; do
    above=${above%/*}
    rmdir "$1/$above" 2>/dev/null || return 0
  done
}
now=$(cat "$copy.holds" 2>/dev/null) || now=
if [ ! -d "$copy" ] || [ ! -d "$copy.files" ]; then now=; fi
if [ -n "$held" ] && [ "$now" != "$held" ]; then exit 3; fi
mkdir -p "$copy"
at=0
for file; do
  at=$((at + 1))
  if [ "$at" -gt "$changed" ] && [ -L "$copy/$file" ] && is_inside "$copy" "$file"; then rm -f "$copy/$file"; fi
done
if [ "$now" != "$tree" ]; then
  rm -f "$copy.holds"
  if [ -z "$held" ]; then rm -rf "$copy" "$copy.files"; fi
  mkdir -p "$copy" "$copy.files"
  while [ "$changed" -gt 0 ]; do
    if [ -e "$copy.files/$1" ] || [ -L "$copy.files/$1" ]; then remove "$copy" "$1"; fi
    remove "$copy.files" "$1"
    shift
    changed=$((changed - 1))
  done
  cp -RPp "$sent/." "$copy.files"
  printf %s "$tree" > "$copy.holds"
fi
shift "$changed"
copy=$(cd "$copy" && pwd -P)
cd "$copy.files"
find . -type d -exec sh -c 'copy=$1; shift
for each; do if [ -L "$copy/$each" ] || [ ! -d "$copy/$each" ]; then rm -rf "$copy/$each"; mkdir "$copy/$each"; fi; done' \
  sh "$copy" {} +
find . ! -type d -exec sh -c 'cd "$1"; shift; rm -rf "$@"' sh "$copy" {} +
cp -RPp . "$copy"
cd "$copy"
for file; do
  if ! is_inside . "$file"; then continue; fi
  rmdir "./$file" 2>/dev/null || :
  if [ -e "$ignored/$file" ] && [ ! -e "./$file" ] && [ ! -L "./$file" ]; then
    mkdir -p "$(dirname "./$file")"
    ln -s "$ignored/$file" "./$file"
  fi
done
pwd -P
)sh";

// Argument: UID of the series, whose copies go. A link in them isn't followed.
constexpr const char* remove_script = R"sh(set -e
cd "$(pwd -P)/../../../tries"
rm -rf "$1"
cd ..
rmdir tries 2>/dev/null || :
)sh";

std::string last_words(const std::string& output) {
  const std::size_t end = output.find_last_not_of(" \r\n\t");
  if (end == std::string::npos) return {};
  const std::size_t line = output.find_last_of('\n', end);
  const std::size_t begin = line == std::string::npos ? 0 : line + 1;
  return output.substr(begin, end + 1 - begin);
}

Json state_of(const FarRun& run) {
  Json state = Json::parse(run.state, nullptr, false);
  return state.is_object() ? state : Json::object();
}

// Whether the program ended by itself, with any exit status.
bool has_ended(const Json& state) {
  return text_in(state, "phase") == "ended" && text_in(state, "status") != "stopped";
}

std::string reason_in(const Json& state) {
  const std::string reason = bounded(harmless(text_in(state, "reason")), longest_line);
  return reason.empty() ? "it has ended without an exit status" : reason;
}

// Of the copy here, as an archive: the files of the tree that have changed, or all. Not the links to the checkout,
// which the copy has in the place of submodules, nor what lies behind one.
std::optional<PackedFiles> packed(const TryTrees& trees, const fs::path& here, const std::string& tree,
                                  const std::vector<std::string>* changed) {
  std::vector<std::string> names = trees.files_of(tree);
  if (changed) {
    const std::set<std::string> wanted(changed->begin(), changed->end());
    std::erase_if(names, [&](const std::string& name) { return !wanted.contains(name); });
  }
  std::string list;
  for (const std::string& name : names) {
    std::error_code error;
    const fs::file_status status = fs::symlink_status(here / name, error);
    const bool is_link = fs::is_symlink(status);
    if (is_link && fs::read_symlink(here / name, error) == trees.top() / name) continue;
    if (fs::is_regular_file(status) || is_link) list += name + '\0';
  }
  if (list.empty()) return {};
  return PackedFiles::of(here, list, most_sent_bytes);
}

}  // namespace

FarCopies::FarCopies(RunStore& store, std::string machine, fs::path folder, std::string ignored, Report report,
                     std::function<bool()> stop)
    : store_(store),
      alias_(std::move(machine)),
      folder_(std::move(folder)),
      ignored_(std::move(ignored)),
      report_(std::move(report)),
      stop_(std::move(stop)) {}

FarCopies::~FarCopies() = default;

Machine FarCopies::machine() const {
  const auto alias = MachineAlias::from(alias_);
  if (const auto known = alias ? store_.machines().machine(*alias) : std::nullopt) return *known;
  throw UsageError(harmless(alias_) + ", where this series is measured, is no longer one of this project's machines",
                   {.code = "no-such-machine",
                    .argument = "machine",
                    .value = alias_,
                    .hint = "`stepladder machines add " + alias_ + "` adds it again"});
}

bool FarCopies::is_machine_known() const {
  const auto alias = MachineAlias::from(alias_);
  return alias && store_.machines().machine(*alias);
}

FarRuns& FarCopies::runs() {
  if (!runs_)
    runs_ = std::make_unique<FarRuns>(store_, FarRuns::Callbacks{.report = report_},
                                      SshAsks{.on_terminal = ::isatty(STDIN_FILENO) == 1, .environment = {}});
  return *runs_;
}

std::optional<Uid> FarCopies::begun(const fs::path& order) const {
  const auto uid = Uid::from(first_line(text_of(order).value_or("")));
  return uid && store_.machines().far_run(*uid) ? uid : std::nullopt;
}

bool FarCopies::is_given_up(const fs::path& order) const {
  return text_of(order).value_or("").ends_with(given_up);
}

bool FarCopies::is_begun(const MeasuredCommand& command) const {
  const fs::path order = command.state.string() + ".far";
  return begun(order) && !is_given_up(order);
}

Uid FarCopies::start(const fs::path& order, FarCommand command) {
  drop(order);
  command.kind = far_kind::one_try;
  command.uid = new_uid();
  write_whole(order, command.uid->text() + "\n", private_file);
  runs().start(machine(), command);
  return *command.uid;
}

std::optional<FarRun> FarCopies::over(const Uid& uid) const {
  auto run = store_.machines().far_run(uid);
  return run && run->is_over ? run : std::nullopt;
}

void FarCopies::poll() {
  const Link& link = runs().link(machine());
  runs().poll(poll_interval);
  if (link.is_hopeless() && !link.is_up())
    throw StorageError(alias_ + " can't be reached: " + link.why() +
                       "; what has begun there goes on, and the same command follows it");
}

std::optional<FarRun> FarCopies::wait(const Uid& uid) {
  for (; !stop_(); poll())
    if (auto run = over(uid)) return run;
  return {};
}

std::string FarCopies::output_of_run(const Uid& uid) const {
  const Descriptor file = open_own_file(mirrors_folder(store_), fs::path(uid.text()) / "output.log", O_RDONLY);
  if (!file) return {};
  const off_t size = ::lseek(file.get(), 0, SEEK_END);
  const auto begin = size > off_t(piece) ? std::uint64_t(size) - piece : 0;
  return read_at(file.get(), begin, piece);
}

void FarCopies::copy_output(const Uid& uid, const fs::path& log, const std::string& last_line) const {
  const Descriptor file = open_own_file(mirrors_folder(store_), fs::path(uid.text()) / "output.log", O_RDONLY);
  OutputFile copy(log, private_file);
  const auto write = [&](const std::string& bytes) { copy.write(std::as_bytes(std::span(bytes))); };
  std::string bytes;
  for (std::uint64_t at = 0; file && !(bytes = read_at(file.get(), at, piece)).empty(); at += bytes.size())
    write(bytes);
  write(last_line);
  copy.commit();
}

// Forgets a request that is over, or was never made.
void FarCopies::drop(const fs::path& order) {
  const auto uid = Uid::from(first_line(text_of(order).value_or("")));
  if (!uid) return;
  if (const Descriptor mirrors = open_own_folder(mirrors_folder(store_))) remove_tree(mirrors.get(), uid->text());
  std::error_code error;
  fs::remove(order, error);
}

std::optional<std::string> FarCopies::hold(const TryTrees& trees, const fs::path& here, const std::string& tree,
                                           const std::vector<std::string>& links) {
  const std::string name = here.filename().string();
  std::string held = text_of(state(name + ".there")).value_or("");
  if (!is_commit_hash(held)) held.clear();
  while (true) {
    std::vector<std::string> changed;
    if (!held.empty()) changed = trees.changed_files(held, tree);
    if (changed.size() > most_changed_files) held.clear(), changed.clear();
    FarCommand command{.name = "state of " + trees.top().filename().string(),
                       .command = {"/bin/sh", "-c", hold_script, "sh", folder_.filename().string() + "/" + name, held,
                                   tree, ignored_, std::to_string(changed.size())}};
    command.command.insert(command.command.end(), changed.begin(), changed.end());
    command.command.insert(command.command.end(), links.begin(), links.end());
    const auto files = packed(trees, here, tree, held.empty() ? nullptr : &changed);
    if (files) command.tree = files->archive();
    std::error_code error;
    fs::remove(state(name + ".there"), error);
    const fs::path order = state("copy-" + name + ".far");
    const Uid uid = start(order, std::move(command));
    const auto run = wait(uid);
    if (!run) {
      report_(alias_ + " goes on with taking the checkout's files; the same command follows it");
      return {};
    }
    const Json end = state_of(*run);
    const std::string output = output_of_run(uid);
    drop(order);
    const std::int64_t status = has_ended(end) ? integer_in(end, "code", -1) : -1;
    if (status == 0) {
      write_whole(state(name + ".there"), tree, private_file);
      return last_words(output);
    }
    if (held.empty() || status < 0)
      throw StorageError(alias_ + " didn't take the checkout's files: " +
                         (status < 0 ? reason_in(end) : harmless(last_words(output))));
    held.clear();
  }
}

std::optional<CommandEnd> FarCopies::run(const MeasuredCommand& command) {
  if (const auto end = end_of_command(command.state)) return end;
  const fs::path order = command.state.string() + ".far";
  auto uid = begun(order);
  if (!uid || is_given_up(order)) {
    if (stop_()) return {};
    put_log_aside(command, "interrupted");
    FarCommand asked{.name = "run " + command.state.stem().string() + " of a series of tries",
                     .command = command.command,
                     .folder = command.folder.string()};
    asked.environment.insert(command.environment.begin(), command.environment.end());
    uid = start(order, std::move(asked));
  }
  if (const auto run = wait(*uid)) return take(command, *run);
  report_("the run goes on at " + alias_ + "; the same command follows it");
  return {};
}

std::optional<CommandEnd> FarCopies::take(const MeasuredCommand& command, const FarRun& run) {
  const Json state = state_of(run);
  const fs::path order = command.state.string() + ".far";
  const std::int64_t code = integer_in(state, "code", -1);
  const double begun_at = number_in(state, "started_at"), ended_at = number_in(state, "ended_at");
  if (!has_ended(state) || code < 0 || code > 255 || !(ended_at >= begun_at) || ended_at - begun_at >= longest_s) {
    drop(order);
    // Its times are those of a wall clock, which somebody may have set meanwhile.
    const bool is_untimed = has_ended(state) && code >= 0 && code <= 255;
    throw StorageError("the run at " + alias_ +
                       " doesn't count: " + (is_untimed ? "its times there can't be true" : reason_in(state)) +
                       "; the same command runs it again");
  }
  // 127: often a program that isn't there, of which only the far program's reason says something.
  copy_output(run.uid, command.log, code == 127 ? "stepladder: " + reason_in(state) + "\n" : "");
  const CommandEnd end{.exit_status = static_cast<int>(code),
                       .started_at = begun_at,
                       .wall_s = ended_at - begun_at,
                       .host = bounded(harmless(text_in(state, "host")), longest_name)};
  write_end(command.state, end);
  drop(order);
  return end;
}

std::optional<CommandEnd> FarCopies::end(const MeasuredCommand& command) {
  if (const auto end = end_of_command(command.state)) return end;
  const fs::path order = command.state.string() + ".far";
  const auto uid = begun(order);
  if (uid && !is_machine_known()) return {};
  bool is_asked = is_given_up(order);
  Clock::time_point first_ask{}, next_ask{};
  for (; uid && !stop_(); poll()) {
    if (const auto run = over(*uid)) {
      if (!is_asked && has_ended(state_of(*run))) return take(command, *run);
      drop(order);
      return {};
    }
    if (!runs().link(machine()).is_up() || Clock::now() < next_ask) continue;
    // The first look only brings news of an end.
    if (const auto progress = runs().progress(*uid); !progress || !progress->run.is_started) continue;
    // Whatever follows, its end isn't its own: also for the next program, if this one is killed.
    if (!is_asked) write_whole(order, uid->text() + given_up, private_file);
    is_asked = true;
    if (first_ask == Clock::time_point{}) first_ask = Clock::now();
    const bool is_late = Clock::now() - first_ask > before_kill;
    runs().signal(*uid, is_late ? "kill" : "terminate", [](const std::string&) {});
    next_ask = Clock::now() + ask_interval;
  }
  if (uid)
    report_("the run goes on at " + alias_ + ", and nothing else of this series begins there before it has ended");
  return {};
}

void FarCopies::remove() {
  const std::string uid = folder_.filename().string();
  const std::string what = "the copies at " + alias_ + ", tries/" + uid + " in the far program's folder, ";
  try {
    if (!is_machine_known()) return report_(what + "stay, as it is no longer one of this project's machines");
    std::error_code error;
    for (const char* name : {"a.there", "b.there"}) fs::remove(state(name), error);
    const fs::path order = state("remove.far");
    const Uid asked =
        start(order, {.name = "removing the copies of " + uid, .command = {"/bin/sh", "-c", remove_script, "sh", uid}});
    for (const auto until = Clock::now() + removal_patience; !over(asked); poll())
      if (stop_() || Clock::now() > until) return report_(what + "go as soon as it is reached again");
    const Json end = state_of(*over(asked));
    if (!has_ended(end) || integer_in(end, "code", -1) != 0)
      report_(what + "stay: " + harmless(has_ended(end) ? last_words(output_of_run(asked)) : reason_in(end)));
    drop(order);
  } catch (const std::exception& error) {
    report_(what + "stay: " + error.what());
  }
}

bool FarCopies::wait_for_left() {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder_ / ".state", error)) {
    if (entry.path().extension() != ".far") continue;
    const auto uid = begun(entry.path());
    if (!uid || over(*uid)) continue;
    const std::string name = entry.path().stem().stem().string();
    report_("waiting for the run " + name + " at " + alias_ + ", which a killed program left there");
    if (wait(*uid)) continue;
    report_("the run " + name + " goes on at " + alias_);
    return false;
  }
  return true;
}

}  // namespace stepladder
