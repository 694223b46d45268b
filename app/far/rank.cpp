#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "app/far/keeper.h"

namespace stepladder::far {
namespace {

constexpr int first_port = 20'000;
constexpr int ports = 10'000;

std::string slurm_variable(const char* name, const char* otherwise = "") {
  const char* const value = std::getenv(name);
  return value && *value ? value : otherwise;
}

int number(const std::string& text, int otherwise) {
  char* end = nullptr;
  const long value = std::strtol(text.c_str(), &end, 10);
  return end == text.c_str() || value < 0 || value > 100'000'000 ? otherwise : static_cast<int>(value);
}

void give(const char* name, const std::string& value) {
  ::setenv(name, value.c_str(), 1);
}

}  // namespace

// Each bracket gives its first entry.
std::string first_host(const std::string& list) {
  std::string host;
  for (std::size_t i = 0; i < list.size() && list[i] != ','; ++i) {
    if (list[i] != '[') {
      host += list[i];
      continue;
    }
    const std::size_t close = std::min(list.find(']', i), list.size());
    const std::size_t end = std::min(list.find_first_of("-,", i), close);
    host += list.substr(i + 1, end - i - 1);
    i = close;
  }
  return host;
}

int tasks_on_node(const std::string& list, int node) {
  std::size_t begin = 0;
  while (begin < list.size()) {
    std::size_t end = list.find(',', begin);
    if (end == std::string::npos) end = list.size();
    const std::string entry = list.substr(begin, end - begin);
    const std::size_t times = entry.find("(x");
    const int tasks = number(entry, 1);
    node -= times == std::string::npos ? 1 : number(entry.substr(times + 2), 1);
    if (node < 0) return tasks;
    begin = end + 1;
  }
  return 1;
}

int become_rank(const std::vector<std::string>& command) {
  const std::string hosts = slurm_variable("SLURM_STEP_NODELIST", slurm_variable("SLURM_JOB_NODELIST").c_str());
  const std::string tasks = slurm_variable("SLURM_STEP_TASKS_PER_NODE", slurm_variable("SLURM_TASKS_PER_NODE").c_str());
  give("RANK", slurm_variable("SLURM_PROCID", "0"));
  give("LOCAL_RANK", slurm_variable("SLURM_LOCALID", "0"));
  give("WORLD_SIZE", slurm_variable("SLURM_STEP_NUM_TASKS", slurm_variable("SLURM_NTASKS", "1").c_str()));
  give("LOCAL_WORLD_SIZE", std::to_string(tasks_on_node(tasks, number(slurm_variable("SLURM_NODEID"), 0))));
  if (slurm_variable("MASTER_ADDR").empty()) give("MASTER_ADDR", hosts.empty() ? "127.0.0.1" : first_host(hosts));
  // Every node finds the same port, and two jobs on a node different ones.
  if (slurm_variable("MASTER_PORT").empty())
    give("MASTER_PORT", std::to_string(first_port + number(slurm_variable("SLURM_JOB_ID"), 0) % ports));
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  ::execvp(arguments[0], arguments.data());
  std::fprintf(stderr, "'%s' cannot be started: %s.\n", arguments[0], std::strerror(errno));
  return 127;
}

}  // namespace stepladder::far
