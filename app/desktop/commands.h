// What panels may ask for. Collected while a frame is drawn, carried out between frames (DesktopApp::execute).
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "app/session.h"

namespace stepladder {

struct LaunchLadder {
  LadderRequest request;
};
struct StopRun {
  RunId run = 0;
};
struct StopAll {};
struct PauseRun {
  RunId run = 0;
  bool paused = true;
};
struct MoveInQueue {
  RunId run = 0;
  std::size_t place = 0;  // 0: the next
};
struct LoadSeries {
  RunId run = 0;
};
struct ShowPanel {
  std::string id;
  bool beside = false;  // next to the others instead of in their place
};
struct SelectLadder {
  LadderId ladder = 0;
};
struct SelectRung {
  int rung = 0;
};
struct SelectRun {
  RunId run = 0;
  bool selected = true;
};
struct ClearSelection {};
struct ToggleTheme {};
struct ChangeScale {
  int direction = 0;  // 1 larger, -1 smaller, 0 back to the display's own
};
struct DismissMessage {
  std::size_t index = 0;
};

using Command = std::variant<LaunchLadder, StopRun, StopAll, PauseRun, MoveInQueue, LoadSeries, ShowPanel, SelectLadder,
                             SelectRung, SelectRun, ClearSelection, ToggleTheme, ChangeScale, DismissMessage>;
using Commands = std::vector<Command>;

}  // namespace stepladder
