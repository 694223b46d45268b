// Resolves the names of a pool, for `stepladder record` and the Record view: logs and folders first, then runs of the
// database, which is opened only if a name needs it. A run that several names match counts once.
#include "app/record/pool_source.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>

#include "app/exit_status.h"
#include "app/record/run_doubt.h"
#include "app/runs/excerpt.h"
#include "app/runs/find_run.h"
#include "app/runs/loaded_runs.h"
#include "app/runs/open_store.h"
#include "storage/analysis/recipe_facts.h"
#include "storage/analysis/training_progress.h"
#include "storage/wording.h"

namespace stepladder {
namespace {

constexpr std::string_view rung_mark = "rung:";
constexpr std::string_view filter_mark = "filter:";

std::vector<Run> runs_of_rung(RunStore& store, const std::string& name) {
  const std::size_t slash = name.rfind('/');
  if (slash == std::string::npos) throw UsageError("rung:" + name + " lacks the rung; write rung:LADDER/STAGE");
  const Ladder ladder = find_ladder(store, name.substr(0, slash));
  const std::string wanted = name.substr(slash + 1);
  std::vector<Run> runs = store.runs_of(ladder.id);
  const bool is_stage = std::ranges::any_of(runs, [&](const Run& run) { return run.stage == wanted; });
  std::erase_if(runs, [&](const Run& run) { return (is_stage ? run.stage : std::to_string(run.rung)) != wanted; });
  if (runs.empty()) throw NotFound("ladder " + ladder.name + " has no rung '" + wanted + "'");
  return runs;
}

// Says of a word that isn't a number what it could have been.
std::vector<Run> runs_called(RunStore& store, const std::string& name) {
  try {
    return find_runs(store, {name});
  } catch (const NotFound& error) {
    if (name.find_first_not_of("0123456789-,") == std::string::npos) throw;
    throw NotFound(name + " is neither a folder, a log nor a run", error.parts);
  }
}

std::string seed_of(const Run& run) {
  const auto recipe = nlohmann::json::parse(run.recipe, nullptr, false);
  if (!recipe.is_object() || !recipe.contains("seed") || !recipe["seed"].is_number_integer()) return {};
  return std::to_string(recipe["seed"].get<std::int64_t>());
}

// The first of the gravest flags by the project's own judgement, if the run's figures aren't trusted.
void take_doubt(const LoadedRun& loaded, const HardwareTable& hardware, SpeedrunLog& log) {
  const std::vector<stepladder::Subject> alone{{.runs = {loaded.measured()}}};
  const RungJudgement judged = judge(alone, 0, hardware, {.intervals = Intervals::no}).front();
  if (judged.is_trusted()) return;
  const auto gravest =
      std::ranges::find_if(judged.flags, [&](const Flag& flag) { return flag.trust() == judged.trust; });
  if (gravest == judged.flags.end()) return;
  log.doubt_id = to_string(gravest->id);
  log.doubt = gravest->why;
}

}  // namespace

RecordPool read_pool(const std::vector<std::string>& names, const LogQuestion& question,
                     const std::filesystem::path& database) {
  RecordPool pool;
  std::optional<RunStore> store;
  std::set<RunId> taken;
  const HardwareTable hardware = load_run_context(nullptr).hardware;
  for (const std::string& name : names) {
    const bool rung = name.starts_with(rung_mark), filter = name.starts_with(filter_mark);
    std::error_code error;
    if (!rung && !filter && (std::filesystem::exists(name, error) || name.find('/') != std::string::npos)) {
      const std::size_t before = pool.logs.size();
      add_logs(pool, name, question);
      for (SpeedrunLog& log : std::span(pool.logs).subspan(before)) {
        LoggedRun logged = read_logged_run(log.file);
        // nvidia-smi shows the GPUs of one node.
        if (const int devices = recipe_facts(logged.run).devices; !log.gpus.empty() && devices > std::ssize(log.gpus))
          log.gpus.resize(static_cast<std::size_t>(devices), std::string(log.gpus.front()));
        if (log.gpus.size() > 1) logged.run.hardware = fmt::format("{} x {}", log.gpus.size(), log.gpus.front());
        take_doubt(loaded_from(logged), hardware, log);
      }
      continue;
    }
    if (!store) store = open_to_read(database);
    if (!store)
      throw NotFound(name + (rung || filter ? " names runs, and there is no database with runs"
                                            : " is neither a folder nor a log, and there is no database with runs"));
    std::vector<Run> runs;
    if (rung)
      runs = runs_of_rung(*store, name.substr(rung_mark.size()));
    else if (filter)
      runs = filtered_runs(*store, name.substr(filter_mark.size()));
    else
      runs = runs_called(*store, name);
    if (runs.empty()) throw NotFound(name + ": no run matches");
    for (const Run& run : runs) {
      if (!taken.insert(run.id).second) continue;
      SpeedrunLog log = speedrun_log_of(*store, run);
      if (log.problem.empty()) take_doubt(load_run(*store, run, most_steps_of_each(20)), hardware, log);
      pool.add(std::move(log));
    }
  }
  return pool;
}

SpeedrunLog speedrun_log_of(RunStore& store, const Run& run) {
  SpeedrunLog log;
  log.file = fmt::format("run {}, {}", run.id, run.name);
  log.scheduled_steps = run.planned_steps;
  log.seed = seed_of(run);
  if (!run.hardware.empty()) log.gpus.push_back(run.hardware);
  if (!is_missing(run.started_at)) log.started_at_s = whole_number(run.started_at);

  TrainingProgress progress(run);
  store.for_steps(run.id, [&](std::span<const StepRecord> steps) {
    for (const StepRecord& step : steps) {
      progress.add(step);
      log.last_step = step.step;
      if (!is_missing(step.val_loss)) log.evaluations.push_back({step.step, step.val_loss, 1000 * progress.seconds()});
    }
  });
  if (run.status != RunStatus::finished)
    log.problem = "is " + std::string(to_string(run.status)) + ", not finished";
  else if (log.evaluations.empty())
    log.problem = "has no validation loss";
  else if (log.evaluations.back().step < log.last_step)
    log.problem = fmt::format("was last evaluated at step {} of {}", log.evaluations.back().step, log.last_step);
  else
    log.final = log.evaluations.back();
  log.has_steps = log.last_step > 0;
  log.unfinished = !log.problem.empty() && log.has_steps;
  return log;
}

}  // namespace stepladder
