// `stepladder watch`: shows another program's output unchanged and records its steps as it prints them.
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iostream>
#include <memory>
#include <optional>
#include <utility>

#include "app/cli/commands.h"
#include "app/environment.h"
#include "app/exit_status.h"
#include "app/import/live_import.h"
#include "app/import/watched_program.h"
#include "engine/stage.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

constexpr int look_again_ms = 200;  // at a followed file, and at an output that isn't ready

struct WatchRequest {
  fs::path database;
  std::string name;                  // of the run; empty: the program's or the file's
  std::vector<std::string> command;  // empty: standard input, or `follow`
  fs::path follow;                   // a growing file
  ImportOptions options;
};

// Returns the reason (an errno) if not all of it could be written.
int write_all(int descriptor, const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t count = ::write(descriptor, data, size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) {
      pollfd ready{.fd = descriptor, .events = POLLOUT, .revents = 0};
      ::poll(&ready, 1, look_again_ms);
      continue;
    }
    if (count <= 0) return errno;
    data += count;
    size -= static_cast<std::size_t>(count);
  }
  return 0;
}

// Passes the output on to its usual destination. Steps are recorded even if that fails; a reader that has exited
// (EPIPE, EIO of a terminal, EBADF if it was closed) isn't reported.
bool output_was_lost = false;

void pass_on(int descriptor, const char* data, std::size_t size) {
  const int error = write_all(descriptor, data, size);
  if (error == 0 || error == EPIPE || error == EIO || error == EBADF || std::exchange(output_was_lost, true)) return;
  std::cerr << "stepladder: the program's output cannot be passed on: " << std::strerror(error)
            << "; its steps are still recorded\n";
}

MoreBytes output_of(WatchedProgram& program) {
  return [&program](std::vector<char>& piece, std::size_t& size) {
    const auto output = program.read(piece);
    if (!output) return false;
    size = output->size;
    pass_on(output->descriptor, piece.data(), size);
    return true;
  };
}

MoreBytes standard_input() {
  return [](std::vector<char>& piece, std::size_t& size) {
    while (signals_without_program() == 0) {
      const ssize_t count = ::read(STDIN_FILENO, piece.data(), piece.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return false;
      size = static_cast<std::size_t>(count);
      pass_on(STDOUT_FILENO, piece.data(), size);
      return true;
    }
    return false;
  };
}

// Follows a growing file until interrupted; reads a truncated file again from its start.
MoreBytes growing_file(int descriptor) {
  return [descriptor, done = off_t{0}](std::vector<char>& piece, std::size_t& size) mutable {
    while (signals_without_program() == 0) {
      const ssize_t count = ::pread(descriptor, piece.data(), piece.size(), done);
      if (count > 0) {
        done += count;
        size = static_cast<std::size_t>(count);
        pass_on(STDOUT_FILENO, piece.data(), size);
        return true;
      }
      if (const off_t end = ::lseek(descriptor, 0, SEEK_END); end >= 0 && end < done) done = 0;
      ::poll(nullptr, 0, look_again_ms);
    }
    return false;
  };
}

// Passes on the rest of an output that no importer can read.
void drain(const MoreBytes& more) {
  std::vector<char> piece(live_piece_size);
  std::size_t size = 0;
  while (more(piece, size)) {
  }
}

int open_followed(const fs::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) throw UsageError(path.string() + " cannot be opened: " + std::strerror(errno));
  if (fs::is_directory(path)) throw UsageError(path.string() + " is a folder, not a file");
  return file;
}

Run new_run(const WatchRequest& request) {
  Run run;
  run.name = !request.name.empty()      ? request.name
             : !request.command.empty() ? fs::path(request.command.front()).filename().string()
             : !request.follow.empty()  ? request.follow.stem().string()
                                        : "stdin";
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

struct ProgramEnd {
  int status = exit_done;
  std::string reason;  // why it failed; empty if it didn't
};

ProgramEnd end_of(WatchedProgram& program) {
  const int status = program.wait();
  if (WIFSIGNALED(status)) return {128 + WTERMSIG(status), "killed by signal " + std::to_string(WTERMSIG(status))};
  if (WEXITSTATUS(status) != 0) return {WEXITSTATUS(status), "exit status " + std::to_string(WEXITSTATUS(status))};
  return {};
}

// Returns the exit status: with a command the command's (128 + N if signal N killed it), otherwise exit_done at the end
// of the input or when the watching of a file is interrupted. If the database fails, the program continues.
int watch(const WatchRequest& request) {
  pass_signals_on();
  const int file = request.follow.empty() ? -1 : open_followed(request.follow);
  RunStore store = RunStore::open(request.database);
  store.close_dead_runs();
  std::optional<WatchedProgram> program;  // before any thread is created
  if (!request.command.empty()) program.emplace(request.command);
  Run run = new_run(request);
  run.id = store.create_run(run);

  ProgramEnd end;
  std::string nothing_read;
  {
    Recorder recorder(request.database, [](const std::string& error) {
      std::cerr << "stepladder: " << error << "; the program continues, but its steps are not recorded\n";
    });
    LiveSink sink(store, recorder, run);
    ImportOptions options = request.options;
    options.live = true;
    options.known_stages = &known_stages();
    const MoreBytes more = with_console(program     ? output_of(*program)
                                        : file >= 0 ? growing_file(file)
                                                    : standard_input(),
                                        recorder, run.id);
    LiveInput input(more, request.follow);
    try {
      importers::step_log().read(input, options, sink);
    } catch (const ImportError& error) {
      nothing_read = std::string("the output ") + error.what();
      drain(more);
    }
    if (program) end = end_of(*program);
    sink.end(end.reason.empty() ? RunStatus::finished : RunStatus::failed, end.reason);
    recorder.flush();
  }
  if (file >= 0) ::close(file);
  if (!nothing_read.empty()) std::cerr << "stepladder: " << nothing_read << "\n";
  return end.status == exit_done && output_was_lost ? exit_failed : end.status;
}

}  // namespace

Subcommand watch_command(CLI::App& app, CommonOptions& common) {
  auto request = std::make_shared<WatchRequest>();
  CLI::App* command =
      app.add_subcommand("watch", "Run a program (or read standard input) and record the steps that it prints");
  command->add_option("command", request->command, "The program and its arguments, after --");
  command->add_option("--name", request->name, "Name of the run");
  command->add_option("--follow", request->follow, "Follow a growing file until interrupted");
  add_import_options(*command, request->options);
  return {command, [request, &common] {
            if (!request->follow.empty() && !request->command.empty())
              throw UsageError("give either --follow or a command, not both");
            request->database = common.database;
            return watch(*request);
          }};
}

}  // namespace stepladder
