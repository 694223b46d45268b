// The figure of a log that an importer read in full, in part, or not at all.
#include "app/record/log_figure.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

FigureQuestion metric(const std::string& name) {
  return {.by = FigureBy::metric, .metric = {.metric = name}};
}

TEST(LogFigure, OfALogThatIsReadInPartIsThatOfItsSteps) {
  const LoggedRun logged{.log = "",
                         .steps = {{.step = 1, .loss = 3}, {.step = 2, .loss = 2.5}},
                         .problem = "could not be read to its end"};
  EXPECT_EQ(figure_of_log(logged, metric("loss")).value, 2.5);
  EXPECT_THROW(figure_of_log(logged, {.by = FigureBy::loss}), NoFigure);
}

TEST(LogFigure, OfARunThatWentOnFromAnEarlierStepTheNewerValuesCount) {
  const LoggedRun logged{.log = "",
                         .steps = {{.step = 1, .loss = 3}, {.step = 2, .loss = 1}, {.step = 2, .loss = 2.5}}};
  FigureQuestion lowest = metric("loss");
  lowest.metric = *metric_figure_from("min(loss)");
  EXPECT_EQ(figure_of_log(logged, lowest).value, 2.5);
}

TEST(LogFigure, OfALogThatIsReadInPartThePrintedEndCounts) {
  const TemporaryFolder folder;
  std::ofstream(folder / "out.log") << "loss: 3\nloss: 2\n";
  const LoggedRun logged{.log = folder / "out.log", .steps = {{.step = 1, .loss = 3}}, .problem = "isn't a log"};
  EXPECT_EQ(figure_of_log(logged, metric("loss")).value, 2);
}

TEST(LogFigure, AUnitThatIsSaidOnceIsKept) {
  const TemporaryFolder folder;
  std::ofstream log(folder / "out.log");
  for (const char* const unit : {" W", ""}) {  // the log of two runs
    log << "B=8 T=1024\n";
    for (int step = 1; step <= 5; ++step)
      log << "step " << step << " | loss 3.5 | dt 100.00ms | power: " << 100 + step << unit << "\n";
  }
  log.close();
  const LogFigure power = figure_of_log(read_logged_run(folder / "out.log"), metric("power"));
  EXPECT_EQ(power.value, 105);
  EXPECT_EQ(power.unit, "W");
}

TEST(LogFigure, AValueThatIsOnlyPrintedIsReadFromTheLines) {
  const TemporaryFolder folder;
  std::ofstream(folder / "out.txt") << "nothing\nval_bpb: 0.9979\n";
  const LoggedRun logged = read_logged_run(folder / "out.txt");
  EXPECT_FALSE(logged.problem.empty());
  EXPECT_EQ(figure_of_log(logged, metric("val_bpb")).value, 0.9979);
}

double printed(const std::string& text, const std::string& name = "val_bpb") {
  const TemporaryFolder folder;
  std::ofstream(folder / "out.txt") << text;
  return figure_of_log({.log = folder / "out.txt", .problem = "isn't a log"}, metric(name)).value;
}

TEST(LogFigure, ANameStandsAlone) {
  for (const char* const other : {"train/val_bpb: 0.9", "ema-val_bpb: 0.9", "best val_bpb: 0.9", "goal val_bpb=0.9",
                                  "{\"best\": {\"val_bpb\": 0.9}}", "(ema) val_bpb: 0.9", "target: val_bpb: 0.9"})
    for (const char* const own :
         {"val_bpb: 1", "step 100: val_bpb: 1", "step:100/100 val_bpb:1", "loss=3, val_bpb=1",
          "{\"step\": 3, \"val_bpb\": 1}", "[rank0] val_bpb : 1", "40/40 [00:03<00:00, val_bpb=1]"})
      EXPECT_EQ(printed(std::string(own) + "\n" + other + "\n"), 1) << own << " | " << other;
  EXPECT_EQ(printed("memory_mb: 5000\nreserved memory_mb: 1000\n", "memory_mb"), 5000);
  EXPECT_EQ(printed("val_bpb: 1 (best val_bpb: 0.9)\n"), 1);
  EXPECT_EQ(printed("val_bpb: none yet, 0.5\nval_bpb: 1\n"), 1);
}

TEST(LogFigure, AnotherWordBeforeANameIsPartOfItIfThereAreSeveral) {
  EXPECT_EQ(printed("Final val_bpb: 1.1\nFinal val_bpb: 1\n"), 1);
  EXPECT_EQ(printed("rank0 INFO val_bpb: 1.1\nrank1 INFO val_bpb: 1\n"), 1);
  EXPECT_THROW(printed("Final val_bpb: 1\nbest val_bpb: 0.9\n"), NoFigure);
}

TEST(LogFigure, AUnitOrARemarkBehindAValueMakesAnotherOfIt) {
  for (const char* const other : {"0.73 nats", "0.9% (relative)", "0.948 (best)", "0.9 <- to beat", "0.9MB"}) {
    const std::string line = std::string("val_bpb: ") + other + "\n";
    EXPECT_EQ(printed(line + "val_bpb: 1\n"), 1) << other;
    EXPECT_THROW(printed("val_bpb: 1\n" + line), NoFigure) << other << ": nobody knows which one counts";
    const TemporaryFolder folder;
    std::ofstream(folder / "out.txt") << line;
    EXPECT_NE(figure_of_log({.log = folder / "out.txt", .problem = "isn't a log"}, metric("val_bpb")).unit, "")
        << other;
  }
  for (const char* const same : {"1 time 5.00ms", "1, 3 nats", "1 (12)", "1 s: 4", "1 ms=4", "1 at step 5", "1."})
    EXPECT_EQ(printed(std::string("val_bpb: 2\nval_bpb: ") + same + "\n"), 1) << same;
}

}  // namespace
}  // namespace stepladder
