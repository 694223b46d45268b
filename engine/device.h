// The machine's hardware, as LibTorch and the operating system report it. Plain values, no torch.
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
  int cpu_cores = 0;           // usable by this process
  bool cpu_bf16 = false;       // AVX512-BF16 or AMX: bf16 products in hardware
  std::string cpu_capability;  // the instruction set of LibTorch's kernels: "AVX512"
  std::int64_t memory_bytes = 0;
  std::vector<Gpu> gpus;  // CUDA devices that LibTorch can use
  std::string cuda_note;  // why there aren't any: "no NVIDIA driver"
  bool mps = false;
  std::string process_groups_note;      // why processes cannot train together; empty: they can, on the CPU
  std::string gpu_process_groups_note;  // the same for GPUs, if there are any
  std::string step_capture_note;        // why steps cannot be captured on the GPU; empty: they can, or there is no GPU
  std::string gpu_kernels_note;         // the same for the kernels of compile-max, which are compiled where they run

  // "auto" becomes cuda if there is one, else mps, else cpu; any other name stays.
  std::string resolve(const std::string& device) const;
  // The name of that device's hardware: "NVIDIA H200" or "2 x Intel Xeon".
  std::string hardware(const std::string& device) const;
  // The reason why the GPU lacks the features of Ampere (TF32, bf16); empty if it has them.
  std::string older_than_ampere() const;
};

// Name, cores and memory from the operating system; loads no LibTorch.
DeviceReport describe_cpu();

// Memory available without swapping, within the control group's limit; 0 if not known.
std::int64_t available_memory_bytes();

}  // namespace stepladder
