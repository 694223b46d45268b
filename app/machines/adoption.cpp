#include "app/machines/adoption.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "app/text/format.h"
#include "storage/bounded_text.h"
#include "storage/json_values.h"

namespace stepladder {
namespace {

constexpr std::size_t most_runs = 20;
constexpr std::size_t longest_shown = 1000;

// The text on one line, so that it can't look like a sentence of ours: control and invisible characters become dots,
// several blanks one, and a long text is cut with the number of bytes that are missing.
std::string shown(const std::string& text) {
  std::string line;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = std::max<std::size_t>(1, utf8_length(std::string_view(text).substr(at)));
    const std::string_view one = std::string_view(text).substr(at, size);
    at += size;
    const bool is_blank = one == " " || one == "\t" || one == "\u00a0" || one == "\u3000";
    const bool is_invisible = one == "\n" || one == "\r" || (one >= "\u200b" && one <= "\u200f") ||
                              (one >= "\u2028" && one <= "\u202f") || (one >= "\u2060" && one <= "\u206f") ||
                              one == "\ufeff" || one == "\u00ad";
    if (!is_blank || !line.ends_with(' ')) line += is_blank ? " " : is_invisible ? "." : one;
  }
  std::string cut = harmless(bounded(line, longest_shown));
  if (line.size() > longest_shown) cut += " (" + std::to_string(line.size() - longest_shown) + " bytes more)";
  return cut;
}

std::string count(std::int64_t value) {
  return value > 0 ? std::to_string(value) : "by default";
}

// The command of a request, or the text that is there instead.
std::string command_in(const std::string& request) {
  const auto json = nests_deep(request) ? nlohmann::json() : nlohmann::json::parse(request, nullptr, false);
  if (!json.is_object() || !json.contains("command") || !json["command"].is_array()) return "an unreadable command";
  std::string command;
  for (const auto& word : json["command"]) {
    if (!word.is_string()) continue;
    const std::string text = word.get<std::string>();
    const bool is_plain = !text.empty() && text.find_first_of(" \t\r\n'\"\\") == std::string::npos;
    command += (command.empty() ? "" : " ") + (is_plain ? text : "'" + text + "'");
  }
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
                    (machine.time.empty() ? "by default" : shown(machine.time)) + ", GPUs " + count(machine.gpus) +
                    ", nodes " + count(machine.nodes) + ", tasks of each " + count(machine.tasks_per_node) + ").");
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
