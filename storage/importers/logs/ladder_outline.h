// The facts about all runs of a log together: the notes above the first, and which run is the baseline.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "storage/importers/importer.h"

namespace stepladder {

class LadderOutline {
 public:
  explicit LadderOutline(std::string name) : name_(std::move(name)) {}

  // Reads the order of the runs, which words anywhere in the log may state.
  void read_order(std::string_view text);
  // Adds words that precede the first run.
  void add_note(std::string_view text);
  void add_run(const std::string& stage) { stages_.push_back(stage); }

  bool empty() const { return stages_.empty(); }

  // Reports the ladder to the sink if there are several runs.
  void tell(ImportSink& sink) const;

 private:
  bool newest_first() const;

  std::string name_;
  std::string notes_;
  std::vector<std::string> stages_;  // of the runs so far
  bool says_newest_first_ = false;
};

}  // namespace stepladder
