// Runs that are saved, resumed and started from files.
#include "engine/trainer/checkpoint.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "engine/files/run_checkpoints.h"
#include "engine/files/weights_export.h"
#include "engine/preparation.h"
#include "engine/trainer/weights.h"
#include "tests/trainer/trained.h"

namespace stepladder {
namespace {

namespace fs = std::filesystem;

class CheckpointTest : public testing::Test {
 protected:
  CheckpointTest() {
    std::string name = (fs::temp_directory_path() / "stepladder-checkpoint-XXXXXX").string();
    folder = mkdtemp(name.data());
  }
  ~CheckpointTest() override { fs::remove_all(folder); }

  TrainingJob job(const Recipe& recipe, const fs::path& start_from = {}) const {
    return {.run = 1, .recipe = recipe, .checkpoints = {.owner = owner()}, .start_from = start_from};
  }
  CheckpointOwner owner() const {
    return {.database = folder / "runs.db", .run = 1, .uid = "0123456789abcdef0123456789abcdef"};
  }
  fs::path run_folder() const { return folder / "runs.db.checkpoints" / "run-1"; }
  // A run of ten steps, saved after every fifth.
  fs::path saved_run(Recipe recipe) const {
    recipe.steps = 10;
    recipe.save_every = 5;
    train_here(job(recipe));
    return run_folder() / checkpoint_name(5);
  }
  static std::string reason(const Trained& trained) {
    EXPECT_EQ(trained.endings.size(), 1u);
    EXPECT_FALSE(trained.started);
    return trained.endings.at(0).reason;
  }

  fs::path folder;
};

std::vector<double> tail(const std::vector<double>& all, std::size_t from) {
  return {all.begin() + static_cast<std::ptrdiff_t>(from), all.end()};
}

TEST_F(CheckpointTest, AResumedRunIsTheOneThatWasNeverStoppedBitForBit) {
  for (const Optimizer optimizer : {Optimizer::adamw, Optimizer::fused_adamw}) {
    for (const Compile compile : {Compile::off, Compile::on, Compile::max}) {
      const bool tied = compile == Compile::on;
      Recipe recipe = tiny_recipe();
      recipe.steps = 12;
      recipe.tied_head = tied;
      recipe.optimizer = optimizer;
      recipe.compile = compile;
      recipe.decay = Decay::matrices;
      recipe.schedule = Schedule::cosine;
      recipe.clip = 1;
      recipe.vocab = 300;
      recipe.vocab_multiple = 128;
      recipe.grad_accum = 2;
      const auto whole = train_here(recipe).losses();
      recipe.save_every = 5;
      recipe.keep = 0;
      EXPECT_EQ(train_here(job(recipe)).losses(), whole) << "saving changes the training";
      const Trained resumed = train_here(job(recipe, run_folder() / checkpoint_name(5)));
      ASSERT_EQ(resumed.steps.size(), 7u);
      EXPECT_EQ(resumed.steps.front().step, 6);
      EXPECT_EQ(resumed.losses(), tail(whole, 5));
      fs::remove_all(run_folder());
    }
  }
}

TEST_F(CheckpointTest, TheNewestAreKeptAndWhatAProcessLeftHalfWrittenGoes) {
  Recipe recipe = tiny_recipe();
  recipe.steps = 50;
  recipe.save_every = 1;  // faster than the disk: some are skipped, but not the last
  recipe.keep = 3;
  fs::create_directories(run_folder() / "step-00000001.01234567.part");
  // A busy disk skips more: each tenth step waits for one of the ten.
  const Trained trained = train_here(job(recipe), [&](const StepRecord& step, RunControl&) {
    while (step.step % 10 == 0 && run_checkpoints(owner()).size() < std::min<std::size_t>(step.step / 10, 3))
      usleep(1000);
  });
  const auto saved = run_checkpoints(owner());
  ASSERT_EQ(saved.size(), 3u);
  EXPECT_EQ(saved.back().step, 50);
  EXPECT_FALSE(fs::exists(run_folder() / "step-00000001.01234567.part"));
  ASSERT_FALSE(trained.checkpoints.empty());
  EXPECT_EQ(trained.checkpoints.back().step, 50);
  EXPECT_EQ(trained.checkpoints.back().error, "");
  EXPECT_GT(trained.checkpoints.back().bytes, 0);
}

TEST_F(CheckpointTest, OneIsThereOnlyOnceItsStepsAreRecorded) {
  Recipe recipe = tiny_recipe();
  recipe.steps = 40;
  recipe.save_every = 1;
  recipe.keep = 1;
  TrainingJob saved = job(recipe);
  std::vector<std::int64_t> newest;  // visible while its successor waited
  saved.checkpoints.store_steps = [&] {
    const auto seen = run_checkpoints(owner());
    newest.push_back(seen.empty() ? 0 : seen.back().step);
    return std::string();
  };
  const Trained trained = train_here(saved);
  ASSERT_EQ(newest.size(), trained.checkpoints.size());
  ASSERT_GE(newest.size(), 2u);
  EXPECT_EQ(newest[0], 0);
  for (std::size_t i = 1; i < newest.size(); ++i) EXPECT_EQ(newest[i], trained.checkpoints[i - 1].step) << "still kept";
}

TEST_F(CheckpointTest, AStoppedRunIsSavedWhereItStopped) {
  Recipe recipe = tiny_recipe();
  recipe.steps = 1'000'000;
  recipe.save_every = 500'000;
  train_here(job(recipe), [](const StepRecord& step, RunControl& control) {
    if (step.step == 7) control.request_stop();
  });
  ASSERT_EQ(run_checkpoints(owner()).size(), 1u);
  EXPECT_EQ(run_checkpoints(owner()).back().step, 7);
}

TEST_F(CheckpointTest, ADiskThatTakesNothingCostsTheCheckpointNotTheRun) {
  Recipe recipe = tiny_recipe();
  recipe.save_every = 1;
  std::ofstream(folder / "runs.db.checkpoints") << "a file where the folder should be";
  const Trained trained = train_here(job(recipe));
  EXPECT_EQ(trained.endings.at(0).status, RunStatus::finished);
  ASSERT_FALSE(trained.checkpoints.empty());
  EXPECT_NE(trained.checkpoints[0].error.find("runs.db.checkpoints"), std::string::npos)
      << trained.checkpoints[0].error;
  EXPECT_TRUE(trained.endings.at(0).reason.starts_with("no checkpoint could be saved: "))
      << trained.endings.at(0).reason;
}

TEST_F(CheckpointTest, ADamagedOneIsRefusedAndTheFileNamed) {
  const fs::path saved = saved_run(tiny_recipe());
  for (const char* name : {checkpoint_weights, checkpoint_optimizer, checkpoint_state}) {
    const fs::path file = saved / name;
    const auto middle = static_cast<std::streamoff>(fs::file_size(file) / 2);
    std::fstream bytes(file, std::ios::binary | std::ios::in | std::ios::out);
    bytes.seekg(middle);
    const int byte = bytes.get();
    bytes.seekp(middle);
    bytes.put(static_cast<char>(byte ^ 4)).flush();
    const std::string why = reason(train_here(job(tiny_recipe(), saved)));
    EXPECT_TRUE(why.starts_with(file.string() + " is damaged: ")) << why;
    bytes.seekp(middle);
    bytes.put(static_cast<char>(byte)).flush();
  }
  const fs::path file = saved / checkpoint_weights;
  fs::resize_file(file, fs::file_size(file) - 10);
  const std::string why = reason(train_here(job(tiny_recipe(), saved)));
  EXPECT_TRUE(why.starts_with(file.string() + " is damaged: ")) << why;
}

TEST_F(CheckpointTest, OneOfAnotherModelIsRefusedAndTheTensorNamed) {
  const fs::path saved = saved_run(tiny_recipe());
  Recipe wider = tiny_recipe();
  wider.d_model = 64;
  const std::string why = reason(train_here(job(wider, saved)));
  EXPECT_NE(why.find("belongs to another model: its "), std::string::npos) << why;
  EXPECT_NE(why.find(".weight is F32 ("), std::string::npos) << why;
  Recipe deeper = tiny_recipe();
  deeper.layers = 3;
  const std::string missing_layer = reason(train_here(job(deeper, saved)));
  EXPECT_NE(missing_layer.find("h.2."), std::string::npos) << missing_layer;
}

TEST_F(CheckpointTest, OneWithoutItsStateOrItsMomentsIsRefused) {
  const fs::path saved = saved_run(tiny_recipe());
  fs::remove(saved / checkpoint_state);
  EXPECT_EQ(reason(train_here(job(tiny_recipe(), saved))), (saved / checkpoint_state).string() + " does not exist");
  const fs::path other = run_folder() / checkpoint_name(10);
  fs::remove(other / checkpoint_optimizer);
  EXPECT_NE(reason(train_here(job(tiny_recipe(), other))).find(checkpoint_optimizer), std::string::npos);
}

TEST_F(CheckpointTest, OneOfBeforeThereWereChecksumsIsRead) {
  const fs::path saved = saved_run(tiny_recipe());
  fs::remove(saved / checkpoint_checksums);
  EXPECT_NE(reason(train_here(job(tiny_recipe(), saved))).find("checksums.txt is missing"), std::string::npos);
  CheckpointState state = read_checkpoint_state(saved);
  state.uid.clear();
  std::ofstream(saved / checkpoint_state) << to_json(state);
  Recipe recipe = tiny_recipe();
  recipe.steps = 7;
  EXPECT_EQ(train_here(job(recipe, saved)).steps.size(), 2u);
}

TEST_F(CheckpointTest, AFileOfWeightsIsWhereARunStarts) {
  Recipe recipe = tiny_recipe();
  recipe.vocab = 300;
  recipe.vocab_multiple = 128;
  const fs::path saved = saved_run(recipe);
  Recipe tuned = tiny_recipe();  // the file gives the shape
  tuned.layers = 7;
  tuned.weights = (saved / checkpoint_weights).string();
  const Trained trained = train_here(tuned);
  ASSERT_TRUE(trained.started);
  EXPECT_EQ(recipe_from_json(trained.started->recipe).layers, 2);
  EXPECT_EQ(recipe_from_json(trained.started->recipe).vocab, 300);

  // The same first loss as the model that was saved has on the first batch.
  Recipe model_recipe = recipe_from_json(trained.started->recipe);
  const auto model = build_model(model_recipe);
  load_model(*model, model_recipe, WeightsFile(tuned.weights));
  const Batch batch = TokenSource::open("", 16, tuned.seed).batch(Split::train, 0, 4);
  const at::NoGradGuard no_grad;
  const double loss =
      model->loss(at::tensor(batch.inputs, at::kLong).view({4, 16}), at::tensor(batch.targets, at::kLong).view({4, 16}))
          .item<double>();
  EXPECT_NEAR(trained.steps[0].loss, loss, 1e-6);
}

TEST_F(CheckpointTest, BothFormatsGiveTheSameModelBack) {
  Recipe recipe = tiny_recipe();
  recipe.vocab = 300;
  const auto model = build_model(recipe);
  const fs::path hugging_face = folder / "model.safetensors", llmc = folder / "model.bin";
  write_model(hugging_face, named_parameters(*model), recipe);
  const WeightsFile written(hugging_face);
  export_weights(written, recipe.heads, llmc, ExportFormat::llmc);
  for (const fs::path& file : {hugging_face, llmc}) {
    Recipe other_start = recipe;
    other_start.seed = 99;
    const auto loaded = build_model(other_start);
    load_model(*loaded, recipe, WeightsFile(file));
    const auto expected = named_parameters(*model), found = named_parameters(*loaded);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(at::equal(found[i].second, expected[i].second)) << file << " " << expected[i].first;
    }
  }
}

}  // namespace
}  // namespace stepladder
