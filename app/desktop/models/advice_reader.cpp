// Copies what an answer needs of the window's state, then reads and judges without it. What a stage bought is
// advise()'s.
#include "app/desktop/models/advice_reader.h"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <optional>
#include <ranges>
#include <utility>

#include "app/launch/recipe_fields.h"
#include "app/launch/step_estimate.h"
#include "app/profile/predict.h"
#include "app/runs/excerpt.h"
#include "app/runs/loaded_runs.h"
#include "app/text/format.h"
#include "app/text/verdict_text.h"
#include "engine/stage.h"
#include "storage/analysis/prediction/stage_law.h"
#include "storage/errors.h"

namespace stepladder {
namespace {

// "In this order they buy at most 1.70 x: compile, flash-attention. ..."
std::string sentence_of(const PredictionOverview& overview) {
  if (overview.order.size() < 2) return overview.sentence;
  std::string stages = overview.order.back().stage;
  for (std::size_t at = stages.find('+'); at != std::string::npos; at = stages.find('+', at))
    stages.replace(at, 1, ", ");
  return "One after the other " + stages + " buy " + gain_text(overview.order.back().step) + "." +
         (overview.sentence.empty() ? "" : " " + overview.sentence);
}

// The gains of the stages by the newest trace of the run. Of a step of very many slices nothing is predicted here: the
// next frame waits.
void load_predictions(RunStore& store, AdviceRun& run, const DeviceReport* report, AdviceView& into) {
  std::optional<TraceId> newest;
  for (const StoredTrace& each : store.traces().list())
    if (each.run == run.run->id) newest = each.id;
  const std::int64_t slices = newest ? kept_slices(store, *newest) : 0;
  run.has_trace = slices > 0;
  if (slices == 0 || slices > most_slices_to_wait_for) return;
  const PredictionSubject subject = load_subject(store, store.traces().find(*newest).value());
  const PredictionOverview overview = predict_all(subject, report);
  into.notes = subject.notes;
  if (const std::string all = sentence_of(overview); !all.empty()) into.notes.insert(into.notes.begin(), all);
  for (const PredictionAnswer& each : overview.stages) run.predicted.push_back({each.stage, each.step});
  for (const auto& [kind, factor] : advised_kinds) {
    const WorkChange change{.kinds = {kind}, .factor = factor, .at_most = true};
    run.kinds.push_back({kind, factor, predict(subject, {.scales = {change}}, report).step});
  }
}

// All that an answer is made of, apart from the file.
struct Question {
  RunId about = 0;
  std::uint64_t version = 0;        // Workspace::version
  std::vector<RunAndSummary> runs;  // that are over
  HardwareTable hardware;
  std::optional<DeviceReport> device;
};

// Why a stage isn't proposed on top of the run, as Launch has it. Empty: it is.
std::string why_not(const Stage& stage, const Recipe& recipe, const Run& about, const Question& question) {
  const std::string why = stage.unavailable(recipe, *question.device, about.device).worded(label_of);
  Recipe with;
  stage.apply(with);
  if (!why.empty() || (with.autocast != Autocast::bf16 && with.matmul != MatmulPrecision::bf16)) return why;
  return why_not_bf16(about.device, *question.device, question.hardware, finished_runs(question.runs));
}

// "Most time goes to matrix products, which these stages shorten: Planned step (1.57 x (real)); Flash attention (not
// tried).": of the most expensive kind of work, with what each has bought; without those that aren't proposed here.
std::string levers_text(const AdviceView& view, const Recipe& recipe, const Run& about, const Question& question) {
  if (view.times.profile.steps == 0) return "";
  const std::array<KindTimes, 1> times{KindTimes(view.times.profile)};
  const std::vector<OperatorKind> kinds = kinds_in(times);
  if (kinds.empty()) return "";
  const OperatorKind kind = kinds.front();
  std::string levers;
  for (const Stage& stage : all_stages()) {
    if (!shortens(stage.known.law, about.device, kind)) continue;
    const auto advice = std::ranges::find(view.list, stage.id, &Advice::stage);
    const ExpectedGain gain = advice == view.list.end() ? ExpectedGain{} : advice->gain;
    if (!stage.is_on(recipe) && gain.source != GainSource::own_measurement && !gain.known() &&
        !why_not(stage, recipe, about, question).empty())
      continue;
    const std::string state = stage.is_on(recipe)                                           ? "on in this run"
                              : gain.source == GainSource::own_measurement && !gain.known() ? "tried, inconclusive"
                              : gain.known()                                                ? gain_words(gain)
                                                                                            : "not tried";
    levers += (levers.empty() ? "" : "; ") + stage.title + " (" + state + ")";
  }
  const std::string name(to_string(kind));
  return levers.empty() ? "Most time goes to " + name + ", which no stage that is proposed here shortens."
                        : "Most time goes to " + name + ", which these stages shorten: " + levers + ".";
}

// Of a run that was launched here, since only its recipe can be launched with one stage more.
void name_unavailable(AdviceView& view, const Run& about, const Question& question) {
  const Recipe recipe = recipe_from_json(about.recipe);
  for (const Advice& advice : view.list) {
    if (advice.stage.empty()) continue;
    const std::string why = why_not(stage_by_id(advice.stage), recipe, about, question);
    if (!why.empty()) view.unavailable[advice.stage] = why;
  }
  view.levers = levers_text(view, recipe, about, question);
  std::erase_if(view.list, [&](const Advice& advice) {
    if (advice.kind != AdviceKind::open || advice.stage.empty()) return false;
    const bool is_worth_a_try = advice.gain.answer || stage_by_id(advice.stage).seldom_faster(about.device).empty();
    return !is_worth_a_try || view.unavailable.contains(advice.stage);
  });
}

// Reads the steps of ladders that may speak about the run, so that they can be judged: its own, and the newest others
// of its hardware.
void read_ladders(RunStore& store, const Run& about, std::vector<AdviceRun>& project, std::deque<Series>& kept) {
  constexpr std::size_t most_runs = 100;  // beside those of its own ladder
  std::map<LadderId, std::vector<AdviceRun*>, std::greater<>> ladders;
  for (AdviceRun& run : project)
    if (run.run->ladder && (run.run->ladder == about.ladder || run.run->hardware == about.hardware))
      ladders[*run.run->ladder].push_back(&run);
  std::size_t read = 0;
  for (const auto& [ladder, runs] : ladders) {
    if (ladder != about.ladder && (read + runs.size() > most_runs || runs.size() < 2)) continue;
    read += ladder == about.ladder ? 0 : runs.size();
    for (AdviceRun* run : runs)
      run->series = &kept.emplace_back(load_run(store, *run->run, most_steps_of_each(runs.size())).series);
  }
}

// Reads the parts of a step only for runs that were trained here, and only for the newest.
AdviceView answer_of(RunStore& store, const Question& question) {
  constexpr std::size_t most_read = 100;
  std::vector<AdviceRun> project;
  std::size_t read = 0;
  for (const auto& [run, summary] : question.runs | std::views::reverse) {
    AdviceRun& added = project.emplace_back(AdviceRun{.run = &run, .summary = &summary});
    if (run.id == question.about || (run.source == "launched" && read++ < most_read))
      added.parts = store.recordings().mean_parts(run, summary.warmup_steps);
  }
  std::ranges::reverse(project);
  AdviceView made{.about = question.about, .made_for = question.version};
  const auto about = std::ranges::find(project, question.about, [](const AdviceRun& each) { return each.run->id; });
  if (about == project.end()) return made;
  std::deque<Series> kept;
  read_ladders(store, *about->run, project, kept);
  const Overview loss = store.overview(question.about, Quantity::loss);
  const DeviceReport* const device = question.device ? &*question.device : nullptr;
  about->loss = &loss;
  about->timed = store.recordings().profile(question.about);
  made.times = fit_to_step(about->timed, about->parts, about->summary->dt_ms_median);
  load_predictions(store, *about, device, made);
  made.has_trace = about->has_trace;
  made.list = advise(project, question.about, question.hardware, known_stages(), true);
  if (device && about->run->source == "launched") name_unavailable(made, *about->run, question);
  made.past = past_predictions(store);
  return made;
}

AdviceView answer_or_problem(RunStore& store, const Question& question) {
  try {
    return answer_of(store, question);
  } catch (const std::exception& error) {  // StorageError, a damaged trace
    return {.about = question.about, .made_for = question.version, .problem = error_text(error)};
  }
}

}  // namespace

std::string range_words(const ExpectedGain& gain) {
  if (gain.source == GainSource::arithmetic) return "at most " + factor_text(gain.high);
  return gain.low == gain.high ? factor_text(gain.low) : factor_text(gain.low) + " to " + factor_text(gain.high);
}

std::string gain_words(const ExpectedGain& gain) {
  if (gain.source == GainSource::arithmetic) return range_words(gain);
  std::string by(gain.answer ? answer_word(*gain.answer) : "measured in several ladders");
  if (gain.source == GainSource::prediction) by = "by its trace";
  if (gain.source == GainSource::measured_elsewhere) by = "measured elsewhere";
  return range_words(gain) + " (" + by + ")";
}

bool AdviceReader::ask(Workspace& workspace, RunStore& store, RunId about) {
  if (is_pending()) return false;
  Question question{.about = about,
                    .version = workspace.version,
                    .runs = {},
                    .hardware = workspace.hardware,
                    .device = workspace.device};
  for (const RunEntry& entry : workspace.runs())
    if (is_over(entry.run.status)) question.runs.push_back({entry.run, entry.summary});
  if (store.file().empty()) {  // tests
    *workspace.advice = answer_or_problem(store, question);
    return true;
  }
  background_.start({.asked = {}, .data = {}}, [question = std::move(question), file = store.file()](JobControl&) {
    try {
      RunStore own = RunStore::open(file, RunStore::Mode::read_only);
      return answer_or_problem(own, question);
    } catch (const std::exception& error) {  // StorageError: a file that nobody can open
      return AdviceView{.about = question.about, .made_for = question.version, .problem = error_text(error)};
    }
  });
  return false;
}

}  // namespace stepladder
