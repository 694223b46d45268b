#include "engine/trainer/device_probe.h"

#include <ATen/Version.h>
#include <torch/mps.h>
#include <torch/torch.h>

#include "engine/trainer/cuda_library.h"
#include "engine/trainer/device/kernel_module.h"
#include "engine/trainer/parallel/process_group.h"

namespace stepladder {

const DeviceReport& device_report() {
  static const DeviceReport report = [] {
    const CudaLibrary& cuda = cuda_library();
    DeviceReport all = describe_cpu();
    all.torch_version = TORCH_VERSION;
    all.cpu_capability = at::get_cpu_capability();
    all.gpus = cuda.gpus;
    all.cuda_note = cuda.note;
    all.mps = torch::mps::is_available();
    all.process_groups_note = process_groups_note(at::kCPU);
    all.gpu_process_groups_note = process_groups_note(at::kCUDA);
    all.step_capture_note = cuda.parts_note;
    if (!cuda.gpus.empty()) all.gpu_kernels_note = cuda.parts ? nvrtc_note() : cuda.parts_note;
    return all;
  }();
  return report;
}

std::string try_to_compile(at::Device device, Compile compile, Autocast autocast, const StepGraphMaker& make_graph) {
  Recipe tiny;
  tiny.layers = tiny.heads = 2;
  tiny.d_model = 64;
  tiny.batch = 2;
  tiny.seq = 32;
  tiny.steps = 1;
  tiny.device = device.is_cuda() ? "cuda" : "cpu";
  tiny.compile = compile;
  tiny.autocast = autocast;
  std::string reason;
  RunControl control;
  train({.recipe = tiny}, control,
        [&](const RunEvent& event) {
          if (const auto* ended = std::get_if<RunEnded>(&event)) reason = ended->reason;
        },
        {.graph = make_graph, .falls_back = false});
  return reason;
}

DeviceReport probe() {
  DeviceReport report = device_report();
  if (report.gpus.empty()) return report;
  const at::Device first(at::kCUDA, 0);
  if (report.step_capture_note.empty()) report.step_capture_note = try_to_compile(first, Compile::on);
  if (report.step_capture_note.empty() && report.gpu_kernels_note.empty())
    report.gpu_kernels_note = try_to_compile(first, Compile::max);
  constexpr int with_bf16 = 8;  // compute capability
  if (report.gpu_kernels_note.empty() && report.step_capture_note.empty() && report.gpus[0].compute_major >= with_bf16)
    report.gpu_kernels_note = try_to_compile(first, Compile::max, Autocast::bf16);
  return report;
}

}  // namespace stepladder
