// Remembers which runs this user has launched here. Only these are continued, resumed, forked or repeated without a
// question, since a recipe in a stranger's project names files to read, processes to start and how long to train
// (docs/security.md).
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "engine/recipe.h"
#include "storage/database/orders/order_book.h"
#include "storage/database/run_store.h"

namespace stepladder {

// One thread, as its store.
class LaunchedRuns {
 public:
  // `journals`: the folder of journals that replaces the database, which is temporary then; empty: it doesn't.
  LaunchedRuns(RunStore& store, const std::filesystem::path& journals);

  void add(const std::vector<RunId>& runs);  // throws StorageError
  bool has(const Run& run);

 private:
  RunStore& store_;
  std::string journals_;
  OrderBook book_;  // of the journals
};

// Thrown when runs that this user hasn't launched are to be trained by their recipes. The text says what they would do.
struct NotLaunchedHere : RecipeError {
  NotLaunchedHere(const FieldText& about, const std::vector<Run>& others);
  std::string what_it_does;  // sentences
  std::vector<RunId> runs;
};

// The runs of a ladder that were interrupted or stopped, or never began, in the order in which they were launched.
// Skips one that began if its rung has a run that was launched since. Empty while another one is queued or running, and
// for imported ladders.
std::vector<Run> runs_to_continue(std::span<const Run> runs);

}  // namespace stepladder
