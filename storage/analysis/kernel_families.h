// The families of GPU kernels: whole words that name one, its kind, an example and where it occurs. Data for
// kernel_kind.cpp; the tests classify every example.
#pragma once

#include <array>
#include <string_view>

#include "storage/analysis/step_profile.h"

namespace stepladder {

enum class FamilyPlace {
  anywhere,
  outside_arguments,  // not in template arguments, where the word is a type's namespace
  carrier             // runs what its template arguments name; the kind counts if they name no family
};

// The first family of a name counts. A fused kernel is of the most expensive kind in its name: one that also normalises
// is a normalisation.
struct KernelFamily {
  std::string_view words;  // in lower case; "a b|c" is a followed by b, or c
  OperatorKind kind;
  std::string_view example;
  std::string_view source;
  FamilyPlace place = FamilyPlace::anywhere;
  bool is_generic = false;  // a specific kind of the operator that launched it counts more
};

// The aten operators whose kernels only move data, as Inductor's fused kernels list them, and the products and
// attention beside which they were fused.
inline constexpr std::string_view moving_words =
    " to copy clone view permute transpose t cat slice select split unsqueeze squeeze expand unsafe reshape stack lift "
    "fresh full zeros ones like empty constant pad nd default fused backward forward as strided detach alias repeat "
    "contiguous getitem new with sizes index put mm addmm bmm baddbmm scaled dot product flash efficient cudnn "
    "attention "
    "attn convolution mkldnn linear matmul varlen poi red per for split scan triton cpp ";

inline constexpr std::array kernel_families{
    KernelFamily{"nccl|rccl|hccl|oneccl|mscclpp|msccl|nvshmem|nvshmemi|rocshmem|userbuffers|multimem",
                 OperatorKind::communication, "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
                 "NCCL, RCCL, NVSHMEM, Transformer Engine"},
    KernelFamily{"all reduce|allreduce|all gather|allgather|reduce scatter|reducescatter|all to all|alltoall|"
                 "cross device reduce|send recv",
                 OperatorKind::communication,
                 "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 2>(vllm::RankData*, vllm::RankSignals)",
                 "vLLM, SGLang, TensorRT-LLM, torch symmetric memory"},
    KernelFamily{"internode|intranode|internode ll|deep ep", OperatorKind::communication,
                 "void deep_ep::intranode::dispatch<8, 768, 8192>(int4*)", "DeepEP"},
    KernelFamily{"adam|adamw|muon|lion|sgd|optimizer|lp norm|lpnorm|non finite check", OperatorKind::optimizer,
                 "void kOptimizerStatic8bit2StateBlockwise<float, 0, 256, 1>(float*)", "PyTorch, Apex, bitsandbytes"},
    KernelFamily{"multi tensor apply", OperatorKind::optimizer,
                 "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<TensorListMetadata<2>, BinaryOp>()",
                 "PyTorch's foreach and fused optimizers, Apex", FamilyPlace::carrier},
    KernelFamily{"rotary|rope", OperatorKind::elementwise,
                 "void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long const*)", "vLLM, Transformer Engine"},
    KernelFamily{"flash|fmha|sdpa|attention|attn|mha|mla|sage|batch prefill|batch decode|single prefill|single decode",
                 OperatorKind::attention,
                 "void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<float> > >(int)",
                 "FlashAttention, xFormers, cuDNN, SageAttention, CK, FlashInfer"},
    KernelFamily{
        "conv|convolution|convolve|fprop|dgrad|wgrad|bprop|winograd|scudnn|hcudnn|"
        "im 2 col|im 2 d|col 2 im|igemm fwd|igemm bwd|igemm wrw|bwd weight|bwd data|cudnn cnn|"
        "cask cudnn|s 884 cudnn|h 884 cudnn|s 1688 cudnn|h 1688 cudnn|s 16816 cudnn|h 16816 cudnn|i 8816 cudnn",
        OperatorKind::convolution, "volta_scudnn_128x64_relu_interior_nn_v1", "cuDNN, MIOpen, CK, CUTLASS"},
    KernelFamily{"gemm|sgemm|dgemm|hgemm|cgemm|zgemm|igemm|bgemm|kgemm|xgemm|gemmk|gemv|gemvx|gemvt|gemvn|sgemv|hgemv|"
                 "mm|bmm|addmm|baddbmm|matmul|mul mat|nvjet|cijk|cublas|marlin|split kreduce|split k reduce|fused moe|"
                 "xxt|plus c aa|ampere bf",
                 OperatorKind::products, "nvjet_tst_192x192_64x3_2x1_v_bz_coopB_NNN",
                 "cuBLAS, cuBLASLt, CUTLASS, Tensile, CK, Triton, DeepGEMM, vLLM, ggml"},
    KernelFamily{"softmax|soft max|nll loss|cross entropy|classifier|log sum exp|logsumexp", OperatorKind::softmax,
                 "void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, true>(float*)",
                 "PyTorch, Liger, llm.c"},
    KernelFamily{"rms norm|rmsnorm|rms layernorm|batch norm|batchnorm|group norm|groupnorm|instance norm|bn fw|bn bw|"
                 "gamma beta|rowwise moments",
                 OperatorKind::normalisation, "void cudnn::bn_bw_1C11_kernel_new<float, float, float2, 512>(float)",
                 "PyTorch, cuDNN, MIOpen, Liger"},
    KernelFamily{"layer norm|layernorm|ln fwd|ln bwd", OperatorKind::layer_norm,
                 "void transformer_engine::normalization::ln_fwd_tuned_kernel<>", "PyTorch, Apex, Transformer Engine"},
    KernelFamily{"norm fwd|norm bwd", OperatorKind::normalisation, "_norm_fwd_kernel", "Triton"},
    KernelFamily{"gelu|geglu|ge glu", OperatorKind::gelu,
                 "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl(int)>(int)",
                 "PyTorch, Liger"},
    KernelFamily{"silu|si lu|swiglu|swi glu|swish|relu|re lu|relu 6|mish|softplus|elu|selu|hardswish|act and mul",
                 OperatorKind::activation,
                 "void vllm::act_and_mul_kernel<c10::BFloat16, &vllm::silu_kernel<c10::BFloat16>, true>(int)",
                 "PyTorch, vLLM, Liger"},
    KernelFamily{"embedding|embeddings|index select|encoder forward|encoder backward|wte", OperatorKind::embedding,
                 "void at::native::(anonymous namespace)::indexSelectLargeIndex<c10::BFloat16, long>(int)",
                 "PyTorch, FBGEMM, llm.c"},
    KernelFamily{"masked fill|masked scatter", OperatorKind::elementwise,
                 "void at::native::vectorized_elementwise_kernel<4, at::native::masked_fill_kernel(int)>(int)",
                 "PyTorch"},
    KernelFamily{"memcpy|memset|copy|fill|transpose|permute|cat|concat|nchw to nhwc|nhwc to nchw|"
                 "cnhw 2 nchw|nchw 2 cnhw|reshape and cache|quant|quantize|dequant|dequantize|with cast tensor",
                 OperatorKind::copies, "batched_transpose_32x32_half", "PyTorch, CUDA, MIOpen, vLLM"},
    KernelFamily{"sigmoid|tanh", OperatorKind::activation,
                 "void at::native::vectorized_elementwise_kernel<4, at::native::sigmoid_kernel_cuda(int)>(int)",
                 "PyTorch"},
    KernelFamily{"elementwise|element wise|reduce|index", OperatorKind::elementwise,
                 "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >(int)",
                 "PyTorch", FamilyPlace::carrier, true},
    KernelFamily{"add|mul|residual|bias|dropout|random|distribution|reduction|scan|sort|radix|merge|topk|top k|gather|"
                 "scatter|pool|pooling|upsample|arange|clamp|norm|cumsum|op tensor|tensor op|unique|histogram|select|"
                 "where|masked|tril|triu|loss|scale",
                 OperatorKind::elementwise,
                 "void at::native::(anonymous namespace)::upsample_bilinear2d_out_frame<float>()",
                 "PyTorch, CUB, llm.c", FamilyPlace::outside_arguments, true},
    KernelFamily{"cutlass", OperatorKind::products, "void cutlass::Kernel<Unknown>(int)", "CUTLASS",
                 FamilyPlace::carrier},
    KernelFamily{"kentry|device kernel|kernel agent", OperatorKind::other, "void ck_tile::kentry<1, Unknown>(int)",
                 "CK Tile, CUTLASS", FamilyPlace::carrier, true},
    KernelFamily{"cuda graph", OperatorKind::graph, "CUDA graph 3", "Nsight Systems, graphs traced as a whole"},
};

// Operators of PyTorch and of its extensions, without those that only call others.
struct OperatorFamily {
  std::string_view words;
  OperatorKind kind;
};
inline constexpr std::array operator_families{
    OperatorFamily{"upsample|grid sampler", OperatorKind::elementwise},
    OperatorFamily{
        "scaled dot product|flash attention|efficient attention|cudnn attention|flash attn|attention|fmha|mha|"
        "attn",
        OperatorKind::attention},
    OperatorFamily{"convolution|conv", OperatorKind::convolution},
    OperatorFamily{"addmm|bmm|baddbmm|mm|matmul|linear|mkldnn|addmv|mv|einsum|gemm", OperatorKind::products},
    OperatorFamily{"classifier|softmax|nll loss|cross entropy", OperatorKind::softmax},
    OperatorFamily{"batch norm|group norm|instance norm|rms norm|rmsnorm|rms layernorm", OperatorKind::normalisation},
    OperatorFamily{"layer norm|layernorm", OperatorKind::layer_norm},
    OperatorFamily{"gelu", OperatorKind::gelu},
    OperatorFamily{"relu|silu|threshold|tanh|sigmoid|mish|elu|softplus|hardtanh|hardswish|swiglu|act and mul",
                   OperatorKind::activation},
    OperatorFamily{"embedding", OperatorKind::embedding},
    OperatorFamily{"copy|aten to|contiguous|clone|cat|split heads", OperatorKind::copies},
    OperatorFamily{"allreduce|all reduce|c 10 d|gloo|nccl|all gather|allgather|reduce scatter|alltoall|all to all",
                   OperatorKind::communication}};

}  // namespace stepladder
