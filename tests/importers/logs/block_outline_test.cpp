#include "storage/importers/logs/block_outline.h"

#include <gtest/gtest.h>

#include "storage/importers/importer.h"
#include "tests/importers/told.h"

namespace stepladder {
namespace {

TEST(BlockOutline, a_heading_names_the_block_below_it) {
  BlockOutline outline(nullptr);
  outline.heading("Speed-up 2: bf16 autocast");
  EXPECT_TRUE(outline.new_block());
  EXPECT_EQ(outline.name().stage, "Speed-up 2");
  EXPECT_EQ(outline.name().title, "bf16 autocast");
  EXPECT_EQ(outline.name().precision, "bf16");
  outline.step();
  EXPECT_FALSE(outline.new_block());
  EXPECT_EQ(outline.name().stage, "");
}

TEST(BlockOutline, steps_that_start_over_begin_a_run_unless_it_is_resumed) {
  const RunProgress run{.open = true, .first_step = 1, .last_step = 50, .steps = 50};
  BlockOutline outline(nullptr);
  EXPECT_FALSE(outline.begins_run(1, run)) << "nothing was said";
  outline.any_words();
  EXPECT_TRUE(outline.begins_run(1, run));
  EXPECT_FALSE(outline.begins_run(20, run)) << "only a new block begins in the middle";
  outline.heading("bf16");
  EXPECT_TRUE(outline.begins_run(20, run));
  outline.resume();
  EXPECT_FALSE(outline.begins_run(20, run));
}

TEST(BlockOutline, an_entry_without_steps_among_others_is_a_rung_that_was_tried) {
  BlockOutline outline(nullptr);
  for (const char* text : {"First: a", "Second: b"}) {
    outline.enter_item({0, text});
    outline.begin_run();
    outline.step();
    EXPECT_FALSE(outline.leave_item());
  }
  outline.enter_item({0, "Third: c"});
  outline.words("it was slower", LogLine::Place::outside, false);
  const auto tried = outline.leave_item();
  ASSERT_TRUE(tried);
  EXPECT_EQ(tried->stage, "Third");
  EXPECT_EQ(tried->title, "c: it was slower");
}

TEST(LadderOutline, begins_with_the_last_block_where_the_newest_is_first) {
  for (const bool says : {true, false}) {
    LadderOutline outline("notes");
    if (says) outline.read_order("in reverse chronological order");
    outline.add_run("bf16");
    outline.add_run(says ? "start" : "baseline");
    Told told;
    outline.report(told);
    EXPECT_EQ(told.rungs, (std::vector<int>{1, 0}));
  }
}

TEST(BlockOutline, a_name_states_fp32_only_as_a_setting) {
  const auto precision_of = [](const char* text) {
    BlockOutline outline(nullptr);
    outline.enter_item({0, text});
    return outline.name().precision;
  };
  EXPECT_EQ(precision_of("Baseline: `fp32, Batch=2 seq_len = 1024`"), "fp32");
  EXPECT_EQ(precision_of("Mixed precision: fp32 master weights"), "");
  EXPECT_EQ(precision_of("bf16: instead of fp32"), "bf16");
}

TEST(LadderOutline, trainings_without_names_and_phases_are_in_no_ladder) {
  for (const auto& stages : {std::vector<const char*>{"", ""}, std::vector<const char*>{"Midtraining", "SFT"}}) {
    LadderOutline outline("log");
    for (const char* stage : stages) outline.add_run(stage);
    Told told;
    outline.report(told);
    EXPECT_TRUE(told.rungs.empty());
    EXPECT_EQ(told.notes.size(), 1u);
  }
}

TEST(CappedNotes, the_sink_gets_twenty_and_a_count) {
  Told told;
  CappedNotes notes(told, "lines were skipped");
  for (int i = 0; i < 23; ++i) notes.note(i, "skipped");
  notes.finish();
  notes.finish();
  ASSERT_EQ(told.notes.size(), 21u);
  EXPECT_EQ(told.notes.back(), "3 more lines were skipped");
}

}  // namespace
}  // namespace stepladder
