#include "storage/analysis/file_grouping.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "storage/analysis/summary.h"

namespace stepladder {
namespace {

struct File {
  Run run;
  Summary summary;
};

File file(double dt_ms, double scatter = 0.02, std::string recipe = "{}") {
  File it;
  it.run.tokens_per_step = 4096;
  it.run.hardware = "NVIDIA A100";
  it.run.recipe = std::move(recipe);
  it.summary.steps = 100;
  it.summary.warmup_steps = 10;
  it.summary.dt_ms_median = dt_ms;
  it.summary.dt_ms_p25 = dt_ms * (1 - scatter / 2);
  it.summary.dt_ms_p75 = dt_ms * (1 + scatter / 2);
  return it;
}

FileGrouping grouped(const std::vector<File>& files) {
  std::vector<FileRun> runs;
  for (const File& it : files) runs.push_back({&it.run, &it.summary});
  return group_files(runs);
}

TEST(FileGrouping, seeds_of_one_script_are_repeats) {
  const FileGrouping decision = grouped({file(100, 0.01, R"({"seed":1,"lr":0.1,"out_dir":"a"})"),
                                         file(101.5, 0.01, R"({"seed":2,"lr":0.1,"out_dir":"b"})"),
                                         file(99, 0.01, R"({"seed":3,"lr":0.1,"out_dir":"c"})")});
  EXPECT_EQ(decision.files, FilesAre::repeats);
  EXPECT_NE(decision.reason.find("99 to 101.5 ms"), std::string::npos) << decision.reason;
}

TEST(FileGrouping, step_times_far_apart_make_rungs) {
  const FileGrouping decision = grouped({file(100), file(67)});
  EXPECT_EQ(decision.files, FilesAre::rungs);
  EXPECT_NE(decision.reason.find("67 to 100 ms"), std::string::npos) << decision.reason;
}

TEST(FileGrouping, one_printed_configuration_and_a_slow_file_are_repeats) {
  const std::string recipe = R"({"lr":0.001})";
  const FileGrouping decision = grouped({file(108, 0.01, recipe), file(100, 0.01, recipe), file(100, 0.01, recipe)});
  EXPECT_EQ(decision.files, FilesAre::repeats) << decision.reason;
  EXPECT_EQ(grouped({file(160, 0.01, recipe), file(100, 0.01, recipe)}).files, FilesAre::rungs) << "another program";
  const FileGrouping mixed = grouped({file(101, 0.02, recipe), file(100), file(100)});
  EXPECT_EQ(mixed.reason.find("the files name no difference, but 2 of 3 print no configuration"), 0U) << mixed.reason;
}

TEST(FileGrouping, phases_of_one_training_are_apart) {
  std::vector<File> files{file(100), file(67)};
  files[0].summary.loss_first = 11.1;
  files[1].summary.loss_first = 1.3;
  EXPECT_EQ(grouped(files).files, FilesAre::apart);
  files[1].summary.loss_first = 9;
  EXPECT_EQ(grouped(files).files, FilesAre::rungs) << "another initialisation";
}

TEST(FileGrouping, step_times_within_the_scatter_are_repeats) {
  EXPECT_EQ(grouped({file(100, 0.1), file(115, 0.1)}).files, FilesAre::repeats);
  EXPECT_EQ(grouped({file(100, 0.02), file(115, 0.02)}).files, FilesAre::rungs);
  EXPECT_EQ(grouped({file(100, 0), file(104, 0)}).files, FilesAre::repeats) << "seeds differ by a few percent";
}

TEST(FileGrouping, files_of_few_steps_must_differ_more) {
  std::vector<File> files{file(100, 0), file(115, 0)};
  for (File& it : files) it.summary.steps = 12;
  EXPECT_EQ(grouped(files).files, FilesAre::repeats);
  files[1] = file(67, 0);
  files[1].summary.steps = 12;
  EXPECT_EQ(grouped(files).files, FilesAre::rungs);
}

TEST(FileGrouping, one_slow_file_among_many_is_a_repeat_too) {
  std::vector<File> files(20, file(100, 0.01));
  files.push_back(file(130, 0.01));
  const FileGrouping decision = grouped(files);
  EXPECT_EQ(decision.files, FilesAre::repeats);
  EXPECT_NE(decision.reason.find("1 of 21"), std::string::npos) << decision.reason;
}

TEST(FileGrouping, what_differs_is_named) {
  std::vector<File> files{file(100), file(100), file(100)};
  files[1].run.hardware = "NVIDIA H100";
  EXPECT_EQ(grouped(files).files, FilesAre::rungs);
  EXPECT_EQ(grouped(files).reason, "the hardware differs: NVIDIA A100, NVIDIA H100");
  files = {file(100, 0, R"({"optim":{"name":"x"},"lr":0.1})"), file(100, 0, R"({"lr":0.2})")};
  EXPECT_EQ(grouped(files).reason, "lr differs: 0.1, 0.2");
  files = {file(100), file(100)};
  files[1].run.precision = "bf16";
  EXPECT_EQ(grouped(files).files, FilesAre::repeats) << "what only one file names isn't a difference";
  files[0].run.precision = "fp32";
  EXPECT_EQ(grouped(files).reason, "the precision differs: bf16, fp32");
  files = {file(100), file(100)};
  files[0].run.environment = R"({"source_hash":"a"})";
  files[1].run.environment = R"({"source_hash":"b"})";
  EXPECT_EQ(grouped(files).reason, "the source code differs");
  files = {file(100), file(100)};
  files[1].run.params = 124'000'000;
  files[0].run.params = 350'000'000;
  EXPECT_EQ(grouped(files).files, FilesAre::rungs);
  files = {file(100), file(100)};
  files[1].run.tokens_per_step = 8192;
  EXPECT_EQ(grouped(files).files, FilesAre::rungs);
  files[1].run.tokens_per_step = 4100;
  EXPECT_EQ(grouped(files).files, FilesAre::repeats) << "inferred from rounded figures";
}

TEST(FileGrouping, a_logs_heading_is_a_stage_and_a_trackers_name_is_not) {
  std::vector<File> files{file(100, 0, R"({"log_family":"nanogpt"})"), file(100, 0, R"({"log_family":"nanogpt"})")};
  files[0].run.stage = "baseline";
  files[1].run.stage = "bf16";
  EXPECT_EQ(grouped(files).files, FilesAre::rungs);
  for (File& it : files) it.run.recipe = R"({"lr":0.1})";
  EXPECT_EQ(grouped(files).files, FilesAre::repeats);
}

TEST(FileGrouping, the_same_configuration_but_the_seed_is_a_rung_of_a_sweep) {
  std::vector<File> files;
  for (const char* lr : {"0.1", "0.2"})
    for (const char* batch : {"8", "16"})
      for (const char* seed : {"1", "2"})
        files.push_back(
            file(100, 0, std::string(R"({"lr":)") + lr + R"(,"batch":)" + batch + R"(,"seed":)" + seed + "}"));
  const FileGrouping decision = grouped(files);
  EXPECT_EQ(decision.files, FilesAre::rungs);
  EXPECT_TRUE(decision.is_sweep);
  EXPECT_EQ(decision.rung, (std::vector<int>{0, 0, 2, 2, 1, 1, 3, 3})) << "by value, numbers by size";
  EXPECT_EQ(decision.titles,
            (std::vector<std::string>{"batch 8, lr 0.1", "batch 8, lr 0.2", "batch 16, lr 0.1", "batch 16, lr 0.2"}));
  EXPECT_NE(decision.reason.find("a sweep over batch, lr"), std::string::npos) << decision.reason;
}

TEST(FileGrouping, a_sweep_has_the_same_order_however_its_files_come) {
  std::vector<File> files;
  for (const char* lr : {"0.1", "0.0001", "0.01", "1e-3"})
    files.push_back(file(100, 0, std::string(R"({"lr":)") + lr + R"(,"schedule":"cosine"})"));
  const std::vector<std::string> titles = grouped(files).titles;
  EXPECT_EQ(titles, (std::vector<std::string>{"lr 0.0001", "lr 0.001", "lr 0.01", "lr 0.1"}));
  std::ranges::reverse(files);
  EXPECT_EQ(grouped(files).titles, titles);
}

TEST(FileGrouping, an_imported_sweep_is_known_by_what_its_rungs_are_named_after) {
  std::vector<File> files;
  for (const char* lr : {"0.1", "0.2"}) files.push_back(file(100, 0, std::string(R"({"batch":8,"lr":)") + lr + "}"));
  const auto swept = [&] {
    std::vector<const stepladder::Run*> runs;
    for (const File& it : files) runs.push_back(&it.run);
    return swept_settings(runs);
  };
  EXPECT_TRUE(swept().empty()) << "no titles";
  for (std::size_t i = 0; i < files.size(); ++i) files[i].run.title = grouped(files).titles[i];
  EXPECT_EQ(swept(), (std::vector<std::string>{"lr"}));
  files[1].run.title = "my own name";
  EXPECT_TRUE(swept().empty());
  files[1].run.title = "lr 0.2";
  files[1].run.precision = "bf16";
  files[0].run.precision = "fp32";
  EXPECT_TRUE(swept().empty()) << "more differs than the settings";
}

TEST(FileGrouping, what_differs_names_the_rungs_unless_their_files_do) {
  std::vector<File> files{file(100), file(100), file(100), file(100)};
  for (std::size_t i = 0; i < files.size(); ++i) files[i].run.precision = i < 2 ? "fp32" : "bf16";
  EXPECT_EQ(grouped(files).rung, (std::vector<int>{0, 0, 1, 1}));
  EXPECT_EQ(grouped(files).titles, (std::vector<std::string>{"precision fp32", "precision bf16"}));
  for (File& it : files) it.run.environment = "{\"source_hash\":\"" + it.run.precision + "\"}";
  EXPECT_TRUE(grouped(files).titles.empty());
}

TEST(FileGrouping, logs_of_different_programs_are_apart) {
  const std::vector<File> files{file(100, 0, R"({"log_family":"nanogpt"})"), file(100, 0, R"({"log_family":"llm.c"})")};
  EXPECT_EQ(grouped(files).files, FilesAre::apart);
}

TEST(FileGrouping, named_runs_without_a_configuration_are_no_repeats) {
  std::vector<File> files{file(100, 0), file(100, 0)};
  for (File& it : files) it.run.recipe.clear();
  std::vector<FileRun> runs;
  for (const File& it : files) runs.push_back({&it.run, &it.summary, true});
  EXPECT_EQ(group_files(runs).files, FilesAre::rungs);
  for (File& it : files) it.run.recipe = R"({"lr":0.1})";
  EXPECT_EQ(group_files(runs).files, FilesAre::repeats);
}

TEST(FileGrouping, where_nothing_is_known_files_are_repeats) {
  const FileGrouping decision = grouped({File{}, File{}});
  EXPECT_EQ(decision.files, FilesAre::repeats);
  EXPECT_FALSE(decision.reason.empty());
}

}  // namespace
}  // namespace stepladder
