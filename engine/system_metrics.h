// Reads the machine's load, clocks and memory while a run trains. Needs no torch and no thread of its own: the caller
// samples a few times a second.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/others_watch.h"
#include "storage/records.h"

namespace stepladder {

// Reads /proc, and NVIDIA's management library (NVML), which it opens; without the library or the GPU, the GPU's values
// stay unknown. Construct, use and destroy on one thread. A sample costs some tens of microseconds, and about a
// millisecond with a GPU.
class SystemMonitor {
 public:
  // `gpu_index` counts as CUDA does; -1: no GPU. Where this process uses CUDA's driver, that says which GPU it is; else
  // the numbers are taken to be NVML's, in the order of the PCI bus.
  // `helpers`: the run's other processes on this machine.
  static constexpr const char *usual_nvml_library = "libnvidia-ml.so.1", *usual_cuda_driver = "libcuda.so.1";
  explicit SystemMonitor(int gpu_index, const std::string& nvml_library = usual_nvml_library,
                         std::vector<pid_t> helpers = {}, const std::string& cuda_driver = usual_cuda_driver);
  ~SystemMonitor();
  SystemMonitor(const SystemMonitor&) = delete;
  SystemMonitor& operator=(const SystemMonitor&) = delete;

  // Loads are means since the previous call, or since construction. The caller sets `run`, `step` and the cores that
  // the run needs.
  SystemMetrics sample();

 private:
  class Nvml;

  // Clock ticks since the machine started, over all cores.
  struct CpuTicks {
    std::int64_t busy = 0;
    std::int64_t all = 0;
  };
  static CpuTicks cpu_ticks();

  CpuTicks ticks_;
  OthersWatch others_;
  std::unique_ptr<Nvml> nvml_;  // null: no GPU to read
};

// One card as CUDA and as NVML count it: CUDA puts the fastest first, NVML goes by the bus.
struct CardNumber {
  int cuda = 0;
  std::string pci_address;  // empty: this process doesn't use the driver
  int nvml = -1;            // -1: not known
  std::string name;         // as NVML calls it
};
std::vector<CardNumber> card_numbers(int cards, const std::string& nvml_library = SystemMonitor::usual_nvml_library,
                                     const std::string& cuda_driver = SystemMonitor::usual_cuda_driver);

// The peak memory of this process since the last reset; 0 if not known.
std::int64_t peak_resident_bytes();
void reset_peak_resident_bytes();  // does nothing if the system does not allow it

}  // namespace stepladder
