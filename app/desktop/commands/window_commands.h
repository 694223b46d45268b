// Commands about the window itself: its views, theme and layout.
#pragma once

#include <cstddef>
#include <string>

#include "app/desktop/command.h"
#include "app/desktop/settings.h"

namespace stepladder {

struct ShowPanel {
  std::string id;
  bool beside = false;  // next to the open ones instead of replacing them
};
struct ShowPalette {};
struct SetTheme {
  ThemeChoice theme = ThemeChoice::dark;
};
struct ToggleTheme {};
struct ToggleLineStyles {};
struct ToggleWaterfall {};  // in Ladder, which it shows
struct FoldSideBar {};      // or unfold it
struct LeaveForRescue {};   // closes the window of a damaged project, and offers to save what can be read of it
struct ChangeScale {
  int direction = 0;  // 1 larger, -1 smaller, 0 the display's own
};
struct ResetLayout {};
struct ResetPanel {  // a view shows again what it shows in a new project
  std::string id;
};
struct Reload {};  // the database, with other programs' changes
struct DismissMessage {
  std::size_t index = 0;
};

}  // namespace stepladder
