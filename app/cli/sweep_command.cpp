// `stepladder sweep`: trains every combination of the swept values as one ladder, here or on a machine, or shows the
// results of an earlier sweep (--of). The figures are app/launch/sweep_results.h's, which the Ladder view shows too.
#include <algorithm>
#include <memory>

#include "app/cli/commands.h"
#include "app/cli/machines/on_machine.h"
#include "app/cli/progress.h"
#include "app/cli/recipe_options.h"
#include "app/cli/table.h"
#include "app/cli/training_place.h"
#include "app/cli/worker.h"
#include "app/exit_status.h"
#include "app/launch/sweep.h"
#include "app/launch/sweep_results.h"
#include "app/runs/find_run.h"
#include "app/runs/open_store.h"
#include "app/text/format.h"
#include "engine/preparation.h"
#include "engine/processes/rendezvous.h"
#include "engine/stage.h"

namespace stepladder {
namespace {

struct SweepOptions {
  RecipeOptions recipe;
  std::vector<std::string> over;
  std::string of;
  bool is_dry = false;
  std::vector<std::string> stages;
  double target_loss = missing;
  std::string name;
  int repeats = 1;
  bool interleave = false;
  QuietPatience quiet_patience;
  OnMachine on;
};

Json figure_json(const SweptFigure& figure) {
  return {{"mean", number(figure.mean)}, {"low", number(figure.low)},   {"high", number(figure.high)},
          {"runs", figure.runs},         {"left_out", figure.left_out}, {"once", figure.once}};
}

// The best combination, and its figure corrected for having been picked.
Json best_json(const SweepResults& results, const SweepResultKind& kind) {
  const int place = results.best(kind.result);
  if (place < 0) return nullptr;
  const PickedBest& picked = results.picked[static_cast<std::size_t>(kind.result)];
  return {{"rung", results.rungs[static_cast<std::size_t>(place)].rung},
          {"of", picked.of},
          {"ties", picked.known() ? Json(picked.ties) : Json()},
          {"mean", number(results.rungs[static_cast<std::size_t>(place)].of(kind.result).mean)},
          {"corrected", number(picked.corrected)},
          {"ci95", interval_json(picked.ci95)},
          {"spread_from", text_or_null(std::string(to_string(picked.spread_from)))},
          {"trust", to_string(results.rungs[static_cast<std::size_t>(place)].trust)}};
}

// The names of the columns: seeds are repeats, not combinations.
std::vector<std::string> names_of(const std::vector<SweptValue>& swept) {
  std::vector<std::string> names;
  for (const SweptValue& each : swept)
    if (each.name != "seed") names.push_back(each.name);
  return names;
}

// The ladder's JSON with the swept values of each rung and run, and each rung's figures over its runs.
Json sweep_json(Json json, const std::vector<LoadedRun>& runs, const std::vector<SweptValue>& swept,
                const SweepResults& results) {
  Json over = Json::object();
  for (const SweptValue& each : swept) over[each.name] = each.values;
  json["over"] = over;
  for (std::size_t i = 0; i < results.rungs.size(); ++i) {
    const SweptRung& rung = results.rungs[i];
    Json values = Json::object();
    for (std::size_t k = 0; k < results.names.size(); ++k) values[results.names[k]] = rung.values[k];
    json["rungs"][i]["over"] = values;
    json["rungs"][i]["finished"] = rung.finished;
    json["rungs"][i]["loss_last"] = figure_json(rung.of(SweepResult::loss_last));
    json["rungs"][i]["val_loss_last"] = figure_json(rung.of(SweepResult::val_loss_last));
    Json figures = Json::object();
    for (const SweepResultKind& kind : sweep_result_kinds()) figures[kind.id] = figure_json(rung.of(kind.result));
    json["rungs"][i]["results"] = figures;
  }
  json["best"] = Json::object();
  for (const SweepResultKind& kind : sweep_result_kinds())
    json["best"][kind.id] = results.has(kind.result) ? best_json(results, kind) : Json();
  for (std::size_t i = 0; i < runs.size(); ++i) {
    Json values = Json::object();
    for (const SweptValue& each : swept) values[each.name] = recipe_value(runs[i].run, each.name);
    json["runs"][i]["over"] = values;
  }
  return json;
}

// Adds two cells: the mean, with the number of runs that it excludes, and, for several runs, the range.
void add_figure(std::vector<std::string>& row, const SweptRung& rung, const SweepResultKind& kind) {
  const SweptFigure& figure = rung.of(kind.result);
  const std::string left_out =
      figure.left_out == 0 ? ""
                           : std::to_string(figure.left_out) + (kind.needs_target() ? " never" : " NaN or infinite");
  row.push_back(figure.runs == 0 && !left_out.empty()
                    ? left_out
                    : kind.text(figure.mean) + (left_out.empty() ? "" : ", " + left_out) +
                          (figure.once > 0 ? fmt::format(", {} once", figure.once) : ""));
  row.push_back(figure.low < figure.high ? kind.text(figure.low) + " - " + kind.text(figure.high) : "-");
}

// The results of a table: the losses at the end, the throughput, the time to the target if there is one, and the trust
// in each rung if one is doubted.
std::string sweep_table(const std::vector<LoadedRun>& runs, const SweepResults& results,
                        const HardwareTable& hardware) {
  using enum SweepResult;
  std::vector<std::vector<std::string>> rows = {results.names};
  rows.front().insert(rows.front().end(), {"runs", "loss", "range", "val loss", "range", "tokens/s", "range"});
  const bool has_target = results.has(target_seconds);
  if (has_target) rows.front().insert(rows.front().end(), {"s to target", "range"});
  const std::vector<RungJudgement> judged = judge_rungs(measured(runs), hardware);
  const bool has_doubts = !std::ranges::all_of(judged, &RungJudgement::is_trusted);
  if (has_doubts) rows.front().push_back("trust");
  std::string notes;
  for (std::size_t i = 0; i < results.rungs.size(); ++i) {
    const SweptRung& rung = results.rungs[i];
    std::vector<std::string>& row = rows.emplace_back();
    for (const Json& value : rung.values) row.push_back(value_text(value));
    row.push_back(std::to_string(rung.finished));
    for (const SweepResult result : {loss_last, val_loss_last, tokens_per_s}) add_figure(row, rung, kind_of(result));
    if (has_target) add_figure(row, rung, kind_of(target_seconds));
    if (has_doubts) row.emplace_back(to_string(judged[i].trust));
    notes += doubt_notes(judged[i], values_text(results, rung, ""));
  }
  for (const LoadedRun& run : runs) {
    if (run.run.status == RunStatus::finished) continue;
    notes += run.run.name + ": " + std::string(to_string(run.run.status)) +
             (run.run.reason.empty() ? "" : ": " + run.run.reason) + "\n";
  }
  const std::string best = best_text(results, results.has(val_loss_last) ? val_loss_last : loss_last);
  if (!best.empty()) notes += (results.has(val_loss_last) ? "val loss: " : "loss: ") + best + "\n";
  return table(rows, std::vector<bool>(rows.front().size(), true)) + (notes.empty() ? "" : "\n" + notes_text(notes));
}

SweepResults results_of(const std::vector<LoadedRun>& runs, const std::vector<SweptValue>& swept, double target_loss,
                        const HardwareTable& hardware) {
  std::vector<SweptRun> measured;
  for (const LoadedRun& run : runs) {
    measured.push_back({.run = &run.run, .summary = &run.summary});
    if (!is_missing(target_loss) && !run.is_excerpt()) measured.back().target = reach(run.run, run.series, target_loss);
  }
  return sweep_results(measured, names_of(swept), hardware);
}

// The recipe with these stages, which this machine must have.
Recipe with_stages(Recipe recipe, const std::vector<std::string>& stages, const DeviceReport& report) {
  if (stages.empty()) return recipe;
  recipe = prepare(with_absolute_paths(recipe)).recipe;
  apply_stages(recipe, stages, report);
  return recipe;
}

// Prints the results of a sweep that was trained here or on a machine; `planned` is set for one that was planned here.
void print_sweep(RunStore& store, const Ladder& ladder, const std::vector<LoadedRun>& runs, const LadderPlan& planned,
                 const std::vector<SweptValue>& swept, const SweepOptions& options, const CommonOptions& common,
                 const std::filesystem::path& database) {
  const RunContext context = load_run_context(&store);
  const SweepResults results = results_of(runs, swept, options.target_loss, context.hardware);
  print_as(
      common, [&] { return sweep_json(ladder_json(ladder, runs, planned, database, context), runs, swept, results); },
      [&] { return sweep_table(runs, results, context.hardware); });
}

std::vector<std::string> swept_in(const std::vector<Run>& runs) {
  std::vector<const Run*> places;
  for (const Run& run : runs) places.push_back(&run);
  return swept_names(places);
}

// The named ladder; for `latest` the newest that is a sweep.
Ladder find_sweep(RunStore& store, const std::string& word) {
  std::vector<Ladder> ladders = store.ladders();
  for (auto ladder = ladders.rbegin(); word == "latest" && ladder != ladders.rend(); ++ladder)
    if (!swept_in(store.runs_of(ladder->id)).empty()) return *ladder;
  return find_ladder(store, word);
}

// The results of a sweep that is in the project already.
int show_sweep(const SweepOptions& options, const std::string& word, const CommonOptions& common) {
  RunStore store = open_existing(common.database);
  const Ladder ladder = find_sweep(store, word);
  const std::vector<Run> all = store.runs_of(ladder.id);
  std::vector<SweptValue> swept;
  for (const std::string& name : swept_in(all)) swept.push_back({name, {}});
  if (swept.empty())
    throw UsageError(
        fmt::format("ladder {} isn't a sweep", ladder.id),
        {.argument = "ladder", .value = word, .hint = fmt::format("`stepladder ladder show {}` shows it", ladder.id)});
  for (SweptValue& each : swept) {
    for (const Run& run : all) {
      const std::string value = value_text(recipe_value(run, each.name));
      if (std::ranges::find(each.values, value) == each.values.end()) each.values.push_back(value);
    }
  }
  print_sweep(store, ladder, load_runs(store, all), {}, swept, options, common, common.database);
  return 0;
}

int sweep(const SweepOptions& options, const CommonOptions& common) {
  if (!options.of.empty()) return show_sweep(options, options.of, common);
  const Recipe recipe = options.recipe.recipe();
  if (options.over.empty())
    throw UsageError(
        "--over is missing",
        {.code = "missing-argument", .argument = "--over", .hint = "--over lr=1e-4,3e-4 sweeps the learning rate"});
  refuse_several_processes("a sweep");
  std::vector<SweptValue> swept;
  for (const std::string& text : options.over) swept.push_back(parse_swept_value(text));
  for (const std::string& stage : options.stages) stage_by_id(stage);
  LadderRequest asked{.name = options.name,
                      .base = recipe,
                      .repeats = options.repeats,
                      .interleave = options.interleave,
                      .quiet_patience = options.quiet_patience};
  LadderRequest request = sweep_request(std::move(asked), swept);
  if (options.on) {
    return train_on_machine(options.on, common, {},
                            [&](RunStore& store, const Ladder& ladder, const std::vector<LoadedRun>& runs) {
                              print_sweep(store, ladder, runs, {}, swept, options, common, common.database);
                            });
  }
  const auto complete = [&](const DeviceReport& report) {
    request.base = with_stages(request.base, options.stages, report);
    if (const LadderPlan plan = plan_of(request, report); !plan.skipped.empty())
      throw RecipeError("--over", plan.skipped.front().stage + ": " + plan.skipped.front().reason);
  };
  if (options.is_dry) {
    const DeviceReport report = probe_machine();
    complete(report);
    return print_plan(request, report, common);
  }
  TrainingPlace place(common);
  Session session(place.database(), {}, nullptr, place.folders());
  const DeviceReport report = session.probe().get();
  complete(report);
  const LaunchedLadder launched = session.launch_ladder(request, report);
  place.begun();
  say_estimate(session, launched.runs, report);
  const bool have_checkpoints = follow(session, launched.runs);
  place.done();
  const std::vector<LoadedRun> runs = load_runs(session.store(), session.store().runs_of(launched.ladder));
  print_sweep(session.store(), {.id = launched.ladder, .name = launched.name}, runs, launched.plan, swept, options,
              common, place.database());
  return exit_status(runs, have_checkpoints);
}

}  // namespace

Subcommand sweep_command(CLI::App& app, CommonOptions& common) {
  auto options = std::make_shared<SweepOptions>();
  CLI::App* command = add_with_json(app, common, "sweep", "Train every combination of some values of the recipe");
  options->recipe.add_to(*command);
  command->add_option("--over", options->over,
                      "A value and its list: lr=1e-4,3e-4; repeat for combinations; seeds are repeats of each");
  CLI::Option* of = command->add_option("--of", options->of,
                                        "Report the results of this ladder, by number or name, without training");
  command->add_option("--stage,--stages", options->stages, "Stages of every run, separated by commas")->delimiter(',');
  const auto add_target = [&](CLI::App& to) {
    return to.add_option("--target", options->target_loss, "Also report what each run needed to reach this loss")
        ->check(between(-1e9, 1e9));
  };
  const CLI::Option* target = add_target(*command);
  command->add_option("--repeats", options->repeats, "Runs per combination")->check(between(1, 1000));
  command->add_flag("--interleave", options->interleave, "Run all repeats in random order");
  command->add_option("--name", options->name, "Name of the ladder")->check(new_name());
  add_when_quiet(*command, options->quiet_patience);
  add_journal(*command, common);
  add_on_options(*command, options->on, false);
  command->add_flag("--dry-run", options->is_dry, "Say what would be trained, and how long that may take")
      ->excludes(command->get_option("--on"));
  for (CLI::Option* other : command->get_options())
    if (other != of && other != target && other != command->get_help_ptr() && !other->check_lname("json"))
      of->excludes(other);
  auto shown = std::make_shared<std::string>();
  CLI::App* show = add_show(*command, *shown, "The results of a sweep, as --of has them");
  add_target(*show);
  return {command, [options, shown, show, &common] {
            if (*show) return show_sweep(*options, shown->empty() ? "latest" : *shown, common);
            return sweep(*options, common);
          }};
}

}  // namespace stepladder
