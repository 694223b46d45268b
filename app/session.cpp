#include "app/session.h"

#include <algorithm>
#include <random>

#include "app/environment.h"
#include "engine/tokens.h"

namespace stepladder {
namespace {

// Fails where a training would, before anything is written.
void check(const Recipe& recipe) {
  validate(recipe);
  const TokenSource source = TokenSource::open(recipe.data, recipe.seq, recipe.seed);
  if (recipe.vocab != 0 && recipe.vocab < source.vocab_needed()) {
    throw RecipeError("--vocab", "the data needs a vocabulary of " + std::to_string(source.vocab_needed()) + ", not " +
                                     std::to_string(recipe.vocab));
  }
}

std::string first_rung_text(const Recipe& recipe) {
  return precision_name(recipe) + ", B " + std::to_string(recipe.batch) + ", T " + std::to_string(recipe.seq);
}

// A path that still means the same from another folder.
Recipe with_absolute_data(Recipe recipe) {
  if (!recipe.data.empty()) recipe.data = std::filesystem::absolute(recipe.data).lexically_normal().string();
  return recipe;
}

}  // namespace

std::string default_name(const Recipe& recipe) {
  return recipe.model + " on " +
         (recipe.data.empty() ? "synthetic tokens" : std::filesystem::path(recipe.data).filename().string());
}

Session::Session(const std::filesystem::path& database, std::function<void()> wake, const TrainerLibrary* library)
    : store_(RunStore::open(database)), wake_(wake ? std::move(wake) : [] {}) {
  store_.close_dead_runs();
  recorder_ = std::make_unique<Recorder>(database, [this](const std::string&) {
    engine_->stop_all();
    wake_();
  });
  engine_ = std::make_unique<Engine>(
      [this](const RunEvent& event) {
        recorder_->post(event);
        events_.post(event);
        if (!std::holds_alternative<StepRecord>(event)) wake_();
      },
      library);
}

Session::~Session() {
  engine_->stop_all();
  engine_->wait_idle();
  recorder_->flush();
  // The recorder's error handler reaches for the engine, so the writer ends first.
  recorder_.reset();
}

RunId Session::create_run(Run run, const Recipe& recipe) {
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
  return store_.create_run(run);
}

LaunchedLadder Session::launch_ladder(const LadderRequest& request, const DeviceReport& report) {
  const Recipe base = with_absolute_data(request.base);
  check(base);
  std::vector<std::string> stages = request.stages;
  if (stages.empty()) {
    for (const Stage& stage : all_stages()) stages.push_back(stage.id);
  }
  LaunchedLadder launched{.plan = plan_ladder(base, stages, report)};
  const std::string name = request.name.empty() ? default_name(base) : request.name;
  launched.ladder =
      store_.create_ladder({.name = name, .source = "launched", .source_path = base.data, .created_at = unix_now()});

  struct Planned {
    int rung, repeat;
  };
  std::vector<Planned> order;
  for (int rung = 0; rung < static_cast<int>(launched.plan.rungs.size()); ++rung) {
    for (int repeat = 0; repeat < request.repeats; ++repeat) order.push_back({rung, repeat});
  }
  if (request.interleave) {
    std::mt19937_64 random(base.seed);
    std::shuffle(order.begin(), order.end(), random);
  }
  for (const auto [rung, repeat] : order) {
    const Rung& planned = launched.plan.rungs[rung];
    Run run;
    run.name = name + ": " + planned.title + (request.repeats > 1 ? " #" + std::to_string(repeat + 1) : "");
    run.ladder = launched.ladder;
    run.rung = rung;
    run.repeat = repeat;
    run.stage = planned.stage;
    run.title = planned.title;
    run.changed = rung == 0 ? first_rung_text(planned.recipe) : planned.changed;
    launched.runs.push_back(create_run(run, planned.recipe));
  }
  // Submitted last, so that no step can arrive before all rows are there.
  for (std::size_t i = 0; i < order.size(); ++i) {
    engine_->submit(launched.runs[i], launched.plan.rungs[order[i].rung].recipe);
  }
  return launched;
}

RunId Session::launch_run(const std::string& name, const Recipe& base, const std::vector<std::string>& stages,
                          const DeviceReport& report) {
  Recipe recipe = with_absolute_data(base);
  check(recipe);
  const Stage* last = &stage_by_id("baseline");
  for (const std::string& id : stages) {
    const Stage& stage = stage_by_id(id);
    if (const std::string why = stage.unavailable(report, report.resolve(recipe.device)); !why.empty()) {
      throw RecipeError("--stage", id + " is not available here: " + why);
    }
    stage.apply(recipe);
    last = &stage;
  }
  Run run;
  run.name = name.empty() ? default_name(recipe) + (stages.empty() ? "" : ": " + last->title) : name;
  run.stage = last->id;
  run.title = last->title;
  run.changed = first_rung_text(recipe);
  const RunId id = create_run(run, recipe);
  engine_->submit(id, recipe);
  return id;
}

}  // namespace stepladder
