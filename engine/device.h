// What this machine has, as far as LibTorch and the operating system tell. Plain values, no torch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stepladder {

struct Gpu {
  std::string name;
  int compute_major = 0;
  int compute_minor = 0;
  std::int64_t memory_bytes = 0;
};

struct DeviceReport {
  std::string torch_version;
  std::string cpu_name;        // "Intel(R) Xeon(R) Platinum 8488C"
  int cpu_cores = 0;           // that this process may use
  bool cpu_bf16 = false;       // AVX512-BF16 or AMX: bf16 products in hardware
  std::string cpu_capability;  // what LibTorch's kernels were picked for: "AVX512"
  std::int64_t memory_bytes = 0;
  std::vector<Gpu> gpus;  // CUDA devices that LibTorch can use
  std::string cuda_note;  // why there are none: "no NVIDIA driver"
  bool mps = false;
  std::string process_groups_note;      // why processes cannot train together; empty: they can, on the CPU
  std::string gpu_process_groups_note;  // the same for GPUs, where there are any
  std::string step_capture_note;        // why steps cannot be captured on the GPU; empty: they can, where there is one

  // "auto" becomes cuda where there is one, then mps, then cpu; any other name stays.
  std::string resolve(const std::string& device) const;
  // What is shown as the hardware of a run on that device: "NVIDIA H200" or "Intel(R) Xeon(R) Processor (2 cores)".
  std::string hardware(const std::string& device) const;
  // Why the GPU cannot do what came with Ampere (TF32, bf16), empty where it can.
  std::string older_than_ampere() const;
};

// The operating system's half: name, cores, memory; no LibTorch is loaded.
DeviceReport describe_cpu();

// Memory that could be taken without swapping, the control group's limit counted in; 0 where it cannot be told.
std::int64_t available_memory_bytes();

}  // namespace stepladder
