// Traces from text or a made file to rows: every expected number follows from the slices of the test.
#include <gtest/gtest.h>
#include <zlib.h>

#include <cmath>
#include <fstream>
#include <map>

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
  TraceProfile profile_of(const std::string& text) { return attribute(read_trace(write(text)).front()); }
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
  EXPECT_EQ(row_named(profile, "aten::mul_").time.part, "optimiser");
  EXPECT_DOUBLE_EQ(profile.steps[0].ms[static_cast<std::size_t>(OperatorKind::optimizer)], 0.02);
  EXPECT_DOUBLE_EQ(profile.steps[1].ms[static_cast<std::size_t>(OperatorKind::between)], 0.1);
}

TEST_F(TraceTest, rows_know_how_they_vary_from_step_to_step) {
  const TraceProfile profile = profile_of(trace_of({
      cpu_step(1, 1000, 100),
      op("aten::mm", 1000, 20),
      op("aten::gelu", 1030, 5),
      cpu_step(2, 1100, 100),
      op("aten::mm", 1100, 30),
      op("aten::gelu", 1130, 5),
      cpu_step(3, 1200, 100),
      op("aten::mm", 1200, 10),
      op("aten::gelu", 1230, 5),
      op("aten::add", 1250, 3),
  }));
  EXPECT_NEAR(row_named(profile, "aten::mm").sd_ms, 0.01, 1e-9);  // of 20, 30 and 10 us
  EXPECT_NEAR(row_named(profile, "aten::gelu").sd_ms, 0, 1e-9);
  EXPECT_NEAR(row_named(profile, "aten::add").sd_ms, 0.003 / std::sqrt(3.0), 1e-9) << "twice it isn't there";
  EXPECT_EQ(step_spread(profile).steps, 3);
  EXPECT_NEAR(step_spread(profile).sd_ms, 0, 1e-9);
  const TraceProfile one = profile_of(trace_of({cpu_step(1, 0, 100), op("aten::mm", 10, 50)}));
  EXPECT_TRUE(is_missing(row_named(one, "aten::mm").sd_ms)) << "one step doesn't tell";
}

TEST_F(TraceTest, says_where_and_when_it_was_taken) {
  const std::filesystem::path file = write(
      trace_of({cpu_step(1, 1000, 100), op("aten::mm", 1010, 50)}, R"("baseTimeNanoseconds": 1759300074000000000, )"));
  const Trace trace = std::move(read_trace(file).front());
  EXPECT_NEAR(trace.origin.began_at, 1759300074.001, 1e-6);
  EXPECT_NEAR(trace.origin.ended_at, 1759300074.0011, 1e-6);
  EXPECT_EQ(trace.origin.pid, 77);
  EXPECT_EQ(trace.origin.host, "");
  EXPECT_EQ(host_in_name("node_3-a_77.1759300074001.pt.trace.json.gz", 77), "node_3-a");
  EXPECT_EQ(host_in_name("node_78.1759300074001.pt.trace.json", 77), "") << "of another process";
  EXPECT_EQ(host_in_name("node_77.json", 77), "");
  const Trace without = std::move(read_trace(write(trace_of({op("aten::mm", 10, 50)}))).front());
  EXPECT_TRUE(is_missing(without.origin.began_at)) << "its clock began with the machine";
}

TEST_F(TraceTest, kept_slices_know_part_shapes_and_work) {
  const std::string shapes = R"("Input Dims": [[2, 3], [3, 4]], "Input type": ["float", "float"])";
  const TracedProcess process = attribute_all(
      read_trace(write(trace_of({cpu_step(1, 0, 100), op("aten::mm", 0, 20, shapes), launch(1, 2), launch(2, 4),
                                 kernel("gemm", 7, 1, 10, 50), kernel("reduce_kernel", 7, 2, 60, 10)})))
          .front());
  const StepSlices step = unpack(process.kept.front().packed);
  std::map<std::string, SliceDetail> details;
  for (const SliceRow& row : step.rows)
    for (const KeptSlice& slice : row.slices) details[step.names[slice.name]] = step.details[slice.detail];
  EXPECT_EQ(details["gemm"].launcher, "aten::mm");
  EXPECT_EQ(details["gemm"].shapes, "2x3 3x4");
  EXPECT_EQ(details["gemm"].part, "forward");
  EXPECT_EQ(details["gemm"].flops, 2 * 2 * 3 * 4);
  EXPECT_EQ(details["gemm"].bytes, 4 * (6 + 12 + 8));
  EXPECT_TRUE(is_missing(details["reduce_kernel"].flops)) << "the work is the product's";
  EXPECT_EQ(details["aten::mm"].flops, 2 * 2 * 3 * 4);
  EXPECT_EQ(details["ProfilerStep#1"].part, "");
}

TEST_F(TraceTest, threads_of_two_processes_are_told_apart) {
  const TracedProcess process = attribute_all(
      read_trace(
          write(trace_of({cpu_step(1, 0, 100), op("aten::mm", 10, 50), event("cpu_op", "aten::mm", "78", 77, 30, 50)})))
          .front());
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
  const Trace trace = read_trace(file).front();
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
  EXPECT_DOUBLE_EQ(profile.steps[1].dt_ms, 0.1);   // as long as the CPU took for it
  // 20..40 and 55..110; means of two steps. Behind 150 nothing more is launched, so nobody can tell.
  EXPECT_NEAR(row_named(profile, "launch gap").time.self_ms, (0.02 + 0.055) / 2, 1e-9);
  EXPECT_NEAR(row_named(profile, "gap between kernels").time.self_ms, (0.005 + 0.01) / 2, 1e-9);
  EXPECT_EQ(kind_of(row_named(profile, "launch gap")), OperatorKind::idle);
  EXPECT_EQ(kind_of(row_named(profile, "void vectorized_elementwise_kernel<4>()")), OperatorKind::gelu);
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
  ranks.push_back(attribute(read_trace(packed).front()));
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
  const Trace trace = read_trace(file).front();
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

// One GPU's steps of 100 us each on stream 7, 60 us behind the CPU; stream 8 fetches data as soon as the CPU asks.
std::vector<std::string> steps_behind_the_cpu(int steps) {
  std::vector<std::string> events;
  for (int i = 0; i < steps; ++i) {
    const double at = 100.0 * i;
    events.push_back(cpu_step(i, at, 99));
    events.push_back(op("aten::mm", at + 1, 90));
    events.push_back(launch(10 * i + 1, at + 2));
    events.push_back(launch(10 * i + 2, at + 10));
    events.push_back(kernel("Memcpy HtoD", 8, 10 * i + 1, at + 4, 2));
    events.push_back(kernel("sgemm", 7, 10 * i + 2, at + 60, 95));
  }
  return events;
}

TEST_F(TraceTest, where_a_stream_runs_ahead_the_busiest_one_bounds_the_steps) {
  const TraceProfile profile = profile_of(trace_of(steps_behind_the_cpu(4)));
  ASSERT_EQ(profile.steps.size(), 4U);
  for (const TracedStep& step : profile.steps) EXPECT_NEAR(step.dt_ms, step.step == 3 ? 0.099 : 0.1, 1e-9) << step.step;
  EXPECT_TRUE(is_followed(profile.steps, 2));
  EXPECT_FALSE(is_followed(profile.steps, 3));
}

TEST_F(TraceTest, a_step_that_none_follows_is_no_longer_than_the_others) {
  std::vector<std::string> events{cpu_step(1, 0, 100),
                                  op("aten::mm", 0, 10),
                                  launch(1, 5),
                                  kernel("sgemm", 7, 1, 50, 20),
                                  cpu_step(2, 100, 100),
                                  launch(2, 105),
                                  kernel("sgemm", 7, 2, 150, 20),
                                  cpu_step(3, 200, 900),
                                  launch(3, 205),
                                  kernel("sgemm", 7, 3, 250, 20)};
  EXPECT_NEAR(profile_of(trace_of(events)).steps.back().dt_ms, 0.1, 1e-9) << "the CPU waited in its last step";
  events.resize(7);
  EXPECT_NEAR(profile_of(trace_of(events)).steps.back().dt_ms, 0.1, 1e-9);
  events.resize(4);
  EXPECT_NEAR(profile_of(trace_of(events)).steps.back().dt_ms, 0.05, 1e-9) << "one step: from its kernel to its end";
}

TEST_F(TraceTest, kernels_where_nothing_can_have_run_are_named_and_left_out) {
  const double day = 86'400e6, now = 1'615'207e6;
  for (const double stray : {0.0, now - day, now + day}) {
    std::vector<std::string> events;
    for (int i = 0; i < 3; ++i) {
      const double at = now + 10'000 * i;
      events.push_back(cpu_step(i, at, 10'000));
      events.push_back(launch(2 * i + 1, at + 100));
      events.push_back(launch(2 * i + 2, at + 200));
      events.push_back(kernel("sgemm", 7, 2 * i + 1, at + 300, 6'000));
      events.push_back(kernel("late_kernel", 7, 2 * i + 2, i == 2 ? stray : at + 6'400, 3'000));
    }
    const TraceProfile profile = profile_of(trace_of(events));
    ASSERT_EQ(profile.steps.size(), 3U);
    for (const TracedStep& step : profile.steps) EXPECT_NEAR(step.dt_ms, 10, 1e-6) << stray;
    ASSERT_EQ(profile.notes.size(), 1U);
    EXPECT_NE(profile.notes[0].find("1 kernel was left out"), std::string::npos) << profile.notes[0];
    EXPECT_NE(profile.notes[0].find("late_kernel"), std::string::npos);
  }
}

TEST_F(TraceTest, where_kernels_of_one_stream_overlap_the_later_one_has_the_time) {
  const TraceProfile profile =
      profile_of(trace_of({cpu_step(1, 0, 200), launch(1, 1), launch(2, 2), launch(3, 3), kernel("sgemm", 7, 1, 0, 100),
                           kernel("gelu_kernel", 7, 2, 90, 30), kernel("copy_kernel", 7, 3, 20, 10)}));
  EXPECT_NEAR(row_named(profile, "sgemm").time.self_ms, 0.08, 1e-9);  // without 20..30 and 90..100
  EXPECT_NEAR(row_named(profile, "gelu_kernel").time.self_ms, 0.03, 1e-9);
  EXPECT_NEAR(row_named(profile, "copy_kernel").time.self_ms, 0.01, 1e-9);
  ASSERT_EQ(profile.notes.size(), 1U);
  EXPECT_NE(profile.notes[0].find("overlap for 0.02 ms"), std::string::npos) << profile.notes[0];
}

TEST_F(TraceTest, a_copy_does_no_products_work) {
  const std::string shapes =
      R"("Input Dims": [[256], [128, 64], [64, 256]], "Input type": ["c10::BFloat16", "c10::BFloat16", "c10::BFloat16"])";
  const TraceProfile profile = profile_of(
      trace_of({cpu_step(1, 0, 100), op("aten::addmm", 0, 20, shapes), launch(1, 2), launch(2, 4),
                kernel("void direct_copy_kernel_cuda()", 7, 1, 20, 40), kernel("s16816gemm", 7, 2, 60, 30)}));
  EXPECT_EQ(row_named(profile, "s16816gemm").time.flops, 2.0 * 128 * 64 * 256);
  EXPECT_TRUE(is_missing(row_named(profile, "void direct_copy_kernel_cuda()").time.flops));
}

TEST_F(TraceTest, names_of_kernels_are_kept_whole) {
  const std::string name = "void cutlass::device_kernel<" + std::string(4'000, 'x') + "::flash>(int)";
  const TraceProfile profile = profile_of(trace_of({kernel(name, 7, 1, 0, 10)}));
  EXPECT_EQ(profile.operators.front().time.name, name);
  RunStore store = RunStore::in_memory();
  const TraceId id = store.traces().insert({.name = "t", .format = "kineto", .profile = profile});
  EXPECT_EQ(store.traces().find(id).value().profile.operators.front().time.name, name);
}

TEST_F(TraceTest, traces_of_other_profilers_name_what_is_missing) {
  EXPECT_NE(problem_of(R"({"traceEvents": [
      {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "/device:TPU:0"}},
      {"ph": "X", "pid": 1, "tid": 2, "ts": 1, "dur": 2, "name": "fusion.12", "args": {"hlo_op": "fusion.12"}}]})")
                .find("JAX"),
            std::string::npos);
  EXPECT_NE(problem_of(trace_of({event("cpu_op", "zeCommandQueueSynchronize", "7", 7, 0, 10),
                                 event("gpu_op", "gemm_kernel", "8", 8, 1, 5), event("gpu_op", "k", "8", 8, 7, 1)}))
                .find("gpu_op (2 events)"),
            std::string::npos);
  const TraceProfile profile = profile_of(trace_of({op("aten::mm", 0, 10), launch(1, 2)}));
  ASSERT_FALSE(profile.notes.empty());
  EXPECT_NE(profile.notes[0].find("1 launch of a GPU but none of its kernels"), std::string::npos) << profile.notes[0];
}

TEST_F(TraceTest, processes_of_an_nsight_export_are_ranks_and_graphs_are_work) {
  const std::filesystem::path file = folder / "ranks.sqlite";
  {
    Database database(file, Database::Mode::read_write);
    database.execute(R"sql(
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO StringIds VALUES (1, 'sm80_xmma_gemm_f32'), (2, 'aten::mm'), (3, 'aten::gelu');
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER,
  correlationId INTEGER, globalPid INTEGER, demangledName INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (20000, 60000, 1, 7, 1, 33554432, 1), (25000, 45000, 0, 7, 1, 50331648, 1);
CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER,
  correlationId INTEGER, globalPid INTEGER, graphId INTEGER, graphExecId INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (60000, 90000, 1, 7, 2, 33554432, 4, 5);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (11000, 12000, 33554440, 1), (11500, 12500, 50331650, 1),
  (11600, 12600, 67108865, 1);
CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, globalTid INTEGER, text TEXT, textId INTEGER);
INSERT INTO NVTX_EVENTS VALUES (10500, 12800, 59, 33554440, NULL, 2), (10500, 12800, 59, 50331650, NULL, 3),
  (0, 12800, 59, 67108865, 'other process', NULL);
)sql");
  }
  const std::vector<Trace> traces = read_trace(file);
  ASSERT_EQ(traces.size(), 2U);
  const TraceProfile first = attribute(traces[0]), second = attribute(traces[1]);  // by their GPUs
  EXPECT_EQ(row_named(first, "sm80_xmma_gemm_f32").launcher, "aten::gelu");
  EXPECT_NEAR(row_named(first, "sm80_xmma_gemm_f32").time.self_ms, 0.02, 1e-9);
  EXPECT_EQ(row_named(second, "sm80_xmma_gemm_f32").launcher, "aten::mm");
  EXPECT_NEAR(row_named(second, "CUDA graph 4").time.self_ms, 0.03, 1e-9);
  EXPECT_EQ(kind_of(row_named(second, "CUDA graph 4")), OperatorKind::graph);
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
  EXPECT_DOUBLE_EQ(KindTimes(profile).of(OperatorKind::gelu), 0.06);
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
