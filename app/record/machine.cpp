#include "app/record/machine.h"

#include <sys/utsname.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "engine/device.h"

namespace stepladder {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_gpus_read = 64;

// "NVIDIA H100" of the line "Model: \t NVIDIA H100".
std::string model_in(const fs::path& file) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("Model:")) continue;
    const std::size_t first = line.find_first_not_of(" \t", 6);
    return first == std::string::npos ? "" : line.substr(first);
  }
  return {};
}

Json gpu_models() {
  std::vector<std::string> models;
  std::error_code error;
  for (fs::directory_iterator it("/proc/driver/nvidia/gpus", error), end;
       !error && it != end && models.size() < most_gpus_read; it.increment(error))
    if (std::string model = model_in(it->path() / "information"); !model.empty()) models.push_back(std::move(model));
  std::ranges::sort(models);
  return models;
}

// "560.35.03" of "NVRM version: NVIDIA UNIX x86_64 Kernel Module  560.35.03  Fri ...".
Json gpu_driver() {
  std::ifstream in("/proc/driver/nvidia/version");
  std::string word;
  while (in >> word)
    if (word.find('.') != std::string::npos && word.find_first_not_of("0123456789.") == std::string::npos) return word;
  return nullptr;
}

}  // namespace

Json machine_fingerprint() {
  const DeviceReport cpu = describe_cpu();
  utsname system{};
  uname(&system);
  const double gb = std::round(static_cast<double>(cpu.memory_bytes) / 1e9);
  return {{"cpu", text_or_null(cpu.cpu_name)},
          {"cores", cpu.cpu_cores},
          {"memory_gb", gb > 0 ? Json(gb) : Json()},
          {"gpus", gpu_models()},
          {"gpu_driver", gpu_driver()},
          {"system", std::string(system.sysname) + " " + system.machine}};
}

std::string machine_difference(const Json& here, const Json& there) {
  std::string text;
  if (!there.is_object()) return "the earlier machine isn't known";
  for (const auto& [key, value] : here.items()) {
    const Json before = there.contains(key) ? there[key] : Json();
    if (value != before)
      text += (text.empty() ? "" : "; ") + key + ": " + value.dump() + " instead of " + before.dump();
  }
  return text;
}

}  // namespace stepladder
