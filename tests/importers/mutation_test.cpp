// Every sample log as other programs would pass it on: behind the prefixes of launchers, containers and logging
// libraries, coloured, with other line ends, among other lines. The steps stay the same. STEPLADDER_MUTATIONS sets how
// many are tried (a few hundred by default).
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "tests/importers/told.h"

namespace stepladder {
namespace {

namespace fs = std::filesystem;

const fs::path samples = fs::path(STEPLADDER_SOURCE_DIR) / "tests" / "importers" / "samples";

std::string steps_of(const std::string& log) {
  std::ostringstream out;
  out.precision(17);
  try {
    for (const auto& run : import_text(log).runs) {
      out << "run ";
      for (const StepRecord& step : run.steps)
        out << "(" << step.step << ", " << step.loss << ", " << step.val_loss << ") ";
    }
  } catch (const ImportError& error) {
    out << "refused";
  }
  return out.str();
}

class Mutations {
 public:
  explicit Mutations(unsigned seed) : random_(seed) {}

  // Also describes it in `how`.
  std::string of(const std::string& log, std::string& how) {
    const std::string prefix = some_prefix(how);
    const std::string colour = pick(4) == 0 ? "\x1b[3" + std::to_string(pick(8)) + "m" : "";
    const std::string end = pick(3) == 0 ? "\r\n" : "\n";
    const bool has_noise = pick(3) == 0;
    how += (colour.empty() ? "" : ", coloured") + std::string(end.size() > 1 ? ", CRLF" : "") +
           (has_noise ? ", noise" : "");
    std::string changed = pick(5) == 0 ? "\xEF\xBB\xBF" : "";
    if (!changed.empty()) how += ", byte order mark";
    const auto add = [&](const std::string& line) {
      changed += prefix + colour + line + (colour.empty() ? "" : "\x1b[0m") + end;
    };
    std::istringstream lines(log);
    for (std::string line; std::getline(lines, line);) {
      if (line.ends_with('\r')) line.pop_back();
      add(line);
    }
    if (has_noise) add("see https://example.org/x for details");
    return changed;
  }

 private:
  int pick(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }

  std::string some_prefix(std::string& how) {
    const int rank = pick(8), number = pick(90'000), day = 1 + pick(28), minute = pick(60);
    const std::string r = std::to_string(rank);
    char text[128];
    const auto stamped = [&](const char* name, const char* format, auto... values) {
      how = name;
      std::snprintf(text, sizeof text, format, values...);
      return std::string(text);
    };
    switch (pick(12)) {
      case 0:
        return stamped("srun", "%d: ", rank);
      case 1:
        return stamped("torchrun", "[rank%d]: ", rank);
      case 2:
        return stamped("elastic", "[default%d]:", rank);
      case 3:
        return stamped("docker compose", "worker-%d  | ", rank);
      case 4:
        return stamped("kubectl", "[pod/job-%d/main] ", rank);
      case 5:
        return stamped("journald", "Nov %2d 10:%02d:00 node%d python3[%d]: ", day, minute, rank, number);
      case 6:
        return stamped("ISO stamp", "2026-11-%02dT10:%02d:00.%06dZ ", day, minute, number);
      case 7:
        return stamped("logging", "[2026-11-%02d 10:%02d:00,%03d] [INFO] ", day, minute, number % 1000);
      case 8:
        return stamped("loguru", "2026-11-%02d 10:%02d:00.%03d | INFO     | __main__:main:%d - ", day, minute,
                       number % 1000, number % 500);
      case 9:
        return stamped("logging's default", "INFO:train:");
      case 10:
        return stamped("logging with a name", "2026-11-%02d 10:%02d:00,%03d - INFO - ", day, minute, number % 1000);
      default:
        return stamped("no prefix", "%s", "");
    }
  }

  std::mt19937 random_;
};

TEST(Mutations, of_every_sample_have_its_steps) {
  std::vector<std::pair<std::string, std::string>> logs;  // and their steps
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(samples)) {
    // Nobody prints a program's source line by line through a logger.
    if (entry.path().extension() != ".log" || entry.path().stem() == "source-code") continue;
    std::ifstream file(entry.path(), std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    logs.emplace_back(text.str(), steps_of(text.str()));
    names.push_back(entry.path().filename().string());
  }
  ASSERT_GT(logs.size(), 20U);
  const char* const asked = std::getenv("STEPLADDER_MUTATIONS");
  const int wanted = asked ? std::atoi(asked) : 400;
  Mutations mutations(7);
  std::map<std::string, int> failed;
  for (int i = 0; i < wanted; ++i) {
    const auto& [log, steps] = logs[static_cast<std::size_t>(i) % logs.size()];
    std::string how;
    const std::string changed = mutations.of(log, how);
    const std::string found = steps_of(changed);
    if (found == steps) continue;
    const std::string what = names[static_cast<std::size_t>(i) % logs.size()] + ": " + how;
    if (++failed[what] == 1)
      ADD_FAILURE() << what << "\n"
                    << changed.substr(0, 300) << "\nhas  " << found.substr(0, 200) << "\nnot  " << steps.substr(0, 200);
  }
}

}  // namespace
}  // namespace stepladder
