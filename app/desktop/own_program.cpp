// An error is the last line of what the program says, as JSON.
#include "app/desktop/own_program.h"

#include <chrono>

#include "app/process/run_program.h"
#include "app/text/format.h"
#include "storage/errors.h"

namespace stepladder {
namespace {

std::string last_line(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

}  // namespace

nlohmann::json run_own_program(const std::filesystem::path& database, std::vector<std::string> arguments,
                               const std::string& what, JobControl& job) {
  const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe");
  // In tests this program is another one beside it.
  std::vector<std::string> command{(own.filename() == "stepladder" ? own : own.parent_path() / "stepladder").string(),
                                   "--db", database.string()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  command.emplace_back("--json");
  const ProgramResult ended = run_program(command, std::chrono::steady_clock::now() + std::chrono::hours(1),
                                          Afterwards::kill, [&job] { return job.is_interrupted(); });
  if (job.is_interrupted()) return nullptr;
  nlohmann::json printed = nlohmann::json::parse(ended.output, nullptr, false);
  if (ended.succeeded() && printed.is_object()) return printed;
  const std::string last = last_line(ended.errors);
  const nlohmann::json error = nlohmann::json::parse(last, nullptr, false);
  const bool has_message = error.is_object() && error.contains("error") && error["error"].contains("message");
  throw StorageError(what + ": " + harmless(has_message ? error["error"]["message"].get<std::string>() : last));
}

}  // namespace stepladder
