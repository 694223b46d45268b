// Commands about single runs: stop, pause, repeat, resume.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "app/desktop/command.h"

namespace stepladder {

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
struct Repeat {  // trains runs again by their own recipes, as repeats of their rungs
  std::vector<RunId> runs;
  int times = 1;
};
struct ResumeRun {  // from its newest checkpoint, to this many steps in total
  RunId run = 0;
  std::int64_t steps = 0;
};
struct ForkRun {  // a child that starts from the checkpoint of `step`
  RunId run = 0;
  std::int64_t step = 0;
};

}  // namespace stepladder
