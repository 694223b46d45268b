// Finds the runs, ladders and checkpoints that an argument names: the one resolver of all commands and of the Record
// view.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "app/runs/run_fields.h"
#include "storage/database/run_store.h"

namespace stepladder {

enum class Among { listed, binned };

// The runs that these words name, each once, in the order of the words. A word is a number, a range of numbers (3-5), a
// name, `latest`, the beginning of one name, a list of these (2,4-6,latest), or a filter (app/runs/run_filter.h) with
// at least one comparison. Throws UsageError for a word that names none or several by name, and for a range with a run
// that isn't there; FilterError.
std::vector<Run> find_runs(RunStore& store, const std::vector<std::string>& words, Among among = Among::listed);

std::string list_text(std::vector<RunId> ids);           // such a word for these runs: "4-6,9"
Run find_run(RunStore& store, const std::string& word);  // the same, for exactly one run
std::vector<RunId> ids_of(std::span<const Run> runs);

// Whether a word is written for several runs, however many they are: a range, a list or a filter.
bool is_for_several(const std::string& word);

// By number, name, `latest`, or the beginning of one name. Throws UsageError.
Ladder find_ladder(RunStore& store, const std::string& word);

// "12@400": a run and a step; without a step, the newest checkpoint.
std::pair<Run, std::optional<std::int64_t>> find_fork(RunStore& store, const std::string& text);

// The names that filters and columns may use besides those of every project. `store` outlives it; null: none.
ProjectNames project_names(RunStore* store);

// The runs that a filter accepts, oldest first. Throws FilterError, StorageError.
std::vector<Run> filtered_runs(RunStore& store, const std::string& expression, Among among = Among::listed);

}  // namespace stepladder
