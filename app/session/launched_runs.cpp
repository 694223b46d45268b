#include "app/session/launched_runs.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/runs/find_run.h"
#include "app/text/format.h"

namespace stepladder {
namespace {

// Runs from versions without uids have none.
std::string subject_of(const Run& run) {
  return run.uid.empty() ? "run " + std::to_string(run.id) : run.uid;
}

std::string training_text(const Run& run) {
  const Recipe recipe = recipe_from_json(run.recipe);
  std::string text = "It would train " + harmless(recipe.model) + " for " +
                     grouped(run.planned_steps > 0 ? run.planned_steps : recipe.steps) + " steps in " +
                     (recipe.nproc > 1 ? std::to_string(recipe.nproc) + " processes" : "one process");
  std::string files;
  for (const std::string* file : {&recipe.data, &recipe.weights, &recipe.tokenizer})
    if (!file->empty()) files += (files.empty() ? ", reading " : " and ") + harmless(*file);
  return text + files + ".";
}

std::string text_of(const std::vector<Run>& others) {
  const std::string more = others.size() > 1 ? " and " + plural(others.size() - 1, "run") + " more" : "";
  return "run " + std::to_string(others.front().id) + more + (more.empty() ? " wasn't" : " weren't") +
         " launched here: the project came from elsewhere, was moved or copied, or is from an earlier version. " +
         training_text(others.front());
}

// The values of a recipe that a stranger could abuse, as the order book keeps them.
std::string agreed(const Run& run) {
  const Recipe recipe = recipe_from_json(run.recipe);
  return nlohmann::ordered_json{
      {"data", recipe.data}, {"weights", recipe.weights}, {"tokenizer", recipe.tokenizer}, {"nproc", recipe.nproc}}
      .dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace

LaunchedRuns::LaunchedRuns(RunStore& store, const std::filesystem::path& journals) : store_(store) {
  std::error_code error;
  if (!journals.empty()) journals_ = std::filesystem::weakly_canonical(journals, error).string();
}

void LaunchedRuns::add(const std::vector<RunId>& runs) {
  std::vector<Order> orders;
  for (const RunId id : runs) {
    const Run run = store_.existing_run(id);
    orders.push_back({subject_of(run), agreed(run)});
  }
  if (journals_.empty())
    store_.orders().put(order_kind::launch, orders);
  else
    book_.put(order_kind::launch, journals_, orders);
}

bool LaunchedRuns::has(const Run& run) {
  const auto order = journals_.empty() ? store_.orders().find(order_kind::launch, subject_of(run))
                                       : book_.find(order_kind::launch, journals_, subject_of(run));
  return order == agreed(run);
}

NotLaunchedHere::NotLaunchedHere(const FieldText& about, const std::vector<Run>& others)
    : RecipeError(about, text_of(others) + " To train by it all the same, adopt it (" + FieldName{"adopt"} + ")"),
      what_it_does(text_of(others)),
      runs(ids_of(others)) {}

std::vector<Run> runs_to_continue(std::span<const Run> runs) {
  std::vector<Run> left;
  for (const Run& run : runs) {
    if (!is_over(run.status) || run.source != "launched") return {};
    if (run.status == RunStatus::interrupted || run.status == RunStatus::stopped) left.push_back(run);
  }
  // A run that began and ended is skipped if its rung was trained again later. One that never began still has to be
  // trained.
  for (const Run& later : runs) {
    const auto replaced = std::ranges::find_if(left, [&](const Run& run) {
      return run.rung == later.rung && !is_missing(run.started_at) && later.created_at > run.ended_at;
    });
    if (replaced != left.end()) left.erase(replaced);
  }
  std::ranges::sort(left, {}, &Run::id);
  return left;
}

}  // namespace stepladder
