// The project's traces of profilers beneath the runs of the History view: a row each, which opens it in Profile. UI
// thread.
#pragma once

#include <string>

#include "app/desktop/command.h"
#include "app/desktop/workspace.h"

namespace stepladder {

struct HistoryTraces {
  bool are_shown = true;
};

// Pixels that the card needs; 0: there are no traces.
float height_of(const HistoryTraces& traces, const Workspace& workspace);

// Of their head alone, which says why it lists none.
float least_height_of_traces();

// Those whose name has the filter's words; all if the filter has conditions. In a card of its own of this height, whose
// head folds it.
void draw_history_traces(HistoryTraces& traces, float height, const std::string& filter, const Workspace& workspace,
                         Commands& commands);

}  // namespace stepladder
