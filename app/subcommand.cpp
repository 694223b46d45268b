#include "app/subcommand.h"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <iostream>

namespace stepladder {
namespace {

std::atomic<int> interrupts{0};

void note_interrupt(int signal) {
  if (++interrupts > 1) std::_Exit(128 + signal);
}

}  // namespace

CLI::App* add_with_json(CLI::App& app, CommonOptions& common, const char* name, const char* what) {
  CLI::App* command = app.add_subcommand(name, what);
  command->add_flag("--json", common.json, "Print JSON");
  return command;
}

void print(const Json& json) {
  std::cout << json.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
}

int complain(const std::exception& error, int status) {
  std::cerr << "stepladder: " << error.what() << "\n";
  return status;
}

void catch_signals() {
  std::signal(SIGINT, note_interrupt);
  std::signal(SIGTERM, note_interrupt);
  // A process of the same run that dies, or a reader of our output that leaves, is an error to be told, not our end.
  std::signal(SIGPIPE, SIG_IGN);
}

bool interrupted() {
  return interrupts > 0;
}

}  // namespace stepladder
