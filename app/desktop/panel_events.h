// Events that commands send to panels (Panel::receive).
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "app/launch/ladder_file.h"
#include "storage/records.h"

namespace stepladder {

struct SpeedupToExplain {  // for Profile: the runs of two rungs
  std::vector<RunId> before, after;
};
struct TraceToShow {  // for Profile
  std::int64_t trace = 0;
};
struct PairToImport {       // for Profile: the next two imported traces are compared with each other
  bool is_example = false;  // asked for by name, so they replace a chosen pair
};
struct WaterfallToggled {};  // for Ladder
struct TriesToShow {         // for Tries
  LadderId series = 0;
};

struct FolderDropped {  // for Record, while it is open
  std::string folder;
};

struct PanelEvent {
  std::variant<LadderDraft, SpeedupToExplain, TraceToShow, PairToImport, WaterfallToggled, TriesToShow, FolderDropped>
      what;  // a draft is for Launch, to fill its form

  template <class Event>
  const Event* as() const {
    return std::get_if<Event>(&what);
  }
};

}  // namespace stepladder
