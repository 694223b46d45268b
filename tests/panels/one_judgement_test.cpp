// The report, the window's models and the command line must give the same answer in every case.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <limits>

#include "app/cli/compare_command.h"
#include "app/cli/report.h"
#include "app/desktop/models/comparison.h"
#include "app/desktop/models/ladder_model.h"
#include "app/desktop/models/run_columns.h"
#include "app/figures/study.h"
#include "app/panels/mfu/parts.h"
#include "app/panels/run/head.h"
#include "app/record/pool_source.h"
#include "app/runs/excerpt.h"
#include "app/runs/loaded_runs.h"
#include "app/text/format.h"
#include "app/text/verdict_text.h"

namespace stepladder {
namespace {

constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();

struct RepeatedRun {
  int rung = 0;
  double dt_ms = 100;
  std::int64_t steps = 60;
  std::int64_t nan_at = 0;
  Sync sync = Sync::event;
  RunStatus status = RunStatus::finished;
  std::int64_t untimed_at = 0;  // this step has no time
  std::int64_t tokens = 8192;   // 0: unknown
  std::vector<std::int64_t> spikes = {};
  bool disturbed = false;  // other programs used 1.5 of its 2 cores all the time
};

// GPT-2 124M on an A100 in bf16, whose peak is 8,192 tokens in 19.6 ms.
RunId add_run(RunStore& store, LadderId ladder, const RepeatedRun& of, int repeat) {
  std::vector<StepRecord> steps;
  for (std::int64_t step = 1; step <= of.steps; ++step) {
    const double wobble = 1 + 0.0001 * static_cast<double>(step * 7919 % 13 - 6);
    steps.push_back({.step = step,
                     .loss = step == of.nan_at ? nan_value
                                               : 3 + 8.0 / static_cast<double>(step) +
                                                     (std::ranges::count(of.spikes, step) > 0 ? 4 : 0),
                     .val_loss = step == of.steps ? 3.1 : missing,
                     .dt_ms = step == of.untimed_at ? missing : of.dt_ms * wobble,
                     .tokens = of.tokens,
                     .at = 1000 + static_cast<double>(step)});
  }
  const stepladder::Run run{.name = "rung " + std::to_string(of.rung) + ", repeat " + std::to_string(repeat),
                            .ladder = ladder,
                            .rung = of.rung,
                            .repeat = repeat,
                            .stage = of.rung == 0 ? "baseline" : "tf32",
                            .status = of.status,
                            .created_at = 1,
                            .tokens_per_step = of.tokens,
                            .params = 124'439'808,
                            .device = "cuda",
                            .hardware = "NVIDIA A100-SXM4-40GB",
                            .precision = "bf16",
                            .sync = of.sync};
  if (!of.disturbed) return store.insert_finished(run, steps);
  stepladder::Run running = run;
  running.status = RunStatus::running;
  const RunId id = store.create_run(running);
  std::vector<RunEvent> events;
  for (StepRecord& step : steps) {
    step.run = id;
    events.emplace_back(step);
    events.emplace_back(SystemMetrics{.run = id,
                                      .step = step.step,
                                      .at = step.at,
                                      .contention = {.other_cores = 1.5, .cores = 2, .needed_cores = 2}});
  }
  events.emplace_back(RunEnded{.run = id, .at = 5000});
  store.apply(events);
  return id;
}

struct Case {
  std::string name;
  std::vector<RepeatedRun> runs;
  Trust base_trust, trust;  // of the rungs
  Verdict verdict;          // of rung 1's arithmetic
  std::string words;        // for people; empty: the front ends must agree, whatever the answer is
  LossVerdict loss;
};

void PrintTo(const Case& given, std::ostream* out) {
  *out << given.name;
}

// Everything that each front end must agree on, in one line.
std::string answer(Trust trust, const Gain& gain, const LossParity& loss) {
  std::array<char, 200> text{};
  std::snprintf(text.data(), text.size(), "%s, %.12g x (%.12g - %.12g), %s, loss %s", to_string(trust).data(),
                gain.factor, gain.ci95.low, gain.ci95.high, to_string(gain.verdict).data(),
                to_string(loss.verdict).data());
  return text.data();
}
std::string answer(const RungJudgement& judged) {
  return answer(judged.over_baseline.worst(), judged.over_baseline, judged.loss);
}
std::string answer(const Json& json) {
  const auto figure = [](const Json& value) { return value.is_number() ? value.get<double>() : missing; };
  const Json& ci95 = json.at("ci95");
  std::array<char, 200> text{};
  std::snprintf(text.data(), text.size(), "%s, %.12g x (%.12g - %.12g), %s, loss %s",
                json.at("trust").get<std::string>().c_str(), figure(json.at("speedup")),
                ci95.is_array() ? figure(ci95[0]) : missing, ci95.is_array() ? figure(ci95[1]) : missing,
                json.at("verdict").get<std::string>().c_str(),
                json.at("loss").at("verdict").get<std::string>().c_str());
  return text.data();
}

class OneJudgement : public testing::TestWithParam<Case> {
 protected:
  OneJudgement() {
    ladder_ = store_.create_ladder({.name = "two rungs"});
    std::map<int, int> repeats;
    for (const RepeatedRun& run : GetParam().runs)
      ids_[run.rung].push_back(add_run(store_, ladder_, run, repeats[run.rung]++));
    context_.hardware = HardwareTable::read(std::string(STEPLADDER_SOURCE_DIR) + "/assets/hardware.csv");
    for (const auto& run : store_.runs()) context_.repeats.add(run);
    workspace_.load(store_);
    workspace_.hardware = context_.hardware;
    workspace_.patience = std::chrono::hours(1);
  }

  // Updates a model and carries out its requests until there are no more.
  void settle(const std::function<void(DataRequests&)>& update) {
    for (int rounds = 0; rounds < 50; ++rounds) {
      DataRequests asked;
      update(asked);
      if (asked.empty()) return;
      read_now(asked, store_, workspace_);
    }
    ADD_FAILURE() << "it never rests";
  }

  std::map<RunId, RungJudgement> compare_view(const std::vector<RunId>& ids, bool mean) {
    ComparisonViewModel shown;
    std::vector<const RunEntry*> runs;
    for (const RunId id : ids) runs.push_back(workspace_.find(id));
    settle([&](DataRequests& asked) {
      shown.update(workspace_, runs, ids.front(), {.group_by = mean ? group_by_rung : ""}, {}, asked);
    });
    return shown.judged;
  }

  std::vector<RunId> all_ids() const {
    std::vector<RunId> all = ids_.at(0);
    all.insert(all.end(), ids_.at(1).begin(), ids_.at(1).end());
    return all;
  }

  RunStore store_ = RunStore::in_memory();
  LadderId ladder_ = 0;
  std::map<int, std::vector<RunId>> ids_;  // by rung
  RunContext context_;
  Workspace workspace_;
};

TEST_P(OneJudgement, OfARungIsTheSameInReportViewsAndLadderJson) {
  const Case& expected = GetParam();
  const std::vector<stepladder::Run> runs = store_.runs_of(ladder_);
  const Study study = make_study("two rungs", "", load_runs(store_, runs), context_.hardware);
  ASSERT_EQ(study.rungs.size(), 2u);
  const RungJudgement& reported = study.rungs[1].judged;
  const Trust base_trust = study.rungs[0].judged.trust;
  const std::string words = verdict_text(study.rungs[1]);
  if (!expected.words.empty()) {
    EXPECT_EQ(base_trust, expected.base_trust);
    EXPECT_EQ(reported.trust, expected.trust);
    EXPECT_EQ(reported.over_baseline.verdict, expected.verdict);
    EXPECT_EQ(reported.loss.verdict, expected.loss);
    EXPECT_EQ(words, expected.words);
  }

  LadderViewModel ladder;
  settle([&](DataRequests& asked) { ladder.update(workspace_, ladder_, 0, ComparisonAxis::steps, nullptr, asked); });
  ASSERT_EQ(ladder.model.rungs.size(), 2u);
  EXPECT_EQ(ladder.model.rungs[0].judged.trust, base_trust);
  EXPECT_EQ(answer(ladder.model.rungs[1].judged), answer(reported));
  EXPECT_EQ(verdict_text(ladder.model.rungs[1].judged.over_baseline), words);

  const std::map<RunId, RungJudgement> compared = compare_view(all_ids(), true);
  EXPECT_EQ(compared.at(ids_[0][0]).trust, base_trust);
  EXPECT_EQ(answer(compared.at(ids_[1][0])), answer(reported));

  const std::vector<LoadedRun> loaded = load_runs(store_, runs);
  const Json json = ladder_json({.id = ladder_}, loaded, {}, "a.db", context_);
  EXPECT_EQ(json.at("rungs")[0].at("trust"), to_string(base_trust));
  EXPECT_EQ(answer(json.at("rungs")[1]), answer(reported));
  const std::string table = ladder_table({.id = ladder_}, loaded, {}, context_);
  EXPECT_NE(table.find(words), std::string::npos) << table;
}

// History's factor is that of a single run, over the run that stands for the baseline.
TEST_P(OneJudgement, OfARunIsTheSameInHistory) {
  if (!GetParam().name.starts_with("awkward_")) return;
  const Study study = make_study("two rungs", "", load_runs(store_, store_.runs_of(ladder_)), context_.hardware);
  const double of_rung = study.rungs.at(1).judged.over_baseline.factor;
  ASSERT_FALSE(is_missing(of_rung));
  for (const RunId id : ids_[1]) {
    const RunEntry& entry = *workspace_.find(id);
    EXPECT_NEAR(cell_value("factor", entry, {&workspace_, 0}), of_rung, 0.01 * of_rung) << entry.run.name;
    EXPECT_EQ(cell_text("steps", entry, {&workspace_, 0}), grouped(store_.summary(entry.run).steps));
  }
  for (const RunId id : ids_[0]) {
    const RunEntry& entry = *workspace_.find(id);
    if (entry.run.status != RunStatus::finished) continue;
    EXPECT_NEAR(speedup(entry.summary, workspace_.find(ids_[1][0])->summary), of_rung, 0.01 * of_rung);
  }
}

// MFU lists each run's throughput; a record counts its training time, that of the axis of Compare.
TEST_P(OneJudgement, OfARunIsTheSameInMfuAndRecord) {
  if (!GetParam().name.starts_with("awkward_")) return;
  MfuTable table;
  derive_rows(table, workspace_, MfuConvention::six_n);
  for (const RunId id : all_ids()) {
    const RunEntry& entry = *workspace_.find(id);
    const auto row = std::ranges::find(table.rows, id, &MfuRow::run);
    ASSERT_NE(row, table.rows.end());
    const Json json = run_json(entry.run, store_.summary(entry.run), context_);
    const auto figure = [&](const char* name) {
      return json.at(name).is_null() ? missing : json.at(name).get<double>();
    };
    EXPECT_EQ(compact(row->tokens_per_s), compact(figure("tokens_per_s"))) << entry.run.name;
    EXPECT_EQ(percent(row->mfu), percent(figure("mfu"))) << entry.run.name;

    const SpeedrunLog log = speedrun_log_of(store_, entry.run);
    const Series steps = store_.series(id);
    const std::vector<double> clock = axis_values(entry.run, steps, Axis::time);
    ASSERT_EQ(log.evaluations.size(), 1u) << entry.run.name;
    EXPECT_NEAR(log.evaluations.front().time_ms, 1000 * clock.back(), 1e-6 * 1000 * clock.back()) << entry.run.name;
    EXPECT_EQ(log.problem.empty(), entry.run.status == RunStatus::finished) << entry.run.name;
    EXPECT_EQ(log.last_step, entry.summary.last_step);
  }
}

TEST_P(OneJudgement, OfARunIsTheSameInCompareViewAndCommandLine) {
  std::vector<ComparedRun> compared;
  const std::vector<RunId> ids = all_ids();
  for (const RunId id : ids)
    compared.push_back(load_compared(store_, *store_.run(id), compared.empty(), most_steps_of_each(ids.size())));
  const Comparisons comparisons =
      compare_runs(compared.front(), std::span(compared).subspan(1), default_noise_floor, context_.hardware);
  const Json json = compare_json(comparisons);
  const std::map<RunId, RungJudgement> shown = compare_view(ids, false);
  const std::vector<CheckedRun> checked = check_runs(store_.runs_with_summaries(), context_);
  EXPECT_EQ(json.at("base_trust"), to_string(shown.at(ids.front()).trust));
  for (std::size_t i = 1; i < ids.size(); ++i) {
    const Json& row = json.at("runs")[i - 1];
    EXPECT_EQ(answer(row), answer(shown.at(ids[i]))) << "run " << ids[i];
    const auto check =
        std::find_if(checked.begin(), checked.end(), [&](const CheckedRun& run) { return run.run.id == ids[i]; });
    EXPECT_EQ(row.at("trust"), to_string(std::max(check->plausibility.trust, shown.at(ids.front()).trust)));
    EXPECT_EQ(to_string(check->plausibility.trust),
              run_json(check->run, store_.summary(check->run), context_).at("trust"));
    EXPECT_EQ(row.at("flags").size(), check->plausibility.flags.size());
  }
  for (const RunId id : ids) {  // the Run view's figure
    const auto snapshot_of = [&](RunId run) {
      const RunEntry* entry = workspace_.find(run);
      return RunSnapshot{.run = entry->run,
                         .known = entry->summary,
                         .is_excerpt = false,
                         .series = entry->excerpt ? entry->excerpt : entry->shared_series(),
                         .overviews = {},
                         .step_times = {}};
    };
    std::vector<RunSnapshot> repeats;
    for (const RunId other : ids_.at(workspace_.find(id)->run.rung))
      if (other != id && workspace_.find(other)->run.status == RunStatus::finished)
        repeats.push_back(snapshot_of(other));
    const Interval own = throughput_ci95(snapshot_of(id), repeats, context_.hardware);
    const Interval in_compare = shown.at(id).rate_ci95(shown.at(id).tokens_per_s);
    if (!own.known() && !in_compare.known()) continue;
    EXPECT_EQ(own.low, in_compare.low) << "run " << id;
    EXPECT_EQ(own.high, in_compare.high) << "run " << id;
  }
  if (ids.size() > 2 || GetParam().words.empty()) return;  // otherwise each rung has one run
  EXPECT_EQ(json.at("runs")[0].at("verdict"), to_string(GetParam().verdict));
  EXPECT_EQ(json.at("runs")[0].at("trust"), to_string(std::max(GetParam().trust, GetParam().base_trust)));
  EXPECT_EQ(verdict_text(shown.at(ids[1]).over_baseline), GetParam().words);
}

constexpr std::int64_t many = most_steps_read_whole + 50'000;

INSTANTIATE_TEST_SUITE_P(
    Cases, OneJudgement,
    testing::Values(
        Case{"clean",
             {{.rung = 0}, {.rung = 1, .dt_ms = 50}},
             Trust::trusted,
             Trust::trusted,
             Verdict::faster,
             "faster, one run",
             LossVerdict::same},
        Case{"awkward_stopped_baseline",
             {{.rung = 0, .dt_ms = 180, .steps = 38, .status = RunStatus::stopped},
              {.rung = 0},
              {.rung = 1, .dt_ms = 50},
              {.rung = 1, .dt_ms = 50.1}}},
        Case{"awkward_unequal_repeats",
             {{.rung = 0}, {.rung = 0, .dt_ms = 100.1}, {.rung = 0, .dt_ms = 99.9}, {.rung = 1, .dt_ms = 50}}},
        Case{"awkward_one_missing_time", {{.rung = 0, .untimed_at = 20}, {.rung = 1, .dt_ms = 50, .untimed_at = 1}}},
        Case{"awkward_unknown_tokens", {{.rung = 0, .tokens = 0}, {.rung = 1, .dt_ms = 50, .tokens = 0}}},
        Case{"awkward_long_with_spikes",
             {{.rung = 0, .steps = many, .spikes = {100'001, 200'001}}, {.rung = 1, .dt_ms = 50, .steps = many}}},
        Case{"second_repeat_impossible",
             {{.rung = 0}, {.rung = 0, .dt_ms = 100.1}, {.rung = 1, .dt_ms = 10.1}, {.rung = 1, .dt_ms = 10}},
             Trust::trusted,
             Trust::impossible,
             Verdict::cannot_tell,
             "impossible",
             LossVerdict::same},
        Case{"only_the_second_repeat_impossible",
             {{.rung = 0}, {.rung = 0, .dt_ms = 100.1}, {.rung = 1, .dt_ms = 50}, {.rung = 1, .dt_ms = 10}},
             Trust::trusted,
             Trust::impossible,
             Verdict::cannot_tell,
             "impossible",
             LossVerdict::same},
        Case{"nan_between_excerpt_blocks",
             {{.rung = 0, .steps = many}, {.rung = 1, .dt_ms = 50, .steps = many, .nan_at = 200'001}},
             Trust::trusted,
             Trust::doubtful,
             Verdict::faster,
             "faster, one run, doubtful",
             LossVerdict::diverged},
        Case{"impossible_baseline",
             {{.rung = 0, .dt_ms = 10}, {.rung = 1, .dt_ms = 50}},
             Trust::impossible,
             Trust::trusted,
             Verdict::cannot_tell,
             "baseline impossible",
             LossVerdict::same},
        Case{"doubtful_baseline",
             {{.rung = 0, .sync = Sync::none}, {.rung = 1, .dt_ms = 50}},
             Trust::doubtful,
             Trust::trusted,
             Verdict::faster,
             "faster, one run, doubtful",
             LossVerdict::same},
        Case{"disturbed_rung",
             {{.rung = 0}, {.rung = 1, .dt_ms = 50, .disturbed = true}},
             Trust::trusted,
             Trust::doubtful,
             Verdict::cannot_tell,
             "inconclusive",
             LossVerdict::same},
        Case{"disturbed_repeat_is_left_out",
             {{.rung = 0},
              {.rung = 0, .dt_ms = 100.1},
              {.rung = 1, .dt_ms = 50},
              {.rung = 1, .dt_ms = 190, .disturbed = true}},
             Trust::trusted,
             Trust::trusted,
             Verdict::faster,
             "faster, one run",
             LossVerdict::same},
        Case{"repeats_that_disagree",
             {{.rung = 0}, {.rung = 0, .dt_ms = 100.1}, {.rung = 1, .dt_ms = 50}, {.rung = 1, .dt_ms = 95}},
             Trust::trusted,
             Trust::trusted,
             Verdict::cannot_tell,
             "inconclusive",
             LossVerdict::same},
        Case{"second_repeat_diverged",
             {{.rung = 0},
              {.rung = 0, .dt_ms = 100.1},
              {.rung = 1, .dt_ms = 50},
              {.rung = 1, .dt_ms = 50.1, .nan_at = 40}},
             Trust::trusted,
             Trust::doubtful,
             Verdict::faster,
             "faster, doubtful",
             LossVerdict::diverged}),
    [](const auto& each) { return each.param.name; });

TEST(OneJudgementCases, TheNaNIsNotInTheExcerpt) {
  RunStore store = RunStore::in_memory();
  const RunId run =
      add_run(store, store.create_ladder({.name = "one"}), {.rung = 0, .steps = many, .nan_at = 200'001}, 0);
  const Series excerpt = store.excerpt(run, longest_excerpt);
  EXPECT_LT(std::ssize(excerpt.step), many);
  for (const double loss : excerpt.loss) ASSERT_TRUE(std::isfinite(loss));
  EXPECT_EQ(store.summary(*store.run(run)).nonfinite_steps, 1);
}

TEST(OneJudgementCases, AFactorInHistoryIsAgainstTheMedianOfTheBaseline) {
  RunStore store = RunStore::in_memory();
  const LadderId ladder = store.create_ladder({.name = "one"});
  const RunId slow = add_run(store, ladder, {.rung = 0, .dt_ms = 100}, 0);
  add_run(store, ladder, {.rung = 0, .dt_ms = 50}, 1);
  const RunId faster = add_run(store, ladder, {.rung = 1, .dt_ms = 50}, 0);
  Workspace workspace;
  workspace.load(store);
  const auto factor = [&](RunId run, RunId chosen) {
    return cell_value("factor", *workspace.find(run), {&workspace, chosen});
  };
  EXPECT_NEAR(factor(faster, 0), 4.0 / 3, 0.02);
  EXPECT_NEAR(factor(slow, 0), 2.0 / 3, 0.02);
  EXPECT_NEAR(factor(faster, slow), 2, 0.03) << "as the user chose";
}

// Compare begins with the run that History's factors are relative to.
TEST(OneJudgementCases, TheBaselineOfAComparisonIsNotADisturbedRepeat) {
  RunStore store = RunStore::in_memory();
  const LadderId ladder = store.create_ladder({.name = "one"});
  const RunId disturbed = add_run(store, ladder, {.rung = 0, .dt_ms = 900, .disturbed = true}, 0);
  const RunId quiet = add_run(store, ladder, {.rung = 0}, 1);
  add_run(store, ladder, {.rung = 1, .dt_ms = 50}, 0);
  add_run(store, ladder, {.rung = 2, .dt_ms = 40}, 0);
  Workspace workspace;
  workspace.load(store);
  const std::vector<const RunEntry*> runs = workspace.runs_of(ladder);
  EXPECT_EQ(baseline_among(runs, 0, workspace), quiet);
  EXPECT_EQ(compared_with(*runs.back(), workspace), quiet) << "Run, not with the previous rung";
  EXPECT_EQ(compared_with(*workspace.find(quiet), workspace), 0);
  EXPECT_EQ(baseline_among(runs, disturbed, workspace), disturbed) << "as the user chose";
  EXPECT_EQ(baseline_among({runs.back()}, 0, workspace), runs.back()->run.id);
}

TEST(OneJudgementCases, TheBaselineOfRunsWithoutALadderHasALossAndStepTimes) {
  RunStore store = RunStore::in_memory();
  store.insert_finished({.name = "no loss"}, std::vector<StepRecord>{{.step = 1, .dt_ms = 9}, {.step = 2, .dt_ms = 9}});
  store.insert_finished({.name = "no times"}, std::vector<StepRecord>{{.step = 1, .loss = 4}, {.step = 2, .loss = 3}});
  const auto both = std::vector<StepRecord>{{.step = 1, .loss = 4, .dt_ms = 9}, {.step = 2, .loss = 3, .dt_ms = 9}};
  const RunId first = store.insert_finished({.name = "both"}, both);
  store.insert_finished({.name = "both, newer"}, both);
  Workspace workspace;
  workspace.load(store);
  std::vector<const RunEntry*> runs;
  for (const RunEntry& entry : workspace.runs()) runs.push_back(&entry);
  EXPECT_EQ(baseline_among(runs, 0, workspace), first);
}

}  // namespace
}  // namespace stepladder
