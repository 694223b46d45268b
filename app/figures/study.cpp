// Judges the runs of an export once, and words headline, captions and verdicts for all formats. Runs that aren't of one
// ladder become one rung each, with the first as baseline; `kept` has them as they are stored.
#include "app/figures/study.h"

#include <algorithm>
#include <set>

#include "app/runs/run_json.h"
#include "app/text/format.h"
#include "app/text/verdict_text.h"
#include "storage/analysis/recipe_facts.h"
#include "storage/by_enum.h"
#include "storage/importers/journal/journal_reader.h"

namespace stepladder {
namespace {

using StringSet = std::set<std::string>;

bool is_one_ladder(const std::vector<LoadedRun>& runs) {
  return runs.size() > 1 && runs.front().run.ladder &&
         std::ranges::all_of(runs, [&](const LoadedRun& run) { return run.run.ladder == runs.front().run.ladder; });
}

std::string first_of(std::initializer_list<std::string> texts) {
  for (const std::string& text : texts)
    if (!text.empty()) return text;
  return {};
}

StudyRung make_rung(RungJudgement judged, const Study& study, bool tokens_are_known) {
  StudyRung rung{.judged = std::move(judged)};
  const auto first = std::ranges::find_if(
      study.runs, [&](const LoadedRun& candidate) { return &candidate.run == rung.judged.runs.front(); });
  rung.first = &*first;
  const Run& run = rung.first->run;
  rung.label = first_of({run.title, run.stage, run.name, fmt::format("run {}", run.id)});
  if (!study.is_ladder) rung.label = first_of({run.name, rung.label});
  rung.changed = first_of({run.changed, run.precision});
  if (rung.changed == rung.label) rung.changed = run.precision;
  rung.rate = tokens_are_known ? rung.judged.tokens_per_s : rung.judged.steps_per_s;
  rung.rate_ci95 = rung.judged.rate_ci95(rung.rate);
  if (tokens_are_known) rung.limit = rung.judged.limit.tokens_per_s;
  return rung;
}

std::string joined(const StringSet& texts, const std::string& between, std::size_t most, const std::string& what) {
  if (texts.size() > most) return fmt::format("{} {}", texts.size(), what);
  std::string line;
  for (const std::string& text : texts) line += (line.empty() ? "" : between) + text;
  return line;
}

std::string range_text(std::int64_t low, std::int64_t high) {
  return low == high ? grouped(low) : grouped(low) + " to " + grouped(high);
}

std::string range_over(const std::vector<const Summary*>& summaries, std::int64_t Summary::*value) {
  const auto [low, high] = std::minmax_element(
      summaries.begin(), summaries.end(), [&](const Summary* a, const Summary* b) { return a->*value < b->*value; });
  return range_text((*low)->*value, (*high)->*value);
}

std::string file_name(const std::string& path) {
  return path.substr(path.find_last_of('/') + 1);
}

Json environment_of(const Run& run) {
  Json json = Json::parse(run.environment, nullptr, false);
  return json.is_object() ? json : Json::object();
}

}  // namespace

const StudyRung* Study::best() const {
  const StudyRung* best = nullptr;
  for (const StudyRung& rung : rungs) {
    const LossVerdict loss = rung.judged.loss.verdict;
    const bool counts = &rung != &rungs.front() && rung.judged.over_baseline.is(Verdict::faster) &&
                        loss != LossVerdict::worse && loss != LossVerdict::diverged &&
                        rung.first->run.status != RunStatus::failed;
    const double factor = rung.judged.over_baseline.factor;
    if (counts && (!best || factor > best->judged.over_baseline.factor)) best = &rung;
  }
  return best;
}

const StudyRung& Study::rung_of(const Run& run) const {
  const auto found = std::ranges::find_if(rungs, [&](const StudyRung& rung) { return rung.judged.rung == run.rung; });
  return found == rungs.end() ? rungs.front() : *found;
}

Study make_study(std::string title, std::string origin, std::vector<LoadedRun> runs, const HardwareTable& hardware) {
  Study study;
  study.title = std::move(title);
  study.origin = std::move(origin);
  study.is_ladder = is_one_ladder(runs);
  study.runs = std::move(runs);
  for (const LoadedRun& loaded : study.runs) study.kept.push_back(loaded.run);
  if (!study.is_ladder) {
    for (std::size_t i = 0; i < study.runs.size(); ++i) {
      Run& run = study.runs[i].run;
      run.rung = static_cast<int>(i);
      run.repeat = 0;
      run.loss_against = 0;
      run.stands_on = -1;
    }
  }
  const bool tokens_are_known =
      std::ranges::any_of(study.runs, [](const LoadedRun& run) { return !is_missing(run.summary.tokens_per_s); });
  if (!tokens_are_known) study.rate_unit = "steps/s";
  for (RungJudgement& judged : judge_rungs(measured(study.runs), hardware))
    study.rungs.push_back(make_rung(std::move(judged), study, tokens_are_known));
  study.rungs.front().is_baseline = true;
  return study;
}

namespace {

std::string first_sentence(const Study& study) {
  const auto count = [&](Trust trust) {
    return static_cast<std::size_t>(
        std::ranges::count_if(study.rungs, [&](const StudyRung& rung) { return rung.judged.trust == trust; }));
  };
  const std::string rung_word = study.is_ladder ? "rung" : "run";
  if (const StudyRung* best = study.best()) {
    std::string text = best->label + (study.is_ladder ? " brings this ladder to " : " reaches ") +
                       factor_text(best->judged.over_baseline.factor) + " the baseline's throughput";
    if (is_informative(best->judged.over_baseline.ci95)) text += " (95 % interval " + factor_interval_text(*best) + ")";
    if (best->judged.loss.verdict == LossVerdict::same) return text + ", and the loss stayed the same.";
    if (best->judged.loss.verdict == LossVerdict::better)
      return text + ", and the loss is " + loss_verdict_text(*best) + ".";
    if (best->judged.loss.verdict == LossVerdict::inconclusive)
      return text + "; whether the loss stayed the same is inconclusive.";
    return text + "; its loss cannot be compared with the baseline's.";
  }
  if (study.rungs.size() == 1) {
    const StudyRung& only = study.rungs.front();
    return is_missing(only.rate) ? "One " + rung_word + ", without step times."
                                 : only.label + " runs at " + compact(only.rate) + " " + study.rate_unit + ".";
  }
  if (!study.rungs.front().is_measured()) return "The baseline has no step times, so no factor over it is known.";
  if (!study.rungs.front().is_trusted())
    return "The baseline's own throughput is " + std::string(to_string(study.rungs.front().judged.trust)) +
           ", so no factor over it can be trusted.";
  if (const std::size_t impossible = count(Trust::impossible); impossible > 0)
    return "No " + rung_word + " is credibly faster than the baseline: " + std::to_string(impossible) + " of " +
           std::to_string(std::ranges::count_if(study.rungs, &StudyRung::is_measured)) +
           " are beyond the hardware's peak.";
  return "No " + rung_word + " is clearly faster than the baseline with the same loss.";
}

}  // namespace

std::string headline(const Study& study) {
  std::vector<AnsweredRung> rungs;
  for (const StudyRung& rung : study.rungs) rungs.push_back({rung.label, &rung.judged});
  const std::string answer = study.is_ladder ? answer_text(rungs, study.binned_runs) : "";
  return first_sentence(study) + (answer.empty() ? "" : " " + answer);
}

std::string hardware_line(const Study& study) {
  StringSet hardware;
  StringSet precision;
  StringSet models;
  std::set<std::int64_t> batches;
  for (const LoadedRun& loaded : study.runs) {
    const Run& run = loaded.run;
    if (const std::string name = first_of({run.hardware, run.device}); !name.empty()) hardware.insert(name);
    if (!run.precision.empty()) precision.insert(run.precision);
    const std::string model = recipe_facts(run).model;
    if (run.params > 0)
      models.insert((model.empty() ? "" : model + ", ") + compact(static_cast<double>(run.params)) + " parameters");
    else if (!model.empty())
      models.insert(model);
    if (run.tokens_per_step > 0) batches.insert(run.tokens_per_step);
  }
  std::string line = hardware.empty() ? "unknown hardware" : joined(hardware, " and ", 3, "kinds of hardware");
  if (!precision.empty()) line += "; " + joined(precision, ", ", 4, "precisions");
  if (!models.empty()) line += "; " + joined(models, " and ", 2, "models");
  if (batches.size() > 4)
    line += "; " + grouped(*batches.begin()) + " to " + grouped(*batches.rbegin()) + " tokens per step";
  else if (!batches.empty()) {
    line += ";";
    for (const std::int64_t tokens : batches) line += (tokens == *batches.begin() ? " " : ", ") + grouped(tokens);
    line += " tokens per step";
  }
  return line;
}

std::string sample_line(const Study& study) {
  std::vector<const Summary*> with_steps;
  for (const LoadedRun& loaded : study.runs)
    if (loaded.summary.steps > 0) with_steps.push_back(&loaded.summary);
  const std::size_t without = study.runs.size() - with_steps.size();
  if (with_steps.empty()) return "No run has steps.";
  const std::size_t rungs = static_cast<std::size_t>(
      std::ranges::count_if(study.rungs, [](const StudyRung& rung) { return rung.first->summary.steps > 0; }));
  std::string line = "n = ";
  if (!study.is_ladder)
    line += plural(with_steps.size(), "run");
  else if (with_steps.size() % rungs == 0)
    line += plural(rungs, "rung") + " x " + plural(with_steps.size() / rungs, "run");
  else
    line += plural(with_steps.size(), "run") + " of " + plural(rungs, "rung");
  line += " x " + range_over(with_steps, &Summary::steps) + " steps, the first " +
          range_over(with_steps, &Summary::warmup_steps) + " excluded from the times as warm-up";
  if (without > 0) line += "; " + plural(without, "run") + " without steps";
  return line + ".";
}

std::string timing_line(const Study& study) {
  constexpr auto ways_of =
      by_enum<Sync>("read after events on the device's stream", "read after the device had finished",
                    "read without waiting for the device", "read in a way that is not recorded");
  StringSet ways;
  for (const LoadedRun& loaded : study.runs) ways.insert(ways_of[loaded.run.sync]);
  return "The clock was " + joined(ways, "; in others ", 4, "") + ".";
}

std::string version_line(const Study& study) {
  StringSet torch;
  StringSet commits;
  StringSet files;
  for (const LoadedRun& loaded : study.runs) {
    const Json environment = environment_of(loaded.run);
    if (const std::string version = text_in(environment, "torch_version"); !version.empty()) torch.insert(version);
    if (const auto git = environment.find("git"); git != environment.end() && git->is_object()) {
      const auto dirty = git->find("dirty");
      const bool changed = dirty != git->end() && dirty->is_boolean() && dirty->get<bool>();
      commits.insert(text_in(*git, "commit").substr(0, 10) + (changed ? " with changes" : ""));
    }
    if (loaded.run.source != "launched" && !loaded.run.source_path.empty())
      files.insert(file_name(loaded.run.source_path));
  }
  std::string line = std::string("Stepladder ") + STEPLADDER_VERSION;
  if (!torch.empty()) line += ", LibTorch " + joined(torch, ", ", 3, "versions");
  if (!commits.empty()) line += ", commit " + joined(commits, ", ", 2, "commits");
  if (!files.empty()) line += "; imported from " + joined(files, ", ", 3, "files");
  return line + ".";
}

std::string excerpt_line(const Study& study) {
  std::size_t runs = 0;
  std::int64_t steps = 0;
  for (const LoadedRun& loaded : study.runs) {
    if (!loaded.is_excerpt()) continue;
    ++runs;
    steps = std::max(steps, std::ssize(loaded.series.step));
  }
  if (runs == 0) return {};
  return "Of " + plural(runs, "long run") +
         " the interval, the distribution of step times and the loss verdict come from " +
         (runs == 1 ? "" : "at most ") + grouped(steps) +
         " evenly spaced steps; curves show the means of neighbouring steps, in a band from the lowest to the highest.";
}

std::string trust_text(const StudyRung& rung) {
  const RungJudgement& judged = rung.judged;
  const Sync sync = rung.first->run.sync;
  std::string sum;
  if (!is_missing(judged.limit.tflops) && !is_missing(judged.limit.peak_tflops))
    sum = (judged.limit.condition.empty() ? "" : "~") + compact_in_unit(judged.limit.tflops) + " of " +
          compact_in_unit(judged.limit.peak_tflops) + " TFLOP/s" +
          (judged.limit.condition.empty() ? "" : " " + judged.limit.condition);
  if (judged.trust == Trust::impossible)
    return judged.limit.tflops > judged.limit.peak_tflops ? "impossible: " + sum : "impossible in a repeat";
  if (judged.trust == Trust::doubtful)
    return (sync == Sync::none ? "not synchronised" : "doubtful") + (sum.empty() ? "" : ": " + sum);
  if (judged.is_checked && !sum.empty()) return "plausible: " + sum;
  if (is_missing(rung.rate)) return "-";
  if (!sum.empty()) return "possible: " + sum;
  return sync == Sync::unknown ? "timing sync unknown" : "synchronised, no peak known";
}

std::string verdict_text(const StudyRung& rung) {
  if (rung.is_baseline) return "baseline" + (rung.is_trusted() ? "" : ", " + std::string(to_string(rung.judged.trust)));
  return verdict_text(rung.judged.over_baseline);
}

std::string loss_verdict_text(const StudyRung& rung) {
  if (rung.is_baseline) return loss_text({}, true);
  if (rung.first->summary.steps == 0) {
    const RunStatus status = rung.first->run.status;
    return status == RunStatus::finished ? "no steps" : std::string(to_string(status));
  }
  std::string text = loss_text(rung.judged.loss, false);
  if (rung.judged.loss_against > 0) text += fmt::format(" (vs rung {})", rung.judged.loss_against);
  return text;
}

std::string factor_interval_text(const StudyRung& rung) {
  return ci95_text(rung.judged.over_baseline.ci95);
}

}  // namespace stepladder
