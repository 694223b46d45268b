// Collects what the far program reports about its machine: name, cores, memory, disk, GPUs, and whether a logout kills
// programs. Questions to other programs are returned as commands, since the talker runs them without waiting.
#include "app/far/machine.h"

#include <sched.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "app/far/files.h"
#include "storage/database/process.h"

namespace stepladder::far {
namespace {

std::string user_name() {
  for (const char* const name : {"USER", "LOGNAME"})
    if (const char* const value = std::getenv(name); value && *value) return value;
  return std::to_string(::getuid());
}

// A line of /proc/meminfo, in bytes; null if it isn't there.
Json memory_line(const std::string& name) {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(name + ":")) return std::strtoll(line.c_str() + name.size() + 1, nullptr, 10) * 1024;
  return nullptr;
}

int usable_cores() {
  cpu_set_t cores;
  return ::sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores)
                                                           : static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
}

// "[N/A]" and the like are null.
Json figure(const std::string& text, double factor) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return end == text.c_str() ? Json(nullptr) : Json(value * factor);
}

std::string trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

}  // namespace

std::string host_name() {
  utsname names = {};
  ::uname(&names);
  return names.nodename;
}

std::string home_folder() {
  const char* const home = std::getenv("HOME");
  return home && *home ? home : "/";
}

std::string own_program() {
  char path[PATH_MAX];
  const ssize_t size = ::readlink("/proc/self/exe", path, sizeof path);
  return size > 0 ? std::string(path, static_cast<std::size_t>(size)) : "";
}

Json hello(const std::string& folder) {
  utsname names = {};
  ::uname(&names);
  Json why = nullptr;
  try {
    const Descriptor opened = make_folder(folder);
    replace(opened.get(), "writable", std::string(4096, ' '));  // a full disk still takes an empty file
    ::unlinkat(opened.get(), "writable", 0);
    if (!make_folder_below(opened.get(), "runs")) throw refused(folder + "/runs", "cannot be made", errno);
  } catch (const Refusal& refusal) {
    why = folder + ": " + refusal.what();
  }
  return {{"version", 1},
          {"program", STEPLADDER_VERSION},
          {"host", host_name()},
          {"user", user_name()},
          {"boot", this_process().boot},
          {"system", names.sysname},
          {"arch", names.machine},
          {"home", home_folder()},
          {"folder", folder},
          {"path", own_program()},
          {"time", now()},
          {"writable", why.is_null()},
          {"why", why}};
}

Json load_report(const std::string& folder) {
  double load[1] = {0};
  const bool has_load = ::getloadavg(load, 1) == 1;
  struct statvfs disk = {};
  const bool has_disk = ::statvfs(folder.c_str(), &disk) == 0;
  return {{"time", now()},
          {"load", has_load ? Json(load[0]) : Json(nullptr)},
          {"cores", usable_cores()},
          {"memory_total", memory_line("MemTotal")},
          {"memory_free", memory_line("MemAvailable")},
          {"disk_free", has_disk ? Json(static_cast<std::uint64_t>(disk.f_bavail) * disk.f_frsize) : Json(nullptr)}};
}

// systemd-logind's KillUserProcesses as it is in force, and whether the user lingers.
std::vector<std::string> logout_question() {
  return {"/bin/sh", "-c",
          "busctl get-property org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager "
          "KillUserProcesses; loginctl show-user \"$(id -u)\" --property=Linger --value"};
}

Json logout_in(const std::string& answer) {
  const bool is_known = answer.starts_with("b true") || answer.starts_with("b false");
  return {{"kills", is_known ? Json(answer.starts_with("b true")) : Json(nullptr)},
          {"lingers", answer.find("\nyes") != std::string::npos}};
}

std::vector<std::string> gpu_question() {
  return {"nvidia-smi", "--query-gpu=index,uuid,utilization.gpu,memory.used,memory.total,temperature.gpu,name",
          "--format=csv,noheader,nounits"};
}

Json gpus_in(const std::string& answer) {
  constexpr double mebibyte = 1024 * 1024;
  constexpr std::size_t most_gpus = 1024;
  Json gpus = Json::array();
  std::istringstream lines(answer);
  for (std::string line; std::getline(lines, line) && gpus.size() < most_gpus;) {
    std::istringstream words(line);
    std::vector<std::string> fields(7);
    for (std::size_t i = 0; i < 6; ++i) std::getline(words, fields[i], ',');
    std::getline(words, fields[6]);  // the name may hold anything
    const Json index = figure(fields[0], 1);
    if (index.is_null() || !(index >= 0 && index < 1e6) || fields[6].empty()) continue;
    gpus.push_back({{"index", static_cast<int>(index.get<double>())},
                    {"name", trimmed(fields[6])},
                    {"uuid", trimmed(fields[1])},
                    {"load", figure(fields[2], 0.01)},
                    {"memory", figure(fields[3], mebibyte)},
                    {"memory_total", figure(fields[4], mebibyte)},
                    {"temperature", figure(fields[5], 1)}});
  }
  return gpus;
}

}  // namespace stepladder::far
