// How a session launches, repeats, continues and resumes: everything is checked first, all rows are written in one
// transaction, the journals begin, and the engine gets the runs last, so that no step arrives before its row.
#include <algorithm>
#include <cassert>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "app/host/environment.h"
#include "app/host/patch.h"
#include "app/session/session.h"
#include "engine/preparation.h"
#include "engine/stage.h"
#include "storage/analysis/run_place.h"

namespace stepladder {
namespace {

std::string first_rung_text(const Recipe& recipe) {
  return precision_name(recipe) + ", B " + std::to_string(recipe.batch) + ", T " + std::to_string(recipe.seq);
}

constexpr const char* skipped_setting = "skipped_rungs ";  // and the ladder's uid

void keep_skipped_rungs(RunStore& store, const std::string& uid, const std::vector<SkippedRung>& skipped) {
  if (skipped.empty()) return;
  nlohmann::json list = nlohmann::json::array();
  for (const SkippedRung& rung : skipped) list.push_back({rung.stage, rung.reason.for_command_line()});
  store.settings().set(skipped_setting + uid, list.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

// Refuses to resume with fewer steps than are recorded: the run would finish with steps beyond its recipe's last.
void refuse_fewer_steps_than_recorded(const Run& run, const Recipe& recipe, std::int64_t recorded) {
  if (recipe.steps >= recorded) return;
  const std::string id = std::to_string(run.id);
  throw RecipeError(FieldName{"steps"}, "run " + id + " has recorded " + std::to_string(recorded) +
                                            " steps, more than " + std::to_string(recipe.steps) +
                                            "; give it at least as many, or make a new run from "
                                            "an earlier checkpoint: " +
                                            FieldName{"fork"} + " " + id + "@STEP");
}

void require_steps_left(const Recipe& recipe, const Checkpoint& from) {
  if (recipe.steps > from.step) return;
  throw RecipeError(
      FieldName{"steps"},
      std::to_string(recipe.steps) + " steps are already done: the checkpoint is of step " + std::to_string(from.step));
}

// The name, numbered if one of these has it, so that a name that nobody chose finds one: "nano on synthetic tokens
// (2)".
template <class Items>
std::string unused_name(const std::string& name, const Items& items) {
  std::set<std::string> used;
  for (const auto& item : items) used.insert(item.name);
  std::string numbered = name;
  for (int n = 2; used.contains(numbered); ++n) numbered = name + " (" + std::to_string(n) + ")";
  return numbered;
}

}  // namespace

std::string default_name(const Recipe& recipe) {
  return recipe.model + " on " +
         (recipe.data.empty() ? "synthetic tokens" : std::filesystem::path(recipe.data).filename().string());
}

RunId Session::create_run(Run run, const Recipe& recipe) {
  owner_.check();
  run.status = RunStatus::queued;
  run.source = "launched";
  run.source_path = recipe.data;
  run.created_at = unix_now();
  run.planned_steps = recipe.steps;
  run.warmup_steps = recipe.warmup;
  run.tokens_per_step = recipe.tokens_per_step();
  run.precision = precision_name(recipe);
  run.device = recipe.device;
  run.recipe = to_json(recipe);
  run.environment = environment_json();
  const RunPatch& patch = patch_here();
  RunId id = 0;
  store_.in_one_transaction([&] {
    owner_.check();
    id = store_.create_run(run);
    store_.recordings().keep_patch(id, patch);
  });
  return id;
}

void Session::queue_again(RunId id, const Recipe& recipe) {
  owner_.check();
  store_.processes().queue_again(id, recipe.steps);
  Run run = store_.existing_run(id);
  run.recipe = to_json(recipe);
  run.environment = continued_environment(run.environment);
  store_.update_run(run);
}

// Called before the runs are submitted, so that whoever follows the journals sees the whole ladder at once.
void Session::begin(const std::vector<RunId>& runs) {
  owner_.check();
  try {
    launched_.add(runs);
  } catch (const StorageError& error) {  // they train all the same
    if (!runs.empty())
      note(runs.front(), {(std::string(error.what()) + "; " + FieldName{"continue"} + " and " + FieldName{"resume"} +
                           " will ask for " + FieldName{"adopt"})
                              .for_command_line()});
  }
  if (!journals_) return;
  const std::vector<Ladder> ladders = store_.ladders();
  for (const RunId id : runs) {
    PlannedRun planned{.run = store_.existing_run(id)};
    for (const Ladder& ladder : ladders)
      if (planned.run.ladder == ladder.id) planned.ladder = ladder;
    if (planned.run.parent) planned.parent_uid = store_.existing_run(*planned.run.parent).uid;
    journals_->begin(planned);
  }
}

LadderPlan plan_of(const LadderRequest& request, const DeviceReport& report) {
  const Recipe base = prepare(with_absolute_paths(request.base)).recipe;
  require_tokenizer(base);
  const std::vector<PlannedRung> rungs = request.rungs.empty() ? usual_rungs() : request.rungs;
  // Files are opened again only for rungs that read others or need more of them.
  const auto prepared = [&](const Recipe& recipe) {
    Recipe same_files = recipe;
    for (const auto member : {&Recipe::data, &Recipe::weights, &Recipe::tokenizer}) same_files.*member = base.*member;
    same_files.vocab = base.vocab;
    same_files.seq = base.seq;
    same_files.sample_every = base.sample_every;
    return recipe == same_files ? recipe : prepare(with_absolute_paths(recipe)).recipe;
  };
  return plan_ladder(base, rungs, report, request.climb, prepared);
}

std::vector<SkippedRung> skipped_rungs(RunStore& store, const Ladder& ladder) {
  std::vector<SkippedRung> skipped;
  const auto kept =
      nlohmann::json::parse(store.settings().get(skipped_setting + ladder.uid).value_or("[]"), nullptr, false);
  if (!kept.is_array()) return skipped;
  for (const auto& rung : kept)
    if (rung.is_array() && rung.size() == 2 && rung[0].is_string() && rung[1].is_string())
      skipped.push_back({.stage = rung[0].get<std::string>(), .reason = rung[1].get<std::string>()});
  return skipped;
}

LaunchedLadder Session::launch_ladder(const LadderRequest& request, const DeviceReport& report) {
  return launch_ladder(request, plan_of(request, report));
}

LaunchedLadder Session::launch_ladder(const LadderRequest& request, LadderPlan plan) {
  owner_.check();
  assert(request.seeds.empty() || std::ssize(request.seeds) == request.repeats);
  LaunchedLadder launched{.plan = std::move(plan)};
  const Recipe& base = launched.plan.rungs.front().recipe;
  const std::string name = launched.name =
      request.name.empty() ? unused_name(default_name(base), store_.ladders()) : request.name;

  struct Planned {
    int rung, repeat;
  };
  std::vector<Planned> order;
  for (int rung = 0; rung < static_cast<int>(launched.plan.rungs.size()); ++rung)
    for (int repeat = 0; repeat < request.repeats; ++repeat) order.push_back({rung, repeat});
  if (request.interleave) {
    std::mt19937_64 random(base.seed);
    std::shuffle(order.begin(), order.end(), random);
  }
  std::vector<Recipe> recipes;  // of the runs, in this order
  patch_here();                 // asks git before the project is locked
  // All rows or none, so that a ladder that is killed at any moment can be continued as it was planned.
  store_.in_one_transaction([&] {
    owner_.check();
    const std::string uid = new_uid().text();
    launched.ladder = store_.create_ladder({.uid = uid,
                                            .name = name,
                                            .source = "launched",
                                            .source_path = base.data,
                                            .notes = request.notes,
                                            .created_at = unix_now()});
    keep_skipped_rungs(store_, uid, launched.plan.skipped);
    for (const auto [rung, repeat] : order) {
      const Rung& planned = launched.plan.rungs[rung];
      recipes.push_back(planned.recipe);
      if (!request.seeds.empty()) recipes.back().seed = request.seeds[repeat];
      Run run;
      run.name = name + ": " + planned.title + (request.repeats > 1 ? " #" + std::to_string(repeat + 1) : "");
      run.ladder = launched.ladder;
      run.rung = rung;
      run.repeat = repeat;
      run.loss_against = planned.loss_against;
      run.stands_on = planned.stands_on;
      run.stage = planned.stage;
      run.title = planned.title;
      run.changed = rung == 0 ? first_rung_text(planned.recipe) : planned.changed;
      launched.runs.push_back(create_run(run, recipes.back()));
    }
  });
  begin(launched.runs);
  // Submitted last, so that no step can arrive before all rows are there.
  for (std::size_t i = 0; i < order.size(); ++i) submit(launched.runs[i], recipes[i], request.quiet_patience);
  return launched;
}

RunId Session::launch_run(const RunSpec& asked, const DeviceReport& report) {
  owner_.check();
  const Start start = asked.fork_of ? Start::checkpoint : Start::fresh;
  Recipe recipe = prepare(with_absolute_paths(asked.base), start).recipe;
  if (start == Start::fresh) require_tokenizer(recipe);
  apply_stages(recipe, asked.stages, report);
  Run run;
  for (const std::string& id : asked.stages.empty() ? std::vector<std::string>{"baseline"} : asked.stages) {
    run.stage += (run.stage.empty() ? "" : "+") + id;  // as stage_text has the stages of a rung
    run.title += (run.title.empty() ? "" : " + ") + stage_by_id(id).title;
  }
  run.name = asked.name;
  if (run.name.empty())
    run.name = unused_name(default_name(recipe) + (asked.stages.empty() ? "" : ": " + run.title), store_.runs());
  run.changed = first_rung_text(recipe);
  ChosenCheckpoint chosen;
  if (asked.fork_of) {
    const Run parent = store_.existing_run(*asked.fork_of);
    refuse_others({parent}, FieldName{"fork"});
    chosen = choose_checkpoint(owner_of_checkpoints(parent), asked.fork_step);
    const Checkpoint& from = chosen.checkpoint;
    run.parent = parent.id;
    run.forked_at_step = from.step;
    run.changed = difference(recipe_from_json(parent.recipe), recipe);
    if (asked.name.empty()) run.name = parent.name + " @" + std::to_string(from.step);
    require_steps_left(recipe, from);
  }
  const RunId id = create_run(run, recipe);
  begin({id});
  note(id, chosen.passed_over);
  submit(id, recipe, asked.quiet_patience, chosen.checkpoint.folder);
  return id;
}

// The run once more by its own recipe, with the next repeat number of its rung.
Session::PreparedRun Session::prepare_repeat(RunId id, std::map<std::pair<LadderId, int>, int>& next_repeat) {
  owner_.check();
  const Run before = store_.existing_run(id);
  if (before.source != "launched")
    throw RecipeError("run " + std::to_string(id), "was not launched here, so its whole recipe isn't known");
  refuse_others({before}, "run " + std::to_string(id));
  PreparedRun prepared{.run = {}, .recipe = prepare(recipe_from_json(before.recipe)).recipe};
  prepared.run.name = before.name;
  prepared.run.stage = before.stage;
  prepared.run.title = before.title;
  prepared.run.changed = before.changed;
  if (!before.ladder) return prepared;
  int& repeat = next_repeat[{*before.ladder, before.rung}];
  for (const Run& other : store_.runs_of(*before.ladder))
    if (other.rung == before.rung) repeat = std::max(repeat, other.repeat + 1);
  prepared.run.ladder = before.ladder;
  prepared.run.rung = before.rung;
  prepared.run.loss_against = before.loss_against;
  prepared.run.stands_on = before.stands_on;
  prepared.run.repeat = repeat++;
  // "name #2" becomes "name #4", not "name #2 #4".
  const std::string number = " #" + std::to_string(before.repeat + 1);
  if (prepared.run.name.ends_with(number)) prepared.run.name.resize(prepared.run.name.size() - number.size());
  prepared.run.name += " #" + std::to_string(prepared.run.repeat + 1);
  return prepared;
}

void Session::adopt(const std::vector<RunId>& runs) {
  owner_.check();
  launched_.add(runs);
}

// A run whose journal is followed is trained by a process elsewhere: two would train it, and its ladder would compare
// two machines. One that this user hasn't launched may say anything.
void Session::refuse_others(const std::vector<Run>& runs, const FieldText& what) {
  owner_.check();
  std::vector<Run> others;
  for (const Run& run : runs) {
    if (store_.following().is_followed(run.id)) {
      const std::vector<std::string> hosts = place_of(run).hosts;
      throw RecipeError(what, "run " + std::to_string(run.id) + " is trained elsewhere" +
                                  (hosts.empty() ? "" : ", on " + hosts.back()) +
                                  ", and its journal is followed here; continue or repeat it there");
    }
    if (!launched_.has(run)) others.push_back(run);
  }
  if (!others.empty()) throw NotLaunchedHere(what, others);
}

std::vector<RunId> Session::repeat(const std::vector<RunId>& runs, int times, QuietPatience quiet_patience,
                                   const Repeats& how) {
  owner_.check();
  std::vector<RunId> order;
  for (const RunId id : runs) order.insert(order.end(), static_cast<std::size_t>(times), id);
  std::mt19937_64 random(std::random_device{}());
  std::shuffle(order.begin(), order.end(), random);
  std::vector<PreparedRun> planned;
  std::map<std::pair<LadderId, int>, int> next_repeat;
  for (const RunId id : order) {
    planned.push_back(prepare_repeat(id, next_repeat));
    if (how.seed) planned.back().recipe.seed = *how.seed;
    planned.back().run.looks_up_to = how.looks_up_to;
    if (how.looks_up_to == 0 && planned.back().run.ladder) planned.back().run.looks_up_to = added_after_a_look;
  }
  std::vector<RunId> launched;
  for (const PreparedRun& prepared : planned) launched.push_back(create_run(prepared.run, prepared.recipe));
  begin(launched);
  for (std::size_t i = 0; i < planned.size(); ++i) submit(launched[i], planned[i].recipe, quiet_patience);
  return launched;
}

std::vector<RunId> Session::continue_ladder(LadderId ladder, QuietPatience quiet_patience) {
  owner_.check();
  const std::vector<Run> runs = store_.runs_of(ladder);
  refuse_others(runs, FieldName{"continue"});
  for (const Run& run : runs) {
    if (!is_over(run.status))
      throw RecipeError(FieldName{"continue"}, "run " + std::to_string(run.id) + " of the ladder is still " +
                                                   std::string(to_string(run.status)));
  }
  struct Left {
    PreparedRun prepared;  // without an id: a new repeat
    ChosenCheckpoint from;
  };
  std::vector<Left> left;
  std::map<std::pair<LadderId, int>, int> next_repeat;
  for (const Run& run : runs_to_continue(runs)) {
    const Recipe recipe = recipe_from_json(run.recipe);
    if (store_.recorded_steps(run.id).records == 0) {
      left.push_back({.prepared = {.run = run, .recipe = prepare(recipe).recipe}, .from = {}});
      continue;
    }
    try {
      const ChosenCheckpoint from = checkpoint_to_resume(run);
      prepare(recipe, Start::checkpoint);
      left.push_back({.prepared = {.run = run, .recipe = recipe}, .from = from});
    } catch (const DataError&) {
      left.push_back({.prepared = prepare_repeat(run.id, next_repeat), .from = {}});
    }
  }
  std::vector<RunId> launched;
  store_.in_one_transaction([&] {
    owner_.check();
    for (const auto& [prepared, from] : left) {
      if (prepared.run.id == 0) {
        launched.push_back(create_run(prepared.run, prepared.recipe));
      } else {
        queue_again(prepared.run.id, prepared.recipe);
        launched.push_back(prepared.run.id);
      }
    }
  });
  begin(launched);
  for (std::size_t i = 0; i < left.size(); ++i) {
    note(launched[i], left[i].from.passed_over);
    submit(launched[i], left[i].prepared.recipe, quiet_patience, left[i].from.checkpoint.folder);
  }
  return launched;
}

CheckpointOwner Session::owner_of_checkpoints(const Run& run) {
  owner_.check();
  CheckpointOwner owner = checkpoint_owner(store_.file(), run);
  owner.shared_folder = folders_.checkpoints;
  return owner;
}

// The newest checkpoint that is undamaged and whose steps are all stored.
ChosenCheckpoint Session::checkpoint_to_resume(const Run& run) {
  owner_.check();
  return choose_checkpoint(owner_of_checkpoints(run), std::nullopt, [&](std::int64_t step) {
    owner_.check();
    return missing_steps_text(store_.missing_steps(run.id, run.forked_at_step + 1, step));
  });
}

void Session::resume(RunId id, const Recipe& recipe, QuietPatience quiet_patience) {
  owner_.check();
  const Run run = store_.existing_run(id);
  refuse_others({run}, FieldName{"resume"});
  if (!is_over(run.status)) {
    throw RecipeError(FieldName{"resume"},
                      "run " + std::to_string(id) + " is still " + std::string(to_string(run.status)));
  }
  Recipe same = recipe_from_json(run.recipe);
  // These values may differ without changing the training.
  same.steps = recipe.steps;
  same.threads = recipe.threads;
  same.device = recipe.device;
  same.nproc = recipe.nproc;
  same.eval_every = recipe.eval_every;
  same.save_every = recipe.save_every;
  same.keep = recipe.keep;
  if (const std::string changes = difference(same, recipe); !changes.empty()) {
    throw RecipeError(FieldName{"resume"}, "continues a run unchanged; to change " + changes +
                                               ", make a new run from it: " + FieldName{"fork"} + " " +
                                               std::to_string(id));
  }
  refuse_fewer_steps_than_recorded(run, recipe, store_.recorded_steps(id).last_step);
  const ChosenCheckpoint from = checkpoint_to_resume(run);
  require_steps_left(recipe, from.checkpoint);
  prepare(recipe, Start::checkpoint);
  store_.in_one_transaction([&] { queue_again(id, recipe); });
  begin({id});
  note(id, from.passed_over);
  submit(id, recipe, quiet_patience, from.checkpoint.folder);
}

void Session::submit(RunId run, const Recipe& recipe, QuietPatience quiet_patience,
                     const std::filesystem::path& start_from) {
  owner_.check();
  stops_ = false;
  ended_.erase(run);
  engine_.submit({.run = run,
                  .recipe = recipe,
                  .checkpoints = {.owner = owner_of_checkpoints(store_.existing_run(run)),
                                  .store_steps = [this] { return store_steps(); }},
                  .start_from = start_from,
                  .quiet_patience = quiet_patience});
}

}  // namespace stepladder
