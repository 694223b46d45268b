// Events that commands send to panels (Panel::receive).
#pragma once

#include <variant>
#include <vector>

#include "app/launch/ladder_file.h"
#include "storage/records.h"

namespace stepladder {

struct SpeedupToExplain {  // for Profile: the runs of two rungs
  std::vector<RunId> before, after;
};
struct WaterfallToggled {};  // for Ladder

struct PanelEvent {
  std::variant<LadderDraft, SpeedupToExplain, WaterfallToggled> what;  // a draft is for Launch, to fill its form

  template <class Event>
  const Event* as() const {
    return std::get_if<Event>(&what);
  }
};

}  // namespace stepladder
