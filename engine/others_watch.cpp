// Measures other programs' CPU time for SystemMonitor and quiet.h: busy time of the usable cores in /proc/stat, minus
// the CPU clocks of the run's threads and helper processes. A thread counts as the run's by its name (is_run_thread),
// so renaming threads changes the figure.
#include "engine/others_watch.h"

#include <dirent.h>
#include <sched.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>
#include <string_view>

#include "storage/process_stat.h"

namespace stepladder {
namespace {

double clock_seconds(clockid_t clock) {
  timespec now{};
  if (clock_gettime(clock, &now) != 0) return missing;
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double cpu_seconds_of(pid_t process) {
  clockid_t clock{};
  return clock_getcpuclockid(process, &clock) == 0 ? clock_seconds(clock) : missing;
}

// The clock that pthread_getcpuclockid gives for a thread, made from the thread's number as glibc does.
double cpu_seconds_of_thread(pid_t thread) {
  return clock_seconds(static_cast<clockid_t>((~static_cast<unsigned>(thread) << 3) | 6));
}

constexpr const char* run_thread_name = "training";

bool is_run_thread(std::string_view name) {
  return name == run_thread_name || name.starts_with("pt_") || name.starts_with("cuda") || name.starts_with("NCCL");
}

// The cores that this process may use. Asked for the process, since LibTorch may pin its threads.
std::vector<bool> usable_core_mask() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<bool> usable;
  if (sched_getaffinity(getpid(), sizeof set, &set) != 0) return usable;
  for (std::size_t core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &set)) continue;
    usable.resize(core + 1);
    usable[core] = true;
  }
  return usable;
}

// Whether a file of a control group limits the CPU time: "200000 100000" or "200000", but not "max 100000" or "-1".
bool limits_cpu(const std::string& file) {
  std::ifstream input(file);
  std::string quota;
  return input >> quota && quota != "max" && quota.front() != '-';
}

// Whether this process's control group, or one around it, has a quota of CPU time.
bool has_cpu_quota() {
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // "0::/user.slice" or "4:cpu,cpuacct:/docker/1f"
    const std::size_t kind = line.find(':'), path = line.find(':', kind + 1);
    if (kind == std::string::npos || path == std::string::npos) continue;
    const std::string controllers = line.substr(kind + 1, path - kind - 1);
    const bool is_unified = controllers.empty();
    if (!is_unified && ("," + controllers + ",").find(",cpu,") == std::string::npos) continue;
    const std::string root = is_unified ? "/sys/fs/cgroup" : "/sys/fs/cgroup/" + controllers;
    const char* file = is_unified ? "/cpu.max" : "/cpu.cfs_quota_us";
    for (std::string group = line.substr(path + 1);; group.resize(group.rfind('/'))) {
      if (limits_cpu(root + (group == "/" ? "" : group) + file)) return true;
      if (group.empty() || group == "/" || group.front() != '/') break;
    }
  }
  return false;
}

int count_cores(const std::vector<bool>& usable) {
  return has_cpu_quota() ? 0 : static_cast<int>(std::ranges::count(usable, true));
}

// Visits the processes in "/proc/", or this one's threads in "/proc/self/task/".
template <class See>
void for_each_process(const std::string& in, See&& see) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(in.c_str()), ::closedir);
  if (!folder) return;
  while (const dirent* entry = ::readdir(folder.get())) {
    if (entry->d_name[0] < '0' || entry->d_name[0] > '9') continue;
    if (const auto process = process_stat(in + entry->d_name))
      see(static_cast<pid_t>(std::atol(entry->d_name)), *process);
  }
}

}  // namespace

// The lines "cpu0 user nice system idle iowait irq softirq steal ...".
std::int64_t busy_ticks_in(std::istream& proc_stat, const std::vector<bool>& usable) {
  std::int64_t busy = 0;
  for (std::string line; std::getline(proc_stat, line) && line.starts_with("cpu");) {
    if (line.size() < 4 || line[3] == ' ') continue;  // the sum of all
    std::istringstream fields(line.substr(3));
    std::size_t core = 0;
    std::array<std::int64_t, 8> states{};
    fields >> core;
    for (std::int64_t& state : states) fields >> state;
    if (core >= usable.size() || !usable[core]) continue;
    for (const std::size_t state : {0, 1, 2, 5, 6, 7}) busy += states[state];
  }
  return busy;
}

Contention use_of_others(const CpuReading& before, const CpuReading& now, int cores, double ticks_a_second) {
  Contention found{.cores = cores};
  const double seconds = now.steady_s - before.steady_s;
  if (!(seconds >= 0.1) || now.busy_ticks <= 0 || cores <= 0) return found;
  const double busy = static_cast<double>(now.busy_ticks - before.busy_ticks) / ticks_a_second / seconds;
  const double run = (now.run_s - before.run_s) / seconds;
  found.other_cores = std::clamp(busy - run, 0.0, static_cast<double>(cores));
  found.program_cores = std::clamp((now.program_s - before.program_s) / seconds, 0.0, found.other_cores);
  return found;
}

void become_run_thread() {
  leave_run_threads(run_thread_name);
}

void leave_run_threads(const char* name) {
  ::prctl(PR_SET_NAME, name);
}

OthersWatch::OthersWatch(Run run, std::vector<pid_t> helpers)
    : run_(run),
      helpers_(std::move(helpers)),
      usable_(usable_core_mask()),
      cores_(count_cores(usable_)),
      before_(read()) {}

CpuReading OthersWatch::read() {
  std::ifstream proc_stat("/proc/stat");
  CpuReading reading{.busy_ticks = busy_ticks_in(proc_stat, usable_), .steady_s = clock_seconds(CLOCK_MONOTONIC)};
  const auto note = [](std::map<pid_t, double>& times, pid_t id, double cpu_s) {
    if (!is_missing(cpu_s)) times[id] = cpu_s;  // one that has exited keeps its last time
  };
  const double process_s = clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
  if (run_ == Run::whole_process) {
    note(thread_s_, getpid(), process_s);
  } else {
    for_each_process("/proc/self/task/", [&](pid_t thread, const ProcessStat& line) {
      if (is_run_thread(line.name)) note(thread_s_, thread, cpu_seconds_of_thread(thread));
    });
  }
  for (const auto& [thread, cpu_s] : thread_s_) reading.run_s += cpu_s;
  reading.program_s = process_s - reading.run_s;
  for (const pid_t helper : helpers_) note(helper_s_, helper, cpu_seconds_of(helper));
  for (const auto& [helper, cpu_s] : helper_s_) reading.run_s += cpu_s;
  return reading;
}

Contention OthersWatch::sample() {
  const CpuReading now = read();
  const double seconds = now.steady_s - before_.steady_s;
  run_cores_ = seconds > 0 ? (now.run_s - before_.run_s) / seconds : missing;
  const Contention found = use_of_others(before_, now, cores_, static_cast<double>(::sysconf(_SC_CLK_TCK)));
  before_ = now;
  return found;
}

std::vector<pid_t> run_helpers() {
  std::vector<pid_t> children, siblings;
  std::string own_name;
  if (const auto own = process_stat("/proc/self")) own_name = own->name;
  for_each_process("/proc/", [&](pid_t pid, const ProcessStat& process) {
    if (process.parent == getpid()) children.push_back(pid);
    if (process.parent == getppid() && pid != getpid() && process.name == own_name) siblings.push_back(pid);
  });
  return children.empty() ? siblings : children;
}

BusyProcesses::BusyProcesses() : before_(read()) {}

BusyProcesses::Reading BusyProcesses::read() {
  Reading reading{.steady_s = clock_seconds(CLOCK_MONOTONIC), .cpu_s = {}, .names = {}};
  for_each_process("/proc/", [&](pid_t pid, const ProcessStat& process) {
    constexpr pid_t kernel_threads = 2;  // kthreadd: they work for programs, and no user can close them
    if (pid == getpid() || process.parent == getpid() || process.parent == kernel_threads) return;
    reading.cpu_s[pid] = process.cpu_s;
    reading.names[pid] = process.name;
  });
  return reading;
}

std::vector<BusyProcess> BusyProcesses::sample(std::size_t most) {
  Reading now = read();
  const double seconds = now.steady_s - before_.steady_s;
  std::vector<BusyProcess> busiest;
  for (const auto& [pid, cpu_s] : now.cpu_s) {
    const auto before = before_.cpu_s.find(pid);  // one that has begun since has used all of its time since
    const double cores = (cpu_s - (before == before_.cpu_s.end() ? 0 : before->second)) / seconds;
    if (seconds > 0 && cores >= 0.05) busiest.push_back({pid, now.names[pid], cores});
  }
  std::ranges::sort(busiest, [](const auto& a, const auto& b) { return a.cores > b.cores; });
  if (busiest.size() > most) busiest.resize(most);
  before_ = std::move(now);
  return busiest;
}

std::string names_of(const std::vector<BusyProcess>& processes) {
  std::vector<BusyProcess> named;  // several of one name together
  for (const BusyProcess& each : processes) {
    const auto same = std::ranges::find(named, each.name, &BusyProcess::name);
    if (same == named.end())
      named.push_back(each);
    else
      same->cores += each.cores;
  }
  std::ranges::stable_sort(named, std::greater{}, &BusyProcess::cores);
  std::string text;
  for (const BusyProcess& each : named) {
    char cores[32];
    std::snprintf(cores, sizeof cores, " %.1f", each.cores);
    text += (text.empty() ? "" : ", ") + each.name + cores;
  }
  return text;
}

}  // namespace stepladder
