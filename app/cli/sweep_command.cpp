#include <iostream>
#include <memory>

#include "app/cli/commands.h"
#include "app/cli/progress.h"
#include "app/cli/recipe_options.h"
#include "app/cli/table.h"
#include "app/format.h"
#include "app/launch/sweep.h"
#include "engine/processes/rendezvous.h"

namespace stepladder {
namespace {

struct SweepOptions {
  RecipeOptions recipe;
  std::vector<std::string> over;
  std::string name;
  int repeats = 1;
  bool interleave = false;
  QuietPatience quiet_patience;
};

Json figure_json(const SweptFigure& figure) {
  return {{"mean", number(figure.mean)}, {"low", number(figure.low)}, {"high", number(figure.high)}};
}

// The ladder's JSON with the swept values of each rung and run, and each rung's figures over its runs.
Json sweep_json(Json json, const std::vector<LoadedRun>& runs, const std::vector<SweptValue>& swept) {
  const SweepResults results = sweep_results(runs, swept);
  Json over = Json::object();
  for (const SweptValue& each : swept) over[each.name] = each.values;
  json["over"] = over;
  for (std::size_t i = 0; i < results.rungs.size(); ++i) {
    const SweptRung& rung = results.rungs[i];
    Json values = Json::object();
    for (std::size_t k = 0; k < results.names.size(); ++k) values[results.names[k]] = rung.values[k];
    json["rungs"][i]["over"] = values;
    json["rungs"][i]["finished"] = rung.finished;
    json["rungs"][i]["loss_last"] = figure_json(rung.loss);
    json["rungs"][i]["val_loss_last"] = figure_json(rung.val_loss);
  }
  for (std::size_t i = 0; i < runs.size(); ++i) {
    Json values = Json::object();
    for (const SweptValue& each : swept) values[each.name] = recipe_value(runs[i].run, each.name);
    json["runs"][i]["over"] = values;
  }
  return json;
}

// Two cells: the mean and, of several runs, the range.
void add_figure(std::vector<std::string>& row, const SweptFigure& figure, std::string (*text)(double)) {
  row.push_back(text(figure.mean));
  row.push_back(figure.low < figure.high ? text(figure.low) + " - " + text(figure.high) : "-");
}

std::string sweep_table(const std::vector<LoadedRun>& runs, const std::vector<SweptValue>& swept) {
  const SweepResults results = sweep_results(runs, swept);
  std::vector<std::vector<std::string>> rows = {results.names};
  rows.front().insert(rows.front().end(), {"runs", "loss", "range", "val loss", "range", "tokens/s", "range"});
  for (const SweptRung& rung : results.rungs) {
    std::vector<std::string>& row = rows.emplace_back();
    for (const Json& value : rung.values) row.push_back(value.is_string() ? value.get<std::string>() : value.dump());
    row.push_back(std::to_string(rung.finished));
    add_figure(row, rung.loss, loss_text);
    add_figure(row, rung.val_loss, loss_text);
    add_figure(row, rung.tokens_per_s, tokens_per_s_text);
  }
  std::string notes;
  for (const LoadedRun& run : runs) {
    if (run.run.status == RunStatus::finished) continue;
    notes += run.run.name + ": " + std::string(to_string(run.run.status)) +
             (run.run.reason.empty() ? "" : ": " + run.run.reason) + "\n";
  }
  return table(rows, std::vector<bool>(rows.front().size(), true)) + (notes.empty() ? "" : "\n" + notes);
}

int sweep(const SweepOptions& options, const CommonOptions& common) {
  if (const auto placement = placement_from_environment(); placement && placement->world_size > 1)
    throw UsageError("a sweep starts its processes itself: give --nproc instead of starting it " +
                     std::to_string(placement->world_size) + " times");
  std::vector<SweptValue> swept;
  for (const std::string& text : options.over) swept.push_back(parse_swept_value(text));
  LadderRequest asked{.name = options.name,
                      .base = options.recipe.recipe(),
                      .repeats = options.repeats,
                      .interleave = options.interleave,
                      .quiet_patience = options.quiet_patience};
  const LadderRequest request = sweep_request(std::move(asked), swept);
  Session session(common.database);
  const DeviceReport report = session.probe().get();
  if (const LadderPlan plan = plan_of(request, report); !plan.skipped.empty())
    throw RecipeError("--over", plan.skipped.front().stage + ": " + plan.skipped.front().reason);
  const LaunchedLadder launched = session.launch_ladder(request, report);
  say_estimate(session, launched.runs, report);
  const bool have_checkpoints = follow(session, launched.runs);
  const std::vector<LoadedRun> runs = load_runs(session.store(), session.store().runs_of(launched.ladder));
  if (common.json) {
    const Ladder ladder{.id = launched.ladder, .name = launched.name};
    print(sweep_json(
        ladder_json(ladder, runs, launched.plan, common.database, load_plausibility_context(&session.store())), runs,
        swept));
  } else {
    std::cout << sweep_table(runs, swept);
  }
  return exit_status(runs, have_checkpoints);
}

}  // namespace

Subcommand sweep_command(CLI::App& app, CommonOptions& common) {
  auto options = std::make_shared<SweepOptions>();
  CLI::App* command = add_with_json(app, common, "sweep", "Train every combination of some values of the recipe");
  options->recipe.add_to(*command);
  command
      ->add_option("--over", options->over,
                   "A value and its list: lr=1e-4,3e-4; repeat for combinations; seeds are repeats of each")
      ->required();
  command->add_option("--repeats", options->repeats, "Runs per combination")->check(between(1, 1000));
  command->add_flag("--interleave", options->interleave, "Run all repeats in random order");
  command->add_option("--name", options->name, "Name of the ladder")->check(short_name());
  add_when_quiet(*command, options->quiet_patience);
  return {command, [options, &common] { return sweep(*options, common); }};
}

}  // namespace stepladder
