// Facts from the words around the steps, about the run that follows or continues.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "storage/importers/logs/log_facts.h"

namespace stepladder {

class SpokenFacts {
 public:
  // False once so many lines of a run were read that later ones can be skipped.
  bool attentive() const { return lines_left_ > 0; }
  // After a heading or a fence, the next lines may state facts again.
  void listen() { lines_left_ = std::max(lines_left_, 1000); }

  // Whether the line states a fact.
  bool read(std::string_view line) {
    --lines_left_;
    return facts_.read(line);
  }
  // Reads a line that is part of a step.
  void read_part(std::string_view line) { facts_.read(line); }

  std::int64_t batch() const { return facts_.batch; }

  // Keeps the hardware named before the first run for all runs.
  void keep_hardware() {
    if (!facts_.hardware.empty()) hardware_ = facts_.hardware;
    several_ |= facts_.names_several;
  }
  const std::string& hardware() const { return facts_.hardware.empty() ? hardware_ : facts_.hardware; }
  // Empty if the text names several, and none for this run alone.
  std::string sole_hardware() const {
    const bool is_sole = facts_.hardware.empty() ? !several_ : !facts_.names_several;
    return is_sole ? hardware() : std::string();
  }

  // Uses the precision that a title names if no line sets one.
  void suggest_precision(std::string_view precision) {
    if (facts_.precision.empty()) facts_.precision = precision;
  }

  // The facts of the run that begins now.
  LogFacts take() {
    lines_left_ = lines_of_a_run;
    several_ |= facts_.names_several;
    facts_.hardware = hardware_ = hardware();
    return std::exchange(facts_, {});
  }

 private:
  static constexpr int lines_of_a_run = 20000;

  LogFacts facts_;
  int lines_left_ = lines_of_a_run;
  std::string hardware_;  // named anywhere before
  bool several_ = false;  // other hardware is named too
};

}  // namespace stepladder
