// Follows runs that train in this process, for every command that trains: shows progress, handles Ctrl-C and Ctrl-Z,
// and waits until the ends of all runs are in the database. A run's end is shown only once it is stored.
#include "app/cli/progress.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <set>
#include <sstream>
#include <utility>

#include "app/cli/subcommand.h"
#include "app/cli/table.h"
#include "app/exit_status.h"
#include "app/host/environment.h"
#include "app/launch/step_estimate.h"
#include "app/text/format.h"
#include "app/text/terminal_text.h"
#include "storage/bounded_text.h"

namespace stepladder {

namespace {

constexpr std::size_t longest_title = 60;  // in a line that is redrawn, which must not wrap
constexpr double say_again_s = 30;         // that steps wait to be stored
constexpr double worth_saying_s = 30;      // of all runs together
constexpr std::int64_t first_steps = 3;    // that correct the estimate

double seconds_between(ProgressStyle style) {
  return style == ProgressStyle::line ? 0.1 : style == ProgressStyle::json ? 1 : 30;
}

bool is_for_people(ProgressStyle style) {
  return style == ProgressStyle::line || style == ProgressStyle::periodic;
}

// The end of a run as the database has it, which may lack steps of the training.
RunEnded as_stored(Session& session, RunEnded end) {
  const Run run = session.store().existing_run(end.run);
  end.status = run.status;
  end.reason = run.reason;
  return end;
}

[[noreturn]] void leave(Session& session, const Unstored& unstored) {
  session.leave_unstored();
  if (const std::string why = session.journal_trouble(); !why.empty() && unstored.why.empty())
    throw StorageError("the journals lack the last lines: " + why);
  throw StorageError((unstored.why.empty() ? "the last steps are not stored yet." : unstored_text(unstored)) +
                     " They are kept" + (unstored.kept_in.empty() ? "" : " in " + unstored.kept_in.string()) +
                     ", and the next start of Stepladder stores them");
}

// Ctrl-Z in the terminal (SIGTSTP). Stopped in the middle of a step, a training would count the time until `fg` as that
// step's dt. So this holds the runs before their next step, as `stepladder pause` does, and then stops the process.
std::atomic<bool> asked{false};

void note_suspend(int) {
  asked = true;
}

// While one exists, Ctrl-Z waits for the end of the step. Used by the thread that made it; one at a time.
class Suspension {
 public:
  // `runs` may be training. A run of several processes is not stopped, since the others would stop waiting for this
  // one; Ctrl-Z then only prints an alternative.
  Suspension(Session& session, std::vector<RunId> runs, bool several_processes);
  ~Suspension();  // restores the system's Ctrl-Z
  Suspension(const Suspension&) = delete;
  Suspension& operator=(const Suspension&) = delete;

  // Call it repeatedly. After Ctrl-Z, once no step is under way, it writes all steps, stops the whole process, and
  // returns when the process continues.
  void look();

 private:
  void hold();
  void stop_here();

  Session& session_;
  const std::vector<RunId> runs_;
  const bool several_processes_;
  bool holds_ = false;
  std::vector<RunId> held_;  // by us; runs that another process paused stay paused
};

Suspension::Suspension(Session& session, std::vector<RunId> runs, bool several_processes)
    : session_(session), runs_(std::move(runs)), several_processes_(several_processes) {
  asked = false;
  std::signal(SIGTSTP, note_suspend);
}

Suspension::~Suspension() {
  std::signal(SIGTSTP, SIG_DFL);
}

void Suspension::look() {
  if (!asked) return;
  if (several_processes_) {
    asked = false;
    std::cerr << "\nstepladder: Ctrl-Z cannot stop a run of several processes, since they would lose contact. "
                 "Use `stepladder pause`\n";
    return;
  }
  if (!holds_) hold();
  if (session_.is_idle_or_paused()) stop_here();
}

void Suspension::hold() {
  std::cerr << "\nstepladder: suspending after this step, to keep timings clean\n";
  for (const RunId run : runs_) {
    if (session_.paused(run)) continue;
    session_.pause(run, true);
    held_.push_back(run);
  }
  holds_ = true;
}

void Suspension::stop_here() {
  session_.flush(std::chrono::seconds(2));  // what isn't stored by then waits in this process
  // The system's own stop, as shells expect it. The system ignores it if nobody could continue the process.
  std::signal(SIGTSTP, SIG_DFL);
  std::raise(SIGTSTP);
  std::signal(SIGTSTP, note_suspend);  // the process continues here
  asked = holds_ = false;
  for (const RunId run : std::exchange(held_, {})) session_.pause(run, false);
}

}  // namespace

bool follow(Session& session, const std::vector<RunId>& runs) {
  std::vector<Run> rows;
  for (const RunId id : runs) rows.push_back(session.store().existing_run(id));
  const bool several_processes =
      std::ranges::any_of(rows, [](const Run& run) { return recipe_from_json(run.recipe).nproc > 1; });
  Progress progress(std::move(rows));
  for (const std::string& left : session.store().processes().left_behind()) progress.say("stepladder: " + left);
  Suspension suspension(session, runs, several_processes);
  std::vector<RunEnded> unshown;   // ends that may not be stored yet
  std::set<RunId> saved, unsaved;  // runs with a checkpoint, and with one that could not be saved
  Session::Position posted;        // with the ends of `unshown`
  // A round of short runs begins while the one before is followed, so some may have ended already.
  std::set<RunId> awaited(runs.begin(), runs.end());
  std::erase_if(awaited, [&](RunId run) { return session.has_ended(run); });
  bool stopping = false;
  while (!awaited.empty() || !unshown.empty()) {
    for (const RunEvent& event : session.wait_and_drain(std::chrono::milliseconds(100))) {
      if (const auto* checkpoint = std::get_if<CheckpointSaved>(&event))
        (checkpoint->error.empty() ? saved : unsaved).insert(checkpoint->run);
      if (const auto* end = std::get_if<RunEnded>(&event)) {
        unshown.push_back(*end);
        awaited.erase(end->run);
        posted = session.posted();
      } else {
        progress.show(event);
      }
    }
    if (!unshown.empty() && session.flush(std::chrono::milliseconds(100), posted)) {
      for (const RunEnded& end : std::exchange(unshown, {})) progress.show(as_stored(session, end));
    }
    const Unstored unstored = session.unstored();
    progress.show(unstored);
    progress.show_journal_trouble(session.journal_trouble());
    if (interrupted() && !stopping) {
      stopping = true;
      if (awaited.empty() && !unshown.empty()) leave(session, unstored);
      session.stop_all();
    }
    suspension.look();
  }
  if (const std::string apart = session.unstored().kept_apart; !apart.empty()) throw StorageError(apart);
  return std::includes(saved.begin(), saved.end(), unsaved.begin(), unsaved.end());
}

void say_note(const std::string& text) {
  if (progress_style() != ProgressStyle::json) return void(std::cerr << harmless(text) << "\n");
  const std::size_t begin = text.starts_with("stepladder: ") ? 12 : text.find_first_not_of(' ');
  print_line({{"note", begin == std::string::npos ? "" : text.substr(begin)}}, std::cerr);
}

void say_estimate(Session& session, const std::vector<RunId>& runs, const DeviceReport& report) {
  if (!is_for_people(progress_style())) return;
  std::vector<Recipe> recipes;
  for (const RunId id : runs) recipes.push_back(recipe_from_json(session.store().existing_run(id).recipe));
  const HardwareTable table = HardwareTable::load(assets_folder());
  const std::vector<RunAndSummary> all = session.store().runs_with_summaries();
  const std::vector<MeasuredRun> known = finished_runs(all);
  const double seconds = estimate_seconds(recipes, report, table, known);
  if (is_missing(seconds) || seconds < worth_saying_s) return;
  const StepEstimate step = estimate_step(recipes.front(), report, table, known);
  std::cerr << fmt::format("stepladder: about {} in all, {} a step of the first run{}\n", rough_duration_text(seconds),
                           rough_duration_text(step.seconds), basis_text(step));
}

KeepDeleting say_deletions() {
  using namespace std::chrono_literals;
  return [next = std::chrono::steady_clock::now() + 1s](std::size_t runs_left) mutable {
    if (interrupted()) {
      std::cerr << "stepladder: interrupted; `stepladder bin --empty` deletes the rest\n";
      return false;
    }
    if (const auto now = std::chrono::steady_clock::now(); now >= next) {
      next = now + 10s;
      std::cerr << "stepladder: deleting the rows of " << plural(runs_left, "run")
                << "; Ctrl-C leaves the rest for later\n";
    }
    return true;
  };
}

void say_no_checkpoint(RunId run) {
  say_note(fmt::format("stepladder: run {} saves no checkpoint at a stop, since --save-every is 0", run));
}

int exit_status(const std::vector<LoadedRun>& runs, bool have_checkpoints) {
  const auto any = [&](auto&& test) {
    return std::ranges::any_of(runs, [&](const LoadedRun& run) { return test(run.run.status); });
  };
  if (interrupted()) return exit_interrupted;
  if (!have_checkpoints) return exit_failed;
  const auto is_good = [](RunStatus status) { return status == RunStatus::finished || status == RunStatus::stopped; };
  for (const LoadedRun& run : runs) {
    if (is_good(run.run.status)) continue;
    if (!errors_are_json()) return exit_failed;
    const std::string number = std::to_string(run.run.id);
    return report_error(
        UsageError("run " + number + ": " + std::string(to_string(run.run.status)) + ", " + run.run.reason,
                   {.code = "run-failed", .argument = "run", .value = number}),
        exit_failed);
  }
  return any([](RunStatus status) { return status == RunStatus::stopped; }) ? exit_interrupted : exit_done;
}

Progress::Progress(std::vector<Run> runs) : runs_(std::move(runs)), style_(progress_style()) {
  for (const Run& run : runs_) all_steps_ += run.planned_steps;
  if (style_ == ProgressStyle::periodic) drawn_at_ = unix_now();  // a short training needs no line
}

Progress::~Progress() {
  clear();
}

const Run* Progress::find(RunId id, std::size_t& place) const {
  const auto found = std::ranges::find(runs_, id, &Run::id);
  place = static_cast<std::size_t>(found - runs_.begin());
  return found == runs_.end() ? nullptr : &*found;
}

void Progress::show(const RunEvent& event) {
  std::size_t place = 0;
  if (const auto* step = std::get_if<StepRecord>(&event)) {
    ++done_steps_;
    if (is_missing(started_at_)) started_at_ = unix_now();
    last_ = *step;
    if (done_steps_ == first_steps + 1 && !has_refined_) refine();
    if (style_ != ProgressStyle::none && unix_now() - drawn_at_ > seconds_between(style_)) draw(*step);
  } else if (const auto* ended = std::get_if<RunEnded>(&event)) {
    const Run* run = find(ended->run, place);
    if (!run) return;
    clear();
    if (style_ == ProgressStyle::json)
      return print_line({{"ended", {{"run", run->id}, {"status", to_string(ended->status)}}}}, std::cerr);
    if (style_ == ProgressStyle::none) return;
    std::string line = "  " + run->title + ": " + std::string(to_string(ended->status));
    if (last_.run == run->id) line += " at step " + grouped(last_.step) + ", loss " + loss_text(last_.loss);
    if (!ended->reason.empty()) line += " (" + ended->reason + ")";
    std::cerr << line << "\n";
    if (ended->status == RunStatus::stopped && last_.run == run->id && recipe_from_json(run->recipe).save_every == 0)
      say_no_checkpoint(run->id);
  } else if (const auto* sample = std::get_if<TextSample>(&event)) {
    say("  text after step " + grouped(sample->step) + ":\n" + sample->text);
  } else if (const auto* saved = std::get_if<CheckpointSaved>(&event); saved && !saved->error.empty()) {
    say("  the checkpoint of step " + grouped(saved->step) + " was not saved: " + saved->error);
  } else if (const auto* note = std::get_if<ConsoleText>(&event)) {
    const bool is_of_products = note->text.starts_with("product ");
    if (is_of_products && std::exchange(last_products_, note->text) == note->text) return;  // as the rung before
    std::istringstream lines(note->text);
    for (std::string line; std::getline(lines, line);) say("  " + line);
  }
}

// Estimates the rest from the end of the first step, which may be slow, to the end of the last.
void Progress::refine() {
  has_refined_ = true;
  const double each = (unix_now() - started_at_) / static_cast<double>(first_steps);
  const double left = each * static_cast<double>(all_steps_ - done_steps_);
  if (left < worth_saying_s || !is_for_people(style_)) return;
  say(fmt::format("stepladder: the first steps took {} each; about {} left at this pace", rough_duration_text(each),
                  rough_duration_text(left)));
}

void Progress::show(const Unstored& unstored) {
  const double now = unix_now();
  if (unstored.why.empty()) {
    if (is_missing(said_at_)) return;
    said_at_ = missing;
    say("stepladder: all steps are stored again");
  } else if (is_missing(said_at_) || now - said_at_ > say_again_s) {
    said_at_ = now;
    say("stepladder: " + unstored_text(unstored) +
        " Stepladder keeps them and tries again; if it ends first, its next start stores them");
  }
}

void Progress::show_journal_trouble(const std::string& why) {
  if (why == journal_trouble_) return;
  journal_trouble_ = why;
  say(why.empty()
          ? "stepladder: the journals are complete again"
          : "stepladder: the journal cannot be written: " + why + "; its lines wait in memory and are tried again");
}

void Progress::draw(const StepRecord& record) {
  std::size_t place = 0;
  const Run* run = find(record.run, place);
  if (!run) return;
  drawn_at_ = unix_now();
  const double left = done_steps_ < 10 ? missing
                                       : (unix_now() - started_at_) / static_cast<double>(done_steps_) *
                                             static_cast<double>(all_steps_ - done_steps_);
  if (style_ == ProgressStyle::json)
    return print_line({{"progress",
                        {{"run", run->id},
                         {"run_of", Json::array({place + 1, runs_.size()})},
                         {"step", record.step},
                         {"planned_steps", run->planned_steps},
                         {"loss", number(record.loss)},
                         {"dt_ms", number(record.dt_ms)},
                         {"seconds_left", number(left)}}}},
                      std::cerr);
  std::string head = "  ";
  const std::size_t columns = message_columns();
  if (style_ == ProgressStyle::line && (columns == 0 || columns >= 80)) {
    constexpr std::size_t bar_width = 24;
    const double share = all_steps_ > 0 ? static_cast<double>(done_steps_) / static_cast<double>(all_steps_) : 0;
    std::string bar(static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * bar_width), '=');
    bar.resize(bar_width, ' ');
    head += "[" + bar + "] ";
  }
  if (runs_.size() > 1) head += fmt::format("{}/{} ", place + 1, runs_.size());
  std::string tail = "  step " + grouped(record.step) + "/" + grouped(run->planned_steps) + "  loss " +
                     loss_text(record.loss) + "  " + milliseconds_text(record.dt_ms);
  if (!is_missing(left)) tail += "  " + duration_text(left) + " left";
  std::size_t title = longest_title;
  if (style_ == ProgressStyle::line && columns > 0)
    title = std::min(title, columns - std::min(columns - 1, head.size() + tail.size() + 1));
  const std::string line = head + bounded(run->title, title) + tail;
  if (style_ != ProgressStyle::line) return void(std::cerr << line << "\n");
  std::fprintf(stderr, "\r\033[K%s", harmless(line).c_str());
  line_is_drawn_ = true;
}

void Progress::say(const std::string& text) {
  clear();
  say_note(text);
}

void Progress::clear() {
  if (line_is_drawn_) std::fprintf(stderr, "\r\033[K");
  line_is_drawn_ = false;
}

}  // namespace stepladder
