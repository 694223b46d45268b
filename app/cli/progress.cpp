#include "app/cli/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "app/cli/subcommand.h"
#include "app/cli/suspend.h"
#include "app/format.h"

namespace stepladder {

namespace {

// Whether to avoid colour and rewriting: without a terminal, or if NO_COLOR is set.
bool stdout_is_plain() {
  const char* no_color = std::getenv("NO_COLOR");
  return !isatty(STDOUT_FILENO) || (no_color && *no_color);
}

}  // namespace

void follow(Session& session, const std::vector<RunId>& runs) {
  std::vector<Run> rows;
  for (const RunId id : runs) rows.push_back(session.store().existing_run(id));
  const bool several_processes =
      std::any_of(rows.begin(), rows.end(), [](const Run& run) { return recipe_from_json(run.recipe).nproc > 1; });
  Progress progress(std::move(rows));
  Suspension suspension(session, runs, several_processes);
  std::size_t ended = 0;
  bool stopping = false;
  while (ended < runs.size()) {
    for (const RunEvent& event : session.wait_and_drain(std::chrono::milliseconds(100))) {
      progress.show(event);
      ended += std::holds_alternative<RunEnded>(event) ? 1 : 0;
    }
    if (interrupted() && !stopping) {
      stopping = true;
      session.stop_all();
    }
    suspension.look();
  }
  session.flush();
  if (const std::string error = session.storage_error(); !error.empty()) throw StorageError(error);
}

Progress::Progress(std::vector<Run> runs)
    : runs_(std::move(runs)), is_terminal_(!stdout_is_plain() && isatty(STDERR_FILENO)) {
  for (const Run& run : runs_) all_steps_ += run.planned_steps;
}

Progress::~Progress() {
  clear();
}

const Run* Progress::find(RunId id, std::size_t& place) const {
  const auto found = std::find_if(runs_.begin(), runs_.end(), [id](const Run& run) { return run.id == id; });
  place = static_cast<std::size_t>(found - runs_.begin());
  return found == runs_.end() ? nullptr : &*found;
}

void Progress::show(const RunEvent& event) {
  std::size_t place = 0;
  if (const auto* step = std::get_if<StepRecord>(&event)) {
    ++done_steps_;
    if (is_missing(started_at_)) started_at_ = unix_now();
    last_ = *step;
    if (is_terminal_ && unix_now() - drawn_at_ > 0.1) draw(*step);
  } else if (const auto* ended = std::get_if<RunEnded>(&event)) {
    const Run* run = find(ended->run, place);
    if (!run) return;
    clear();
    std::string line = "  " + run->title + ": " + std::string(to_string(ended->status));
    if (last_.run == run->id) line += " at step " + grouped(last_.step) + ", loss " + loss_text(last_.loss);
    if (!ended->reason.empty()) line += " (" + ended->reason + ")";
    std::fprintf(stderr, "%s\n", line.c_str());
  } else if (const auto* sample = std::get_if<TextSample>(&event)) {
    clear();
    std::fprintf(stderr, "  text after step %s:\n%s\n", grouped(sample->step).c_str(), harmless(sample->text).c_str());
  } else if (const auto* saved = std::get_if<CheckpointSaved>(&event); saved && !saved->error.empty()) {
    clear();
    std::fprintf(stderr, "  the checkpoint of step %s was not saved: %s\n", grouped(saved->step).c_str(),
                 saved->error.c_str());
  }
}

void Progress::draw(const StepRecord& record) {
  std::size_t place = 0;
  const Run* run = find(record.run, place);
  if (!run) return;
  drawn_at_ = unix_now();
  const double share = all_steps_ > 0 ? static_cast<double>(done_steps_) / static_cast<double>(all_steps_) : 0;
  const int bar_width = 24;
  const int filled = std::clamp(static_cast<int>(share * bar_width), 0, bar_width);
  std::string line = "  [" + std::string(filled, '=') + std::string(bar_width - filled, ' ') + "] ";
  if (runs_.size() > 1) line += std::to_string(place + 1) + "/" + std::to_string(runs_.size()) + " ";
  line += run->title + "  step " + grouped(record.step) + "/" + grouped(run->planned_steps) + "  loss " +
          loss_text(record.loss) + "  " + milliseconds_text(record.dt_ms);
  if (done_steps_ >= 10) {
    const double left =
        (unix_now() - started_at_) / static_cast<double>(done_steps_) * static_cast<double>(all_steps_ - done_steps_);
    line += "  " + duration_text(left) + " left";
  }
  std::fprintf(stderr, "\r\033[K%s", line.c_str());
  line_is_drawn_ = true;
}

void Progress::clear() {
  if (line_is_drawn_) std::fprintf(stderr, "\r\033[K");
  line_is_drawn_ = false;
}

}  // namespace stepladder
