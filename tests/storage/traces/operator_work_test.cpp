#include "storage/traces/operator_work.h"

#include <gtest/gtest.h>

#include "storage/traces/operand_lists.h"

namespace stepladder {
namespace {

Operand tensor(std::vector<std::int64_t> sizes, double value_bytes = 4) {
  Operand made{.sizes = std::move(sizes), .elements = 1, .value_bytes = value_bytes};
  for (const std::int64_t size : made.sizes) made.elements *= static_cast<double>(size);
  return made;
}

Operand number(double value) {
  return {.number = value};
}

Work work(std::string_view name, const std::vector<Operand>& operands) {
  return work_of(name, operands);
}

TEST(OperatorWork, AProductHasTwoFlopsForEachFactorPair) {
  const std::vector<Operand> mm{tensor({128, 64}, 2), tensor({64, 256}, 2)};
  EXPECT_EQ(work("aten::mm", mm).flops, 2.0 * 128 * 64 * 256);
  EXPECT_EQ(work("aten::mm", mm).bytes, 2.0 * (128 * 64 + 64 * 256 + 128 * 256));
  EXPECT_EQ(product_shapes("aten::mm", mm), "128x64 64x256");
  // The bias comes first, also one that is a matrix.
  const std::vector<Operand> addmm{tensor({128, 256}), tensor({128, 64}), tensor({64, 256})};
  EXPECT_EQ(work("aten::addmm", addmm).flops, 2.0 * 128 * 64 * 256);
  EXPECT_EQ(product_shapes("aten::addmm", addmm), "128x64 64x256");
  std::vector<Operand> out = mm;
  out.push_back(tensor({128, 256}, 2));  // mm.out
  EXPECT_EQ(work("aten::mm", out).bytes, work("aten::mm", mm).bytes);
  const std::vector<Operand> bmm{tensor({6, 128, 64}), tensor({6, 64, 256})};
  EXPECT_EQ(work("aten::bmm", bmm).flops, 6 * 2.0 * 128 * 64 * 256);
  EXPECT_EQ(product_shapes("aten::bmm", bmm), "6x128x64 6x64x256");
  EXPECT_FALSE(work("aten::mm", {}).is_known());
  EXPECT_FALSE(work("aten::mm", {tensor({3, 4})}).is_known());
  EXPECT_EQ(product_shapes("aten::mm", {}), "");
  EXPECT_EQ(product_shapes("aten::add", mm), "");
}

TEST(OperatorWork, OfATypeThatIsNotKnownOnlyFlopsCount) {
  const Work of = work("aten::mm", {tensor({8, 8}, missing), tensor({8, 8}, missing)});
  EXPECT_EQ(of.flops, 1024);
  EXPECT_TRUE(is_missing(of.bytes));
}

TEST(OperatorWork, AttentionCountsEachPairOfTokensAndHalfOfThemIfCausal) {
  const Operand head = tensor({2, 4, 16, 8});  // (B, H, T, D)
  const double pairs = 2.0 * 4 * 16 * 16 * 8, values = 2.0 * 4 * 16 * 8;
  const char* const name = "aten::_scaled_dot_product_flash_attention_for_cpu";
  EXPECT_EQ(work(name, {head, head, head, number(0), number(0)}).flops, 4 * pairs);
  EXPECT_EQ(work(name, {head, head, head, number(0), number(1)}).flops, 2 * pairs);
  EXPECT_EQ(work(name, {head, head, head}).flops, 2 * pairs);  // the trace doesn't say
  EXPECT_EQ(work(name, {head, head, head}).bytes, 4 * 4 * values);
  const std::vector<Operand> back{head, head, head, head, head, tensor({2, 4, 16}), number(0), number(1)};
  EXPECT_EQ(work("aten::_scaled_dot_product_flash_attention_for_cpu_backward", back).flops, 5 * pairs);
  // (B, T, H, D)
  const Operand turned = tensor({2, 16, 4, 8});
  EXPECT_EQ(work("aten::_flash_attention_forward", {turned, turned, turned}).flops, 2 * pairs);
}

TEST(OperatorWork, FlashAttentionsOwnOperatorsCountAsPyTorchs) {
  const Operand turned = tensor({2, 16, 4, 8});  // (B, T, H, D)
  const double pairs = 2.0 * 4 * 16 * 16 * 8;
  const std::vector<Operand> none(40);
  const auto with = [&](std::vector<std::pair<std::size_t, Operand>> given) {
    std::vector<Operand> all = none;
    for (auto& [place, operand] : given) all[place] = std::move(operand);
    return all;
  };
  EXPECT_EQ(work("flash_attn::_flash_attn_forward",
                 with({{0, turned}, {1, turned}, {2, turned}, {5, number(1)}, {6, number(-1)}}))
                .flops,
            2 * pairs);
  EXPECT_EQ(work("flash_attn::_flash_attn_backward",
                 with({{0, turned}, {1, turned}, {2, turned}, {3, turned}, {11, number(0)}, {12, number(-1)}}))
                .flops,
            10 * pairs);
  const auto fwd = [&](double causal, double window) {
    return with({{0, turned}, {1, turned}, {2, turned}, {24, number(causal)}, {25, number(window)}});
  };
  EXPECT_EQ(work("flash_attn_3::fwd", fwd(0, -1)).flops, 4 * pairs);
  EXPECT_EQ(work("flash_attn_3::fwd", fwd(1, -1)).flops, 2 * pairs);
  // Each token sees itself and three before it: 1 + 2 + 3 + 13 * 4 pairs of 256.
  EXPECT_EQ(work("flash_attn_3::fwd", fwd(1, 3)).flops, 4 * pairs * 58 / 256);
  EXPECT_TRUE(is_missing(work("flash_attn_3::fwd", fwd(0, 3)).flops));
  std::vector<Operand> packed = fwd(1, -1);
  packed[7] = tensor({5}, 4);  // cu_seqlens_q
  EXPECT_FALSE(work("flash_attn_3::fwd", packed).is_known()) << "the sequences' lengths aren't in a trace";
  EXPECT_EQ(work("flash_attn_3::bwd",
                 with({{0, turned}, {1, turned}, {2, turned}, {3, turned}, {16, number(1)}, {17, number(-1)}}))
                .flops,
            5 * pairs);
}

TEST(OperatorWork, TheMemoryLimitsTheOthers) {
  const Operand a = tensor({100}), b = tensor({100});
  EXPECT_TRUE(is_missing(work("aten::add", {a, b}).flops));
  EXPECT_EQ(work("aten::add", {a, b}).bytes, 1200);   // reads two, writes one
  EXPECT_EQ(work("aten::add_", {a, b}).bytes, 1200);  // reads two, writes the first
  EXPECT_EQ(work("aten::copy_", {a, b}).bytes, 800);  // reads one, writes one
  EXPECT_EQ(work("aten::sum", {a}).bytes, 400);
  EXPECT_EQ(work("aten::gelu", {a}).bytes, 800);
  // Of a table of 1,000 rows of 64 values three are read and written.
  EXPECT_EQ(work("aten::index_select", {tensor({1000, 64}), number(0), tensor({3}, 8)}).bytes, 2 * 3 * 64 * 4 + 24);
  // AdamW reads weights, gradients and moments, and writes all but the gradients.
  const Operand list{.elements = 1000, .value_bytes = 4};
  EXPECT_EQ(work("aten::_fused_adamw_", {list, list, list, list}).bytes, 7 * 4000);
  // Of lists without sizes only the step numbers would count.
  EXPECT_FALSE(work("aten::_fused_adamw_", {{}, {}, {}, {}, {}, tensor({1})}).is_known());
  EXPECT_FALSE(work("aten::view", {a}).is_known());
  EXPECT_FALSE(work("mm", {a, b}).is_known());
}

TEST(OperatorWork, TritonsKernelsMoveEachOperandOnceAndOursSayWhatTheyDo) {
  EXPECT_EQ(work("triton_poi_fused_add_gelu_3", {tensor({100}, 2), tensor({100}, 2), number(100)}).bytes, 400);
  EXPECT_EQ(work("stepladder::gelu", {number(0), number(400)}).bytes, 400);
  const Work plan = work("plan::qkv", {number(1e9), number(5e6)});
  EXPECT_EQ(plan.flops, 1e9);
  EXPECT_EQ(plan.bytes, 5e6);
  EXPECT_TRUE(is_missing(work("plan::gelu", {number(0), number(5e6)}).flops));
}

TEST(OperatorWork, WhatIsMissingAddsNothing) {
  Work sum;
  sum += Work{1, missing};
  sum += Work{2, 5};
  EXPECT_EQ(sum.flops, 3);
  EXPECT_EQ(sum.bytes, 5);
  EXPECT_TRUE(is_missing((Work{} * 2).flops));
  EXPECT_EQ((sum * 2).bytes, 10);
}

// As a trace has them: a table, a list of two tensors, a number, a tensor without dimensions, and nothing.
TEST(OperandLists, AreReadFromTheListsOfAnEvent) {
  OperandLists operands;
  operands.list_begins(1);
  operands.list_begins(2), operands.size(1000), operands.size(64), operands.list_ends(2);
  operands.list_begins(2);
  operands.list_begins(3), operands.size(3), operands.size(5), operands.list_ends(3);
  operands.list_begins(3), operands.list_ends(3);
  operands.list_ends(2);
  for (int i = 0; i < 3; ++i) operands.list_begins(2), operands.list_ends(2);
  operands.list_ends(1);
  for (const char* type : {"c10::BFloat16", "TensorList", "Scalar", "float", ""}) operands.type(type);
  for (const char* value : {"", "", "True", "", "[1, 2]"}) operands.value(value);
  const std::vector<Operand>& read = operands.operands();
  ASSERT_EQ(read.size(), 5u);
  EXPECT_EQ(read[0].sizes, (std::vector<std::int64_t>{1000, 64}));
  EXPECT_EQ(read[0].elements, 64000);
  EXPECT_EQ(read[0].value_bytes, 2);
  EXPECT_EQ(read[1].elements, 16);
  EXPECT_TRUE(read[1].sizes.empty());
  EXPECT_EQ(read[2].elements, 0);
  EXPECT_EQ(read[2].number, 1);
  EXPECT_EQ(read[3].elements, 1);
  EXPECT_EQ(read[4].elements, 0);
  EXPECT_TRUE(is_missing(read[4].number));
  EXPECT_EQ(operands.first_type(), "c10::BFloat16");
  operands.clear();
  EXPECT_TRUE(operands.operands().empty());
}

TEST(OperandLists, AHostileListIsCut) {
  OperandLists operands;
  operands.list_begins(1);
  operands.size(7);  // not within an argument
  for (int i = 0; i < 1000; ++i) {
    operands.list_begins(2);
    for (int k = 0; k < 100; ++k) operands.size(1'000'000'000);
    operands.list_ends(2);
    operands.type("float");
    operands.value("1");
  }
  EXPECT_EQ(operands.operands().size(), OperandLists::most);
  EXPECT_TRUE(operands.operands().front().sizes.empty());
}

TEST(OperandLists, ThePrecisionOfATraceIsThatOfMostFlops) {
  const auto precision = [](std::vector<std::pair<const char*, double>> products, const char* kernel) {
    ProductPrecision found;
    for (const auto& [type, flops] : products) {
      OperandLists operands;
      operands.type(type);
      found.add(operands, {.flops = flops});
    }
    found.add_kernel(kernel);
    return found.precision();
  };
  EXPECT_EQ(precision({{"float", 1}, {"c10::BFloat16", 5}}, ""), "bf16");
  EXPECT_EQ(precision({{"float", 1}}, "ampere_sgemm_128x64_tn"), "fp32");
  EXPECT_EQ(precision({{"float", 1}}, "cutlass_80_tensorop_s1688gemm_128x128"), "tf32");
  EXPECT_EQ(precision({}, "tf32"), "");
}

}  // namespace
}  // namespace stepladder
