// Files that don't end as a finished training's do: cut lines, tracebacks, signals; and steps that are no whole
// numbers.
#include <gtest/gtest.h>

#include "storage/wording.h"
#include "tests/importers/told.h"

namespace stepladder {
namespace {

std::string body(int from = 1, int to = 20) {
  std::string text;
  for (int i = from; i <= to; ++i)
    text += fmt::format("step {} | loss {:.4f} | dt 100.{} ms\n", i, 5 - 0.01 * i, i % 10);
  return text;
}

const std::string traceback =
    "Traceback (most recent call last):\n  File \"train.py\", line 3, in <module>\n    main()\n";

RunStatus status_of(const std::string& text, const char* name = "run.log") {
  const Told told = import_text(text, {}, name);
  return told.runs.size() == 1 ? told.runs[0].run.status : RunStatus::reported;
}

TEST(Ends, an_error_behind_the_last_step_is_the_runs_end) {
  for (const std::string& failed :
       {traceback + "RuntimeError: bad thing\n",
        traceback + "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n",
        std::string("[rank0]: ") + traceback + "[rank0]: ValueError: no\n", std::string("CUDA out of memory\n"),
        std::string("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB.\n"),
        std::string("Segmentation fault (core dumped)\n"),
        std::string("run.sh: line 3: 99 Segmentation fault  python\n"),
        std::string("slurmstepd: error: Detected 1 oom-kill event(s) in StepId=1.0\n"),
        std::string("terminate called after throwing an instance of 'c10::Error'\n")})
    EXPECT_EQ(status_of(body() + failed), RunStatus::failed) << failed;
  for (const std::string& ended :
       {traceback + "KeyboardInterrupt\n", std::string("^C") + traceback + "KeyboardInterrupt\n",
        std::string("Killed\n"), std::string("train.sh: line 4:  4242 Killed                  python train.py\n"),
        std::string("slurmstepd: error: *** JOB 1 ON n1 CANCELLED AT 2026-01-01T00:00:00 DUE TO TIME LIMIT ***\n"),
        std::string("Terminated\n")})
    EXPECT_EQ(status_of(body() + ended), RunStatus::interrupted) << ended;
  const Told told = import_text(body() + traceback + "RuntimeError: bad thing\n");
  EXPECT_EQ(told.runs[0].run.reason, "RuntimeError: bad thing");
  EXPECT_EQ(told.runs[0].steps.size(), 20u);
  EXPECT_TRUE(told.noted("so the run is failed"));
}

TEST(Ends, an_error_that_the_training_survives_is_none) {
  for (const std::string& went_on :
       {body() + traceback + "RuntimeError: a worker died\n" + body(21, 30),
        body() + "all done, nothing Killed the run\n", body() + "UserWarning: CUDA out of memory was avoided\n",
        body() + "Error: could not upload the plots\n", traceback + "ImportError: flash_attn isn't there\n" + body(),
        body() + "Training complete\n" + traceback + "OSError: the tracker is gone\n"})
    EXPECT_EQ(status_of(went_on) == RunStatus::failed || status_of(went_on) == RunStatus::interrupted, false)
        << went_on;
  std::string planned;
  for (int i = 1; i <= 20; ++i) planned += fmt::format("step {}/20 | loss {:.4f} | dt 100.{} ms\n", i, 5 - 0.01 * i, i);
  EXPECT_NE(status_of(planned + traceback + "OSError: no space for the plots\n"), RunStatus::failed);
}

TEST(Ends, a_log_that_ends_before_its_planned_steps_says_so) {
  const auto planned = [](int to, int total, int gap = 1) {
    std::string text;
    for (int i = gap; i <= to; i += gap)
      text += fmt::format("step {}/{} | loss {:.4f} | dt 100.{} ms\n", i, total, 5 - 0.01 * i, i % 10);
    return text;
  };
  const auto reason = [](const std::string& text) { return import_text(text).runs.at(0).run.reason; };
  EXPECT_EQ(reason(planned(60, 19073)), "its log ends at step 60 of 19,073; whether its training did isn't known");
  EXPECT_EQ(status_of(planned(60, 19073)), RunStatus::interrupted);
  for (const std::string& whole :
       {planned(60, 60), planned(59, 60), planned(60, 65, 10), planned(60, 19073) + "Training complete\n", body(),
        "# Notes\n" + planned(60, 19073), "```\n" + planned(60, 19073) + "```\n"})
    EXPECT_EQ(reason(whole), "") << whole;
  std::string bars;
  for (int i = 0; i <= 160; ++i) {
    bars += fmt::format(" 53%|#####     | {}/300 [01:20<01:10,  2.00it/s]\n", i);
    if (i > 0 && i % 20 == 0) bars += fmt::format("{{'loss': {}, 'epoch': {:.2f}}}\n", 9 - 0.01 * i, i / 150.0);
  }
  EXPECT_EQ(reason(bars), "its log ends at step 160 of 300; whether its training did isn't known");
}

TEST(Ends, a_table_may_end_early_too) {
  EXPECT_EQ(status_of("step,loss\n1,3.5\n2,3.4\nKilled\n", "t.csv"), RunStatus::interrupted);
  EXPECT_EQ(status_of("step,loss\n1,3.5\n" + traceback + "ValueError: x\n", "t.csv"), RunStatus::failed);
}

TEST(Ends, a_tables_last_row_that_may_be_cut_is_left_out) {
  const std::string rows = "step,loss,dt_ms\n1,3.5000,100.25\n2,3.4000,101.50\n";
  const auto steps = [](const std::string& text) { return import_text(text, {}, "t.csv").runs.at(0).steps.size(); };
  EXPECT_EQ(steps(rows + "3,3.3000,10"), 2u);
  EXPECT_EQ(steps(rows + "3,3.3000,100.2"), 2u);
  EXPECT_EQ(steps(rows + "3,3.3000,100.25"), 3u) << "it ends as the others do";
  EXPECT_EQ(steps(rows + "3,3.3000,10\n"), 3u) << "it has an end";
  EXPECT_TRUE(import_text(rows + "3,3.3000,10", {}, "t.csv").noted("may be cut"));
  EXPECT_EQ(steps("step,loss\n1,3.5"), 1u) << "nothing is known to compare it with";
}

std::vector<std::int64_t> numbers(const ToldRun& run) {
  std::vector<std::int64_t> all;
  for (const StepRecord& step : run.steps) all.push_back(step.step);
  return all;
}

TEST(Ends, a_column_of_fractions_is_numbered) {
  const std::vector<std::int64_t> four{1, 2, 3, 4};
  for (const char* count : {"step", "epoch"}) {
    const std::string rows = std::string(count) + ",loss\n0,5.0\n0.5,4.9\n1.0,4.8\n1.5,4.7\n";
    const Told told = import_text(rows, {}, "t.csv");
    EXPECT_EQ(numbers(told.runs.at(0)), four) << rows;
    EXPECT_TRUE(told.noted("counts in fractions")) << rows;
    EXPECT_DOUBLE_EQ(told.runs[0].steps[1].loss, 4.9);
  }
  EXPECT_EQ(numbers(import_text("epoch,loss\n0.25,5\n0.5,4.9\n0.75,4.8\n1,4.7\n", {}, "t.csv").runs.at(0)), four);
  const Told two = import_text("run,step,loss\na,0,5\nb,0,5\na,0.5,4\nb,1,4\n", {}, "t.csv");
  EXPECT_EQ(numbers(two.runs.at(0)), (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(numbers(two.runs.at(1)), (std::vector<std::int64_t>{0, 1}));
  const Told whole = import_text("step,loss\n1.0,5\n2.0,4.9\n2.5,4.8\n3.0,4.7\n", {}, "t.csv");
  EXPECT_EQ(numbers(whole.runs.at(0)), (std::vector<std::int64_t>{1, 2, 3})) << "the fraction is a stray row";
  EXPECT_TRUE(whole.noted("a fraction"));
}

TEST(Ends, a_log_that_counts_in_fractions_is_refused) {
  for (const char* line :
       {"step {} | loss 3.5 | dt 100 ms\n", "{{\"step\": {}, \"loss\": 3.5}}\n", "step={} loss=3.5\n"}) {
    std::string text;
    for (int i = 0; i < 20; ++i) text += fmt::format(fmt::runtime(line), i / 2.0);
    try {
      import_text(text);
      ADD_FAILURE() << text;
    } catch (const ImportError& error) {
      EXPECT_NE(std::string(error.what()).find("fractions"), std::string::npos) << error.what();
    }
  }
}

TEST(Ends, names_without_end_are_refused) {
  const auto refusal = [](const std::string& header, const std::string& row, std::size_t rows) {
    std::string text = header;
    for (std::size_t i = 0; i < rows; ++i) text += fmt::format(fmt::runtime(row), i);
    try {
      import_text(text, {}, "t.csv");
    } catch (const ImportError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(refusal("run,step,loss\n", "r{},1,2.5\n", most_runs_of_input + 1).find("runs in its column 'run'"),
            std::string::npos);
  EXPECT_NE(
      refusal("step,metric,value\n", "1,m{},2.5\n", most_logged_metrics + 1).find("metrics in its column 'metric'"),
      std::string::npos);
  EXPECT_EQ(refusal("step,metric,value\n", "1,m{},2.5\n", most_logged_metrics - 1), "");
}

TEST(Ends, the_time_stamps_tell_what_a_wrong_label_hides) {
  std::string log;
  for (int i = 1; i <= 30; ++i)
    log += fmt::format("2026-01-01 10:{:02}:{:02},000 step {} loss {:.3f} dt {:.3f}ms\n", i * 2 / 60, i * 2 % 60, i,
                       5 - 0.01 * i, 2.0 + 0.001 * (i % 3));
  const Told told = import_text(log);
  EXPECT_NEAR(told.runs.at(0).steps.at(10).dt_ms, 2000, 20);
  EXPECT_TRUE(told.noted("whatever its label says"));
}

}  // namespace
}  // namespace stepladder
