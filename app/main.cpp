#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "app/cli/cli.h"
#include "app/host/crash_report.h"
#include "app/machines/ssh_questions.h"
#include "commit.h"
#ifdef STEPLADDER_DESKTOP
#include "app/desktop/desktop.h"
#endif

int main(int argc, char** argv) {
  if (const auto asked = stepladder::ask_for_ssh(argc, argv)) return *asked;
#ifdef STEPLADDER_DESKTOP
  const stepladder::Desktop desktop{.open = stepladder::open_desktop, .screenshot = stepladder::take_screenshot};
#else
  const stepladder::Desktop desktop;
#endif
#ifndef STEPLADDER_SANITIZE  // sanitizers report crashes themselves
  stepladder::report_crashes("stepladder " STEPLADDER_VERSION " " STEPLADDER_COMMIT);
#endif
  const int status = stepladder::run_command_line(argc, argv, desktop, STEPLADDER_COMMIT);
#ifdef STEPLADDER_SANITIZE
  return status;  // sanitizers report at the end
#else
  // Leaves memory to the system: LibTorch's own cleaning up takes 50 ms.
  std::cout.flush();
  std::fflush(nullptr);
  std::_Exit(status);
#endif
}
