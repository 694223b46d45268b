// A step by parts of the model: by names, by the order of operators, and by the numbers of backward functions.
#include <gtest/gtest.h>

#include <fstream>

#include "storage/database/run_store.h"
#include "storage/database/traces/trace_details.h"
#include "storage/traces/slice_reader.h"
#include "storage/traces/trace_file.h"
#include "storage/traces/traced_process.h"
#include "tests/storage/temporary_folder.h"
#include "tests/storage/traces/trace_text.h"

namespace stepladder {
namespace {

TracedProcess process_of(const std::vector<std::string>& events) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder / "trace.json";
  std::ofstream(file, std::ios::binary) << trace_of(events);
  return attribute_all(read_trace(file).front());
}

double ms_of(const Anatomy& anatomy, StepPhase phase, ModelPart part, int block, KnownBy known_by) {
  double sum = 0;
  for (const AnatomyRow& row : anatomy) {
    if (row.phase == phase && row.part == part && row.block == block && row.known_by == known_by) sum += row.ms;
  }
  return sum;
}

double sum_of(const Anatomy& anatomy) {
  double sum = 0;
  for (const AnatomyRow& row : anatomy) sum += row.ms;
  return sum;
}

std::string numbered(int sequence) {
  return R"("Sequence number": )" + std::to_string(sequence);
}

// A forward pass of two blocks without any name, 10 us an operator, and the backward of some of them.
std::vector<std::string> unnamed_step() {
  std::vector<std::string> events{cpu_step(1, 0, 300)};
  int at = 0;
  const auto add = [&](const std::string& name) {
    events.push_back(op(name, at, 10, numbered(at / 10)));
    at += 10;
  };
  for (const char* name : {"aten::embedding", "aten::embedding", "aten::add"}) add(name);  // 0 to 30
  for (int block = 0; block < 2; ++block) {                                                // 30 to 110, 110 to 190
    for (const char* name : {"aten::layer_norm", "aten::linear", "aten::scaled_dot_product_attention", "aten::linear",
                             "aten::layer_norm", "aten::linear", "aten::gelu", "aten::linear"})
      add(name);
  }
  for (const char* name : {"aten::layer_norm", "aten::linear", "aten::cross_entropy_loss"}) add(name);  // 190 to 220
  const auto backward = [&](int sequence) {
    events.push_back(op("autograd::engine::evaluate_function: X", at, 10, numbered(sequence)));
    events.push_back(op("aten::mm", at + 2, 8));
    at += 10;
  };
  for (const int sequence : {21, 20, 13, 16}) backward(sequence);  // loss, head, attention and MLP of block 1
  return events;
}

TEST(Anatomy, the_order_of_operators_tells_the_parts_where_names_do_not) {
  const TracedProcess process = process_of(unnamed_step());
  const Anatomy& anatomy = process.anatomy;
  const auto forward = [&](ModelPart part, int block) {
    return ms_of(anatomy, StepPhase::forward, part, block, KnownBy::order);
  };
  EXPECT_NEAR(forward(ModelPart::embedding, -1), 0.03, 1e-9);
  EXPECT_NEAR(forward(ModelPart::attention, 0), 0.04, 1e-9);
  EXPECT_NEAR(forward(ModelPart::mlp, 0), 0.04, 1e-9);
  EXPECT_NEAR(forward(ModelPart::attention, 1), 0.04, 1e-9);
  EXPECT_NEAR(forward(ModelPart::mlp, 1), 0.04, 1e-9);
  EXPECT_NEAR(forward(ModelPart::head, -1), 0.02, 1e-9);
  EXPECT_NEAR(forward(ModelPart::loss, -1), 0.01, 1e-9);
  for (const auto& [part, block] : std::vector<std::pair<ModelPart, int>>{
           {ModelPart::loss, -1}, {ModelPart::head, -1}, {ModelPart::attention, 1}, {ModelPart::mlp, 1}})
    EXPECT_NEAR(ms_of(anatomy, StepPhase::backward, part, block, KnownBy::order), 0.01, 1e-9) << to_string(part);
  EXPECT_NEAR(sum_of(anatomy), 0.3, 1e-9) << "the rows add up to the step";
  EXPECT_EQ(block_count(anatomy), 2);
  EXPECT_EQ(by_part(anatomy).front().part, ModelPart::embedding);
  EXPECT_NE(certainty_of(anatomy, false).find("100 % is guessed from the order"), std::string::npos)
      << certainty_of(anatomy, false);
}

TEST(Anatomy, names_of_ranges_and_modules_count_before_the_order) {
  const auto module = [](const std::string& name, double start, double duration) {
    return event("python_function", "nn.Module: " + name, "77", 77, start, duration);
  };
  const auto range = [](const std::string& name, double start, double duration) {
    return event("user_annotation", name, "77", 77, start, duration);
  };
  const TracedProcess process = process_of({
      cpu_step(1, 0, 100),
      range("data", 0, 10),
      op("aten::randint", 0, 10),
      module("GPT_0", 10, 60),
      module("Block_7", 10, 30),
      module("CausalSelfAttention_7", 10, 20),
      module("Linear_3", 10, 10),
      op("aten::linear", 10, 10, numbered(4)),
      op("aten::softmax", 20, 10),
      module("MLP_7", 30, 10),
      op("aten::linear", 30, 10),
      module("Linear_99", 40, 10),  // outside the blocks: the head
      op("aten::linear", 40, 10),
      range("layers.2.mlp", 50, 20),
      op("aten::gelu", 50, 20),
      op("autograd::engine::evaluate_function: AddmmBackward0", 70, 10, numbered(4)),
      range("Optimizer.step#AdamW.step", 80, 20),
      op("aten::mul_", 80, 20),
  });
  const auto forward = [&](ModelPart part, int block) {
    return ms_of(process.anatomy, StepPhase::forward, part, block, KnownBy::name);
  };
  EXPECT_NEAR(forward(ModelPart::attention, 7), 0.02, 1e-9);
  EXPECT_NEAR(forward(ModelPart::mlp, 7), 0.01, 1e-9);
  EXPECT_NEAR(forward(ModelPart::head, -1), 0.01, 1e-9);
  EXPECT_NEAR(forward(ModelPart::mlp, 2), 0.02, 1e-9);
  EXPECT_NEAR(ms_of(process.anatomy, StepPhase::backward, ModelPart::attention, 7, KnownBy::name), 0.01, 1e-9);
  EXPECT_NEAR(ms_of(process.anatomy, StepPhase::data, ModelPart::unknown, -1, KnownBy::nothing), 0.01, 1e-9);
  EXPECT_NEAR(ms_of(process.anatomy, StepPhase::optimizer, ModelPart::unknown, -1, KnownBy::nothing), 0.02, 1e-9);
  EXPECT_NEAR(sum_of(process.anatomy), 0.1, 1e-9);
}

TEST(Anatomy, a_kernel_belongs_where_it_was_launched_and_nothing_is_made_up) {
  const TracedProcess process = process_of({
      cpu_step(1, 0, 100),
      event("user_annotation", "h.0.attn", "77", 77, 0, 20),
      op("aten::mm", 5, 10),
      launch(1, 6),
      op("aten::mm", 30, 10),
      launch(2, 31),
      kernel("sgemm", 7, 1, 10, 30),
      kernel("sgemm", 7, 2, 60, 40),
      kernel("ncclDevKernel_AllReduce", 9, 0, 100, 10),
  });
  const Anatomy& anatomy = process.anatomy;
  EXPECT_NEAR(ms_of(anatomy, StepPhase::forward, ModelPart::attention, 0, KnownBy::name), 0.03, 1e-9);
  EXPECT_NEAR(ms_of(anatomy, StepPhase::forward, ModelPart::unknown, -1, KnownBy::nothing), 0.04, 1e-9);
  EXPECT_NEAR(sum_of(anatomy), process.profile.steps.front().dt_ms, 1e-9);
  EXPECT_GT(ms_of(anatomy, StepPhase::idle, ModelPart::unknown, -1, KnownBy::nothing), 0);
  EXPECT_EQ(by_part(anatomy).back().phase, StepPhase::idle);
}

TEST(Anatomy, slices_of_the_first_median_and_last_step_are_kept_and_read_back) {
  std::vector<std::string> events;
  const std::vector<double> lengths{50, 10, 30, 20, 40, 60, 25, 70, 15, 80, 12};
  double at = 1000;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    events.push_back(cpu_step(static_cast<int>(i), at, lengths[i]));
    events.push_back(op("aten::linear", at, 8));
    events.push_back(op("aten::addmm", at + 1, 6));
    events.push_back(op("aten::gelu", at + 8, 2));
    at += lengths[i];
  }
  const TracedProcess process = process_of(events);
  EXPECT_EQ(steps_to_keep(std::vector<TracedStep>(10)).size(), 10U);  // a few are kept whole
  ASSERT_EQ(process.kept.size(), 3U);                                 // 0, 2 (30 us is the median) and 10
  EXPECT_EQ(process.kept[1].step, 2);
  EXPECT_EQ(process.kept[1].slices, 4);

  RunStore store = RunStore::in_memory();
  const TraceId id = keep_trace(store.traces(), {.name = "t", .format = "kineto"}, process);
  TraceDetails details = store.traces().details();
  EXPECT_EQ(details.steps(id), (std::vector<KeptStepName>{{0, 0, 4}, {0, 2, 4}, {0, 10, 4}}));
  const StepSlices step = details.slices(id, 0, 2);
  EXPECT_EQ(step.length_ns, 30'000);
  ASSERT_EQ(step.rows.size(), 3U);  // the step, the operators, what they called
  EXPECT_EQ(step.names[step.rows[0].slices[0].name], "ProfilerStep#2");
  ASSERT_EQ(step.rows[1].slices.size(), 2U);
  EXPECT_EQ(step.names[step.rows[1].slices[1].name], "aten::gelu");
  EXPECT_EQ(step.rows[1].slices[1].start_ns, 8'000);
  EXPECT_EQ(step.rows[1].slices[1].kind, OperatorKind::gelu);
  EXPECT_EQ(step.rows[2].slices[0].duration_ns, 6'000);
  EXPECT_EQ(step.rows[2].slices[0].kind, OperatorKind::products);
  const Anatomy read = details.anatomy(id);
  ASSERT_EQ(read.size(), process.anatomy.size());
  EXPECT_EQ(read.front().phase, process.anatomy.front().phase);
  EXPECT_DOUBLE_EQ(sum_of(read), sum_of(process.anatomy));
  EXPECT_THROW(details.slices(id, 0, 1), StorageError);
  store.traces().remove(id);
  EXPECT_TRUE(details.steps(id).empty());
  EXPECT_TRUE(details.anatomy(id).empty());
}

TEST(Anatomy, damaged_slices_are_refused_in_bounded_memory) {
  StepSlices step{.length_ns = 1000, .names = {"a", "b"}, .lanes = {{"thread 1", false}}};
  step.rows.push_back({.lane = 0, .depth = 0, .slices = {}});
  for (int i = 0; i < 1000; ++i)
    step.rows[0].slices.push_back({.start_ns = i, .duration_ns = 1, .name = static_cast<std::uint32_t>(i % 2)});
  const std::string packed = pack(step).packed;
  EXPECT_EQ(slice_count(unpack(packed)), 1000);
  EXPECT_LT(packed.size(), 1000U);
  for (std::size_t i = 0; i < packed.size(); ++i) {
    std::string damaged = packed;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x15);
    try {
      unpack(damaged);
    } catch (const TraceError&) {
    }
    try {
      unpack(packed.substr(0, i));
      ADD_FAILURE() << "cut off at " << i;
    } catch (const TraceError&) {
    }
  }
  step.rows[0].slices[5].start_ns = 3;  // overlaps the one before
  EXPECT_THROW(unpack(pack(step).packed), TraceError);
}

TEST(Anatomy, streams_are_above_threads_in_a_read_step) {
  const StepSlices step{.length_ns = 100,
                        .names = {"a"},
                        .lanes = {{"thread 1", false}, {"stream 7", true}, {"thread 2", false}, {"stream 9", true}},
                        .rows = {{.lane = 0, .depth = 0, .slices = {{.start_ns = 0, .duration_ns = 1}}},
                                 {.lane = 0, .depth = 1, .slices = {{.start_ns = 0, .duration_ns = 2}}},
                                 {.lane = 1, .depth = 0, .slices = {{.start_ns = 0, .duration_ns = 3}}},
                                 {.lane = 2, .depth = 0, .slices = {{.start_ns = 0, .duration_ns = 4}}},
                                 {.lane = 3, .depth = 0, .slices = {{.start_ns = 0, .duration_ns = 5}}}}};
  const StepSlices read = unpack(pack(step).packed);
  std::vector<std::string> rows;
  for (const SliceRow& row : read.rows)
    rows.push_back(read.lanes[row.lane].title + ", " + std::to_string(row.depth) + ": " +
                   std::to_string(row.slices.front().duration_ns));
  const std::vector<std::string> expected{"stream 7, 0: 3", "stream 9, 0: 5", "thread 1, 0: 1", "thread 1, 1: 2",
                                          "thread 2, 0: 4"};
  EXPECT_EQ(rows, expected);
  EXPECT_TRUE(read.lanes[0].on_gpu);
  EXPECT_TRUE(std::is_sorted(read.rows.begin(), read.rows.end(),
                             [](const SliceRow& a, const SliceRow& b) { return a.lane < b.lane; }));
}

TEST(Anatomy, of_compiled_graphs_says_why_no_part_is_known) {
  const Anatomy graphs{{.phase = StepPhase::forward, .ms = 3}, {.phase = StepPhase::backward, .ms = 6}};
  EXPECT_EQ(title_of(graphs[0], graphs), "forward") << "there is no other part of which it could be the rest";
  EXPECT_NE(certainty_of(graphs, true).find("torch.compile made graphs"), std::string::npos);
  EXPECT_NE(certainty_of(graphs, false).find("record_function"), std::string::npos);
  Anatomy partly = graphs;
  partly.push_back({.phase = StepPhase::forward, .part = ModelPart::head, .known_by = KnownBy::name, .ms = 1});
  EXPECT_EQ(title_of(partly[0], partly), "rest of forward");
  EXPECT_EQ(title_of(partly[1], partly), "backward");
  EXPECT_NE(certainty_of(partly, true).find("90 % isn't known, since torch.compile's graphs"), std::string::npos)
      << certainty_of(partly, true);
  EXPECT_TRUE(is_compiled("## Call CompiledFxGraph abc ##"));
  EXPECT_TRUE(is_compiled("triton_poi_fused_gelu_3"));
  EXPECT_FALSE(is_compiled("aten::gelu"));
}

}  // namespace
}  // namespace stepladder
