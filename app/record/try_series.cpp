// The life of a series of tries: opened, run after run stored, reverted. Nothing of the checkout is run but the command
// of the plan, which is this user's order. try_begin.cpp and try_end.cpp have both ends, try_judging.cpp the answers.
#include "app/record/try_series.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>
#include <utility>

#include "app/exit_status.h"
#include "app/host/environment.h"
#include "app/host/machine_load.h"
#include "app/record/experiment_plan.h"
#include "app/record/try_log.h"
#include "app/runs/try_history.h"
#include "engine/files/files.h"
#include "storage/bounded_text.h"
#include "storage/content_hash.h"
#include "storage/errors.h"
#include "storage/importers/text.h"
#include "storage/own_folder.h"
#include "storage/wording.h"

namespace stepladder {
namespace {

namespace fs = std::filesystem;

constexpr int plan_version = 1;
// Facts that a script may print beside its metric, and that a change should not move unsaid.
constexpr const char* printed_facts[] = {"num_params_M", "num_params",   "params",     "total_tokens_M",
                                         "num_steps",    "total_tokens", "block_size", "seq_len"};

}  // namespace

std::vector<std::string> words_in(const std::vector<std::string>& command, const std::string& top,
                                  const std::string& copy) {
  std::vector<std::string> words = command;
  for (std::string& word : words)
    for (std::size_t at = 0; (at = word.find(top, at)) != std::string::npos;) {
      const std::size_t end = at + top.size();
      const bool is_whole = (at == 0 || std::string_view(" =:'\"").find(word[at - 1]) != std::string_view::npos) &&
                            (end == word.size() || std::string_view("/ :;&'\"").find(word[end]) != std::string::npos);
      if (is_whole) word.replace(at, top.size(), copy);
      at += is_whole ? copy.size() : top.size();
    }
  return words;
}

void TrySeriesRunner::open(RunStore& store, const TrySeries& series, Report report, std::function<bool()> stop) {
  store_ = &store;
  series_ = series;
  report_ = std::move(report);
  stop_ = std::move(stop);
  folder_ = tries_folder(store, series.ladder);
  if (folder_.empty()) throw StorageError("ladder " + std::to_string(series.ladder) + " of the series is gone");
  const auto found = read_plan(folder_, "try", plan_version);
  if (!found || !found->ordered)
    throw UsageError("the series of tries in " + series.checkout +
                     " was begun elsewhere, so nothing of it is run; `stepladder try begin` begins one here");
  plan_ = try_plan_from(*found->ordered);
  held_.emplace(folder_ / ".state");
  trees_ = std::make_unique<TryTrees>(plan_.checkout, folder_);
  if (!plan_.machine.empty())
    far_ = std::make_unique<FarCopies>(store, plan_.machine, folder_,
                                       plan_.there.empty() ? plan_.checkout : plan_.there, report_, stop_);
  load();
}

void TrySeriesRunner::load() {
  tries_ = store_->tries().tries(series_.ladder);
  runs_ = store_->tries().runs(series_.ladder);
  if (tries_.empty()) throw StorageError("the series has no first state");
  for (std::size_t i = 0; i < tries_.size(); ++i)
    if (tries_[i].number != static_cast<std::int64_t>(i) || !is_commit_hash(tries_[i].tree) || tries_[i].parent < 0 ||
        tries_[i].parent > static_cast<std::int64_t>(i))
      throw StorageError("the series' tries are damaged");
  for (const TryRun& run : runs_)
    if (run.state < 0 || run.state >= std::ssize(tries_)) throw StorageError("the series' runs are damaged");
}

const Try& TrySeriesRunner::kept() const {
  const auto last = std::find_if(tries_.rbegin(), tries_.rend(),
                                 [](const Try& it) { return it.verdict == to_string(TryVerdict::kept); });
  return last == tries_.rend() ? tries_.front() : *last;
}

std::optional<std::int64_t> TrySeriesRunner::runs_left() const {
  if (plan_.budget_runs == 0) return {};
  return std::max<std::int64_t>(0, plan_.budget_runs - std::ssize(runs_));
}

bool TrySeriesRunner::is_spent() const {
  return runs_left() == 0 || (plan_.budget_s > 0 && unix_now() - series_.begun_at >= plan_.budget_s);
}

std::int64_t TrySeriesRunner::runs_of_try(std::int64_t number) const {
  return std::ranges::count(runs_, number, &TryRun::during);
}

MeasuredCommand TrySeriesRunner::next_command() const {
  const std::string name = fmt::format("{:04}", runs_.size() + 1);
  return {.log = folder_ / "runs" / (name + ".log"),
          .state = folder_ / ".state" / (name + ".json"),
          .command = {},
          .folder = {},
          .environment = {}};
}

void TrySeriesRunner::wait_until_quiet() const {
  if (!(plan_.quiet_s > 0)) return;
  LoadWatch load;
  const double until = unix_now() + plan_.quiet_s;
  for (bool is_reported = false; !stop_() && unix_now() < until; is_reported = true) {
    const MachineLoad& now = load.wait_and_read();
    if (!now.is_known() || !now.would_disturb(now.others.cores)) return;
    if (!is_reported) report_(now.text() + "; waiting for them");
  }
}

bool TrySeriesRunner::wait_for_left_runs() {
  if (far_) return far_->wait_for_left();
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder_ / ".state", error)) {
    if (entry.path().extension() != ".lock") continue;
    MeasuredCommand left = next_command();
    left.state = entry.path().parent_path() / entry.path().stem();
    for (bool is_reported = false; is_under_way(left); is_reported = true) {
      const std::string name = "the run " + left.state.stem().string() + " of a program that was killed";
      if (!is_reported) report_("waiting for " + name);
      if (stop_()) {
        report_(name + " goes on; its output is in " +
                (folder_ / "runs" / (left.state.stem().string() + ".log")).string());
        return false;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  return true;
}

bool TrySeriesRunner::prepare(MeasuredCommand& command, const std::string& tree, const std::string& beside,
                              const std::string& commit, TryTrees::Leftovers leftovers) {
  const fs::path here = trees_->check_out(tree, beside, commit, plan_.links, leftovers);
  const auto copy = far_ ? far_->hold(*trees_, here, tree, plan_.links) : std::optional(here.string());
  if (!copy) return false;
  command.folder = fs::path(*copy) / plan_.folder;
  command.command = words_in(command.command, plan_.checkout, *copy);
  return true;
}

bool TrySeriesRunner::is_begun(const MeasuredCommand& command) const {
  return end_of_command(command.state) || (far_ ? far_->is_begun(command) : is_under_way(command));
}

std::optional<CommandEnd> TrySeriesRunner::run_command(const MeasuredCommand& command) {
  return far_ ? far_->run(command) : run_measured(command, stop_);
}

std::optional<CommandEnd> TrySeriesRunner::end_command(const MeasuredCommand& command) {
  if (far_) return far_->end(command);
  if (!is_under_way(command)) return end_of_command(command.state);
  run_measured(command, [] { return true; });
  return {};
}

std::optional<TryRun> TrySeriesRunner::run_state(std::int64_t during, std::int64_t state) {
  MeasuredCommand command = next_command();
  const fs::path of = command.state.string() + ".of";
  if (!is_begun(command)) {
    if (!wait_for_left_runs()) return {};
    write_whole(of, fmt::format("{} {} {}", during, state, seals_stamp()), private_file);
    const Try& it = tries_[static_cast<std::size_t>(state)];
    wait_until_quiet();
    if (stop_()) return {};
    command.command = during == held_out ? std::vector<std::string>{"/bin/sh", "-c", plan_.holdout} : plan_.command;
    // The held-out command measures what the training before it has left.
    const auto leftovers = during == held_out ? TryTrees::Leftovers::kept : TryTrees::Leftovers::removed;
    if (!prepare(command, it.tree, state == kept().number ? "" : kept().tree, it.commit, leftovers)) return {};
    const auto round =
        std::ranges::count_if(runs_, [&](const TryRun& run) { return run.during == during && run.state == state; });
    command.environment = {{"STEPLADDER_TRY", std::to_string(state)},
                           {"STEPLADDER_RUN", std::to_string(runs_.size() + 1)},
                           // The same for both runs of a turn.
                           {"STEPLADDER_SEED", std::to_string((during < 0 ? 1'000'000 : during * 1000) + round + 1)}};
  }
  // A run that a killed program left behind belongs to the state that it was begun for.
  std::int64_t begun_during = during, begun_of = state;
  std::string stamp;
  std::istringstream(text_of(of).value_or("")) >> begun_during >> begun_of >> stamp;
  const auto end = run_command(command);
  if (!end) return {};
  if (!wrote_sealed_ && !stamp.empty() && stamp != seals_stamp()) {
    wrote_sealed_ = true;
    report_("a sealed path was written to while this run was under way");
  }
  const bool is_asked = begun_during == during && begun_of == state;
  if (is_asked || begun_of < 0 || begun_of >= std::ssize(tries_)) return store_run(during, state, command, *end);
  store_run(begun_during, begun_of, command, *end);
  return run_state(during, state);
}

// Of the sealed paths outside the states, which runs can write to.
std::string TrySeriesRunner::seals_stamp() const {
  ContentHash hash;
  for (const TrySeal& seal : plan_.seals)
    if (!seal.in_tree) hash.take(stamp_outside(fs::path(plan_.checkout) / seal.path));
  return hash.text();
}

// In the unit of the series' earlier runs, or not at all.
TrySeriesRunner::Outcome TrySeriesRunner::outcome_of(const LoggedRun& logged, const CommandEnd& end) const {
  if (end.exit_status != 0)
    return {.value = missing,
            .unit = {},
            .error = "the command failed with exit status " + std::to_string(end.exit_status)};
  try {
    const LogFigure figure = figure_of_command(plan_.figure, logged, end);
    const bool is_first = std::ranges::all_of(runs_, [](const TryRun& run) { return is_missing(run.value); });
    if (!is_first && figure.unit != unit())
      return {
          .value = missing,
          .unit = {},
          .error = "the command gives " + unit_words(figure.unit) + ", and earlier runs gave " + unit_words(unit())};
    return {.value = figure.value, .unit = figure.unit, .error = {}, .printed = figure.printed};
  } catch (const NoFigure& none) {
    return {.value = missing, .unit = {}, .error = "what the command prints " + std::string(none.what())};
  }
}

// What every run of a state is stored with; `state.tree` is what ran.
Run TrySeriesRunner::row_of(const Try& state, const std::string& name, const CommandEnd& end,
                            const std::string& error) const {
  return {.name = fs::path(plan_.checkout).filename().string() + " " + name,
          .title = bounded(state.message, longest_name),
          .changed = state.message,
          .status = error.empty() ? RunStatus::finished : RunStatus::failed,
          .reason = error,
          .started_at = end.started_at,
          .ended_at = end.started_at + end.wall_s,
          .environment = plan_.machine.empty()
                             ? environment_of(state.commit, is_dirty(state))
                             : environment_at(plan_.machine, end.host, state.commit, is_dirty(state))};
}

TryRun TrySeriesRunner::store_run(std::int64_t during, std::int64_t state, const MeasuredCommand& command,
                                  const CommandEnd& end) {
  TryRun run{.place = std::ssize(runs_) + 1, .during = during, .state = state, .wall_s = end.wall_s};
  run.exit_status = end.exit_status;
  LoggedRun logged = read_logged_run(command.log);
  const Outcome outcome = outcome_of(logged, end);
  run.value = outcome.value;
  std::map<std::string, double> printed;
  Json facts = Json::object();
  Json units = Json::object();
  // In the unit that the first run has it in.
  const auto is_of_first = [&](const std::string& name, const std::string& unit) {
    for (const TryRun& earlier : runs_)
      if (const Json others = Json::parse(earlier.others, nullptr, false);
          others.is_object() && others.contains("units") && others["units"].contains(name))
        return others["units"][name] == unit;
    return true;
  };
  const auto figure = [&](const FigureQuestion& question) -> std::optional<double> {
    try {
      const LogFigure found = figure_of_command(question, logged, end);
      if (!is_of_first(name_of(question), found.unit)) return {};
      units[name_of(question)] = found.unit;
      return found.value;
    } catch (const NoFigure&) {
      return {};
    }
  };
  if (end.exit_status == 0) {
    for (const TryGuard& guard : plan_.guards)
      if (const auto value = figure(guard.figure)) printed[name_of(guard.figure)] = *value;
    for (const char* fact : printed_facts)
      if (const auto value = figure({.by = FigureBy::metric, .metric = {.metric = fact}})) facts[fact] = *value;
  }
  if (!is_missing(run.value) && plan_.figure.by == FigureBy::metric) printed[plan_.figure.metric.metric] = run.value;
  if (!logged.problem.empty()) logged = {};
  if (outcome.printed > 0) facts["values of " + metric()] = outcome.printed;
  if (logged.run.params > 0) facts["parameters"] = logged.run.params;
  if (logged.run.tokens_per_step > 0) facts["tokens per step"] = logged.run.tokens_per_step;
  if (!logged.steps.empty()) facts["steps"] = logged.steps.size();
  run.others =
      Json{{"unit", outcome.unit}, {"error", outcome.error}, {"figures", printed}, {"units", units}, {"facts", facts}}
          .dump();
  const auto repeat = std::ranges::count(runs_, state, &TryRun::state);
  const Try& it = tries_[static_cast<std::size_t>(state)];
  Run row = row_of(it, state == 0 ? "unchanged" : "try " + std::to_string(state), end, outcome.error);
  row.ladder = series_.ladder;
  row.rung = static_cast<int>(state);
  row.repeat = static_cast<int>(repeat);
  row.stage = state == 0 ? "unchanged" : "try-" + std::to_string(state);
  const RunPatch patch = patch_of_runs(it);  // before the project is locked
  store_logged_run(*store_, std::move(logged), row, command.log, printed, [&](RunId id) {
    run.run = id;
    store_->tries().add(series_.ladder, run);
    store_->recordings().keep_patch(id, patch);
  });
  return runs_.emplace_back(run);
}

bool TrySeriesRunner::is_dirty(const Try& it) const {
  try {
    return it.commit.empty() || trees_->differs(it.commit, it.tree);
  } catch (const StorageError&) {  // the commit is gone
    return true;
  }
}

RunPatch TrySeriesRunner::patch_of_runs(const Try& it) const {
  RunPatch patch;
  if (!it.commit.empty()) try {
      patch = trees_->patch(it.commit, it.tree);
    } catch (const StorageError&) {  // a run is worth keeping without it
      patch.bytes = unknown_length;
    }
  patch.commit = it.commit;
  return patch;
}

// An open try whose state is no longer that of the checkout: its finished run is kept, one under way is ended. Nobody
// waits for its answer.
void TrySeriesRunner::abandon(Try& open) {
  const MeasuredCommand command = next_command();
  if (is_begun(command) && !end_of_command(command.state))
    report_("ending the run of try " + std::to_string(open.number) + ", since the checkout has changed");
  if (const auto end = end_command(command)) {
    const TryStep step = judge_try(runs_for(open), 1e9).step;
    store_run(open.number, step == TryStep::run_kept ? open.parent : open.number, command, *end);
  }
  std::error_code error;
  fs::remove(unreported_file(), error);
  finish(open, {.reason = "it was interrupted, and the checkout has changed since"});
}

const Try* TrySeriesRunner::tried_before(const std::string& tree, const std::string& patch) const {
  const auto found = std::find_if(tries_.rbegin(), tries_.rend(), [&](const Try& earlier) {
    return !earlier.verdict.empty() && (earlier.tree == tree || (!patch.empty() && earlier.patch == patch));
  });
  return found == tries_.rend() ? nullptr : &*found;
}

TryPreview TrySeriesRunner::preview() {
  const TakenState state = trees_->take();
  TryPreview made{.number = std::ssize(tries_) - (tries_.back().verdict.empty() ? 1 : 0),
                  .changed = trees_->changed_files(kept().tree, state.tree),
                  .tried_before = tried_before(state.tree, trees_->patch(kept().tree, state.tree).text)};
  if (const auto answer = refused(Try{.tree = state.tree})) made.refused = answer->reason;
  double seconds = 0, count = 0;
  for (const TryRun& run : runs_) {
    if (is_missing(run.wall_s)) continue;
    seconds += run.wall_s;
    ++count;
  }
  if (count > 0) made.run_s = seconds / count;
  return made;
}

Try& TrySeriesRunner::record_try(const std::string& message, const TakenState& state) {
  const RunPatch patch = trees_->patch(kept().tree, state.tree);
  Try it{.number = std::ssize(tries_),
         .message = message,
         .parent = kept().number,
         .tree = state.tree,
         .commit = state.commit,
         .patch = patch.text,
         .patch_bytes = patch.bytes,
         .begun_at = unix_now()};
  if (const Try* earlier = tried_before(state.tree, patch.text))
    report_((earlier->number == 0 ? "this is the state that the series began with: "
                                  : "this patch was tried as " + std::to_string(earlier->number) + ": ") +
            earlier->verdict);
  for (const std::string& file : patch.left_out)
    report_(file + (looks_secret(file) ? " looks like a secret" : " is large") +
            ", so its change isn't in the patch that is kept");
  const std::vector<std::string> changed = trees_->changed_files(kept().tree, state.tree);
  const std::set<std::string> is_changed(changed.begin(), changed.end());
  for (const std::string& file : state.untracked)
    if (is_changed.contains(file)) report_(file + " isn't tracked by git; it is part of the try");
  for (const std::string& file : state.too_large)
    report_(file + " is untracked and larger than 10 MB, so it isn't part of the try");
  store_->tries().save(series_.ladder, it);
  return tries_.emplace_back(std::move(it));
}

std::optional<TryAnswer> TrySeriesRunner::judge(const std::string& message) {
  const TakenState state = trees_->take();
  if (const Try& last = tries_.back(); last.number > 0 && last.message == message && is_unreported(last.number) &&
                                       (state.tree == last.tree || state.tree == kept().tree))
    if (const auto verdict = try_verdict_from(last.verdict)) {
      report_("this is the answer of a program that was killed before it gave it");
      return TryAnswer{.verdict = *verdict, .reason = try_text(try_answer(last.answer), "reason")};
    }
  const bool has_open = tries_.back().verdict.empty();
  if (has_open && tries_.back().tree != state.tree) abandon(tries_.back());
  for (const std::string& path : state.submodules)
    if (trees_->content_of(state.tree, path) != trees_->content_of(kept().tree, path))
      throw UsageError("the repository " + path +
                       " in the checkout is at another commit than the kept state's, and both states would run this "
                       "one; go back to that commit, or `stepladder try end` and begin anew");
  const bool is_sealed = refused(Try{.tree = state.tree}).has_value();
  if (state.tree == kept().tree && !is_sealed)
    throw UsageError("nothing has changed since " +
                     (kept().number == 0 ? std::string("the series began")
                                         : "try " + std::to_string(kept().number) + ", which was kept") +
                     "; change something first");
  const bool continues_open = tries_.back().verdict.empty();
  if (continues_open) report_("going on with try " + std::to_string(tries_.back().number));
  Try& it = continues_open ? tries_.back() : record_try(message, state);
  const std::optional<TryAnswer> answer = measure(it);
  if (!answer) return {};
  note_unreported(it.number);
  finish(it, *answer);
  return answer;
}

void TrySeriesRunner::finish(Try& it, const TryAnswer& answer) {
  it.verdict = to_string(answer.verdict);
  it.ended_at = unix_now();
  it.answer = try_json(*this, it, answer).dump();
  store_->tries().save(series_.ladder, it);
}

// A killed program loses nothing written, so this needs no wait for the disk.
void TrySeriesRunner::note_unreported(std::int64_t number) const {
  std::ofstream(unreported_file()) << number;
}

bool TrySeriesRunner::is_unreported(std::int64_t number) const {
  return number + 1 == std::ssize(tries_) && text_of(unreported_file()) == std::to_string(number);
}

std::string TrySeriesRunner::revert(std::optional<std::int64_t> to) {
  if (to && (*to < 0 || *to >= std::ssize(tries_)))
    throw UsageError("there is no try " + std::to_string(*to) + "; `stepladder try log` lists them");
  const Try& target = to ? tries_[static_cast<std::size_t>(*to)] : kept();
  const TakenState state = trees_->take();
  if (state.tree == target.tree) return {};
  std::string saved;
  if (std::ranges::none_of(tries_, [&](const Try& it) { return it.tree == state.tree; })) {
    std::error_code error;
    fs::path file;
    for (int k = 1; fs::exists(file = folder_ / ("reverted-" + std::to_string(k) + ".patch"), error);) ++k;
    write_whole(file, trees_->patch(kept().tree, state.tree, PatchOf::whole).text, private_file);
    saved = file.string();
  }
  trees_->restore(target.tree);
  return saved;
}

void TrySeriesRunner::commit(std::int64_t number) {
  Try& it = tries_[static_cast<std::size_t>(number)];
  const TakenState state = trees_->take();
  if (state.tree != it.tree) throw UsageError("the checkout was changed meanwhile, so nothing was committed");
  // Since the beginning, as earlier changes that were kept are part of what was measured and needn't be committed yet.
  const std::vector<std::string> changed = trees_->changed_files(tries_.front().tree, it.tree);
  const std::set<std::string> is_changed(changed.begin(), changed.end());
  std::vector<std::string> files;
  for (const std::string& file : state.untracked) {
    if (!is_changed.contains(file)) continue;
    if (looks_secret(file))
      report_(file + " looks like a secret, so it isn't committed");
    else
      files.push_back(file);
  }
  it.commit = trees_->commit(files, it.message);
  Json answer = Json::parse(it.answer);
  answer["commit"] = it.commit;
  answer["dirty"] = is_dirty(it);
  it.answer = answer.dump();
  store_->tries().save(series_.ladder, it);
}

}  // namespace stepladder
