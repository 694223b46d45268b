// Kernels by what they are: a table of real names, and of siblings of each family. Every example of the table of
// families is of its family.
#include "storage/analysis/kernel_kind.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "storage/analysis/kernel_families.h"

namespace stepladder {
namespace {

using enum OperatorKind;

struct Named {
  const char* launcher;  // "": not known
  const char* kernel;
  OperatorKind kind;
};

OperatorKind kind_of(const Named& each) {
  const std::string launcher = each.launcher;
  return stepladder::kind_of(OperatorTime{
      .part = "forward", .name = launcher.empty() ? each.kernel : launcher + std::string(launches) + each.kernel});
}

void expect_kinds(const std::vector<Named>& all) {
  for (const Named& each : all)
    EXPECT_EQ(to_string(kind_of(each)), to_string(each.kind)) << each.launcher << " > " << each.kernel;
}

TEST(KernelKind, every_family_has_its_example) {
  for (const KernelFamily& each : kernel_families) {
    const std::optional<KernelKind> kind = kernel_kind(each.example);
    EXPECT_EQ(to_string(kind ? kind->kind : other), to_string(each.kind)) << each.example;
    EXPECT_FALSE(each.source.empty()) << each.words;
  }
}

TEST(KernelKind, words_end_at_marks_digits_and_capitals) {
  EXPECT_EQ(words_of_name("LayerNormForwardCUDAKernel"), " layer norm forward cuda kernel ");
  EXPECT_EQ(words_of_name("sm80_xmma_s16816gemm"), " sm 80 xmma s 16816 gemm ");
  EXPECT_EQ(words_of_name("fbgemm::bilinear2d"), " fbgemm bilinear 2 d ");
  EXPECT_EQ(words_of_name(""), " ");
}

TEST(KernelKind, communication_also_of_expert_parallelism_and_custom_all_reduces) {
  expect_kinds({
      {"", "void dpsk::ep::internode::combine<false, 8, __nv_bfloat16, 8, 2, 16, 24>(int4*, float*)", communication},
      {"", "void dpsk::ep::internode::dispatch<false, 8, false, 8>(int4*, float*, long*)", communication},
      {"", "void dpsk::ep::internode::cached_notify<false>(int, int)", communication},
      {"", "void deep_ep::intranode::dispatch<8, 768, 8192>(int4*)", communication},
      {"", "void deep_ep::internode_ll::combine<true, 3, 4>(void*)", communication},
      {"", "void sglang::cross_device_reduce_2stage<__nv_bfloat16, 8>(sglang::RankData*)", communication},
      {"", "void tensorrt_llm::kernels::twoShotAllReduceKernel<__nv_bfloat16, 8>(int)", communication},
      {"", "void allreduce_fusion_kernel_oneshot_lamport<float>(int)", communication},
      {"", "multimem_all_reduce_kernel", communication},
      {"", "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)", communication},
      {"", "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)", communication},
      {"", "void rcclGenericKernel<1, true>(ncclDevKernelArgsStorage<4096ul>)", communication},
      {"", "nvshmemi_transfer_rma_block", communication},
      // A gather of values is none.
      {"aten::gather", "void at::native::_scatter_gather_elementwise_kernel<128, 8>(int)", elementwise},
  });
}

TEST(KernelKind, products_by_the_library) {
  expect_kinds({
      {"", "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT128x192x64_MI16x16x1_SN_LDSB1_AFC1", products},
      {"", "Custom_Cijk_Alik_Bljk_F8BS_BH_Bias_SHB_HA", products},
      {"", "bmm_Bfloat16_MxE2m1MxE4m3_Fp32_t128x16x256u2_s3_et128x16_m128x16x32", products},
      {"", "ampere_bf16_s16816gemm_bf16_128x128_ldg8_relu_f2f_stages_32x5_tn", products},
      {"", "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64__5x_cublas", products},
      {"", "void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_32x32_128x2_nt_align2>(int)",
       products},
      {"", "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int>, X> >(int)", products},
      {"", "void cublasLt::splitKreduce_kernel<32, 16, int, float>(cublasLt::cublasSplitKParams<float>)", products},
      {"", "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, float, false>(int)", products},
      {"", "void gemv2T_kernel_val<int, int, float, float>(int)", products},
      {"", "_ZN2ck27kernel_gemm_xdl_cshuffle_v3INS_28GridwiseGemm_xdl_cshuffle_v3ILi64EEEEEvT_", products},
      {"", "_ZN7ck_tile6kentryILi1ENS_10GemmKernelINS_4TileEEEEEvT_", products},
      {"", "_w8a8_triton_block_scaled_mm", products},
      {"", "fused_moe_kernel", products},
      {"", "matmul_kernel", products},
      {"", "void deep_gemm::sm90_fp8_gemm_1d2d_impl<0u, 4096u>(float*)", products},
      {"", "void mul_mat_q<(ggml_type)12, 64, false>(char const*)", products},
      {"", "XXT_kernel", products},
  });
}

TEST(KernelKind, only_a_template_of_inductor_multiplies) {
  expect_kinds({
      {"", "triton_tem_fused_addmm_relu_5", products},
      {"", "triton_tem_fused_flex_attention_2", attention},
      {"", "triton_tem_fused_convolution_1", convolution},
      {"", "triton_mm", products},
      {"triton_red_fused_mm_0",
       "triton_red_fused__log_softmax__log_softmax_backward_data_div_mm_backward_mul_nll_loss_backward_view_0",
       softmax},
      {"", "triton_poi_fused__scaled_mm__to_copy_clone_div_lift_fresh_permute_0", elementwise},
      {"", "triton_poi_fused__to_copy_mm_t_3", copies},
      {"", "triton_per_fused__flash_attn_backward__unsafe_view_mul_sigmoid_sum_view_8", elementwise},
      {"", "triton_poi_fused__unsafe_view_mul_nll_loss_forward_pow_relu_threshold_backward_view_5", activation},
      {"", "triton_poi_fused__scaled_dot_product_flash_attention_cat_transpose_view_10", copies},
      {"", "triton_red_fused__fused_rms_norm__unsafe_view_add_cat_mul_neg_slice_split_unsqueeze_view_3", normalisation},
      {"", "triton_per_fused_add_native_layer_norm_2", layer_norm},
      {"", "triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_0", normalisation},
      {"", "triton_poi_fused_gelu_native_layer_norm_4", gelu},
      {"", "triton_poi_fused_embedding_dense_backward_45", embedding},
      {"", "triton_poi_fused_add_convolution_relu_7", activation},
      {"", "triton_poi_fused_all_gather_into_tensor_cat_1", elementwise},
  });
}

TEST(KernelKind, attention_and_convolution) {
  expect_kinds({
      {"", "sage_fwd", attention},
      {"", "attn_fwd", attention},
      {"", "_attn_bwd_dkdv", attention},
      {"", "void qk_int_sv_f8_accum_f32_fuse_v_scale_attn_inst_buf_kernel<128u, 64u>(signed char*)", attention},
      {"", "fmha_cutlassF_bf16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel<float>::Params)",
       attention},
      {"", "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128> >(int)", attention},
      {"", "void cutlass::device_kernel<flash::FlashAttnBwdPreprocess<cute::tuple<int>, cutlass::bfloat16_t> >(int)",
       attention},
      {"", "cudnn_generated_fort_native_sdpa_sm80_flash_bprop_wmma_f16_knob_32_64x64x64", attention},
      {"", "_ZN7ck_tile6kentryILi256ENS_13FmhaFwdKernelINS_4TileEEEEEvT_", attention},
      {"", "void vllm::paged_attention_v2_kernel<__nv_bfloat16>(float*)", attention},
      {"aten::cudnn_convolution", "volta_scudnn_128x64_relu_interior_nn_v1", convolution},
      {"aten::cudnn_convolution_backward_input", "void cudnn::detail::dgrad_engine<float, 512, 6>(int)", convolution},
      {"aten::cudnn_convolution_backward_weight", "void cudnn::cnn::wgrad_alg0_engine<float, 128>(int)", convolution},
      {"", "void implicit_convolve_sgemm<float, float, 128, 6, 7, 3, 3, 5, 1, false>(int)", convolution},
      {"", "sm80_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x32", convolution},
      {"", "igemm_bwd_gtcx3_nhwc_bf16_bx0_ex1_bt32x128x32_wt16x64x4", convolution},
      {"", "miopenSp3AsmConv_v30_3_1_gfx94x_fp16", convolution},
      {"", "_ZN2ck16tensor_operation6device37kernel_batched_gemm_xdlops_bwd_weightINS_4TileELi64EEEvT_", convolution},
      {"", "void cudnn::winograd_nonfused::winogradForwardOutput4x4<float, float>(int)", convolution},
      {"aten::cudnn_convolution", "volta_sgemm_128x64_nt", convolution},
      {"aten::cudnn_convolution", "void cudnn::ops::nchwToNhwcKernel<float, float>(int)", copies},
      {"aten::miopen_convolution", "SubTensorOpWithScalar1d", convolution},
      {"aten::miopen_convolution", "batched_transpose_32x32_half", copies},
      {"", "void causal_conv1d_fwd_kernel<Traits>(ConvParamsBase)", convolution},
  });
}

TEST(KernelKind, a_word_inside_another_word_says_nothing) {
  expect_kinds({
      {"fbgemm::permute_2D_sparse_data", "void fbgemm_gpu::permute_2D_data_kernel<false, int, int>(int, int)", copies},
      {"fbgemm::bounds_check_indices", "void bounds_check_indices_kernel<long, false>(int)", other},
      {"aten::upsample_bilinear2d", "void at::native::(anonymous namespace)::upsample_bilinear2d_out_frame<float>(int)",
       elementwise},
      {"", "void moe::dev::finalize::finalizeKernelVecLoad<moe::dev::KernelParams<cutlass::bfloat16_t> >", other},
      {"", "void moe::dev::routing::routingIndicesHistogramKernel<moe::dev::routing::routingRenormalize::KernelParams>",
       elementwise},
      {"", "void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long const*)", elementwise},
      {"", "vector_norm_float_order-dtype_Float", elementwise},
      {"", "renorm_kernel", other},
      {"aten::scatter_add_", "void at::native::scatter_kernel<float>(int)", elementwise},
  });
}

TEST(KernelKind, norms_losses_activations_embeddings_and_copies) {
  expect_kinds({
      {"", "void transformer_engine::normalization::ln_fwd_tuned_kernel<>", layer_norm},
      {"", "void layer_norm::ln_fwd_kernel<>", layer_norm},
      {"", "void flashinfer::norm::FusedAddRMSNormKernel<8u, __nv_bfloat16>(int)", normalisation},
      {"", "void cudnn::bn_bw_1C11_kernel_new<float, float, float2, 512, true, 1>(float)", normalisation},
      {"", "MIOpenBatchNormFwdTrainSpatial", normalisation},
      {"", "void at::native::(anonymous namespace)::GammaBetaBackwardCUDAKernel<float>(int)", normalisation},
      {"", "_rms_norm_forward_kernel", normalisation},
      {"aten::native_layer_norm", "void at::native::vectorized_elementwise_kernel<4>()", layer_norm},
      {"", "void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, float>(float*)", softmax},
      {"", "liger_cross_entropy_kernel", softmax},
      {"aten::_softmax", "void at::native::reduce_kernel<512, 1, MaxOps>(int)", softmax},
      {"aten::silu", "void at::native::vectorized_elementwise_kernel<4, at::native::silu_kernel(int)>(int)",
       activation},
      {"aten::gelu", "void vectorized_elementwise_kernel<4>()", gelu},
      {"aten::threshold_backward", "void at::native::vectorized_elementwise_kernel<4, threshold_kernel_impl>(int)",
       activation},
      {"aten::embedding_dense_backward", "void cub::DeviceRadixSortOnesweepKernel<cub::Policy>(int)", embedding},
      {"aten::sort", "void cub::DeviceRadixSortOnesweepKernel<cub::Policy>(int)", elementwise},
      {"aten::addmm",
       "void at::native::elementwise_kernel<128, 4, at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)>(int)",
       copies},
      {"aten::cat", "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 1>(float*)",
       copies},
      {"aten::to", "Memcpy HtoD (Pageable -> Device)", copies},
      {"aten::_foreach_copy_", "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<X, Copy<float> >()",
       copies},
      {"aten::_foreach_norm",
       "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<X, LpNormFunctor<float> >()", optimizer},
      {"aten::sum", "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, sum_functor> >(int)",
       elementwise},
      {"", "CUDA graph 7", graph},
      {"", "flash::flash_fwd_kernel", attention},  // a short name
      {"aten::masked_fill_", "void at::native::vectorized_elementwise_kernel<4, masked_fill_kernel(int)>(int)",
       elementwise},
      {"mylib::fused_step", "my_own_kernel", other},
      {"mylib::rms_norm", "my_own_kernel", normalisation},
      {"aten::native_batch_norm", "void at::native::batch_norm_collect_statistics_kernel<float>(int)", normalisation},
      {"aten::native_layer_norm", "void at::native::(anonymous namespace)::RowwiseMomentsCUDAKernel<float>(int)",
       layer_norm},
      {"aten::native_group_norm", "void at::native::(anonymous namespace)::RowwiseMomentsCUDAKernel<float>(int)",
       normalisation},
      {"", "_layer_norm_fwd_1pass_kernel", layer_norm},
      {"", "_rms_layernorm_forward", normalisation},
  });
}

}  // namespace
}  // namespace stepladder
