#include "storage/analysis/kernel_kind.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

#include "storage/name_pattern.h"

namespace stepladder {
namespace {

// In lower case; the first match counts. A fused kernel is of the most expensive kind in its name: one that also
// normalises is a normalisation.
struct KernelWord {
  std::string_view word;
  OperatorKind kind;
};
constexpr std::array kernel_words{
    KernelWord{"nccl", OperatorKind::communication},
    KernelWord{"rccl", OperatorKind::communication},
    KernelWord{"all_reduce", OperatorKind::communication},
    KernelWord{"allreduce", OperatorKind::communication},
    KernelWord{"allgather", OperatorKind::communication},
    KernelWord{"reducescatter", OperatorKind::communication},
    KernelWord{"adam", OperatorKind::optimizer},
    KernelWord{"muon", OperatorKind::optimizer},
    KernelWord{"multi_tensor_apply", OperatorKind::optimizer},
    KernelWord{"lpnorm", OperatorKind::optimizer},
    KernelWord{"flash", OperatorKind::attention},
    KernelWord{"fmha", OperatorKind::attention},
    KernelWord{"sdpa", OperatorKind::attention},
    KernelWord{"attention", OperatorKind::attention},
    KernelWord{"flex_att", OperatorKind::attention},
    KernelWord{"gemm", OperatorKind::products},
    KernelWord{"nvjet", OperatorKind::products},
    KernelWord{"cutlass", OperatorKind::products},
    KernelWord{"splitkreduce", OperatorKind::products},
    KernelWord{"gemv", OperatorKind::products},
    KernelWord{"cublas", OperatorKind::products},
    KernelWord{"matmul", OperatorKind::products},
    KernelWord{"triton_tem_fused", OperatorKind::products},
    KernelWord{"_mm_", OperatorKind::products},
    KernelWord{"ampere_bf16", OperatorKind::products},  // llm.c's table cuts the rest off
    KernelWord{"softmax", OperatorKind::softmax},
    KernelWord{"nll_loss", OperatorKind::softmax},
    KernelWord{"cross_entropy", OperatorKind::softmax},
    KernelWord{"classifier", OperatorKind::softmax},
    KernelWord{"layer_norm", OperatorKind::normalisation},
    KernelWord{"layernorm", OperatorKind::normalisation},
    KernelWord{"rms_norm", OperatorKind::normalisation},
    KernelWord{"rmsnorm", OperatorKind::normalisation},
    KernelWord{"gammabeta", OperatorKind::normalisation},
    KernelWord{"batch_norm", OperatorKind::normalisation},
    KernelWord{"gelu", OperatorKind::activation},
    KernelWord{"silu", OperatorKind::activation},
    KernelWord{"relu", OperatorKind::activation},
    KernelWord{"tanh", OperatorKind::activation},
    KernelWord{"embedding", OperatorKind::embedding},
    KernelWord{"encoder_", OperatorKind::embedding},
    KernelWord{"wte_", OperatorKind::embedding},
    KernelWord{"indexselect", OperatorKind::embedding},
    KernelWord{"memcpy", OperatorKind::copies},
    KernelWord{"memset", OperatorKind::copies},
    KernelWord{"copy", OperatorKind::copies},
    KernelWord{"fillfunctor", OperatorKind::copies},
    KernelWord{"transpose", OperatorKind::copies},
    KernelWord{"permute", OperatorKind::copies},
};

}  // namespace

std::optional<OperatorKind> kernel_kind(std::string_view name) {
  if (name == launch_gap || name == kernel_gap || name == idle_gap) return OperatorKind::idle;
  const std::string lower = lower_case(name);
  for (const KernelWord& each : kernel_words) {
    if (lower.find(each.word) != std::string::npos) return each.kind;
  }
  return std::nullopt;
}

bool is_communication(std::string_view name) {
  return kernel_kind(name) == OperatorKind::communication;
}

}  // namespace stepladder
