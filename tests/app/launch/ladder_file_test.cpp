#include "app/launch/ladder_file.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>

#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

LadderDraft draft() {
  LadderDraft draft;
  draft.request.name = "try \"this\"";
  apply_preset(draft.request.base, "gpt2");
  draft.request.base.batch = 2;
  draft.request.base.data = "/data/book, one.txt";
  draft.request.climb = Climb::alone;
  draft.request.repeats = 3;
  draft.request.interleave = true;
  draft.request.quiet_patience = until_quiet;
  draft.rungs = {{.text = "baseline", .seed_tokens_per_s = 11'544},
                 {.text = "bf16+compile:batch=4"},
                 {.text = "mine:lr=3e-4", .on = false}};
  return draft;
}

std::string complaint(const std::filesystem::path& file) {
  try {
    read_ladder_file(file);
  } catch (const RecipeError& error) {
    return error.what();
  }
  return "";
}

TEST(LadderFile, WrittenAndReadAgainItIsTheSame) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "mine.json";
  std::ofstream(file) << ladder_file_text(draft());
  const LadderDraft again = read_ladder_file(file);
  EXPECT_EQ(ladder_file_text(again), ladder_file_text(draft()));
  EXPECT_EQ(again.request.base, draft().request.base);
  EXPECT_FALSE(again.rungs[2].on);
  const LadderRequest request = request_of(again);
  EXPECT_EQ(rungs_text(request.rungs), "baseline,bf16+compile:batch=4");
  EXPECT_EQ(request.rungs[0].seed_tokens_per_s, 11'544);
}

TEST(LadderFile, ASavedPresetMeansTheSameFilesFromAnyFolder) {
  const TemporaryFolder config;
  setenv("XDG_CONFIG_HOME", config.path().c_str(), 1);
  LadderDraft saved = draft();
  saved.request.base.data = "books/one.txt";
  saved.rungs.push_back({.text = "other:data=two.txt"});
  saved.over = {{"tokenizer", {"a.json", "/b.json"}}};
  save_ladder_preset("mine", saved);
  const LadderDraft again = read_ladder_file(saved_ladder("mine"));
  const std::filesystem::path here = std::filesystem::current_path();
  EXPECT_EQ(again.request.base.data, here / "books/one.txt");
  EXPECT_EQ(again.rungs.back().text, "other:data=" + (here / "two.txt").string());
  EXPECT_EQ(again.rungs[1].text, draft().rungs[1].text);
  EXPECT_EQ(again.over[0].values, (std::vector<std::string>{here / "a.json", "/b.json"}));
}

TEST(LadderFile, AMistakeIsNamedWithFileAndField) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "bad.json";
  const auto with = [&](const std::string& text) {
    std::ofstream(file) << text;
    return complaint(file);
  };
  EXPECT_NE(complaint(folder.path() / "nowhere.json").find("cannot be read: No such file"), std::string::npos);
  EXPECT_NE(with("{}").find("isn't a ladder that Stepladder saved"), std::string::npos);
  EXPECT_EQ(with("{\n\"stepladder\": "), file.string() + ", line 2: isn't JSON");
  const std::string start = R"({"stepladder": "ladder", )";
  EXPECT_EQ(with(start + R"("repeats": "many"})"), file.string() + ": repeats cannot be \"many\"");
  EXPECT_EQ(with(start + R"("repeats": 0})"), file.string() + ": repeats must be 1 to 1,000, not 0");
  EXPECT_EQ(with(start + R"("climb": "up"})"), file.string() + ": climb must be together or alone, not 'up'");
  EXPECT_EQ(with(start + R"("recipe": {"batch": 0}})"), file.string() + ": --batch: must be at least 1, not 0");
  EXPECT_EQ(with(start + R"("rungs": ["bf16", {"rung": "mine:lr=abc"}]})"),
            file.string() + ": rung 2 'mine:lr=abc': lr must be a number, not 'abc'");
  EXPECT_EQ(with(start + R"("rungs": [7]})"), file.string() + ": a rung cannot be 7");
  EXPECT_EQ(with(start + R"("over": 7})"), file.string() + ": over must be an object, not 7");
  EXPECT_EQ(with(start + R"("over": {"lr": ["1e-4", "abc"]}})"), file.string() + ": lr must be a number, not 'abc'");
  EXPECT_EQ(with(start + R"("rungs": {}})"), file.string() + ": rungs must be a list, not {}");
}

TEST(CommandLine, SetsWhatDiffersFromTheModelAndIsQuotedForTheShell) {
  LadderRequest request;
  apply_preset(request.base, "nano");
  request.rungs = parse_rungs("baseline,bf16:batch=24");
  EXPECT_EQ(command_line_of(request), "stepladder ladder --stages baseline,bf16:batch=24");
  request = request_of(draft());
  EXPECT_EQ(command_line_of(request),
            "stepladder ladder --model gpt2 --data '/data/book, one.txt' --batch 2 --only "
            "baseline,bf16+compile:batch=4 --repeats 3 --interleave --when-quiet --name 'try \"this\"'");
  request = {};
  apply_preset(request.base, "nano");
  request.base.tied_head = true;
  request.base.overfit = true;
  request.base.autocast = Autocast::bf16;
  request.base.sample_prompt = "It's";
  EXPECT_EQ(command_line_of(request),
            "stepladder ladder --tied-head --overfit --sample-prompt 'It'\\''s' --stages baseline:autocast=bf16");
}

}  // namespace
}  // namespace stepladder
