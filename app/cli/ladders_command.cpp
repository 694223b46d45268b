// `stepladder stages`, `ladders`, `ladder show` and --dry-run: ladders that are in the project, and those that would
// be.
#include <algorithm>
#include <iostream>
#include <memory>

#include "app/cli/commands.h"
#include "app/exit_status.h"
#include "app/host/environment.h"
#include "app/launch/step_estimate.h"
#include "app/launch/sweep_results.h"
#include "app/runs/find_run.h"
#include "app/runs/open_store.h"
#include "app/text/format.h"

namespace stepladder {
namespace {

int list(const Limit& limit, const CommonOptions& common) {
  auto store = open_to_list(common);
  std::vector<Ladder> ladders = store ? store->ladders() : std::vector<Ladder>();
  limit.keep_newest(ladders, "older ladder", common);
  Json all = Json::array();
  std::vector<std::vector<std::string>> rows = {{"ladder", "name", "rungs", "runs", "finished", "created"}};
  for (const Ladder& ladder : ladders) {
    const std::vector<Run> runs = store->runs_of(ladder.id);
    std::vector<std::string> stages;
    std::vector<const Run*> places;
    Json ids = Json::array();
    for (const Run& run : runs) {
      if (places.empty() || places.back()->rung != run.rung) stages.push_back(run.stage);
      places.push_back(&run);
      ids.push_back(run.id);
    }
    const auto finished = std::ranges::count(runs, RunStatus::finished, &Run::status);
    all.push_back({{"id", ladder.id},
                   {"name", ladder.name},
                   {"source", ladder.source},
                   {"source_path", text_or_null(ladder.source_path)},
                   {"created_at", time_json(ladder.created_at)},
                   {"stages", stages},
                   {"runs", ids},
                   {"finished", finished},
                   {"over", swept_names(places)},
                   {"notes", text_or_null(ladder.notes)}});
    rows.push_back({std::to_string(ladder.id), ladder.name, std::to_string(stages.size()), std::to_string(runs.size()),
                    std::to_string(finished), local_time_text(ladder.created_at)});
  }
  if (common.json)
    print(all);
  else if (ladders.empty())
    std::cerr << "stepladder: no ladders yet; `stepladder ladder` trains one\n";
  else
    std::cout << table(rows, {true, false, true, true, true, false});
  return exit_done;
}

int list_stages(const CommonOptions& common) {
  const DeviceReport report = probe_machine();
  const std::string device = report.resolve("auto");
  Json stages = Json::array();
  std::vector<std::vector<std::string>> rows = {{"stage", "kind", "available", "what it does"}};
  for (const Stage& stage : all_stages()) {
    const std::string reason = stage.unavailable(Recipe{}, report, device).for_command_line();
    stages.push_back(stage_json(stage, reason));
    rows.push_back({stage.id, std::string(to_string(stage.kind)), reason.empty() ? "yes" : "no",
                    reason.empty() ? stage.why : reason});
  }
  return print_as(
      common, [&] { return stages; },
      [&] {
        return table(rows, {false, false, false, false});
      });
}

}  // namespace

int show_ladder(const std::string& word, const CommonOptions& common) {
  RunStore store = open_existing(common.database);
  const Ladder ladder = find_ladder(store, word);
  print_ladder(ladder, load_runs(store, store.runs_of(ladder.id)), {.skipped = skipped_rungs(store, ladder)}, common,
               common.database, load_run_context(&store));
  return exit_done;
}

void print_ladder(const Ladder& ladder, const std::vector<LoadedRun>& runs, const LadderPlan& plan,
                  const CommonOptions& common, const std::filesystem::path& database, const RunContext& context) {
  print_as(
      common, [&] { return ladder_json(ladder, runs, plan, database, context); },
      [&] { return ladder_table(ladder, runs, plan, context); });
}

int print_plan(const LadderRequest& request, const DeviceReport& report, const CommonOptions& common) {
  const LadderPlan plan = plan_of(request, report);
  std::vector<Recipe> recipes;
  Json rungs = Json::array(), skipped = Json::array();
  std::vector<std::vector<std::string>> rows = {{"rung", "stage", "what changes", "runs"}};
  for (const Rung& rung : plan.rungs) {
    recipes.insert(recipes.end(), static_cast<std::size_t>(request.repeats), rung.recipe);
    rows.push_back({std::to_string(rungs.size()), rung.stage, rung.changed, std::to_string(request.repeats)});
    rungs.push_back({{"rung", rungs.size()},
                     {"stage", rung.stage},
                     {"title", rung.title},
                     {"changed", text_or_null(rung.changed)},
                     {"runs", request.repeats}});
  }
  for (const SkippedRung& rung : plan.skipped)
    skipped.push_back({{"id", rung.stage}, {"reason", rung.reason.for_command_line()}});
  std::vector<RunAndSummary> all;
  if (std::filesystem::exists(common.database)) all = open_existing(common.database).runs_with_summaries();
  const double seconds = estimate_seconds(recipes, report, HardwareTable::load(assets_folder()), finished_runs(all));
  if (common.json) {
    print({{"dry_run", true},
           {"rungs", rungs},
           {"skipped", skipped},
           {"runs", recipes.size()},
           {"seconds", number(seconds)}});
    return exit_done;
  }
  std::cout << table(rows, {true, false, false, true});
  for (const SkippedRung& rung : plan.skipped)
    std::cout << notes_text(rung.stage + ": left out, " + rung.reason.for_command_line());
  std::cerr << "stepladder: " << plural(recipes.size(), "run")
            << (is_missing(seconds) ? "" : ", about " + rough_duration_text(seconds) + " in all: a rough estimate")
            << "; nothing was trained\n";
  return exit_done;
}

Subcommand stages_command(CLI::App& app, CommonOptions& common) {
  return {add_with_json(app, common, "stages", "List the stages, and which of them this build and device support"),
          [&common] { return list_stages(common); }};
}

Subcommand ladders_command(CLI::App& app, CommonOptions& common) {
  CLI::App* command = add_with_json(app, common, "ladders", "The ladders in the database; `ladder show N` shows one");
  auto limit = std::make_shared<Limit>();
  limit->add_to(*command, "Only the newest, this many");
  return {command, [limit, &common] { return list(*limit, common); }};
}

CLI::App* add_show(CLI::App& ladder, std::string& word, const char* what) {
  CLI::App* show = ladder.add_subcommand("show", what);
  show->fallthrough();
  show->add_option("ladder", word, "Its number, name or the beginning of one (default: the latest)");
  return show;
}

}  // namespace stepladder
