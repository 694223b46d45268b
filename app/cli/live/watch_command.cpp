// `stepladder watch`: shows another program's output unchanged and records its steps as it prints them.
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include "app/cli/commands.h"
#include "app/cli/machines/on_machine.h"
#include "app/exit_status.h"
#include "app/host/environment.h"
#include "app/host/patch.h"
#include "app/import/keeper.h"
#include "app/import/live_sink.h"
#include "app/import/spool.h"
#include "app/import/store_watch.h"
#include "app/import/watched_program.h"
#include "app/runs/find_run.h"
#include "app/runs/open_store.h"
#include "app/text/format.h"
#include "engine/stage.h"
#include "storage/database/machine_store.h"
#include "storage/database/process.h"
#include "storage/regular_file.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

constexpr int look_again_ms = 200;  // at a followed file
constexpr std::size_t piece_size = 64 << 10;
constexpr std::size_t most_console_bytes = 8 << 20;
constexpr std::size_t most_waiting = 8'000;  // events; a piece adds a few thousand, the recorder has room for 16,384

struct WatchRequest {
  fs::path database;
  std::string name;                  // of the run; empty: the program's or the file's
  std::vector<std::string> command;  // empty: standard input, or `follow`
  fs::path follow;                   // a growing file
  std::string attach;                // a run whose program continues without a tracker
  bool no_stores = false;            // records what the program prints, and nothing else
  bool json = false;                 // the output goes to stderr, and the run to stdout
  ImportOptions options;
};

bool interrupted_without_program() {
  return signals_without_program() > 0;
}

// Passes the output on to its usual destination. Steps are recorded even if that fails; a reader that has exited
// (EPIPE, EIO of a terminal, EBADF if it was closed) isn't reported.
bool output_was_lost = false;

void report_output_error(int error) {
  if (error == 0 || error == EPIPE || error == EIO || error == EBADF || std::exchange(output_was_lost, true)) return;
  std::cerr << "stepladder: the program's output cannot be passed on: " << std::strerror(error)
            << "; its steps are still recorded\n";
}

void pass_on(int descriptor, const char* data, std::size_t size) {
  report_output_error(write_all(descriptor, data, size));
}

// A line that is cut off at both ends of a gap is no line.
void blank_first_line(std::vector<char>& piece, std::size_t size) {
  const auto end = piece.begin() + static_cast<std::ptrdiff_t>(size);
  std::fill(piece.begin(), std::find(piece.begin(), end, '\n'), '\n');
}

// Reads the next output into `piece` and returns its size; 0 at the end. Blocks.
using MoreBytes = std::function<std::size_t(std::vector<char>& piece)>;

// Shows the output from `show_from` on: the keeper or an earlier tracker has passed on the rest.
MoreBytes output_of(WatchedProgram& program, Recorder& recorder, LiveSink& sink, std::int64_t show_from) {
  return [&program, &recorder, &sink, show_from, at = std::int64_t{0}](auto& piece) mutable {
    program.mark([&recorder, posted = recorder.posted()] { return recorder.has_written(posted); });
    program.free_recorded();
    const std::size_t size = program.read(piece);
    report_output_error(program.output_error());
    if (program.jumps()) {
      sink.skip_gap();
      blank_first_line(piece, size);
      at = show_from;
    }
    const auto shown = static_cast<std::size_t>(std::clamp<std::int64_t>(show_from - at, 0, std::int64_t(size)));
    if (size > shown) pass_on(STDOUT_FILENO, piece.data() + shown, size - shown);
    at += static_cast<std::int64_t>(size);
    return size;
  };
}

MoreBytes standard_input() {
  return [](std::vector<char>& piece) -> std::size_t {
    while (!interrupted_without_program()) {
      const ssize_t count = ::read(STDIN_FILENO, piece.data(), piece.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return 0;
      pass_on(STDOUT_FILENO, piece.data(), static_cast<std::size_t>(count));
      return static_cast<std::size_t>(count);
    }
    return 0;
  };
}

// Follows a growing file until interrupted; reads a truncated file again from its start.
MoreBytes growing_file(int descriptor) {
  return [descriptor, done = off_t{0}](std::vector<char>& piece) mutable -> std::size_t {
    while (!interrupted_without_program()) {
      const ssize_t count = ::pread(descriptor, piece.data(), piece.size(), done);
      if (count > 0) {
        done += count;
        pass_on(STDOUT_FILENO, piece.data(), static_cast<std::size_t>(count));
        return static_cast<std::size_t>(count);
      }
      if (const off_t end = ::lseek(descriptor, 0, SEEK_END); end >= 0 && end < done) done = 0;
      ::poll(nullptr, 0, look_again_ms);
    }
    return 0;
  };
}

int open_followed(const fs::path& path) {
  std::string why;
  Descriptor file = open_regular(path, why);
  if (!file) throw NotFound(path.string() + " " + why, {.argument = "--follow", .value = path.string()});
  return file.release();
}

// The script's name or `python -m`'s module, since every script's interpreter has the same; else the program's.
std::string name_of(const std::vector<std::string>& command) {
  for (const fs::path word : std::span(command).subspan(1))
    if (word.extension() == ".py" || word.extension() == ".sh") return word.stem().string();
  const std::string program = fs::path(command.front()).filename().string();
  const auto module = std::ranges::find(command, "-m");
  return program.starts_with("python") && command.end() - module > 1 ? module[1] : program;
}

Run new_run(const WatchRequest& request) {
  Run run;
  run.name = !request.name.empty()      ? request.name
             : !request.command.empty() ? name_of(request.command)
             : !request.follow.empty()  ? request.follow.stem().string()
                                        : "stdin";
  run.uid = new_uid().text();
  run.status = RunStatus::running;
  run.source = "import";
  if (!request.follow.empty()) run.source_path = fs::absolute(request.follow).lexically_normal().string();
  run.started_at = unix_now();
  run.params = request.options.params;
  run.tokens_per_step = request.options.tokens_per_step;
  run.hardware = request.options.hardware;
  run.environment = environment_json();
  return run;
}

// The program's number: a trace of its profiler names it, and so is known to be of this run.
void note_process(Run& run, const ProcessIdentity& program) {
  Json environment = Json::parse(run.environment, nullptr, false);
  if (!environment.is_object() || program.pid == 0) return;
  environment["program_pid"] = program.pid;
  run.environment = environment.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Tries until it succeeds: the program has started, so a busy database or a full disk is no reason to give up.
template <class Work>
auto persist(const Work& work) {
  for (bool reported = false;; reported = true) {
    try {
      return work();
    } catch (const StorageError& error) {
      if (interrupted_without_program()) throw;
      if (!reported) std::cerr << "stepladder: " << error.what() << "; trying again until it succeeds\n";
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
}

RunId create_watched(RunStore& store, const Run& run) {
  const RunPatch& patch = patch_here();
  return persist([&] {
    RunId id = 0;
    store.in_one_transaction([&] {
      id = store.create_run(run);
      store.recordings().keep_patch(id, patch);
    });
    return id;
  });
}

// The end of a run: its status and reason, and the exit status of this process.
struct End {
  int exit_status = exit_done;
  RunStatus status = RunStatus::finished;
  std::string reason;
};

End end_of(const WatchedProgram& program) {
  const ProgramEnd end = program.end();
  if (!end.known)
    return {exit_failed, RunStatus::interrupted,
            "the process that kept the program's output was killed, so nobody knows how the program ended"};
  if (WIFSIGNALED(end.status))
    return {128 + WTERMSIG(end.status), RunStatus::failed, "killed by signal " + std::to_string(WTERMSIG(end.status))};
  if (const int status = WEXITSTATUS(end.status); status != 0)
    return {status, RunStatus::failed, "exit status " + std::to_string(status)};
  if (program.lost_bytes() > 0)
    return {
        exit_done, RunStatus::failed,
        std::to_string(program.lost_bytes()) + " bytes of the output could not be kept, and steps in them are lost"};
  return {};
}

class Watch {
 public:
  Watch(RunStore& store, const WatchRequest& request, Run run, std::vector<RecordedRun> recorded = {},
        bool whole = true)
      : run_(std::move(run)),
        recorder_(persist([&] {
          return std::make_unique<Recorder>(request.database, [](const std::string& why) {
            if (why.empty())
              std::cerr << "stepladder: all steps are stored again\n";
            else
              std::cerr << "stepladder: " << why << "; the program continues, and its steps wait to be stored\n";
          });
        })),
        recorded_console_(recorded.empty() ? 0 : store.recordings().console(run_.id, SIZE_MAX).size()),
        sink_([&store](const Run& next) { return create_watched(store, next); }, *recorder_, run_, std::move(recorded),
              whole) {}

  LiveSink& sink() { return sink_; }
  Recorder& recorder() { return *recorder_; }

  // Reads all into the sink. Returns why it held no step; empty if it did.
  std::string read(const MoreBytes& source, ImportOptions options, const fs::path& path) {
    options.live = true;
    options.known_stages = &known_stages();
    const auto reader = importers::step_log().reader(path, options, sink_);
    std::string refused;  // the rest is only passed on then
    const auto push = [&](auto&& to_reader) {
      try {
        if (refused.empty()) to_reader();
      } catch (const ImportError& error) {
        refused = error.what();
      }
    };
    std::vector<char> piece(piece_size);
    while (wait_for_recorder()) {
      const std::string_view bytes(piece.data(), source(piece));
      if (bytes.empty()) break;
      record_console(bytes);
      push([&] { reader->take(bytes); });
    }
    push([&] { reader->finish(); });
    for (const std::string& each : sink_.unread()) std::cerr << "stepladder: " << harmless(each) << "\n";
    return !refused.empty() ? refused : sink_.steps() == 0 ? "contains no training step" : "";
  }

  // Returns whether everything is in the database.
  bool end(const End& end) {
    sink_.end(end.status, end.reason);
    const EventRing::Position until = recorder_->posted();
    while (!recorder_->flush(std::chrono::milliseconds(200), until))
      if (interrupted_without_program()) return false;
    return true;
  }

 private:
  // Waits until most events are in the database, so that a flood takes no memory. False if interrupted.
  bool wait_for_recorder() {
    while (recorder_->waiting() > most_waiting && !interrupted_without_program())
      recorder_->flush(std::chrono::milliseconds(200));
    return !interrupted_without_program();
  }

  // The first bytes are the run's console output, of which an earlier tracker may have recorded some.
  void record_console(std::string_view bytes) {
    const std::size_t begin = std::max(read_console_, recorded_console_);
    const std::size_t end = std::min(read_console_ + bytes.size(), most_console_bytes);
    if (begin < end)
      recorder_->post(ConsoleText{
          .run = run_.id, .at = unix_now(), .text = std::string(bytes.substr(begin - read_console_, end - begin))});
    read_console_ += bytes.size();
  }

  const Run run_;
  const std::unique_ptr<Recorder> recorder_;
  const std::size_t recorded_console_;  // bytes, by an earlier tracker
  std::size_t read_console_ = 0;
  LiveSink sink_;
};

// A run without a step doesn't claim to be finished, nor does its watcher claim to be done.
void require_steps(End& end, RunId run, const std::string& what, const std::string& nothing_read) {
  if (nothing_read.empty()) return;
  report_error(what + " " + nothing_read + ", so no step was recorded; run " + std::to_string(run) +
               " is kept as failed");
  if (end.exit_status == exit_done) end.exit_status = exit_failed;
  if (end.status != RunStatus::finished) return;
  end.status = RunStatus::failed;
  end.reason = "no step was recorded: " + what + " " + nothing_read;
}

// The stores that the program opens; none if the user doesn't want them.
std::unique_ptr<StoreWatch> watch_stores(Watch& watch, const WatchRequest& request, const WatchedProgram& program,
                                         const Run& run, bool has_joined) {
  if (request.no_stores) return nullptr;
  auto stores = std::make_unique<StoreWatch>(
      request.database, run,
      StoreWatch::Program{.process = program.watched(),
                          .started_at = run.started_at,
                          .has_joined = has_joined,
                          .step_key = request.options.step_key},
      watch.recorder(), [](const std::string& text) { std::cerr << "stepladder: " << harmless(text) << "\n"; });
  watch.sink().print_to([&to = *stores](const RunEvent& printed, bool is_counted) { to.print(printed, is_counted); });
  return stores;
}

// Notes the program's exit status in the environment of its run, once the writer has finished with the run.
void keep_exit_status(RunStore& store, RunId id, int status) {
  persist([&] {
    Run run = store.existing_run(id);
    Json environment = Json::parse(run.environment, nullptr, false);
    if (!environment.is_object()) environment = Json::object();
    environment["exit_status"] = status;
    run.environment = environment.dump(-1, ' ', false, Json::error_handler_t::replace);
    store.update_run(run);
    return true;
  });
}

// With --json the program's output goes to stderr, of this process and of the keeper that it starts.
int real_stdout = -1;

void keep_stdout_for_json() {
  real_stdout = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
}

void print_run(RunStore& store, RunId id) {
  if (real_stdout < 0) return;
  ::dup2(real_stdout, STDOUT_FILENO);
  const Run run = store.existing_run(id);
  print(run_json(run, store.summary(run), load_run_context(&store)));
}

// Records the program's output to its end. Returns the program's exit status (128 + N if signal N killed it).
int track(RunStore& store, Watch& watch, WatchedProgram& program, Spool& spool, RunId run, std::int64_t show_from,
          StoreWatch* stores) {
  const MoreBytes source = output_of(program, watch.recorder(), watch.sink(), show_from);
  std::string nothing_read = watch.read(source, spool.options(), {});
  const std::string advice = "`stepladder watch --attach " + std::to_string(run) + "` records the rest\n";
  if (!program.at_end()) {
    std::cerr << "stepladder: stopped before all of the output was recorded; " << advice;
    return exit_interrupted;
  }
  if (stores && stores->finish(interrupted_without_program)) nothing_read.clear();
  End end = end_of(program);
  const int exit_status = end.exit_status;
  require_steps(end, run, "the output", nothing_read);
  if (!watch.end(end)) {
    std::cerr << "stepladder: the last steps aren't stored yet; " << advice;
    return end.exit_status == exit_done ? exit_failed : end.exit_status;
  }
  if (program.end().known) keep_exit_status(store, run, exit_status);
  spool.remove();
  return end.exit_status == exit_done && output_was_lost ? exit_failed : end.exit_status;
}

int watch_program(RunStore& store, const WatchRequest& request) {
  patch_here();  // as it is before the program starts
  Spool spool(request.database, request.options);
  WatchedProgram program(request.command, spool);  // before any thread is created
  own_runs_as(program.keeper());
  Run run = new_run(request);
  note_process(run, program.watched());
  run.id = create_watched(store, run);
  spool.belongs_to(run.id);
  Watch watch(store, request, run);
  const auto stores = watch_stores(watch, request, program, run, false);
  const int status =
      track(store, watch, program, spool, run.id, std::numeric_limits<std::int64_t>::max(), stores.get());
  print_run(store, run.id);
  return status;
}

int attach(RunStore& store, const WatchRequest& request) {
  const RunId id = find_run(store, request.attach).id;
  std::optional<Spool> spool = Spool::open(request.database, id);
  if (!spool) throw UsageError("run " + std::to_string(id) + " has no output that isn't recorded");
  WatchedProgram program(*spool);
  own_runs_as(program.keeper());
  std::vector<RecordedRun> recorded;
  std::vector<RunId> runs = store.processes().runs_owned_by(program.keeper());
  if (runs.empty()) runs.push_back(id);
  for (const RunId run : runs) {
    // The last one's end is that of the program.
    const bool ended = run != runs.back() && store.existing_run(run).status == RunStatus::finished;
    recorded.push_back({run, store.recorded_steps(run), ended});
    // Its steps aren't those of the output alone. What is printed again is added where it is missing.
    if (store.following().is_followed(run)) recorded.back().steps.records = 0;
  }
  const bool whole = spool->state().freed == 0;
  const std::int64_t shown = spool->state().taken;
  const Run run = store.existing_run(id);
  Watch watch(store, request, run, std::move(recorded), whole);
  const auto stores = watch_stores(watch, request, program, run, store.following().is_followed(id));
  const int status = track(store, watch, program, *spool, id, shown, stores.get());
  print_run(store, id);
  return status;
}

// Standard input or a growing file. Returns exit_done at its end, or when the watching of a file is interrupted.
int watch_input(RunStore& store, const WatchRequest& request) {
  const int file = request.follow.empty() ? -1 : open_followed(request.follow);
  Run run = new_run(request);
  run.id = create_watched(store, run);
  Watch watch(store, request, run);
  const std::string nothing_read =
      watch.read(file >= 0 ? growing_file(file) : standard_input(), request.options, request.follow);
  if (file >= 0) ::close(file);
  End end;
  require_steps(end, run.id, file >= 0 ? request.follow.string() : "standard input", nothing_read);
  const bool stored = watch.end(end);
  if (!stored) std::cerr << "stepladder: the last steps aren't stored\n";
  print_run(store, run.id);
  return !stored || !nothing_read.empty() || output_was_lost ? exit_failed : exit_done;
}

int watch(const WatchRequest& request) {
  pass_signals_on();
  if (request.json) keep_stdout_for_json();
  if (!request.attach.empty()) open_existing(request.database);
  RunStore store = RunStore::open(request.database);
  store.processes().close_dead_runs();
  if (!request.attach.empty()) return attach(store, request);
  remove_unread_outputs(request.database, [&](RunId run) { return store.run(run).has_value(); });
  tell_of_unread_outputs(request.database);
  return request.command.empty() ? watch_input(store, request) : watch_program(store, request);
}

}  // namespace

void tell_of_unread_outputs(const std::filesystem::path& database) {
  for (const UnreadOutput& output : unread_outputs(database))
    std::cerr << "stepladder: run " << output.run
              << (output.is_running ? " is still running, but its output isn't being recorded"
                                    : " has ended, but the end of its output isn't recorded")
              << "; `stepladder watch --attach " << output.run << "` records the rest\n";
}

Subcommand watch_command(CLI::App& app, CommonOptions& common) {
  auto request = std::make_shared<WatchRequest>();
  auto on = std::make_shared<OnMachine>();
  CLI::App* command =
      add_with_json(app, common, "watch",
                    "Run a program (or read standard input) and record the steps that it prints; ends with its exit "
                    "status, or with 1 if there was no step");
  command->add_option("command", request->command, "The program and its arguments, after --");
  command->add_option("--name", request->name, "Name of the run")->check(new_name());
  command->add_option("--follow", request->follow, "Follow a growing file until interrupted");
  command->add_option("--attach", request->attach, "Go on recording this run, whose tracker was killed");
  command->add_flag("--no-stores", request->no_stores,
                    "Leave out the stores that the program opens (TensorBoard, W&B, MLflow, Trackio, tables)");
  add_import_options(*command, request->options);
  add_on_options(*command, *on, true);
  return {command, [request, on, &common] {
            if (!request->follow.empty() + !request->command.empty() + !request->attach.empty() > 1)
              throw UsageError("give only one of --follow, --attach and a command");
            request->database = common.database;
            request->json = common.json;
            if (const std::string unknown = unknown_hardware(request->options.hardware); !unknown.empty())
              std::cerr << "stepladder: " << unknown << "\n";
            if (*on && request->command.empty())
              throw UsageError("--on needs the command that is to run there, after --");
            if (*on) return watch_on_machine(*on, request->command, request->name, request->options, common);
            return watch(*request);
          }};
}

}  // namespace stepladder
