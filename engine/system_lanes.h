// What the machine does while a run trains: the reading for the lanes under a loss curve. No torch, and no thread of
// its own: whoever draws the lanes calls sample() a few times a second.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "storage/records.h"

namespace stepladder {

// Loads are means since the sample before. `missing`, 0 bytes or no word where it is not known.
struct LaneSample {
  double at = missing;           // unix seconds
  double cpu_load = missing;     // 0..1 of the whole machine, whoever causes it
  double process_cpu = missing;  // cores that this process used
  std::int64_t resident_bytes = 0;
  double gpu_clock_mhz = missing;  // of the streaming multiprocessors
  double gpu_power_w = missing;    // of the whole board
  double gpu_temperature_c = missing;
  double gpu_load = missing;          // 0..1: part of the time in which any kernel ran, as the driver samples it
  std::int64_t gpu_memory_bytes = 0;  // of all processes together
  std::string throttle_reason;        // why the clock is held down: "power cap, hot"; empty: it is not, or not known
};

// Reads /proc, and NVIDIA's management library (NVML), which is opened here; where there is none, or no such GPU, the
// GPU's half stays unknown. Construct, use and destroy on one thread. A sample costs some tens of microseconds on the
// CPU and about a millisecond where a GPU is asked.
class SystemLanes {
 public:
  // `gpu_index` counts as CUDA does within CUDA_VISIBLE_DEVICES, in the order of the PCI bus; -1: no GPU. CUDA's own
  // order differs from that only on machines with unlike GPUs and without CUDA_DEVICE_ORDER=PCI_BUS_ID.
  explicit SystemLanes(int gpu_index, const std::string& nvml_library = "libnvidia-ml.so.1");
  ~SystemLanes();
  SystemLanes(const SystemLanes&) = delete;
  SystemLanes& operator=(const SystemLanes&) = delete;

  // The first call's loads are since the construction.
  LaneSample sample();

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

// The most memory that this process ever held at once; 0 where the system does not tell.
std::int64_t peak_resident_bytes();

}  // namespace stepladder
