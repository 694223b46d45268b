#include "engine/stage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

namespace stepladder {
namespace {

DeviceReport machine_with(int major, int minor) {
  DeviceReport report;
  report.gpus.push_back({.name = "Some GPU", .compute_major = major, .compute_minor = minor, .memory_bytes = 1});
  return report;
}

TEST(Stages, EveryOneIsComplete) {
  std::set<std::string> ids;
  for (const Stage& stage : all_stages()) {
    EXPECT_TRUE(ids.insert(stage.id).second) << stage.id << " is there twice";
    EXPECT_EQ(stage.id.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"), std::string::npos) << stage.id;
    EXPECT_FALSE(stage.title.empty()) << stage.id;
    EXPECT_TRUE(stage.why.ends_with('.')) << stage.id;
    ASSERT_TRUE(stage.apply) << stage.id;
    ASSERT_TRUE(stage.is_on) << stage.id;
    ASSERT_TRUE(stage.unavailable) << stage.id;
    EXPECT_EQ(&stage_by_id(stage.id), &stage);
  }
}

TEST(Stages, EveryOneStatesItsLaw) {
  for (const Stage& stage : all_stages()) {
    const StageLaw& law = stage.known.law;
    EXPECT_TRUE(law.is_stated()) << stage.id << " says nothing of what it does to a step (known.law)";
    for (const LawTerm& term : law.terms) {
      EXPECT_FALSE(term.why.empty()) << stage.id;
      EXPECT_TRUE(term.device.empty() || term.device == "cpu" || term.device == "cuda") << stage.id;
    }
    // What changes a row is a number or a bound; a vanished row is always a bound.
    for (const LawTerm& term : law.terms) EXPECT_TRUE(term.at_most || term.rule != LawRule::vanishes) << stage.id;
  }
}

TEST(Stages, TheFirstIsTheBaselineAndEveryOtherChangesItAndIsUndone) {
  Recipe baseline;
  ASSERT_EQ(all_stages().front().id, "baseline");
  all_stages().front().apply(baseline);
  EXPECT_EQ(baseline, Recipe{});
  for (std::size_t i = 1; i < all_stages().size(); ++i) {
    const Stage& stage = all_stages()[i];
    Recipe changed = baseline;
    stage.apply(changed);
    EXPECT_NE(difference(baseline, changed), "") << stage.id;
    EXPECT_FALSE(stage.is_on(baseline)) << stage.id;
    EXPECT_TRUE(stage.is_on(changed)) << stage.id;
    EXPECT_NO_THROW(validate(changed));
    EXPECT_EQ(changed.tokens_per_step(), baseline.tokens_per_step()) << stage.id;
    stage.undo(changed);
    if (stage.id == "grad-accumulation") continue;  // recipes may start with a batch in pieces
    EXPECT_EQ(changed, baseline) << "nothing undoes " << stage.id;
  }
}

std::string content(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

// A stage's file lists the words by which other people's logs name it.
TEST(Stages, EveryOneIsFoundByItsOwnWords) {
  ASSERT_EQ(known_stages().size(), all_stages().size());
  for (const KnownStage& known : known_stages()) {
    const auto named = [](std::string words) {
      std::replace(words.begin(), words.end(), '+', ' ');
      return known_stage({.title = "and then " + words, .source = "imported"}, known_stages());
    };
    for (const std::string& words : known.words) EXPECT_EQ(named(words), known.id) << words;
    EXPECT_EQ(known_stage({.stage = known.id, .source = "imported"}, known_stages()), known.id);
    EXPECT_EQ(known.words.empty(), known.id == "bf16-matmul") << "no log of others names that one: " << known.id;
  }
  const std::vector<KnownStage> one_more{{.id = "quantum-cache", .words = {"quantum"}}};
  EXPECT_EQ(known_stage({.title = "Quantum caching", .source = "imported"}, one_more), "quantum-cache");
  EXPECT_EQ(known_stage({.title = "Flash attention", .source = "imported"}, one_more), "");
}

// A stage is one file and one line: its id in another place would be a second list.
TEST(Stages, NoOtherFileOfStorageOrTrainerNamesOne) {
  const std::filesystem::path root(STEPLADDER_SOURCE_DIR);
  int files = 0;
  for (const char* folder : {"storage", "engine/trainer"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder)) {
      if (entry.path().extension() != ".cpp" && entry.path().extension() != ".h") continue;
      ++files;
      std::istringstream lines(content(entry.path()));
      for (std::string line; std::getline(lines, line);) {
        const std::string code = line.substr(0, line.find("//"));
        for (const Stage& stage : all_stages()) {
          // Ids of one word are also names of precisions and of recipe values.
          if (stage.id.find('-') == std::string::npos) continue;
          EXPECT_EQ(code.find('"' + stage.id + '"'), std::string::npos) << entry.path() << ": " << line;
        }
      }
    }
  }
  EXPECT_GT(files, 100);
}

TEST(Stages, UnknownIdNamesTheNearest) {
  try {
    stage_by_id("flash-atention");
    FAIL();
  } catch (const RecipeError& error) {
    EXPECT_STREQ(error.what(), "--stage: \"flash-atention\" is unknown; did you mean flash-attention?");
  }
}

TEST(Stages, AvailabilityByDevice) {
  const Stage& tf32 = stage_by_id("tf32");
  const Stage& bf16 = stage_by_id("bf16");
  EXPECT_NE(tf32.unavailable(Recipe{}, DeviceReport{}, "cpu"), "");
  EXPECT_NE(tf32.unavailable(Recipe{}, DeviceReport{}, "cuda"), "");
  EXPECT_EQ(tf32.unavailable(Recipe{}, machine_with(8, 0), "cuda"), "");
  EXPECT_EQ(tf32.unavailable(Recipe{}, machine_with(7, 5), "cuda"),
            "needs compute capability 8.0 (Ampere) or newer; Some GPU has 7.5");
  EXPECT_EQ(bf16.unavailable(Recipe{}, DeviceReport{}, "cpu"), "");
  EXPECT_NE(bf16.unavailable(Recipe{}, DeviceReport{}, "mps"), "");
  EXPECT_NE(bf16.unavailable(Recipe{}, machine_with(7, 0), "cuda"), "");
  for (const char* id : {"baseline", "flash-attention", "fused-adamw"}) {
    EXPECT_EQ(stage_by_id(id).unavailable(Recipe{}, DeviceReport{}, "cpu"), "") << id;
  }
}

TEST(Stages, CompileCapturesOnAGpuWhatOneProcessDoes) {
  const Stage& compile = stage_by_id("compile");
  DeviceReport report;
  report.step_capture_note = "built without CUDA's headers";
  EXPECT_EQ(compile.unavailable(Recipe{.nproc = 2}, report, "cpu"), "");
  EXPECT_EQ(compile.unavailable(Recipe{}, report, "cuda"), "no usable NVIDIA GPU");
  EXPECT_EQ(compile.unavailable(Recipe{}, report, "mps"), "made for CPUs and NVIDIA GPUs, and this run is on mps");
  report = machine_with(7, 0);
  EXPECT_EQ(compile.unavailable(Recipe{}, report, "cuda"), "");
  EXPECT_EQ(compile.unavailable(Recipe{.nproc = 2}, report, "cuda").for_command_line(),
            "a captured step cannot exchange gradients with other processes (--nproc)");
  report.step_capture_note = "built without CUDA's headers";
  EXPECT_EQ(compile.unavailable(Recipe{}, report, "cuda"), "built without CUDA's headers");
}

TEST(Stages, CompileMaxPlansWhatACpuOrAGpuDoes) {
  const Stage& planned = stage_by_id("compile-max");
  EXPECT_EQ(planned.unavailable(Recipe{.nproc = 2}, DeviceReport{}, "cpu"), "");
  EXPECT_EQ(planned.unavailable(Recipe{}, machine_with(9, 0), "mps"),
            "the plan is made for CPUs and NVIDIA GPUs, and this run is on mps");
  EXPECT_EQ(planned.unavailable(Recipe{}, DeviceReport{}, "cuda"), "no usable NVIDIA GPU");
  EXPECT_EQ(planned.unavailable(Recipe{}, machine_with(9, 0), "cuda"), "");
  EXPECT_EQ(planned.unavailable(Recipe{.d_model = 4224}, machine_with(9, 0), "cuda").for_command_line(),
            "the kernels take models of at most 4,096 columns (--d-model)");
  EXPECT_EQ(planned.unavailable(Recipe{.nproc = 2}, machine_with(9, 0), "cuda").for_command_line(),
            "a captured step cannot exchange gradients with other processes (--nproc)");
  DeviceReport without = machine_with(9, 0);
  without.step_capture_note = "built without CUDA's headers";
  EXPECT_EQ(planned.unavailable(Recipe{}, without, "cuda"), "built without CUDA's headers");
  DeviceReport no_compiler = machine_with(9, 0);
  no_compiler.gpu_kernels_note = "NVRTC is missing";
  EXPECT_EQ(planned.unavailable(Recipe{}, no_compiler, "cuda"), "NVRTC is missing");
  EXPECT_EQ(planned.unavailable(Recipe{}, no_compiler, "cpu"), "");
  EXPECT_EQ(stage_by_id("compile").unavailable(Recipe{}, no_compiler, "cuda"), "");
  const Recipe rounded{.matmul = MatmulPrecision::bf16};
  EXPECT_EQ(planned.unavailable(rounded, DeviceReport{}, "cpu"),
            "the plan has no bf16 inside float32 products (bf16-matmul); use it with bf16, or with neither");
  EXPECT_EQ(planned.unavailable({.matmul = MatmulPrecision::bf16, .autocast = Autocast::bf16}, DeviceReport{}, "cpu"),
            "");
}

TEST(Stages, DataParallelNeedsTwoOfWhatItRunsOn) {
  const Stage& ddp = stage_by_id("ddp");
  DeviceReport report;
  report.cpu_cores = 1;
  EXPECT_EQ(ddp.unavailable(Recipe{}, report, "cpu"), "needs two CPU cores");
  report.cpu_cores = 2;
  EXPECT_EQ(ddp.unavailable(Recipe{}, report, "cpu"), "");
  report.process_groups_note = "built without";
  EXPECT_EQ(ddp.unavailable(Recipe{}, report, "cpu"), "built without");
  DeviceReport gpus = machine_with(9, 0);
  EXPECT_EQ(ddp.unavailable(Recipe{}, gpus, "cuda"), "needs two GPUs");
  gpus.gpus.push_back(gpus.gpus.front());
  EXPECT_EQ(ddp.unavailable(Recipe{}, gpus, "cuda"), "");
  gpus.gpu_process_groups_note = "built without NCCL";
  EXPECT_EQ(ddp.unavailable(Recipe{}, gpus, "cuda"), "built without NCCL");
  EXPECT_EQ(ddp.unavailable(Recipe{.compile = Compile::on}, gpus, "cuda"),
            "a captured step (compile) cannot exchange gradients");
  EXPECT_NE(ddp.unavailable(Recipe{}, DeviceReport{}, "mps"), "");
}

}  // namespace
}  // namespace stepladder
