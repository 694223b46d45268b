// Every sample log as other programs would pass it on: behind the prefixes of launchers, containers and logging
// libraries, coloured, with other line ends, among other lines. The steps stay the same. STEPLADDER_MUTATIONS sets how
// many are tried (a few hundred by default).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
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
    const Prefix prefix = some_prefix(how);
    int seconds = pick(3000);
    const bool reorders = pick(4) == 0;
    const std::string colour = pick(4) == 0 ? "\x1b[3" + std::to_string(pick(8)) + "m" : "";
    const std::string end = pick(3) == 0 ? "\r\n" : "\n";
    const bool has_noise = pick(3) == 0;
    how += (colour.empty() ? "" : ", coloured") + std::string(end.size() > 1 ? ", CRLF" : "") +
           (has_noise ? ", noise" : "") + (reorders ? ", pairs in another order" : "");
    std::string changed = pick(5) == 0 ? "\xEF\xBB\xBF" : "";
    if (!changed.empty()) how += ", byte order mark";
    const auto add = [&](const std::string& line) {
      changed += prefix(seconds += pick(3)) + colour + line + (colour.empty() ? "" : "\x1b[0m") + end;
    };
    std::istringstream lines(log);
    for (std::string line; std::getline(lines, line);) {
      if (line.ends_with('\r')) line.pop_back();
      add(reorders ? reordered(line) : line);
    }
    if (has_noise) add("see https://example.org/x for details");
    return changed;
  }

 private:
  int pick(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }

  using Prefix = std::function<std::string(int seconds)>;

  // Stamps advance from line to line.
  Prefix some_prefix(std::string& how) {
    const int rank = pick(8), number = pick(90'000), day = 1 + pick(28);
    // %d in its order: `values`, in which -1 and -2 stand for minutes and seconds.
    const auto stamped = [&how](const char* name, const char* format, auto... values) -> Prefix {
      how = name;
      return [=](int seconds) {
        [[maybe_unused]] const auto value = [seconds](int each) {
          return each == -1 ? seconds / 60 % 60 : each == -2 ? seconds % 60 : each;
        };
        char text[160];
        std::snprintf(text, sizeof text, format, value(values)...);
        return std::string(text);
      };
    };
    switch (pick(16)) {
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
        return stamped("journald", "Nov %2d 10:%02d:%02d node%d python3[%d]: ", day, -1, -2, rank, number);
      case 6:
        return stamped("ISO stamp", "2026-11-%02dT10:%02d:%02d.%06dZ ", day, -1, -2, number);
      case 7:
        return stamped("logging", "[2026-11-%02d 10:%02d:%02d,%03d] [INFO] ", day, -1, -2, number % 1000);
      case 8:
        return stamped("loguru", "2026-11-%02d 10:%02d:%02d.%03d | INFO     | __main__:main:%d - ", day, -1, -2,
                       number % 1000, number % 500);
      case 9:
        return stamped("logging's default", "INFO:train:");
      case 10:
        return stamped("logging with a name", "2026-11-%02d 10:%02d:%02d,%03d - INFO - ", day, -1, -2, number % 1000);
      case 11:
        return stamped("Kubernetes' own files", "2026-11-%02dT10:%02d:%02d.%09dZ stdout F ", day, -1, -2, number);
      case 12:
        return stamped("docker logs -t", "2026-11-%02dT10:%02d:%02d.%09dZ ", day, -1, -2, number);
      case 13:
        return stamped("journald -o short-iso", "2026-11-%02dT10:%02d:%02d+0100 node%d python3[%d]: ", day, -1, -2,
                       rank, number);
      case 14:
        return stamped("kubectl --timestamps", "[pod/job-%d/main] 2026-11-%02dT10:%02d:%02d.%09dZ ", rank, day, -1, -2,
                       number);
      default:
        return stamped("no prefix", "");
    }
  }

  // A line of pairs "step 1 | name value | name value" with those behind the first in another order.
  std::string reordered(const std::string& line) {
    std::vector<std::string> pairs;
    std::size_t begin = 0;
    for (std::size_t bar; (bar = line.find(" | ", begin)) != std::string::npos; begin = bar + 3)
      pairs.push_back(line.substr(begin, bar - begin));
    pairs.push_back(line.substr(begin));
    if (pairs.size() < 3 || !(line.starts_with("step") || line.starts_with("iter"))) return line;
    std::shuffle(pairs.begin() + 1, pairs.end(), random_);
    std::string text = pairs.front();
    for (std::size_t i = 1; i < pairs.size(); ++i) text += " | " + pairs[i];
    return text;
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
