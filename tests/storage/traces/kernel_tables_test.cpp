// Tables of kernels that don't say when they ran: the step is the sum of their rows.
#include <gtest/gtest.h>

#include <fstream>

#include "storage/traces/trace_file.h"
#include "storage/traces/traced_process.h"
#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

struct KernelTableTest : testing::Test {
  std::filesystem::path write(const std::string& text) {
    const std::filesystem::path file = folder.path() / "table";
    std::ofstream(file, std::ios::binary) << text;
    return file;
  }
  TracedProcess process_of(const std::string& text) { return attribute_all(read_trace(write(text))); }
  std::string problem_of(const std::string& text) {
    try {
      process_of(text);
    } catch (const TraceError& error) {
      return error.what();
    }
    return "";
  }
  TemporaryFolder folder;
};

const TracedOperator& row_named(const TracedProcess& process, const std::string& name) {
  for (const TracedOperator& each : process.profile.operators) {
    if (each.time.name == name) return each;
  }
  throw std::runtime_error("no row " + name);
}

double ms_of(const TracedProcess& process, OperatorKind kind) {
  return process.profile.steps.front().ms[static_cast<std::size_t>(kind)];
}

std::string frame(const std::string& name, const std::string& metrics, const std::string& children = "") {
  return R"({"children": [)" + children + R"(], "frame": {"name": ")" + name +
         R"(", "type": "function"}, "metrics": {)" + metrics + "}}";
}
std::string proton_kernel(const std::string& name, int count, double ns, const std::string& device = "0") {
  return frame(name, R"("device_type": "CUDA", "device_id": ")" + device + R"(", "count": )" + std::to_string(count) +
                         R"x(, "time (ns)": )x" + std::to_string(ns));
}
std::string proton(const std::string& children) {
  return "[" + frame("ROOT", R"x("count": 0, "time (ns)": 0)x", children) +
         R"(, {"CUDA": {"0": {"arch": "90", "clock_rate": 1980000}}}])";
}

TEST_F(KernelTableTest, ProtonsScopesAndKernelsAddUpToTheStep) {
  const std::string text = proton(frame("forward", "",
                                        frame("attention", "", proton_kernel("flash_fwd_kernel", 12, 2e6)) + ", " +
                                            proton_kernel("nvjet_tst_128x256", 24, 3e6)) +
                                  ", " + frame("backward", "", proton_kernel("nvjet_tst_128x256", 48, 5e6)) + ", " +
                                  frame("never", "", proton_kernel("unused", 1, 0)));
  ASSERT_TRUE(looks_like_trace(write(text)));
  const TracedProcess process = process_of(text);
  ASSERT_EQ(process.profile.steps.size(), 1U);
  EXPECT_TRUE(process.profile.on_gpu);
  EXPECT_FALSE(process.profile.has_steps);
  EXPECT_DOUBLE_EQ(process.profile.steps.front().dt_ms, 10);
  EXPECT_NEAR(ms_of(process, OperatorKind::attention), 2, 1e-9);
  EXPECT_NEAR(ms_of(process, OperatorKind::products), 8, 1e-9);
  EXPECT_EQ(ms_of(process, OperatorKind::idle), 0);
  EXPECT_EQ(row_named(process, "flash_fwd_kernel").time.calls, 12);
  ASSERT_EQ(process.profile.operators.size(), 3U);  // the product has a row for each pass
  EXPECT_EQ(process.profile.operators.front().time.part, "backward");
  EXPECT_EQ(process.profile.operators.front().time.calls, 48);
  const StepSlices slices = unpack(process.kept.front().packed);
  EXPECT_EQ(slice_count(slices), 84 + 3 + 3);  // kernels, scopes, launches
  // A scope that another one fills keeps its place above it.
  const auto row = std::find_if(slices.rows.begin(), slices.rows.end(), [&](const SliceRow& each) {
    return !slices.lanes[each.lane].on_gpu && each.depth == 0;
  });
  ASSERT_NE(row, slices.rows.end());
  EXPECT_EQ(slices.names[row->slices.front().name], "forward");
}

TEST_F(KernelTableTest, ProtonsScopesCanMarkSteps) {
  const TracedProcess process = process_of(proton(frame("step 3", "", proton_kernel("gemm", 2, 1e6)) + "," +
                                                  frame("step 4", "", proton_kernel("gemm", 2, 3e6))));
  EXPECT_TRUE(process.profile.has_steps);
  ASSERT_EQ(process.profile.steps.size(), 2U);
  EXPECT_EQ(process.profile.steps[0].step, 3);
  EXPECT_DOUBLE_EQ(process.profile.steps[0].dt_ms, 1);
  EXPECT_DOUBLE_EQ(process.profile.steps[1].dt_ms, 3);
}

TEST_F(KernelTableTest, EachDeviceOfProtonIsARank) {
  const TracedProcess process =
      process_of(proton(proton_kernel("gemm", 2, 1e6, "0") + "," + proton_kernel("gemm", 2, 3e6, "1")));
  EXPECT_EQ(process.profile.ranks, 2);
  ASSERT_EQ(process.profile.steps.size(), 2U);
  EXPECT_DOUBLE_EQ(process.profile.steps[0].dt_ms, 1);
  EXPECT_DOUBLE_EQ(process.profile.steps[1].dt_ms, 3);
}

TEST_F(KernelTableTest, DamagedProtonFilesAreRefused) {
  const std::string good = proton(frame("forward", "", proton_kernel("gemm", 1, 1e6)));
  for (std::size_t size = 20; size < good.size() - 1; ++size) EXPECT_NE(problem_of(good.substr(0, size)), "") << size;
  EXPECT_EQ(problem_of(proton(frame("scope", ""))), "is a profile of Triton's proton, but no kernel in it has a time");
  EXPECT_EQ(problem_of(proton(proton_kernel("k", 1, -1))), "has a kernel with an impossible time, 'k'");
  EXPECT_EQ(problem_of(proton(proton_kernel("k", -1, 1))), "has a kernel with an impossible time or count, 'k'");
  EXPECT_EQ(problem_of(proton(proton_kernel("k", 1, 1e300))), "has a kernel with an impossible time, 'k'");
  EXPECT_EQ(problem_of(proton(frame("k", R"x("time (ns)": 1e999)x"))), "has a number that is too large");
  EXPECT_EQ(problem_of(proton(R"({"frame": 3})")), "is no profile of Triton's proton: a frame has no name");
  EXPECT_EQ(problem_of(proton("3")), "is no profile of Triton's proton: a frame's children are no list of frames");
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += R"([{"children":)";
  EXPECT_EQ(problem_of(deep), "nests its values more than 1000 deep");
}

TEST_F(KernelTableTest, EachDeviceOfProtonHasItsOwnSteps) {
  const TracedProcess process = process_of(
      proton(frame("step 1", "",
                   proton_kernel("k0", 1, 5'000) + "," + proton_kernel("a1", 1, 25'000, "1") + "," +
                       proton_kernel("b1", 1, 25'000, "1")) +
             "," + frame("step 2", "", proton_kernel("k0", 1, 5'000) + "," + proton_kernel("c1", 1, 50'000, "1"))));
  ASSERT_EQ(process.profile.steps.size(), 4U);
  for (const TracedStep& step : process.profile.steps) {
    EXPECT_DOUBLE_EQ(step.dt_ms, step.rank == 0 ? 0.005 : 0.05);
    EXPECT_EQ(step.ms[static_cast<std::size_t>(OperatorKind::idle)], 0);
  }
}

std::string llmc(const std::string& rows, const std::string& total) {
  return "...\nKernel calls:\n"
         "id pass    name                                         time   RAM rd   RAM wt    L2 rd    L2 wt     inst\n"
         "                                                          ms      GiB      GiB      GiB      GiB    MInst\n" +
         std::string(107, '.') + "\n" + rows + std::string(107, '.') + "\n           Total          " + total +
         "     0.00     0.00     0.00     0.00     0.00\n\nKernel type summaries:\n";
}
const std::string llmc_rows =
    "01 enc✗1   encoder_forward_kernel3      0.20     0.00     0.00     0.00     0.00     0.00\n"
    "02 fwd✗12  layernorm_forward_kernel6    1.20     0.00     0.00     0.00     0.00     0.00\n"
    "03 fwd✗12  ampere_bf16                  6.00     0.00     0.00     0.00     0.00     0.00\n"
    "04 cls✗1   ampere_bf16                  2.00     0.00     0.00     0.00     0.00     0.00\n"
    "05 cls✗1   fused_classifier_kernel5     1.00     0.00     0.00     0.00     0.00     0.00\n"
    "06 cls✗1   ampere_bf16                  4.00     0.00     0.00     0.00     0.00     0.00\n"
    "07 bwd✗12  ampere_bf16                 12.00     0.00     0.00     0.00     0.00     0.00\n"
    "08 enc✗1   wte_backward_kernel          0.40     0.00     0.00     0.00     0.00     0.00\n"
    "09 init✗0  copy_and_cast_kernel         0.00     0.00     0.00     0.00     0.00     0.00\n"
    "10 opt✗1   adamw_kernel3                1.20     0.00     0.00     0.00     0.00     0.00\n";

TEST_F(KernelTableTest, LlmcsTableIsOneStep) {
  const std::string text = llmc(llmc_rows, "28.00");
  ASSERT_TRUE(looks_like_trace(write(text)));
  const TracedProcess process = process_of(text);
  EXPECT_TRUE(process.profile.has_steps);
  ASSERT_EQ(process.profile.steps.size(), 1U);
  EXPECT_NEAR(process.profile.steps.front().dt_ms, 28, 1e-6);
  EXPECT_NEAR(ms_of(process, OperatorKind::optimizer), 1.2, 1e-6);
  EXPECT_NEAR(ms_of(process, OperatorKind::normalisation), 1.2, 1e-6);
  EXPECT_NEAR(ms_of(process, OperatorKind::products), 24, 1e-6);
  EXPECT_NEAR(ms_of(process, OperatorKind::embedding), 0.6, 1e-6);
  EXPECT_EQ(ms_of(process, OperatorKind::idle), 0);
  EXPECT_EQ(row_named(process, "layernorm_forward_kernel6").time.calls, 12);
  const auto ms = [&](StepPhase phase, ModelPart part) {
    double sum = 0;
    for (const AnatomyRow& row : process.anatomy) {
      if (row.phase == phase && row.part == part) sum += row.ms;
    }
    return sum;
  };
  EXPECT_NEAR(ms(StepPhase::forward, ModelPart::embedding), 0.2, 1e-6);
  EXPECT_NEAR(ms(StepPhase::forward, ModelPart::head), 2, 1e-6);
  EXPECT_NEAR(ms(StepPhase::forward, ModelPart::loss), 1, 1e-6);
  EXPECT_NEAR(ms(StepPhase::backward, ModelPart::head), 4, 1e-6);
  EXPECT_NEAR(ms(StepPhase::backward, ModelPart::embedding), 0.4, 1e-6);
  EXPECT_NEAR(ms(StepPhase::forward, ModelPart::unknown), 7.2, 1e-6);  // the blocks: one layer's parts aren't named
  EXPECT_NEAR(ms(StepPhase::backward, ModelPart::unknown), 12, 1e-6);
}

TEST_F(KernelTableTest, DamagedTablesOfLlmcAreRefused) {
  const std::string good = llmc(llmc_rows, "28.00");
  EXPECT_EQ(problem_of(good.substr(0, good.size() / 2)), "is cut off: llm.c's table of kernels has no total");
  EXPECT_EQ(problem_of(llmc(llmc_rows, "27.00")), "is damaged: the rows of llm.c's table don't add up to its total");
  EXPECT_EQ(problem_of(llmc("01 fwd✗12 gemm\n", "0.00")), "is no table of llm.c: line 6 is no row of a kernel");
  EXPECT_EQ(problem_of(llmc("01 fwd✗12 gemm -3.0\n", "-3.00")), "has a kernel with an impossible time, 'gemm'");
  EXPECT_EQ(problem_of(llmc("", "0.00")), "is a table of llm.c, but no kernel in it has a time");
}

}  // namespace
}  // namespace stepladder
