// For git, tar and the desktop's helpers. A program's streams are files without a name rather than pipes: it never
// waits for us, and one that outlives this program can still write.
#include "app/process/run_program.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "app/format.h"
#include "storage/process.h"

namespace stepladder {
namespace {

using Clock = std::chrono::steady_clock;

Descriptor stream_file(const std::string& content = {}) {
  Descriptor file(::memfd_create("stepladder-stream", MFD_CLOEXEC));
  if (!file || !write_at(file.get(), 0, content))
    throw std::system_error(errno, std::generic_category(), "no memory for a program's output");
  return file;
}

std::string all_of(const Descriptor& file) {
  const off_t size = ::lseek(file.get(), 0, SEEK_END);
  return read_at(file.get(), 0, size > 0 ? static_cast<std::size_t>(size) : 0);
}

struct Running {
  explicit Running(Launch launch, const std::string& content = {})
      : input(stream_file(content)), output(stream_file()), errors(stream_file()), process([&] {
          launch.input = input.get(), launch.output = output.get(), launch.errors = errors.get();
          return Process(launch);
        }()) {}

  const Descriptor input, output, errors;
  Process process;
};

}  // namespace

ProgramResult run_program(const std::vector<std::string>& command, Clock::time_point deadline, Afterwards afterwards,
                          const std::function<bool()>& cancelled) try {
  constexpr std::chrono::milliseconds between_looks(10);
  Running program({.command = command, .group = Launch::Group::session});
  ProgramResult end{.started = true};
  while (!end.ended && Clock::now() < deadline && !(cancelled && cancelled()))
    end.ended = program.process.wait(between_looks);
  if (end.ended) {
    end.status = program.process.exit_status();
    end.output = all_of(program.output);
    end.errors = all_of(program.errors);
  } else if (afterwards == Afterwards::kill) {
    program.process.kill_group(SIGKILL);
  } else {
    std::thread([left = std::move(program.process)]() mutable { left.wait(); }).detach();
  }
  return end;
} catch (const std::system_error&) {
  return {};
}

std::string output_of(const std::vector<std::string>& command, const std::string& input,
                      const std::vector<std::string>& environment, bool has_terminal, std::chrono::seconds patience) {
  Running program({.command = command,
                   .environment = environment,
                   .group = has_terminal ? Launch::Group::ours : Launch::Group::session},
                  input);
  if (!program.process.wait(patience)) {
    program.process.end();
    throw std::runtime_error(command.front() + " has not answered for " + std::to_string(patience.count()) + " s");
  }
  if (program.process.exit_status() == 0) return all_of(program.output);
  std::string errors = all_of(program.errors);
  while (errors.ends_with('\n')) errors.pop_back();
  if (errors.empty()) errors = "ended with status " + std::to_string(program.process.exit_status());
  constexpr std::size_t shown = 8 << 10;
  if (errors.size() > shown) errors.erase(0, errors.size() - shown);
  throw std::runtime_error(command.front() + ": " + harmless(errors));
}

}  // namespace stepladder
