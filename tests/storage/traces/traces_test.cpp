// Traces from text or a made file to rows: every expected number follows from the slices of the test.
#include <gtest/gtest.h>
#include <zlib.h>

#include <fstream>

#include "storage/database/database.h"
#include "storage/database/run_store.h"
#include "storage/traces/attribution.h"
#include "storage/traces/trace_file.h"
#include "storage/traces/traced_process.h"
#include "tests/storage/temporary_folder.h"
#include "tests/storage/traces/trace_text.h"

namespace stepladder {
namespace {

struct TraceTest : testing::Test {
  std::filesystem::path write(const std::string& text, const std::string& name = "trace.json") {
    const std::filesystem::path file = folder.path() / name;
    std::ofstream(file, std::ios::binary) << text;
    return file;
  }
  TraceProfile profile_of(const std::string& text) { return attribute(read_trace(write(text))); }
  std::string problem_of(const std::string& text) {
    try {
      profile_of(text);
    } catch (const TraceError& error) {
      return error.what();
    }
    return "";
  }
  TemporaryFolder folder;
};

const TracedOperator& row_named(const TraceProfile& profile, const std::string& name) {
  for (const TracedOperator& each : profile.operators) {
    if (each.time.name == name) return each;
  }
  throw std::runtime_error("no row " + name);
}

double sum_of(const KindArray& ms) {
  double sum = 0;
  for (const double each : ms) sum += each;
  return sum;
}

TEST_F(TraceTest, an_operator_of_a_cpu_has_its_time_without_the_operators_that_it_called) {
  const TraceProfile profile = profile_of(trace_of({
      cpu_step(1, 1000, 100),
      op("aten::linear", 1000, 60),
      op("aten::addmm", 1010, 40, R"("Input Dims": [[256], [128, 64], [64, 256], [], []])"),
      event("user_annotation", "Optimizer.step#AdamW.step", "77", 77, 1070, 20),
      op("aten::mul_", 1075, 10),
      cpu_step(2, 1100, 100),
  }));
  ASSERT_EQ(profile.steps.size(), 2U);
  EXPECT_FALSE(profile.on_gpu);
  EXPECT_DOUBLE_EQ(profile.steps[0].dt_ms, 0.1);
  EXPECT_NEAR(sum_of(profile.steps[0].ms), 0.1, 1e-9);
  const TracedOperator& product = row_named(profile, "aten::addmm");
  EXPECT_EQ(product.time.shapes, "128x64 64x256");
  EXPECT_DOUBLE_EQ(product.time.calls, 0.5);
  EXPECT_DOUBLE_EQ(product.time.self_ms, 0.02);  // 40 us in one of two steps
  EXPECT_DOUBLE_EQ(product.time.flops, 2.0 * 128 * 64 * 256 / 2);
  EXPECT_DOUBLE_EQ(row_named(profile, "aten::linear").time.self_ms, 0.01);
  EXPECT_EQ(row_named(profile, "aten::mul_").time.part, "optimizer");
  EXPECT_DOUBLE_EQ(profile.steps[0].ms[static_cast<std::size_t>(OperatorKind::optimizer)], 0.02);
  EXPECT_DOUBLE_EQ(profile.steps[1].ms[static_cast<std::size_t>(OperatorKind::between)], 0.1);
}

TEST_F(TraceTest, threads_of_two_processes_are_told_apart) {
  const TracedProcess process = attribute_all(read_trace(
      write(trace_of({cpu_step(1, 0, 100), op("aten::mm", 10, 50), event("cpu_op", "aten::mm", "78", 77, 30, 50)}))));
  const StepSlices step = unpack(process.kept.front().packed);
  ASSERT_EQ(step.lanes.size(), 2U);
  EXPECT_NE(step.lanes[0].title, step.lanes[1].title);
}

// foreach on a CPU calls an operator for each tensor; a product copies its bias first.
TEST_F(TraceTest, an_operators_work_is_counted_once) {
  const std::string list = R"("Input Dims": [[[50], [50]], []], "Input type": ["TensorList", "Scalar"])";
  const std::string one = R"("Input Dims": [[50], []], "Input type": ["float", "Scalar"])";
  const TraceProfile profile = profile_of(trace_of({
      cpu_step(1, 0, 100),
      op("aten::_foreach_mul_", 0, 40, list),
      op("aten::mul_", 5, 10, one),
      op("aten::mul_", 20, 10, one),
      op("aten::addmm", 50, 40, R"("Input Dims": [[4], [2, 3], [3, 4]], "Input type": ["float", "float", "float"])"),
      op("aten::copy_", 52, 4, R"("Input Dims": [[2, 4], [2, 4], []], "Input type": ["float", "float", "Scalar"])"),
  }));
  EXPECT_EQ(row_named(profile, "aten::mul_").bytes, 2 * 400);
  EXPECT_TRUE(is_missing(row_named(profile, "aten::_foreach_mul_").bytes));
  EXPECT_EQ(row_named(profile, "aten::addmm").time.flops, 2 * 2 * 3 * 4);
  EXPECT_EQ(row_named(profile, "aten::addmm").bytes, 4 * (4 + 6 + 12 + 8));
  EXPECT_EQ(row_named(profile, "aten::copy_").bytes, 64);
}

TEST_F(TraceTest, of_an_operators_kernels_the_longest_has_its_work) {
  const std::string shapes =
      R"("Input Dims": [[128, 64], [64, 256]], "Input type": ["c10::BFloat16", "c10::BFloat16"])";
  const std::filesystem::path file = write(trace_of(
      {
          cpu_step(1, 0, 100),
          op("aten::mm", 0, 20, shapes),
          launch(1, 2),
          launch(2, 4),
          launch(3, 6),
          op("aten::mm", 30, 20, shapes),
          launch(4, 32),
          kernel("memset_kernel", 7, 1, 20, 1),
          kernel("gemm_bf16", 7, 2, 22, 20),
          kernel("splitKreduce_gemm", 7, 3, 44, 5),
          kernel("gemm_bf16", 7, 4, 60, 20),
      },
      R"("deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}, {"id": 1, "name": "other"}], )"));
  const Trace trace = read_trace(file);
  EXPECT_EQ(trace.hardware, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(trace.precision, "bf16");
  const TraceProfile profile = attribute(trace);
  const double flops = 2.0 * 128 * 64 * 256;
  EXPECT_EQ(row_named(profile, "gemm_bf16").time.flops, 2 * flops);
  EXPECT_EQ(row_named(profile, "gemm_bf16").bytes, 2 * 2.0 * (128 * 64 + 64 * 256 + 128 * 256));
  EXPECT_TRUE(is_missing(row_named(profile, "splitKreduce_gemm").time.flops));
  EXPECT_TRUE(is_missing(row_named(profile, "memset_kernel").bytes));
}

TEST_F(TraceTest, kernels_that_overlap_share_an_instant_and_hidden_communication_costs_nothing) {
  const TraceProfile profile = profile_of(trace_of({
      cpu_step(5, 0, 100),
      op("aten::mm", 10, 20),
      launch(1, 12),
      launch(2, 14),
      op("c10d::allreduce_", 35, 10),
      launch(3, 36),
      op("aten::gelu", 50, 10),
      launch(4, 70),
      kernel("ampere_sgemm_128x64_nn", 7, 1, 20, 40),                // 20..60
      kernel("ampere_sgemm_128x64_tn", 8, 2, 40, 40),                // 40..80
      kernel("ncclDevKernel_AllReduce_Sum_f32_RING", 9, 3, 50, 60),  // 50..110
      kernel("void at::native::vectorized_elementwise_kernel<4>()", 7, 4, 120, 10),
  }));
  ASSERT_EQ(profile.steps.size(), 1U);
  ASSERT_TRUE(profile.on_gpu);
  const TracedStep& step = profile.steps.front();
  EXPECT_DOUBLE_EQ(step.dt_ms, 0.11);  // from the first kernel to the end of the last
  EXPECT_NEAR(sum_of(step.ms), step.dt_ms, 1e-9);
  EXPECT_NEAR(row_named(profile, "ampere_sgemm_128x64_nn").time.self_ms, 0.03, 1e-9);
  EXPECT_NEAR(row_named(profile, "ampere_sgemm_128x64_tn").time.self_ms, 0.03, 1e-9);
  const TracedOperator& reduce = row_named(profile, "ncclDevKernel_AllReduce_Sum_f32_RING");
  EXPECT_NEAR(reduce.time.self_ms, 0.03, 1e-9);  // 80..110
  EXPECT_NEAR(reduce.busy_ms, 0.06, 1e-9);
  EXPECT_EQ(kind_of(reduce), OperatorKind::communication);
  EXPECT_EQ(row_named(profile, "ampere_sgemm_128x64_nn").launcher, "aten::mm");
  EXPECT_NEAR(row_named(profile, "gap between kernels").time.self_ms, 0.01, 1e-9);  // launched before
}

TEST_F(TraceTest, the_gpu_waits_for_a_launch_that_comes_late) {
  const TraceProfile profile = profile_of(trace_of({
      cpu_step(1, 0, 100),
      op("aten::gelu", 0, 100),
      launch(1, 5),
      launch(2, 40),
      kernel("void vectorized_elementwise_kernel<4>()", 7, 1, 10, 10),
      kernel("void vectorized_elementwise_kernel<4>()", 7, 2, 45, 10),
      cpu_step(2, 100, 100),
      launch(3, 110),
      kernel("sgemm", 7, 3, 120, 30),
  }));
  ASSERT_EQ(profile.steps.size(), 2U);
  EXPECT_DOUBLE_EQ(profile.steps[0].dt_ms, 0.11);  // until the next step's first kernel
  EXPECT_DOUBLE_EQ(profile.steps[1].dt_ms, 0.08);  // until the CPU's step ends
  // 20..40 and 55..110; means of two steps. Before 200 nothing more is launched, so nobody can tell.
  EXPECT_NEAR(row_named(profile, "launch gap").time.self_ms, (0.02 + 0.055) / 2, 1e-9);
  EXPECT_NEAR(row_named(profile, "gap between kernels").time.self_ms, (0.005 + 0.01) / 2, 1e-9);
  EXPECT_EQ(kind_of(row_named(profile, "launch gap")), OperatorKind::idle);
  EXPECT_EQ(kind_of(row_named(profile, "void vectorized_elementwise_kernel<4>()")), OperatorKind::activation);
}

TEST_F(TraceTest, packed_and_several_ranks) {
  const auto of_rank = [](int rank, double us) {
    return trace_of({kernel("sgemm", 7, 0, 0, us)},
                    R"("distributedInfo": {"backend": "nccl", "rank": )" + std::to_string(rank) + "}, ");
  };
  const std::filesystem::path packed = folder / "rank3.json.gz";
  const gzFile out = gzopen(packed.c_str(), "wb");
  const std::string text = of_rank(3, 50);
  gzwrite(out, text.data(), static_cast<unsigned>(text.size()));
  gzclose(out);
  std::vector<TraceProfile> ranks;
  ranks.push_back(attribute(read_trace(packed)));
  ranks.push_back(profile_of(of_rank(1, 30)));
  EXPECT_EQ(ranks[0].steps.front().rank, 3);
  const TraceProfile joined = join_ranks(ranks);
  EXPECT_EQ(joined.ranks, 2);
  EXPECT_FALSE(joined.has_steps);
  EXPECT_DOUBLE_EQ(joined.operators.front().time.self_ms, 0.04);

  // The packed file without its end, and with a wrong byte.
  std::ifstream in(packed, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  EXPECT_NE(problem_of(bytes.substr(0, bytes.size() - 12)).find("cut off"), std::string::npos);
  bytes[bytes.size() / 2] ^= 0x55;
  EXPECT_NE(problem_of(bytes), "");
}

TEST_F(TraceTest, what_is_wrong_with_a_file_is_one_sentence) {
  const std::string good = trace_of({op("aten::mm", 0, 10)});
  EXPECT_EQ(problem_of(good), "");
  EXPECT_EQ(problem_of(""), "is empty");
  EXPECT_NE(problem_of("step 1 loss 3.4\n").find("is neither a trace"), std::string::npos);
  EXPECT_NE(problem_of(good.substr(0, good.size() / 2)).find("is cut off after"), std::string::npos);
  EXPECT_NE(problem_of(R"({"traceEvents": [}])").find("isn't JSON: byte"), std::string::npos);
  EXPECT_NE(problem_of(R"({"a": 1})").find("holds no events"), std::string::npos);
  EXPECT_NE(problem_of(R"({"traceEvents": []})").find("holds no operator"), std::string::npos);
  EXPECT_NE(problem_of(std::string(100'000, '[')).find("more than 100 deep"), std::string::npos);
  EXPECT_NE(problem_of(trace_of({op("aten::mm", 0, -10)})).find("ends before it begins, 'aten::mm'"),
            std::string::npos);
  EXPECT_NE(problem_of(trace_of({op("aten::mm", 1e300, 1)})).find("impossible time"), std::string::npos);
  EXPECT_NE(problem_of(R"({"traceEvents": [{"ph": "X", "name": ")" + std::string(17 << 20, 'a') + R"("}]})")
                .find("more than 16 MiB"),
            std::string::npos);
  std::vector<std::string> crossing, threads;
  for (int i = 0; i < 100; ++i) crossing.push_back(op("aten::mm", i * 10, 15));
  EXPECT_NE(problem_of(trace_of(crossing)).find("clocks that disagree"), std::string::npos);
  for (int i = 0; i < 1001; ++i) threads.push_back(event("cpu_op", "aten::mm", "7", i, 0, 1));
  EXPECT_NE(problem_of(trace_of(threads)).find("more than 1000 threads"), std::string::npos);
}

TEST_F(TraceTest, the_order_of_events_in_the_file_does_not_matter) {
  std::vector<std::string> events{cpu_step(1, 0, 100), op("aten::linear", 0, 60), op("aten::addmm", 10, 40)};
  const double forwards = row_named(profile_of(trace_of(events)), "aten::linear").time.self_ms;
  std::reverse(events.begin(), events.end());
  EXPECT_DOUBLE_EQ(row_named(profile_of(trace_of(events)), "aten::linear").time.self_ms, forwards);
  EXPECT_DOUBLE_EQ(forwards, 0.02);
}

TEST_F(TraceTest, an_export_of_nsight_systems) {
  const std::filesystem::path file = folder / "run.sqlite";
  {
    Database database(file, Database::Mode::read_write);
    database.execute(R"sql(
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO StringIds VALUES (1, 'sm80_xmma_gemm_f32'), (2,
  'aten::mm, seq = 4, op_id = 31, sizes = [[128, 64], [64, 256]], input_op_ids = [[5,0], [6,0]]'), (3, 'step 7'),
  (4, 'aten::add_, op_id = 32, sizes = [[8], [8], []]'), (5, 'aten::add_, op_id = 33, sizes = [[8], [8], []]'),
  (6, 'vectorized_add');
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER,
  correlationId INTEGER, globalPid INTEGER, demangledName INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (20000, 60000, 0, 7, 1, 9, 1), (90000, 91000, 0, 7, 3, 9, 6),
  (91000, 92000, 0, 7, 4, 9, 6);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER,
  correlationId INTEGER, copyKind INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (50000, 90000, 0, 13, 2, 1);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (11000, 12000, 5, 1), (13000, 14000, 5, 2),
  (70100, 70200, 5, 3), (71100, 71200, 5, 4);
CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, globalTid INTEGER, text TEXT, textId INTEGER);
INSERT INTO NVTX_EVENTS VALUES (10000, 100000, 59, 5, NULL, 3), (10500, 12500, 59, 5, NULL, 2),
  (70000, 70500, 59, 5, NULL, 4), (71000, 71500, 59, 5, NULL, 5);
CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT);
INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA L4');
)sql");
  }
  const Trace trace = read_trace(file);
  EXPECT_EQ(trace.hardware, "NVIDIA L4");
  const TraceProfile profile = attribute(trace);
  ASSERT_EQ(profile.steps.size(), 1U);
  EXPECT_EQ(profile.steps.front().step, 7);
  EXPECT_EQ(row_named(profile, "sm80_xmma_gemm_f32").time.shapes, "128x64 64x256");
  EXPECT_EQ(row_named(profile, "sm80_xmma_gemm_f32").time.flops, 2.0 * 128 * 64 * 256);
  EXPECT_TRUE(is_missing(row_named(profile, "sm80_xmma_gemm_f32").bytes));  // no types
  EXPECT_EQ(row_named(profile, "vectorized_add").time.calls, 2) << "their numbers aren't part of the names";
  EXPECT_EQ(row_named(profile, "vectorized_add").launcher, "aten::add_");
  EXPECT_NEAR(row_named(profile, "sm80_xmma_gemm_f32").time.self_ms, 0.04, 1e-9);
  EXPECT_EQ(row_named(profile, "sm80_xmma_gemm_f32").launcher, "aten::mm");
  EXPECT_NEAR(row_named(profile, "Memcpy HtoD").time.self_ms, 0.03, 1e-9);  // the rest is beside the product
  {
    Database database(folder / "other.sqlite", Database::Mode::read_write);
    database.execute("CREATE TABLE t (a)");
  }
  EXPECT_THROW(read_trace(folder / "other.sqlite"), TraceError);
}

TEST_F(TraceTest, a_kept_trace_reads_back_and_is_the_profile_of_its_run) {
  RunStore store = RunStore::in_memory();
  StoredTrace trace{.run = store.create_run({.name = "r"}), .name = "t", .format = "kineto"};
  trace.profile = profile_of(trace_of({cpu_step(1, 0, 100), op("aten::gelu", 0, 60), op("aten::mm", 60, 40)}));
  const TraceId id = store.traces().insert(trace);
  const StoredTrace read = store.traces().find(id).value();
  ASSERT_EQ(read.profile.steps.size(), 1U);
  EXPECT_EQ(read.profile.steps.front().ms, trace.profile.steps.front().ms);
  ASSERT_EQ(read.profile.operators.size(), trace.profile.operators.size());
  const StepProfile profile = store.recordings().profile(*trace.run);
  EXPECT_EQ(profile.steps, 1);
  EXPECT_DOUBLE_EQ(KindTimes(profile).of(OperatorKind::activation), 0.06);
  EXPECT_NEAR(step_ms(profile), 0.1, 1e-9);
  const TraceId later = store.traces().insert(trace);
  EXPECT_NE(later, id);
  store.traces().remove(id);
  EXPECT_FALSE(store.traces().find(id));
  // One that is put back has its number again, unless another trace has it now.
  EXPECT_EQ(store.traces().insert(read), id);
  EXPECT_NE(store.traces().insert(read), id);
  for (const StoredTrace& each : store.traces().list()) store.traces().remove(each.id);
  EXPECT_EQ(store.recordings().profile(*trace.run).steps, 0);
}

}  // namespace
}  // namespace stepladder
