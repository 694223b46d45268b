#include "storage/database/curation.h"

#include <gtest/gtest.h>

#include "storage/database/run_store.h"

namespace stepladder {
namespace {

TEST(Curation, TagsAreSeparatedByCommasOrBlanksAndComeOnce) {
  EXPECT_EQ(tags_from(" fast, a100 fast,,\tnight "), (std::vector<std::string>{"fast", "a100", "night"}));
  EXPECT_EQ(tags_text({"fast", "a100"}), "fast, a100");
  EXPECT_TRUE(tags_from(" , ").empty());
}

TEST(Curation, ComesBackAsItWasWritten) {
  RunStore store = RunStore::in_memory();
  const RunId run = store.create_run({.name = "a run"});
  EXPECT_TRUE(store.curation().all().empty());
  store.curation().set(run, {.tags = {"fast", "a100"}, .note = "the good one", .pinned = true});
  store.curation().set(run, {.tags = {"fast"}, .note = "the \"good\" one", .archived = true});
  const Curation read = store.curation().all().at(run);
  EXPECT_EQ(read.tags, std::vector<std::string>{"fast"});
  EXPECT_EQ(read.note, "the \"good\" one");
  EXPECT_FALSE(read.pinned);
  EXPECT_TRUE(read.archived);
  EXPECT_FALSE(read.deleted());
}

TEST(Curation, AChangeLeavesTheOtherMarksAndReturnsWhatUndoesIt) {
  RunStore store = RunStore::in_memory();
  const RunId run = store.create_run({.name = "a run"});
  store.curation().set(run, {.tags = {"fast", "a100"}, .note = "good", .pinned = true});
  const CurationChange undoes =
      store.curation().change(run, {.added_tags = {"fast", "night"}, .removed_tags = {"a100"}, .deleted_at = 1000});
  EXPECT_EQ(store.curation().of(run).tags, (std::vector<std::string>{"fast", "night"}));
  EXPECT_EQ(store.curation().of(run).note, "good");
  EXPECT_TRUE(store.curation().of(run).deleted());
  EXPECT_FALSE(undoes.note || undoes.pinned || undoes.archived);
  store.curation().change(run, {.note = "changed since"});
  EXPECT_FALSE(store.curation().change(run, undoes).empty());
  EXPECT_EQ(store.curation().of(run).tags, (std::vector<std::string>{"fast", "a100"}));
  EXPECT_EQ(store.curation().of(run).note, "changed since");
  EXPECT_FALSE(store.curation().of(run).deleted());
  EXPECT_TRUE(store.curation().change(run, {.pinned = true}).empty()) << "nothing to undo";
}

TEST(Curation, TheBinHidesARunAndGivesItBackWhole) {
  RunStore store = RunStore::in_memory();
  const LadderId ladder = store.create_ladder({.name = "ladder"});
  const RunId kept = store.insert_finished({.name = "kept", .ladder = ladder}, {});
  const std::vector<StepRecord> steps{{.step = 1, .loss = 3}, {.step = 2, .loss = 2}};
  const RunId thrown = store.insert_finished({.name = "thrown", .ladder = ladder, .rung = 1}, steps);
  store.curation().set(thrown, {.deleted_at = 1000});
  EXPECT_EQ(store.runs().size(), 1u);
  EXPECT_EQ(store.runs_of(ladder).size(), 1u);
  EXPECT_EQ(store.runs_with_summaries().size(), 1u);
  EXPECT_EQ(store.ladders().size(), 1u);
  store.curation().set(kept, {.deleted_at = 1000});
  EXPECT_TRUE(store.ladders().empty()) << "a ladder without a run that can be seen";
  store.curation().set(thrown, {});
  store.curation().set(kept, {});
  EXPECT_EQ(store.runs_of(ladder).size(), 2u);
  EXPECT_EQ(store.series(thrown).size(), 2u);
}

TEST(Curation, TheBinIsEmptiedOfWhatIsOldEnough) {
  RunStore store = RunStore::in_memory();
  const std::vector<StepRecord> steps{{.step = 1, .loss = 3}};
  const RunId old = store.insert_finished({.name = "old"}, steps);
  const RunId young = store.insert_finished({.name = "young"}, steps);
  const RunId child = store.insert_finished({.name = "child", .parent = old}, steps);
  store.curation().set(old, {.deleted_at = 1000});
  store.curation().set(young, {.deleted_at = 3000});
  EXPECT_EQ(store.bin().empty(2000), std::vector{old});
  EXPECT_FALSE(store.run(old).has_value());
  EXPECT_TRUE(store.series(old).empty());
  EXPECT_TRUE(store.run(young).has_value());
  EXPECT_FALSE(store.run(child)->parent.has_value());
}

TEST(Curation, TheNumberOfARunThatIsGoneIsNeverGivenAgain) {
  RunStore store = RunStore::in_memory();
  const RunId kept = store.insert_finished({.name = "kept"}, {});
  const RunId gone = store.insert_finished({.name = "gone"}, {});
  store.curation().set(gone, {.deleted_at = 1000});
  EXPECT_EQ(store.bin().empty(2000).size(), 1u);
  const RunId next = store.insert_finished({.name = "next"}, {});
  EXPECT_GT(next, gone) << "what lies beside the file under the old number is not its";
  EXPECT_GT(store.insert_finished({.name = "one more"}, {}), next);
  store.curation().set(kept, {.deleted_at = 1000});  // not the newest: the mark stays unchanged
  EXPECT_EQ(store.bin().empty(2000).size(), 1u);
  EXPECT_EQ(store.insert_finished({.name = "and another"}, {}), next + 2);
}

TEST(Curation, ARunThatAWaitingForkStartsFromStays) {
  RunStore store = RunStore::in_memory();
  const RunId parent = store.insert_finished({.name = "parent"}, {});
  const RunId fork = store.create_run({.name = "fork", .parent = parent, .forked_at_step = 1});
  store.curation().set(parent, {.deleted_at = 1000});
  EXPECT_TRUE(store.bin().empty(2000).empty());
  const std::vector<RunEvent> events{RunStarted{.run = fork, .at = 1500}};
  store.apply(events);
  EXPECT_EQ(store.bin().empty(2000), std::vector{parent});
}

TEST(Curation, RunsAndLaddersTakeANewName) {
  RunStore store = RunStore::in_memory();
  const LadderId ladder = store.create_ladder({.name = "ladder"});
  const RunId run = store.create_run({.name = "run", .ladder = ladder});
  store.rename_run(run, "it's new");
  store.rename_ladder(ladder, "new too");
  EXPECT_EQ(store.run(run)->name, "it's new");
  EXPECT_EQ(store.ladders().front().name, "new too");
}

}  // namespace
}  // namespace stepladder
