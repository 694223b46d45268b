// Blocks for programs that end soon; the far program, whose loop must not block, has app/far/children.h.
#include "app/process/run_program.h"

#include <csignal>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include "app/process/awaited_program.h"
#include "app/text/format.h"

namespace stepladder {

ProgramResult run_program(const std::vector<std::string>& command, std::chrono::steady_clock::time_point deadline,
                          Afterwards afterwards, const std::function<bool()>& cancelled) try {
  constexpr std::chrono::milliseconds between_looks(10);
  AwaitedProgram program({.command = command, .group = Launch::Group::session});
  Process& process = program.process();
  ProgramResult result{.started = true};
  while (!result.ended && std::chrono::steady_clock::now() < deadline && !(cancelled && cancelled()))
    result.ended = process.wait(between_looks);
  if (result.ended) {
    result.status = process.exit_status();
    result.output = program.output();
    result.errors = program.errors();
  } else if (afterwards == Afterwards::kill) {
    process.kill_group(SIGKILL);
  } else {
    std::thread([left = std::move(process)]() mutable { left.wait(); }).detach();
  }
  return result;
} catch (const std::system_error&) {
  return {};
}

std::string output_of(const std::vector<std::string>& command, const std::string& input,
                      const std::vector<std::string>& environment, bool has_terminal, std::chrono::seconds patience) {
  AwaitedProgram program({.command = command,
                          .environment = environment,
                          .group = has_terminal ? Launch::Group::ours : Launch::Group::session},
                         input);
  if (!program.process().wait(patience)) {
    program.process().end();
    throw std::runtime_error(command.front() + " has not answered for " + std::to_string(patience.count()) + " s");
  }
  const int status = program.process().exit_status();
  if (status == 0) return program.output();
  constexpr std::size_t last_words = 8 << 10;
  std::string errors = program.errors();
  if (errors.size() > last_words) errors.erase(0, errors.size() - last_words);
  while (errors.ends_with('\n')) errors.pop_back();
  if (errors.empty()) errors = "ended with status " + std::to_string(status);
  throw std::runtime_error(command.front() + ": " + harmless(errors));
}

}  // namespace stepladder
