// Shows the progress of runs on stderr: a line that is rewritten if stdout and stderr are terminals, else a line every
// half minute and for each run that has ended; with --progress json each is an object.
#pragma once

#include <string>
#include <vector>

#include "app/cli/terminal/output_options.h"
#include "app/runs/loaded_runs.h"
#include "app/session/session.h"
#include "storage/records.h"

namespace stepladder {

// Shows progress until each of `runs` has ended and is in the database. Ctrl-C stops them. While the database cannot be
// written, it waits and says so. Returns false if a run's checkpoints all failed to be saved. Main thread.
bool follow(Session& session, const std::vector<RunId>& runs);

// Says on stderr how long these runs will take, roughly, if that is more than half a minute; `follow` says it again
// after the first steps, by their times.
void say_estimate(Session& session, const std::vector<RunId>& runs, const DeviceReport& report);

// Says on stderr what isn't an error: as a line, or {"note": ...} with --progress json.
void say_note(const std::string& text);

// Says on stderr that runs are being deleted, once that has taken a second and then every ten, until Ctrl-C.
KeepDeleting say_deletions();

// Says on stderr why a run that is stopped can't be resumed from its last step.
void say_no_checkpoint(RunId run);

// The exit status of these runs' command: failed (a run failed, or no checkpoint was saved), interrupted (also if one
// was stopped from elsewhere) or done.
int exit_status(const std::vector<LoadedRun>& runs, bool have_checkpoints);

// Main thread.
class Progress {
 public:
  // `runs` in the order in which they will run, with id, title and planned steps.
  explicit Progress(std::vector<Run> runs);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void say(const std::string& text);  // a note, above the line of progress
  void show(const RunEvent& event);
  void show(const Unstored& unstored);  // says when steps begin to wait, every half minute, and when they are stored
  void show_journal_trouble(const std::string& why);  // says when it changes; empty: there is none

 private:
  void draw(const StepRecord& record);
  void clear();
  void refine();
  const Run* find(RunId id, std::size_t& place) const;

  std::vector<Run> runs_;
  std::int64_t done_steps_ = 0;
  std::int64_t all_steps_ = 0;
  double started_at_ = missing;
  bool has_refined_ = false;  // said how long it will take, by the first steps
  double drawn_at_ = 0;
  double said_at_ = missing;  // that steps wait
  StepRecord last_;
  std::string last_products_;  // what a run said of its products
  std::string journal_trouble_;
  ProgressStyle style_;
  bool line_is_drawn_ = false;
};

}  // namespace stepladder
