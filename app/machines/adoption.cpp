#include "app/machines/adoption.h"

#include <nlohmann/json.hpp>

#include "app/format.h"
#include "storage/bounded_text.h"
#include "storage/nested_json.h"

namespace stepladder {
namespace {

constexpr std::size_t most_runs = 20;

std::string shown(const std::string& text) {
  return harmless(bounded(text, longest_line));
}

// The command of a request, or what is there in its place.
std::string command_in(const std::string& request) {
  const auto json = nests_deep(request) ? nlohmann::json() : nlohmann::json::parse(request, nullptr, false);
  if (!json.is_object() || !json.contains("command") || !json["command"].is_array()) return "an unreadable command";
  std::string command;
  for (const auto& word : json["command"])
    if (word.is_string()) command += (command.empty() ? "" : " ") + word.get<std::string>();
  return shown(command);
}

}  // namespace

std::vector<std::string> adoption_text(const MachineInFile& machine) {
  std::vector<std::string> lines;
  const std::string name = shown(machine.alias);
  lines.push_back(machine.is_local
                      ? name + " is this machine itself: Stepladder would start its own far program here, without ssh."
                      : "Stepladder would connect to it by `ssh " + name + "`, now and whenever something runs there.");
  lines.push_back("It would keep its files there in " +
                  (machine.folder.empty() ? "~/.stepladder" : shown(machine.folder)) + ".");
  if (!machine.program.empty())
    lines.push_back("What you launch there later would be trained by the program " + shown(machine.program) + ".");
  if (machine.uses_slurm)
    lines.push_back("What you launch there later would be a Slurm job (partition " +
                    (machine.partition.empty() ? "by default" : shown(machine.partition)) + ", account " +
                    (machine.account.empty() ? "by default" : shown(machine.account)) + ", time limit " +
                    (machine.time.empty() ? "by default" : shown(machine.time)) + ").");
  std::size_t listed = 0;
  for (const MachineInFile::Started& run : machine.open_runs) {
    if (++listed > most_runs) break;
    const std::string what = shown(run.name) + " (" + shown(run.kind) + "): " + command_in(run.request);
    lines.push_back(run.is_started ? "It would take in the steps of what was started there: " + what
                                   : "It would not start what was only asked for: " + what);
  }
  if (machine.open_runs.size() > most_runs)
    lines.push_back("And " + std::to_string(machine.open_runs.size() - most_runs) + " more.");
  return lines;
}

}  // namespace stepladder
