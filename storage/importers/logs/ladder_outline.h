// What a log with several runs says of them together: the notes above the first, and which of them is the baseline.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "storage/importers/importer.h"

namespace stepladder {

class LadderOutline {
 public:
  explicit LadderOutline(std::string name) : name_(std::move(name)) {}

  // Words anywhere in the log may say in which order its runs are.
  void read_order(std::string_view text);
  // Words before the first run.
  void add_note(std::string_view text);
  void add_run(const std::string& stage) { stages_.push_back(stage); }

  bool empty() const { return stages_.empty(); }

  // Tells the ladder, where there are several runs.
  void tell(ImportSink& sink) const;

 private:
  bool newest_first() const;

  std::string name_;
  std::string notes_;
  std::vector<std::string> stages_;  // of the runs so far
  bool says_newest_first_ = false;
};

}  // namespace stepladder
