// Shows the progress of runs on stderr: a line that is rewritten if stdout and stderr are terminals, else a line for
// each run that has ended.
#pragma once

#include <string>
#include <vector>

#include "app/session.h"
#include "storage/records.h"

namespace stepladder {

// Shows progress until each of `runs` has ended and is in the database. Ctrl-C stops them. Throws StorageError if steps
// could not be written. Main thread.
void follow(Session& session, const std::vector<RunId>& runs);

// Main thread.
class Progress {
 public:
  // `runs` in the order in which they will run, with id, title and planned steps.
  explicit Progress(std::vector<Run> runs);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(const RunEvent& event);

 private:
  void draw(const StepRecord& record);
  void clear();
  const Run* find(RunId id, std::size_t& place) const;

  std::vector<Run> runs_;
  std::int64_t done_steps_ = 0;
  std::int64_t all_steps_ = 0;
  double started_at_ = missing;
  double drawn_at_ = 0;
  StepRecord last_;
  bool is_terminal_;
  bool line_is_drawn_ = false;
};

}  // namespace stepladder
