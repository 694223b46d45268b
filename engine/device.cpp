// Reads CPU name, cores and memory from /proc and /sys. The limits of a container's control group (version 2) count,
// not only the machine's own figures, since a run is sized by them.
#include "engine/device.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string_view>
#include <thread>

#ifdef __linux__
#include <sched.h>
#endif

namespace stepladder {
namespace {

// "model name	: Intel(R) Xeon(R)" -> {"model name", "Intel(R) Xeon(R)"}
std::pair<std::string, std::string> split_field(const std::string& line) {
  const auto colon = line.find(':');
  if (colon == std::string::npos) return {};
  const auto trim = [](std::string text) {
    const auto first = text.find_first_not_of(" \t");
    if (first == std::string::npos) return std::string();
    return text.substr(first, text.find_last_not_of(" \t") - first + 1);
  };
  return {trim(line.substr(0, colon)), trim(line.substr(colon + 1))};
}

bool has_word(const std::string& text, std::string_view word) {
  std::istringstream words(text);
  std::string candidate;
  while (words >> candidate)
    if (candidate == word) return true;
  return false;
}

// A line of /proc/meminfo in bytes; 0 if it is absent.
std::int64_t memory_field(std::string_view name) {
  std::ifstream file("/proc/meminfo");
  std::string line;
  while (std::getline(file, line)) {
    const auto [key, value] = split_field(line);
    if (key == name) return std::strtoll(value.c_str(), nullptr, 10) * 1024;  // "24 kB"
  }
  return 0;
}

// A number in a file of the control group (version 2); -1 if it is absent or "max".
std::int64_t control_group_number(const char* name) {
  std::ifstream file(std::string("/sys/fs/cgroup/") + name);
  std::int64_t value = -1;
  return file >> value ? value : -1;
}

int usable_cores() {
  int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
#ifdef __linux__
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) cores = std::max(1, CPU_COUNT(&set));
  // A container's CPU quota, "200000 100000" for two cores.
  std::ifstream quota_file("/sys/fs/cgroup/cpu.max");
  double quota_us = 0, period_us = 0;
  if (quota_file >> quota_us >> period_us && quota_us > 0 && period_us > 0)
    cores = std::min(cores, std::max(1, static_cast<int>(quota_us / period_us + 0.5)));
#endif
  return cores;
}

// "Intel(R) Xeon(R) Processor" -> "Intel Xeon", without the words that all processors share.
std::string plain_name(std::string name) {
  for (const std::string_view part : {"(R)", "(TM)", "(r)", "(tm)", " CPU", " Processor"})
    for (std::size_t at = name.find(part); at != std::string::npos; at = name.find(part)) name.erase(at, part.size());
  return name;
}

}  // namespace

std::string DeviceReport::resolve(const std::string& device) const {
  if (device != "auto") return device;
  if (!gpus.empty()) return "cuda";
  return mps ? "mps" : "cpu";
}

std::string DeviceReport::hardware(const std::string& device) const {
  if (device == "cuda") return gpus.empty() ? "" : gpus.front().name;
  if (device == "mps") return "Apple GPU";
  return std::to_string(cpu_cores) + " x " + cpu_name;
}

std::string DeviceReport::older_than_ampere() const {
  if (gpus.empty()) return "no usable NVIDIA GPU";
  const Gpu& gpu = gpus.front();
  if (gpu.compute_major >= 8) return "";
  return "needs compute capability 8.0 (Ampere) or newer; " + gpu.name + " has " + std::to_string(gpu.compute_major) +
         "." + std::to_string(gpu.compute_minor);
}

DeviceReport describe_cpu() {
  DeviceReport report;
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    const auto [key, value] = split_field(line);
    if (report.cpu_name.empty() && key == "model name") report.cpu_name = plain_name(value);
    if (key == "flags" || key == "Features") {  // x86 and Arm
      report.cpu_bf16 = has_word(value, "avx512_bf16") || has_word(value, "amx_bf16") || has_word(value, "bf16");
      if (!report.cpu_name.empty()) break;  // the other cores are the same
    }
  }
  if (report.cpu_name.empty()) report.cpu_name = "CPU";
  report.cpu_cores = usable_cores();
  report.memory_bytes = memory_field("MemTotal");
  return report;
}

std::int64_t available_memory_bytes() {
  std::int64_t available = memory_field("MemAvailable");
  const std::int64_t limit = control_group_number("memory.max");
  const std::int64_t used = control_group_number("memory.current");
  if (limit > 0 && used >= 0) {
    const std::int64_t left = std::max<std::int64_t>(1, limit - used);
    available = available > 0 ? std::min(available, left) : left;
  }
  return available;
}

}  // namespace stepladder
