// Samples load and memory from /proc and the GPU through NVML, which is opened at run time. Each NVML function may be
// missing or fail alone; its figure then stays unknown. The caller is MetricsSampler's thread.
#include "engine/system_metrics.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>

#include "storage/number_text.h"

namespace stepladder {
namespace {

// The second number of /proc/self/statm, in pages.
std::int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t all = 0, resident = 0;
  if (!(file >> all >> resident)) return 0;
  return resident * sysconf(_SC_PAGESIZE);
}

// Bits of nvmlDeviceGetCurrentClocksEventReasons (NVML API reference, "NvmlClocksEventReasons"), without that of an
// idle GPU (0x1), which isn't throttling. The general hardware slowdown is set together with one of the two that give
// the reason.
struct ThrottleBit {
  unsigned long long bit;
  std::string_view words;
};
constexpr unsigned long long hardware_slowdown = 0x8, hardware_hot = 0x40, power_brake = 0x80;
constexpr std::array<ThrottleBit, 8> throttle_bits = {{{0x4, "power cap"},
                                                       {0x20, "hot"},
                                                       {hardware_hot, "too hot"},
                                                       {power_brake, "power brake"},
                                                       {hardware_slowdown, "hardware slowdown"},
                                                       {0x10, "sync boost"},
                                                       {0x2, "clock set by hand"},
                                                       {0x100, "display clock"}}};

std::string throttle_words(unsigned long long reasons) {
  if ((reasons & (hardware_hot | power_brake)) != 0) reasons &= ~hardware_slowdown;
  std::string words;
  for (const ThrottleBit& known : throttle_bits)
    if ((reasons & known.bit) != 0) words += (words.empty() ? "" : ", ") + std::string(known.words);
  return words;
}

// The name of CUDA's device of that number in CUDA_VISIBLE_DEVICES, "1" or "GPU-5d5..."; its number if the variable is
// not set; nothing if it is hidden. CUDA stops at the first entry that isn't a device, such as "-1".
std::optional<std::string> visible_device(int index) {
  const char* variable = std::getenv("CUDA_VISIBLE_DEVICES");
  if (!variable) return std::to_string(index);
  std::istringstream entries(variable);
  std::string entry;
  for (int i = 0; i <= index; ++i)
    if (!std::getline(entries, entry, ',') || entry.empty() || entry[0] == '-') return std::nullopt;
  return entry;
}

// The PCI address of CUDA's device of that number: CUDA puts the fastest first, NVML goes by the bus. Empty where this
// process doesn't use the driver.
std::string pci_address(int index, const std::string& driver) {
  void* const library = ::dlopen(driver.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  if (!library) return "";
  const auto device_of = reinterpret_cast<int (*)(int*, int)>(::dlsym(library, "cuDeviceGet"));
  const auto address_of = reinterpret_cast<int (*)(char*, int, int)>(::dlsym(library, "cuDeviceGetPCIBusId"));
  int device = 0;
  std::array<char, 32> address{};
  const bool found = device_of && address_of && device_of(&device, index) == 0 &&
                     address_of(address.data(), static_cast<int>(address.size()), device) == 0;
  ::dlclose(library);
  return found ? address.data() : "";
}

}  // namespace

// The few functions of NVML that are needed, by their exported names. Each returns 0 if it worked, and may fail for one
// GPU and work for another.
class SystemMonitor::Nvml {
 public:
  static std::unique_ptr<Nvml> open(int gpu_index, const std::string& library, std::vector<pid_t> helpers,
                                    const std::string& cuda_driver) {
    const auto device = visible_device(gpu_index);
    void* handle = device ? ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
    if (!handle) return nullptr;
    helpers.push_back(::getpid());
    std::unique_ptr<Nvml> nvml(new Nvml(handle, std::move(helpers)));
    return nvml->init(*device, device->starts_with("MIG-") ? "" : pci_address(gpu_index, cuda_driver)) ? std::move(nvml)
                                                                                                       : nullptr;
  }

  ~Nvml() {
    if (initialised_) call<int()>("nvmlShutdown");
    ::dlclose(library_);
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  void read(SystemMetrics& sample) {
    constexpr int streaming_multiprocessors = 1, gpu_core = 0;  // of nvmlClockType_t and nvmlTemperatureSensors_t
    unsigned value = 0;
    if (call<int(Device, int, unsigned*)>("nvmlDeviceGetClockInfo", device_, streaming_multiprocessors, &value) == 0)
      sample.gpu_clock_mhz = value;
    if (call<int(Device, unsigned*)>("nvmlDeviceGetPowerUsage", device_, &value) == 0)
      sample.gpu_power_w = value / 1000.0;
    if (call<int(Device, int, unsigned*)>("nvmlDeviceGetTemperature", device_, gpu_core, &value) == 0)
      sample.gpu_temperature_c = value;
    Utilization load;
    if (call<int(Device, Utilization*)>("nvmlDeviceGetUtilizationRates", device_, &load) == 0)
      sample.gpu_load = load.gpu / 100.0;
    Memory memory;
    if (call<int(Device, Memory*)>("nvmlDeviceGetMemoryInfo", device_, &memory) == 0)
      sample.gpu_memory_bytes = static_cast<std::int64_t>(memory.used);
    sample.throttle_reason = throttle_words(throttle_reasons());
    sample.contention.other_gpu_load = other_load();
  }

 private:
  using Device = void*;
  struct Utilization {  // percent
    unsigned gpu = 0;
    unsigned memory = 0;
  };
  struct Memory {  // bytes
    unsigned long long total = 0;
    unsigned long long free = 0;
    unsigned long long used = 0;
  };

  struct ProcessLoad {  // nvmlProcessUtilizationSample_t, in percent
    unsigned pid = 0;
    unsigned long long at_us = 0;
    unsigned multiprocessors = 0, memory = 0, encoder = 0, decoder = 0;
  };

  Nvml(void* library, std::vector<pid_t> own) : library_(library), own_(std::move(own)) {}

  // The share of the GPU's multiprocessors that other processes used since the last call. Missing unless this run's own
  // processes are among those that the driver lists: in a container it may list them under other numbers.
  double other_load() {
    std::array<ProcessLoad, 256> loads;
    auto count = static_cast<unsigned>(loads.size());
    using Ask = int(Device, ProcessLoad*, unsigned*, unsigned long long);
    if (call<Ask>("nvmlDeviceGetProcessUtilization", device_, loads.data(), &count, seen_us_) != 0) return missing;
    bool sees_own = false;
    double percent = 0;
    for (std::size_t i = 0; i < std::min<std::size_t>(count, loads.size()); ++i) {
      const ProcessLoad& load = loads[i];
      const bool is_own = std::ranges::find(own_, static_cast<pid_t>(load.pid)) != own_.end();
      sees_own = sees_own || is_own;
      seen_us_ = std::max(seen_us_, load.at_us);
      if (!is_own) percent += load.multiprocessors;
    }
    return sees_own ? std::min(percent, 100.0) / 100 : missing;
  }

  bool init(const std::string& device, const std::string& address) {
    initialised_ = call<int()>("nvmlInit_v2") == 0;
    if (!initialised_) return false;
    using ByText = int(const char*, Device*);
    if (!address.empty() && call<ByText>("nvmlDeviceGetHandleByPciBusId_v2", address.c_str(), &device_) == 0)
      return true;
    const auto index = parse_number<unsigned>(device);
    return index ? call<int(unsigned, Device*)>("nvmlDeviceGetHandleByIndex_v2", *index, &device_) == 0
                 : call<ByText>("nvmlDeviceGetHandleByUUID", device.c_str(), &device_) == 0;
  }

  // Drivers before 535 have the function only under its older name.
  unsigned long long throttle_reasons() const {
    using Ask = int(Device, unsigned long long*);
    unsigned long long reasons = 0;
    for (const char* name : {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"})
      if (call<Ask>(name, device_, &reasons) == 0) return reasons;
    return 0;
  }

  // -1 if the library lacks a function of that name.
  template <class Function, class... Arguments>
  int call(const char* name, Arguments... arguments) const {
    auto* function = reinterpret_cast<Function*>(::dlsym(library_, name));
    return function ? function(arguments...) : -1;
  }

  void* library_;
  const std::vector<pid_t> own_;
  unsigned long long seen_us_ = 0;  // the newest sample of a process's load
  bool initialised_ = false;
  Device device_ = nullptr;
};

// The first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal; later fields are part of user.
// Waiting for a disk counts as idle.
SystemMonitor::CpuTicks SystemMonitor::cpu_ticks() {
  std::ifstream file("/proc/stat");
  std::string label;
  std::array<std::int64_t, 8> states{};
  file >> label;
  for (std::int64_t& state : states) file >> state;
  CpuTicks ticks;
  for (const std::int64_t state : states) ticks.all += state;
  ticks.busy = ticks.all - states[3] - states[4];
  return ticks;
}

SystemMonitor::SystemMonitor(int gpu_index, const std::string& nvml_library, std::vector<pid_t> helpers,
                             const std::string& cuda_driver)
    : ticks_(cpu_ticks()),
      others_(OthersWatch::Run::run_threads, helpers),
      nvml_(gpu_index < 0 ? nullptr : Nvml::open(gpu_index, nvml_library, std::move(helpers), cuda_driver)) {}

SystemMonitor::~SystemMonitor() = default;

SystemMetrics SystemMonitor::sample() {
  SystemMetrics sample;
  sample.at = unix_now();
  const CpuTicks ticks = cpu_ticks();
  // The kernel counts in hundredths of a second, so two samples may fall into one tick.
  if (ticks.all > ticks_.all)
    sample.cpu_load = static_cast<double>(ticks.busy - ticks_.busy) / static_cast<double>(ticks.all - ticks_.all);
  ticks_ = ticks;
  sample.contention = others_.sample();
  sample.process_cores = others_.run_cores();
  sample.resident_bytes = resident_bytes();
  if (nvml_) nvml_->read(sample);
  return sample;
}

std::vector<CardNumber> card_numbers(int cards, const std::string& nvml_library, const std::string& cuda_driver) {
  void* const nvml = ::dlopen(nvml_library.c_str(), RTLD_NOW | RTLD_LOCAL);
  const auto find = [&]<class Function>(Function*& function, const char* name) {
    function = nvml ? reinterpret_cast<Function*>(::dlsym(nvml, name)) : nullptr;
    return function != nullptr;
  };
  int (*begin)() = nullptr, (*end)() = nullptr;
  int (*card_at)(const char*, void**) = nullptr;
  int (*number_of)(void*, unsigned*) = nullptr;
  int (*name_of)(void*, char*, unsigned) = nullptr;
  const bool works = find(begin, "nvmlInit_v2") && find(end, "nvmlShutdown") &&
                     find(card_at, "nvmlDeviceGetHandleByPciBusId_v2") && find(number_of, "nvmlDeviceGetIndex") &&
                     find(name_of, "nvmlDeviceGetName") && begin() == 0;
  std::vector<CardNumber> numbers;
  for (int card = 0; card < cards; ++card) {
    CardNumber& found = numbers.emplace_back(CardNumber{.cuda = card, .pci_address = pci_address(card, cuda_driver)});
    void* device = nullptr;
    if (!works || found.pci_address.empty() || card_at(found.pci_address.c_str(), &device) != 0) continue;
    unsigned number = 0;
    if (number_of(device, &number) == 0) found.nvml = static_cast<int>(number);
    std::array<char, 128> name{};
    if (name_of(device, name.data(), static_cast<unsigned>(name.size()) - 1) == 0) found.name = name.data();
  }
  if (works) end();
  if (nvml) ::dlclose(nvml);
  return numbers;
}

void reset_peak_resident_bytes() {
  std::ofstream("/proc/self/clear_refs") << "5";  // proc(5): VmHWM restarts from the memory resident now
}

std::int64_t peak_resident_bytes() {
  std::ifstream file("/proc/self/status");
  std::string line;
  constexpr std::string_view field = "VmHWM:";  // "VmHWM:	  1234 kB"
  while (std::getline(file, line))
    if (line.starts_with(field)) return std::strtoll(line.c_str() + field.size(), nullptr, 10) * 1024;
  return 0;
}

}  // namespace stepladder
