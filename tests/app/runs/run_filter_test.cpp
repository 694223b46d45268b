#include "app/runs/run_filter.h"

#include <gtest/gtest.h>

#include <limits>

namespace stepladder {
namespace {

bool accepts(const std::string& expression) {
  Run run;
  run.name = "nano on text: Fused AdamW";
  run.stage = "fused-adamw";
  run.status = RunStatus::finished;
  Summary summary;
  summary.steps = 60;
  summary.tokens_per_s = 31'000;
  return RunFilter(expression).accepts(run, summary);
}

std::string problem_of(const std::string& expression, const ProjectNames& names = {}) {
  try {
    const RunFilter filter(expression, names);
  } catch (const FilterError& error) {
    return error.what();
  }
  return "none";
}

TEST(RunFilter, WordsAndConditionsMustAllHold) {
  EXPECT_TRUE(accepts(""));
  EXPECT_TRUE(accepts("NANO"));
  EXPECT_TRUE(accepts("nano status=finished tokens_per_s>20000"));
  EXPECT_FALSE(accepts("nano status=failed"));
  EXPECT_FALSE(accepts("nano tokens_per_s>40000"));
  EXPECT_TRUE(accepts("steps<=60 steps>=60 steps=60 steps!=61"));
  EXPECT_TRUE(accepts("stage~adamw"));
  EXPECT_FALSE(accepts("loss_last<5"));  // unknown isn't less
  EXPECT_TRUE(accepts("loss_last=null mfu=null"));
  EXPECT_TRUE(accepts("steps!=null"));
  EXPECT_FALSE(accepts("loss_last~null"));
}

TEST(RunFilter, ComparesTheFactorOverTheBaselineWhereItIsKnown) {
  const auto holds = [](RunId run, const std::string& expression) {
    RunContext context;
    context.factor = [](RunId id) { return id == 1 ? 1.5 : missing; };
    return RunFilter(expression).accepts({.id = run}, {}, context);
  };
  EXPECT_TRUE(holds(1, "factor>1.4 factor=1-2"));
  EXPECT_FALSE(holds(1, "factor>1.6"));
  EXPECT_TRUE(holds(2, "factor=null"));
  EXPECT_FALSE(holds(2, "factor<9")) << "unknown isn't less";
  EXPECT_FALSE(RunFilter("factor>1").accepts({.id = 1}, {}));
}

TEST(RunFilter, LooksAtTheRecipeAndAtWhatUsersSaid) {
  stepladder::Run run;
  run.name = "nano";
  run.recipe = R"({"batch": 12, "optimizer": "adamw"})";
  const Curation curation{.tags = {"fast", "Night"}, .note = "the good one", .pinned = true};
  const auto holds = [&](const std::string& expression) {
    RunContext context;
    context.curations[run.id] = curation;
    return RunFilter(expression).accepts(run, {}, context);
  };
  EXPECT_TRUE(holds("batch=12 optimizer=adamw"));
  EXPECT_TRUE(holds("batch>8"));
  EXPECT_FALSE(holds("batch>12"));
  EXPECT_FALSE(holds("grad_accum=1")) << "its recipe does not say";
  EXPECT_TRUE(holds("night pinned=true note~good"));
  EXPECT_TRUE(holds("tags~fast"));
  EXPECT_FALSE(holds("archived=true"));
}

TEST(RunFilter, TakesTagsThatAreNotUtf8) {
  RunContext context;
  context.curations[0] = {.tags = {"fast", "\xff\xfe"}, .note = "\x80"};
  EXPECT_TRUE(RunFilter("tags~fast note!=x").accepts({}, {}, context));
}

TEST(RunFilter, LooksAtValuesThatOnlyImportedRecipesHave) {
  stepladder::Run run;
  run.recipe = R"({"log_family": "csv", "batch_size": 16, "Optimizer.Name": "Muon"})";
  const auto names = [&] {
    std::set<std::string> found;
    add_recipe_names(run, found);
    return found;
  };
  const auto holds = [&](const std::string& expression) {
    return RunFilter(expression, {.recipe = names}).accepts(run, {});
  };
  EXPECT_TRUE(holds("batch_size=16 optimizer.name=muon"));
  EXPECT_FALSE(holds("batch_size>16"));
  EXPECT_THROW(holds("batchsize=16"), FilterError);
  EXPECT_THROW(RunFilter("batch_size=16"), FilterError);
}

TEST(RunFilter, WhatCannotBeUnderstoodIsSaid) {
  EXPECT_THROW(accepts("colour=red"), FilterError);
  EXPECT_NE(problem_of("loss_frist<3").find("did you mean loss_first?"), std::string::npos);
  EXPECT_THROW(accepts("steps=<5"), FilterError);
  EXPECT_THROW(accepts("steps="), FilterError);
  EXPECT_THROW(accepts("=5"), FilterError);
  EXPECT_THROW(accepts("steps>many"), FilterError);
}

ProjectNames logged() {
  return {.metrics = [] { return std::set<std::string>{"val/acc", "Val/Acc", "top 1 (%)", "seven"}; }};
}

TEST(RunFilter, ComparesAnyMetric) {
  stepladder::Run run;
  run.id = 7;
  const auto holds = [&](const std::string& expression) {
    const RunFilter filter(expression, logged());
    FigureTable table(filter.figures());
    for (std::size_t i = 0; i < table.figures().size(); ++i) {
      const MetricFigure& figure = table.figures()[i];
      double value = figure.metric == "val/acc" ? 0.25 : figure.metric == "top 1 (%)" ? 70 : missing;
      if (figure.metric == "Val/Acc") value = std::numeric_limits<double>::quiet_NaN();
      if (figure.metric == "loss") value = std::numeric_limits<double>::infinity();
      if (figure.kind == MetricFigure::Kind::min) value -= 0.125;
      if (figure.kind == MetricFigure::Kind::at) value = static_cast<double>(figure.step);
      table.set(7, i, value);
    }
    return filter.accepts(run, {}, {}, table);
  };
  EXPECT_TRUE(holds("val/acc > 0.2 val/acc<0.3 VAL/ACC=nan"));
  EXPECT_TRUE(holds("val/acc=0.25 last(val/acc) >= 0.25 min(val/acc) < 0.2"));
  EXPECT_FALSE(holds("min(val/acc)>0.2"));
  EXPECT_TRUE(holds("\"top 1 (%)\" > 60 max( \"top 1 (%)\" )<=70"));
  EXPECT_TRUE(holds("at(val/acc, 1000)=1000"));
  EXPECT_TRUE(holds("seven=null val/acc!=null"));
  EXPECT_FALSE(holds("seven<9")) << "unknown isn't less";
  EXPECT_TRUE(holds("loss > 1e300")) << "infinity is more";
  EXPECT_FALSE(holds("Val/Acc<1")) << "NaN is neither less";
  EXPECT_FALSE(holds("Val/Acc>=1")) << "nor more";
}

TEST(RunFilter, CombinesConditions) {
  EXPECT_TRUE(accepts("steps=1 or steps=60"));
  EXPECT_TRUE(accepts("steps=1 status=failed or nano steps=60")) << "`or` binds loosest";
  EXPECT_FALSE(accepts("(steps=1 or steps=60) status=failed"));
  EXPECT_TRUE(accepts("nano AND not status=failed not(steps=1 or steps=2)"));
  EXPECT_FALSE(accepts("not not not steps=60"));
  EXPECT_FALSE(accepts("\"or\"")) << "a word in quotation marks";
  EXPECT_TRUE(accepts("((nano))"));
  for (const char* wrong : {"or", "nano or", "or nano", "not", "(nano", "()", "nano)", "nano and", "and nano", "(or)"})
    EXPECT_NE(problem_of(wrong), "none") << wrong;
  EXPECT_NE(problem_of(std::string(1000, '(') + "x").find("too deep"), std::string::npos);
  EXPECT_NE(problem_of("(nano").find("(at character 1)"), std::string::npos);
}

TEST(RunFilter, TakesListsAndRanges) {
  EXPECT_TRUE(accepts("status=failed,finished"));
  EXPECT_NE(problem_of("status=doubtful").find("write trust=doubtful"), std::string::npos);
  EXPECT_FALSE(accepts("status!=failed,finished"));
  EXPECT_TRUE(accepts("steps=1,50-70 steps!=1-59"));
  EXPECT_THROW(accepts("steps=\"50-70\""), FilterError) << "in quotation marks it is a text";
  EXPECT_FALSE(accepts("\"&&\""));
  EXPECT_THROW(accepts("steps=1 && nano"), FilterError);
  EXPECT_TRUE(accepts("stage~muon,adamw"));
  EXPECT_TRUE(accepts("name=\"nano on text: Fused AdamW\",x"));
  for (const char* wrong : {"steps=1,", "steps=,1", "steps<1,2", "steps<1-2"})
    EXPECT_NE(problem_of(wrong), "none") << wrong;
  stepladder::Run run;
  run.recipe = R"({"lr": 2e-4, "data": "a,b.txt"})";
  const auto holds = [&](const char* expression) { return RunFilter(expression).accepts(run, {}); };
  EXPECT_TRUE(holds("lr=1e-4-3e-4 data=a,b.txt"));
  EXPECT_FALSE(holds("lr=1e-5,1e-3"));
}

TEST(RunFilter, KnowsAllValuesOfSomeFields) {
  EXPECT_NE(problem_of("status=finshed").find("did you mean finished?"), std::string::npos);
  EXPECT_NE(problem_of("nano status=finished,stoped").find("did you mean stopped?"), std::string::npos);
  for (const char* wrong : {"trust=good", "sync!=sync", "pinned=yes", "paused=1", "flags=odd", "stages=bf61"})
    EXPECT_NE(problem_of(wrong), "none") << wrong;
  EXPECT_EQ(problem_of("trust=impossible,doubtful sync=unknown pinned=TRUE flags!=no-sync stages=null status~fin"),
            "none");
}

TEST(RunFilter, ComparesTimesAsFarAsTheyAreWritten) {
  stepladder::Run run;
  run.created_at = 1'790'000'000;  // 2026-09-21T14:13:20Z
  const auto holds = [&](const char* expression) { return RunFilter(expression).accepts(run, {}); };
  EXPECT_TRUE(holds("created_at=2026 created_at=2026-09-21 created_at>=2026-09-21 created_at<=2026-09"));
  EXPECT_TRUE(holds("created_at>2026-08 created_at<2026-09-21T14:14 created_at=\"2026-09-21 14:13\""));
  EXPECT_FALSE(holds("created_at>2026-09-21"));
  EXPECT_FALSE(holds("created_at!=2026-09-20,2026-09-21"));
  EXPECT_TRUE(holds("ended_at=null created_at!=null"));
  EXPECT_FALSE(holds("ended_at>2020"));
  for (const char* wrong :
       {"created_at>yesterday", "created_at=21.9.2026", "created_at<26-09", "created_at>=2026-9-21"})
    EXPECT_NE(problem_of(wrong).find("not a time"), std::string::npos) << wrong;
}

TEST(RunFilter, QuotationMarksHoldBlanksTogether) {
  stepladder::Run run;
  run.name = "two words";
  run.hardware = "NVIDIA A100";
  const auto holds = [&](const std::string& expression) { return RunFilter(expression).accepts(run, {}); };
  EXPECT_TRUE(holds("\"two words\" hardware = \"nvidia a100\""));
  EXPECT_FALSE(holds("\"words two\""));
  EXPECT_TRUE(holds("words two"));
}

TEST(RunFilter, AnErrorNamesItsPlace) {
  EXPECT_NE(problem_of("nano colour=red").find("(at character 6)"), std::string::npos);
  EXPECT_NE(problem_of("\xC3\xA9t\xC3\xA9 min(loss").find("bracket is missing (at character 13)"), std::string::npos);
  EXPECT_NE(problem_of("min(loss)").find("'min(loss)' needs a comparison"), std::string::npos);
  EXPECT_NE(problem_of("steps > many").find("(at character 9)"), std::string::npos);
  EXPECT_NE(problem_of("min(val/akk)<3", logged()).find("did you mean val/acc?"), std::string::npos);
  EXPECT_NE(problem_of("name=\"a").find("quotation mark is missing (at character 6)"), std::string::npos);
}

TEST(RunFields, AreSeparatedByCommas) {
  RunFieldNames names(logged());
  const auto fields = run_fields_from("id, Name,at(val/acc, 10) ,\"top 1 (%)\",batch", names);
  std::vector<std::string> titles;
  for (const RunField& field : fields) titles.push_back(title_of(field));
  EXPECT_EQ(titles, (std::vector<std::string>{"id", "name", "at(val/acc, 10)", "last(\"top 1 (%)\")", "batch"}));
  EXPECT_EQ(figures_of(fields).size(), 2u);
  for (const char* wrong : {"", "id,", "id,,name", "colour", "min(x)", "min(val/acc) name"})
    EXPECT_THROW(run_fields_from(wrong, names), RunFieldError) << wrong;
}

}  // namespace
}  // namespace stepladder
