#include "app/cli/cli.h"
#ifdef STEPLADDER_DESKTOP
#include "app/desktop/desktop.h"
#endif

int main(int argc, char** argv) {
#ifdef STEPLADDER_DESKTOP
  return stepladder::run_command_line(argc, argv,
                                      {.open = stepladder::open_desktop, .screenshot = stepladder::take_screenshot});
#else
  return stepladder::run_command_line(argc, argv, {});
#endif
}
