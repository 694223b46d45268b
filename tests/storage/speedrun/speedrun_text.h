// Logs as modded-nanogpt prints them, made up.
#pragma once

#include <cstdio>
#include <string>

namespace stepladder {

struct LogText {
  std::string script = "import os\nimport torch\n\ndef main():\n    lr = 0.02  # tuned\n    return lr\n";
  std::string date = "Wed Sep  3 19:58:00 2025";
  std::string torch = "2.9.0.dev20250718+cu126";
  std::string driver = "560.35.03";
  std::string gpu = "NVIDIA H100 80GB HBM3";
  std::string bus = "19";
  int gpus = 8;
  std::string seed;  // printed if not empty
  int steps = 400;
  int printed = -1;  // the last step; -1: all
  double step_ms = 97.5;
  double final_loss = 3.2781;
  double curve = 0;          // added to the evaluations before the last
  int clock_restart = 0;     // the step at which the clock is set to 0
  int slower_from = 0;       // the step from which on each takes three times as long
  int shorter_from = 0;      // the step from which on each takes three fifths of the time
  int stopped_clock_at = 0;  // the clock stands still for 20 steps from here on
  int slow_clock_from = 0;   // the clock takes three fifths of each step from here on, but for the last ten

  std::string text() const {
    const std::string rule(100, '=');
    std::string all = script + "\n" + rule + "\nRunning Python 3.12.7\nRunning PyTorch " + torch +
                      " compiled for CUDA 12.6\n" + date + "       \n" + "| NVIDIA-SMI " + driver +
                      "              Driver Version: " + driver + "      CUDA Version: 12.6     |\n";
    for (int i = 0; i < gpus; ++i)
      all += "|   " + std::to_string(i) + "  " + gpu + "          On  |   00000000:" + bus + ":0" + std::to_string(i) +
             ".0 Off |                    0 |\n";
    all += "|    0   N/A  N/A     12345      C   /usr/bin/python3   1MiB |\n" + rule + "\n";
    if (!seed.empty()) all += "seed: " + seed + "\n";
    double clock = 0;
    for (int step = 0; step <= (printed < 0 ? steps : printed); ++step) {
      if (step > 0) {
        const bool stands = stopped_clock_at > 0 && step > stopped_clock_at && step <= stopped_clock_at + 20;
        const double took = slower_from > 0 && step >= slower_from     ? 3 * step_ms
                            : shorter_from > 0 && step >= shorter_from ? 0.6 * step_ms
                                                                       : step_ms;
        const bool is_slow = slow_clock_from > 0 && step > slow_clock_from && step <= steps - 10;
        clock += is_slow ? 0.6 * took : stands ? 0 : step == clock_restart ? took - clock : took;
        add(all, step, "", clock);
      }
      if (step % 100 == 0 || step == steps) {
        char value[40];
        std::snprintf(value, sizeof value, "val_loss:%.4f ", step == steps ? final_loss : 10.8 - 0.017 * step + curve);
        add(all, step, value, clock);
      }
    }
    return all;
  }

 private:
  void add(std::string& all, int step, const char* value, double clock) const {
    char line[160];
    std::snprintf(line, sizeof line, "step:%d/%d %strain_time:%.0fms step_avg:%.2fms\n", step, steps, value, clock,
                  step ? clock / step : 0);
    all += line;
  }
};

}  // namespace stepladder
