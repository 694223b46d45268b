// A saved view of the window as JSON text: the views that were open, their states, and the runs that they name. Pure.
// Any thread.
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "storage/records.h"

namespace stepladder {

// A run that a view names; it may have been deleted since.
struct ViewRun {
  RunId id = 0;
  std::string uid;  // empty: not known
  std::string name;
  bool selected = false;

  friend bool operator==(const ViewRun&, const ViewRun&) = default;
};

struct SavedView {
  std::vector<std::string> panels;  // ids of the open views, left to right; empty: those that are open stay
  // By panel. A run in them is {"run": ID}, wherever it is.
  std::map<std::string, nlohmann::json> states;
  bool selects = true;  // whether it has a selection of runs, which may be empty
  std::vector<ViewRun> runs;
};

// The text isn't a view; what() is a sentence's end: "it isn't JSON".
struct ViewError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

std::string text_of(const SavedView& view);
SavedView saved_view_from(const std::string& text);  // throws ViewError; bounded in depth for any text

// The reference to a run in a panel's state, and its reading: 0 if it isn't a reference.
nlohmann::json run_reference(RunId run);
RunId run_in(const nlohmann::json& reference);

std::vector<RunId> runs_in(const SavedView& view);  // that the states name, each once, in order

// Replaces each run by the one that `find` returns, which may change its name and uid; runs that it doesn't find become
// null and leave `runs`.
using FindRun = std::function<std::optional<RunId>(ViewRun&)>;
void renumber(SavedView& view, const FindRun& find);

}  // namespace stepladder
