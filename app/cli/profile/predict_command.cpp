// `stepladder predict`: what a stage, or a change of some work, would buy of a traced step; without a change, what is
// left at all.
#include <algorithm>
#include <iostream>
#include <memory>

#include "app/cli/commands.h"
#include "app/cli/table.h"
#include "app/exit_status.h"
#include "app/profile/predict.h"
#include "app/runs/open_store.h"
#include "app/text/format.h"

namespace stepladder {
namespace {

struct PredictOptions {
  std::string of;
  std::vector<std::string> stages, scales, parts;
};

std::string or_dash(double ms) {
  return is_missing(ms) ? "-" : milliseconds_text(ms);
}

// The laws, or what is known of past predictions, in a sentence; empty if there is nothing to say.
std::string record_text(const PredictionAnswer& answer) {
  const LawRecord& record = answer.record;
  if (record.n == 0) return "";
  const std::string checks = fmt::format("{} of {} compared with a measurement",
                                         plural(static_cast<std::int64_t>(record.n), "prediction"), answer.stage);
  if (answer.step.bound == Bound::at_most || is_missing(record.log_error))
    return fmt::format("{}: {} of them measured more than the bound.", checks, record.broken);
  return fmt::format("{}: in the median {} off.", checks, fine_percent_text(record.median_error));
}

std::string answer_text(const PredictionSubject& subject, const PredictionAnswer& answer) {
  std::string text = notes_text(subject_text(subject)) + "\n";
  if (!answer.rows.empty()) {
    std::vector<std::vector<std::string>> cells{{"work", "now", "then", "law"}};
    for (const PredictionRow& row : answer.rows)
      cells.push_back(
          {row.title, or_dash(row.before_ms), (row.at_most ? "at best " : "") + or_dash(row.after_ms), row.why});
    text += table(cells, {false, true, true, false}) + "\n";
  }
  if (answer.step.bound == Bound::unknown)
    return text + notes_text((answer.stage.empty() ? "The gain" : "The gain of " + answer.stage) +
                             " isn't predicted: " + answer.step.why_unknown + ".");
  std::string result = fmt::format("A step would take {} instead of {}: {}.", step_text(answer.step),
                                   milliseconds_text(subject.step_ms), gain_text(answer.step));
  for (const std::string& note : answer.notes) result += "\n" + note;
  if (const std::string record = record_text(answer); !record.empty()) result += "\n" + record;
  return text + notes_text(result);
}

std::string overview_text(const PredictionSubject& subject, const PredictionOverview& overview) {
  std::string text = notes_text(subject_text(subject)) + "\n";
  const StepFloor& floor = overview.floor;
  const double gap = floor.step_ms - floor.floor_ms;
  std::vector<std::vector<std::string>> cells{{"work", "a step", "at best", "of the gap"}};
  for (const KindFloor& each : floor.kinds) {
    if (each.ms < 0.005 * floor.step_ms) continue;
    const bool known = !is_missing(floor.floor_ms);
    cells.push_back({std::string(to_string(each.kind)), milliseconds_text(each.ms),
                     known ? milliseconds_text(each.least_ms) : "-",
                     known && gap > 0 ? percent_text(each.gap_ms() / gap) : "-"});
  }
  text += table(cells, {false, true, true, true}) + "\n";
  text += notes_text(overview.why_no_floor.empty()
                         ? overview.sentence +
                               fmt::format("\nThe work of {} of its time is known; the rest counts in full.",
                                           percent_text(floor.known_share))
                         : overview.why_no_floor) +
          "\n";
  if (!overview.largest.empty()) text += notes_text(overview.largest) + "\n";
  std::vector<std::vector<std::string>> stages{{"stage", "a step", "gain", "why"}};
  std::string unchanged;
  for (const PredictionAnswer& each : overview.stages) {
    const bool known = each.step.bound != Bound::unknown;
    if (changes_nothing(each)) {
      unchanged += (unchanged.empty() ? "" : ", ") + each.stage;
      continue;
    }
    stages.push_back({each.stage, step_text(each.step), gain_text(each.step),
                      known ? each.rows.empty() ? "" : each.rows.front().why : each.step.why_unknown});
  }
  if (stages.size() > 1) text += table(stages, {false, true, true, false});
  if (!unchanged.empty()) text += "\n" + notes_text("By their laws a step takes as long with " + unchanged + ".");
  if (overview.order.size() > 1)
    text += "\n" + notes_text("In this order: " + overview.order.back().stage + " (" +
                              gain_text(overview.order.back().step) + ").");
  return text;
}

int predict_of(const PredictOptions& options, const CommonOptions& common) {
  const WhatIf what_if{.stages = options.stages, .scales = [&] {
                         std::vector<WorkChange> changes = parse_scales(options.scales);
                         for (WorkChange& each : parse_parts(options.parts)) changes.push_back(std::move(each));
                         return changes;
                       }()};
  RunStore store = open_existing(common.database);
  const PredictionSubject subject = find_subject(store, options.of);
  const bool is_overview = what_if.stages.empty() && what_if.scales.empty();
  std::optional<DeviceReport> report;
  if (subject.recipe && (is_overview || !what_if.stages.empty())) report = probe_machine();
  const DeviceReport* const here = report ? &*report : nullptr;
  if (is_overview) {
    const PredictionOverview overview = predict_all(subject, here);
    print_as(
        common, [&] { return overview_json(subject, overview); }, [&] { return overview_text(subject, overview); });
  } else {
    const PredictionAnswer answer = predict(subject, what_if, here);
    if (what_if.scales.empty() && !store.read_only()) keep_prediction(store, subject, answer);
    print_as(
        common, [&] { return prediction_json(subject, answer, what_if); },
        [&] { return answer_text(subject, answer); });
  }
  if (!common.json)
    for (const std::string& note : subject.notes) std::cerr << "stepladder: " << note << "\n";
  return exit_done;
}

}  // namespace

Subcommand predict_command(CLI::App& app, CommonOptions& common) {
  auto options = std::make_shared<PredictOptions>();
  CLI::App* command = add_with_json(app, common, "predict",
                                    "What a stage or a faster kernel would buy, from a trace; alone, what is left");
  command
      ->add_option("run", options->of,
                   "Run with a trace, or a trace: number or name; profile:3 if a run has the number")
      ->required();
  command->add_option("--stage,--stages", options->stages, "Stages to add, by the law that each states")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--scale", options->scales, "Kinds of work and how many times as long: attention=0.4,optimizer=0")
      ->allow_extra_args(false);
  command->add_option("--part", options->parts, "The same of a part of the model: mlp/gelu=fused, head=0.5")
      ->allow_extra_args(false);
  return {command, [options, &common] { return predict_of(*options, common); }};
}

}  // namespace stepladder
