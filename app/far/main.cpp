// stepladder-far: the program that Stepladder starts on another machine (docs/far.md).
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "app/far/children.h"
#include "app/far/files.h"
#include "app/far/keeper.h"
#include "app/far/machine.h"
#include "app/far/talker.h"

namespace {

using namespace stepladder::far;

constexpr int exit_usage = 2;
constexpr const char* usage =
    "stepladder-far talk [--folder F] [--silence SECONDS]\n"
    "stepladder-far keep RUNFOLDER [--request N]\n"
    "stepladder-far rank -- COMMAND...\n"
    "stepladder-far --version\n";

int misused(const std::string& why) {
  std::fprintf(stderr, "%s\n%s", why.c_str(), usage);
  return exit_usage;
}

// The value of an option that must be a number from 1 to `most`; 0 if it isn't.
long number(const std::string& text, long most) {
  char* end = nullptr;
  const long value = std::strtol(text.c_str(), &end, 10);
  return *end != '\0' || value < 1 || value > most ? 0 : value;
}

// Commands of a cluster are often outside the path of a shell that isn't a login shell.
void add_usual_folders_to_path() {
  const char* const path = std::getenv("PATH");
  std::string folders = path && *path ? path : "/usr/local/bin:/usr/bin:/bin";
  for (const char* const folder : {"/usr/local/bin", "/usr/local/slurm/bin", "/opt/slurm/bin", "/opt/slurm/current/bin",
                                   "/cm/shared/apps/slurm/current/bin"})
    if ((":" + folders + ":").find(std::string(":") + folder + ":") == std::string::npos)
      folders += std::string(":") + folder;
  ::setenv("PATH", folders.c_str(), 1);
}

int talk(const std::vector<std::string>& arguments) {
  std::string folder = home_folder() + "/.stepladder";
  long silence_s = 60;
  for (std::size_t i = 0; i < arguments.size(); i += 2) {
    if (i + 1 == arguments.size()) return misused(arguments[i] + " needs a value.");
    if (arguments[i] == "--folder")
      folder = arguments[i + 1];
    else if (arguments[i] == "--silence")
      silence_s = number(arguments[i + 1], 86'400);
    else
      return misused("talk has no option " + arguments[i] + ".");
  }
  if (folder == "~" || folder.starts_with("~/")) folder.replace(0, 1, home_folder());
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  if (folder.empty() || folder[0] != '/') return misused("--folder must begin with '/' or '~/'.");
  if (silence_s == 0) return misused("--silence must be 1 to 86400 seconds.");
  stepladder::close_all_but({});
  add_usual_folders_to_path();
  return Talker(folder, std::chrono::seconds(silence_s)).run();
}

int remove_forgotten(const std::string& folder) {
  const stepladder::Descriptor runs = stepladder::open_folder(folder + "/runs");
  if (!runs) return 1;
  bool all = true;
  for (const std::string& name : stepladder::names_in(runs.get(), 100'000))
    if (name.starts_with(".forgotten-")) all = stepladder::remove_tree(runs.get(), name) && all;
  return all ? 0 : 1;
}

int run(const std::vector<std::string>& arguments) {
  const std::string what = arguments.empty() ? "" : arguments[0];
  const std::vector<std::string> rest(arguments.begin() + (arguments.empty() ? 0 : 1), arguments.end());
  if (what == "--version") return std::printf("stepladder-far %s\n", STEPLADDER_VERSION) > 0 ? 0 : 1;
  if (what == "talk") return talk(rest);
  if (what == "keep" && rest.size() == 1) return keep(rest[0], 0);
  if (what == "keep" && rest.size() == 3 && rest[1] == "--request") {
    const long request = number(rest[2], 10'000);
    return request > 0 ? keep(rest[0], request) : misused("--request must be a number.");
  }
  if (what == "rank" && rest.size() >= 2 && rest[0] == "--") return become_rank({rest.begin() + 1, rest.end()});
  if (what == "remove-forgotten" && rest.size() == 1) return remove_forgotten(rest[0]);
  if (what == "--help") return std::printf("%s", usage) > 0 ? 0 : 1;
  return misused(what.empty() ? "A command is missing." : "stepladder-far can't do '" + what + "' so.");
}

}  // namespace

int main(int count, char** words) {
  try {
    return run({words + 1, words + count});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "stepladder-far: %s\n", error.what());
    return 1;
  }
}
