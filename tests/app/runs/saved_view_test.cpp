// The text of a saved view: what comes back, which runs it names, and anybody's text in its place.
#include "app/runs/saved_view.h"

#include <gtest/gtest.h>

#include "app/import/import.h"
#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

using nlohmann::json;

SavedView example() {
  return {.panels = {"history", "compare"},
          .states = {{"history", {{"filter", "val/acc > 0.3"}, {"baseline", run_reference(3)}}},
                     {"compare", {{"hidden", {run_reference(3), run_reference(5)}}, {"base", run_reference(0)}}}},
          .selects = true,
          .runs = {{.id = 3, .uid = "u3", .name = "three", .selected = true}, {.id = 5, .uid = "", .name = "five"}}};
}

std::string view_problem_of(const std::string& text) {
  try {
    saved_view_from(text);
  } catch (const ViewError& error) {
    return error.what();
  }
  return "none";
}

TEST(SavedView, comes_back_from_its_text) {
  const SavedView view = example(), read = saved_view_from(text_of(view));
  EXPECT_EQ(read.panels, view.panels);
  EXPECT_EQ(read.states, view.states);
  EXPECT_EQ(read.runs, view.runs);
  EXPECT_TRUE(read.selects);
  EXPECT_EQ(runs_in(read), (std::vector<RunId>{3, 5}));
}

TEST(SavedView, names_its_runs_by_other_numbers) {
  SavedView view = example();
  renumber(view, [](ViewRun& run) { return run.id == 3 ? std::optional<RunId>(13) : std::nullopt; });
  EXPECT_EQ(view.runs, (std::vector<ViewRun>{{.id = 13, .uid = "u3", .name = "three", .selected = true}}));
  EXPECT_EQ(run_in(view.states["history"]["baseline"]), 13);
  EXPECT_EQ(view.states["compare"]["hidden"], (json{run_reference(13), nullptr}));
  EXPECT_EQ(run_in(view.states["compare"]["base"]), 0);
}

TEST(SavedView, anybodys_text_is_a_sentence) {
  EXPECT_EQ(view_problem_of(""), "it isn't JSON of a view");
  EXPECT_EQ(view_problem_of("[1, 2]"), "it isn't JSON of a view");
  EXPECT_EQ(view_problem_of(R"({"states": )"), "it isn't JSON of a view");
  EXPECT_EQ(view_problem_of(R"({"format": 1})"), "it has no states of views");
  EXPECT_EQ(view_problem_of(R"({"format": 99, "states": {}})"), "a newer version of Stepladder saved it");
  EXPECT_EQ(view_problem_of(R"({"states": )" + std::string(1'000'000, '[')), "it is nested too deeply");
  EXPECT_EQ(view_problem_of(std::string(1'000'000, '{')), "it isn't JSON of a view");
  const SavedView odd = saved_view_from(
      R"({"states": {"history": 7}, "panels": "history", "selects": 3, "runs": [4, {"id": "x", "name": 5}, {"id": 1e300}]})");
  EXPECT_TRUE(odd.panels.empty());
  EXPECT_FALSE(odd.selects);
  EXPECT_EQ(odd.runs.size(), 2u);
}

TEST(SavedView, is_imported_with_its_project) {
  TemporaryFolder folder;
  RunId theirs = 0;
  {
    RunStore store = RunStore::open(folder / "theirs.stepladder");
    const std::vector<StepRecord> steps{{.step = 1, .loss = 3}};
    store.insert_finished({.name = "first"}, steps);
    const LadderId ladder = store.create_ladder({.name = "ladder"});
    theirs = store.insert_finished({.name = "second", .ladder = ladder}, steps);  // comes first, with its ladder
    SavedView view{.panels = {"history"}, .states = {{"history", {{"baseline", run_reference(theirs)}}}}, .runs = {}};
    view.runs = {{.id = theirs, .uid = "u", .name = "second", .selected = true}, {.id = 99, .name = "gone"}};
    store.views().save("night", text_of(view));
    store.views().save("damaged", "{");
  }
  RunStore own = RunStore::open(folder / "own.db");
  for (int i = 0; i < 5; ++i) own.insert_finished({.name = "ours"}, {});
  own.views().save("night", "our own");
  ImportRequest request;
  request.paths = {(folder / "theirs.stepladder").string()};
  const ImportOutcome outcome = import_into([&]() -> RunStore& { return own; }, request);
  ASSERT_EQ(outcome.failures, std::vector<std::string>{});
  EXPECT_EQ(own.views().content("night"), "our own");
  ASSERT_EQ(own.views().names(), (std::vector<std::string>{"night", "night (2)"}));
  const SavedView view = saved_view_from(own.views().content("night (2)").value());
  ASSERT_EQ(view.runs.size(), 1u);
  EXPECT_NE(view.runs[0].id, theirs);
  EXPECT_EQ(own.existing_run(view.runs[0].id).name, "second");
  EXPECT_EQ(view.runs[0].uid, "");
  EXPECT_EQ(run_in(view.states.at("history")["baseline"]), view.runs[0].id);
  EXPECT_TRUE(std::any_of(outcome.notes.begin(), outcome.notes.end(), [](const ImportNote& note) {
    return note.text == "the saved view damaged is left out: it isn't JSON of a view";
  }));
}

TEST(SavedView, comes_with_the_runs_or_neither_does) {
  TemporaryFolder folder;
  {
    RunStore store = RunStore::open(folder / "theirs.stepladder");
    const std::vector<StepRecord> steps{{.step = 1, .loss = 3}};
    const RunId run = store.insert_finished({.name = "first"}, steps);
    store.views().save("night", text_of(SavedView{.panels = {"history"}, .runs = {{.id = run, .name = "first"}}}));
  }
  ImportRequest request;
  request.paths = {(folder / "theirs.stepladder").string()};
  bool failed = true;
  for (int good = 1; failed; ++good) {
    RunStore own = RunStore::open(folder.path() / ("own" + std::to_string(good) + ".db"));
    int calls = 0;
    const ImportOutcome outcome = import_into(
        [&]() -> RunStore& {
          if (++calls > good) throw StorageError("the disk is full");
          return own;
        },
        request);
    failed = outcome.error != nullptr;
    EXPECT_EQ(own.runs().size(), own.views().names().size()) << good << " calls";
    EXPECT_EQ(own.runs().size(), outcome.runs.size()) << good << " calls";
  }
}

}  // namespace
}  // namespace stepladder
