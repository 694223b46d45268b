// What the machine does while a run trains: the reading for the lanes under a loss curve. No torch, and no thread of
// its own: whoever draws the lanes calls sample() a few times a second.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "storage/records.h"

namespace stepladder {

// Reads /proc, and NVIDIA's management library (NVML), which is opened here; where there is none, or no such GPU, the
// GPU's half stays unknown. Construct, use and destroy on one thread. A sample costs some tens of microseconds on the
// CPU and about a millisecond where a GPU is asked.
class SystemMonitor {
 public:
  // `gpu_index` counts as CUDA does within CUDA_VISIBLE_DEVICES, in the order of the PCI bus; -1: no GPU. CUDA's own
  // order differs from that only on machines with unlike GPUs and without CUDA_DEVICE_ORDER=PCI_BUS_ID.
  explicit SystemMonitor(int gpu_index, const std::string& nvml_library = "libnvidia-ml.so.1");
  ~SystemMonitor();
  SystemMonitor(const SystemMonitor&) = delete;
  SystemMonitor& operator=(const SystemMonitor&) = delete;

  // Loads are means since the call before, the first one's since the construction. `run` and `step` are left to the
  // caller.
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
  double steady_s_ = 0;         // when ticks_ and process_s_ were read
  double process_s_ = 0;        // CPU time of this process
  std::unique_ptr<Nvml> nvml_;  // none: no GPU to read
};

// The most memory that this process held at once since the last reset; 0 where the system does not tell.
std::int64_t peak_resident_bytes();
void reset_peak_resident_bytes();  // does nothing where the system does not allow it

}  // namespace stepladder
