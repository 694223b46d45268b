// How a series of tries begins: the plan is completed and sealed, then the unchanged state is measured. A beginning
// that was interrupted continues if the same is asked again.
#include <algorithm>
#include <set>
#include <utility>

#include "app/exit_status.h"
#include "app/record/experiment_plan.h"
#include "app/record/try_series.h"
#include "app/runs/try_history.h"
#include "storage/database/machine_store.h"
#include "storage/errors.h"
#include "storage/importers/text.h"
#include "storage/own_folder.h"

namespace stepladder {
namespace {

namespace fs = std::filesystem;

fs::path top_of(const fs::path& folder) {
  try {
    return GitCheckout(folder).top();
  } catch (const StorageError& error) {
    throw UsageError(folder.string() +
                     " isn't in a git checkout that can be read; `git init` makes one: " + first_line(error.what()));
  }
}

// As the plan has it: below the checkout's top, or absolute. A link isn't followed, unless it leads to a folder above.
std::string sealed_path(const TryPlan& plan, const std::string& path) {
  const fs::path named = (fs::path(plan.checkout) / plan.folder / path).lexically_normal();
  const fs::path file = named.has_filename() ? named : named.parent_path();
  const fs::path whole = fs::weakly_canonical(file.parent_path()) / file.filename();
  const fs::path inside = whole.lexically_relative(plan.checkout);
  return inside.empty() || *inside.begin() == ".." ? whole.string() : inside.string();
}

void fill_in_seals(TryPlan& plan, const fs::path& folder, const std::string& tree, const TryTrees& trees) {
  // A link is sealed itself, and so is what it leads to.
  std::error_code link_error;
  for (std::size_t i = 0; i < plan.seals.size(); ++i) {
    const fs::path named = folder / plan.seals[i].path;
    if (i < 1000 && fs::is_symlink(fs::symlink_status(named, link_error))) {
      TrySeal target;
      target.path = (named.parent_path() / fs::read_symlink(named, link_error)).string();
      plan.seals.push_back(std::move(target));
    }
  }
  for (TrySeal& seal : plan.seals) {
    seal.path = sealed_path(plan, seal.path);
    const fs::path whole = fs::path(plan.checkout) / seal.path;
    if (fs::path(seal.path).is_relative()) seal.content = trees.content_of(tree, seal.path);
    seal.in_tree = !seal.content.empty();
    if (seal.in_tree) continue;
    std::error_code error;
    if (!fs::exists(fs::symlink_status(whole, error)))
      throw UsageError("--seal " + seal.path + ": there is no such file or folder");
    seal.content = content_outside(whole);
    seal.stamp = stamp_outside(whole);
  }
}

std::vector<std::string> words_of(const std::string& shell) {
  constexpr std::string_view between = " \t\n\"'`;&|()<>=$,{}[]";
  std::vector<std::string> words;
  for (std::size_t at = 0; (at = shell.find_first_not_of(between, at)) != std::string::npos;) {
    const std::size_t end = std::min(shell.find_first_of(between, at), shell.size());
    words.push_back(shell.substr(at, end - at));
    at = end;
  }
  return words;
}

// The held-out command's own files are sealed too, also those that aren't there yet: words of it that name a file of
// the checkout or have an ending, and modules behind -m. Not what the training's command names as well.
void seal_holdout(TryPlan& plan, const std::string& tree, const TryTrees& trees) {
  constexpr std::size_t most_words = 200, longest_word = 200;
  std::set<std::string> trained;
  for (const std::string& word : plan.command)
    for (const std::string& part : words_of(word)) trained.insert(part);
  const std::vector<std::string> words = words_of(plan.holdout);
  for (std::size_t i = 0; i < std::min(words.size(), most_words); ++i) {
    if (words[i].size() > longest_word || trained.contains(words[i])) continue;
    std::string file = words[i];
    if (i > 0 && words[i - 1] == "-m") {
      std::ranges::replace(file, '.', '/');
      file += ".py";
    }
    if (file.find_first_of("~-") == 0) continue;
    TrySeal seal{.path = sealed_path(plan, file), .in_tree = true, .content = {}, .stamp = {}};
    const bool is_sealed = std::ranges::find(plan.seals, seal.path, &TrySeal::path) != plan.seals.end();
    if (fs::path(seal.path).is_absolute() || is_sealed) continue;
    seal.content = trees.content_of(tree, seal.path);
    const std::string ending = fs::path(file).extension().string();
    const bool is_new = seal.content.empty() && ending.size() > 1 && is_alpha(ending[1]);
    if (is_new || seal.content.find(" blob ") != std::string::npos) plan.seals.push_back(std::move(seal));
  }
}

// Whether a beginning that was interrupted was asked for the same; what is filled in later doesn't count.
bool is_same_request(TryPlan asked, TryPlan begun) {
  if (begun.seals.size() > asked.seals.size()) begun.seals.resize(asked.seals.size());  // what links lead to
  for (TrySeal& seal : asked.seals) seal = {.path = sealed_path(asked, seal.path), .content = {}, .stamp = {}};
  for (TrySeal& seal : begun.seals) seal = {.path = seal.path, .content = {}, .stamp = {}};
  begun.links = asked.links;
  return plan_json(asked) == plan_json(begun);
}

// The folder of a series that didn't come about. Its shown plan is in the project.
struct RemoveUnlessBegun {
  fs::path folder;
  bool is_begun = false;
  ~RemoveUnlessBegun() {
    std::error_code error;
    if (!is_begun) fs::remove_all(folder, error);
    if (!is_begun) fs::remove(folder.parent_path(), error);  // if it is empty
  }
};

// Folders of beginnings that were killed before the project knew of them, and before they ran anything.
void remove_beginnings(RunStore& store, const fs::path& folder) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string uid = entry.path().filename().string();
    const bool has_begun = !Uid::allows(uid) || store.following().ladder_with_uid(uid);
    const bool is_new = !fs::exists(entry.path() / ".state" / "held", error);  // perhaps just being made
    if (has_begun || is_new || is_held(entry.path() / ".state") || !fs::is_empty(entry.path() / "runs", error))
      continue;
    fs::remove_all(entry.path(), error);
  }
}

}  // namespace

TrySeriesRunner::TrySeriesRunner(RunStore& store, const fs::path& folder, Report report, std::function<bool()> stop,
                                 Which which) {
  const auto series = series_around(store, folder);
  if (!series || (!series->is_open() && which == Which::open))
    throw UsageError("no series of tries is under way in " + top_of(folder).string() +
                     "; `stepladder try begin -- COMMAND` begins one");
  open(store, *series, std::move(report), std::move(stop));
  if (tries_.front().verdict.empty())
    throw UsageError("the unchanged state hasn't been measured to the end; `stepladder try begin` goes on");
}

std::optional<TrySeriesRunner> TrySeriesRunner::begin(RunStore& store, TryPlan plan, const fs::path& folder,
                                                      Report report, std::function<bool()> stop) {
  const fs::path top = top_of(folder);
  plan.checkout = top.string();
  plan.folder = fs::canonical(folder).lexically_relative(top).string();
  TrySeriesRunner runner;
  if (const auto there = store.tries().latest_of(top.string()); there && there->is_open()) {
    runner.open(store, *there, report, stop);
    const bool is_same_state = runner.trees_->take().tree == runner.tries_.front().tree;
    const bool is_same = is_same_state && (plan.command.empty() || is_same_request(plan, runner.plan_));
    if (!runner.tries_.front().verdict.empty() && is_same && runner.is_unreported(0)) return runner;
    if (!runner.tries_.front().verdict.empty())
      throw UsageError("a series of tries is under way in " + top.string() + " already (ladder " +
                       std::to_string(there->ladder) + "); `stepladder try end` ends it");
    if (is_same) {
      if (!runner.measure_first()) return {};
      return runner;
    }
    if (plan.command.empty())
      throw UsageError(
          "the checkout has changed since `try begin` was interrupted, so its runs say nothing about it now; give the "
          "command again, after --, to begin anew");
    report("an earlier `try begin` was interrupted, and " +
           std::string(is_same_state ? "was asked for other things" : "the checkout has changed since") +
           ", so its runs don't count here");
    const MeasuredCommand left = runner.next_command();
    if (const auto end = runner.end_command(left))
      runner.store_run(0, 0, left, *end);
    else if (stop())
      return {};  // it may still run, and this series is what knows of it
    runner.fail_beginning("it was interrupted, and another one begun");
    const RemoveUnlessBegun remove{runner.folder_};
    runner = TrySeriesRunner();
  }
  if (plan.command.empty()) throw UsageError("try begin needs the command that trains, after --");
  const std::string uid = new_uid().text();
  const fs::path place = fs::absolute(store.file()).string() + ".tries/" + uid;
  if (!make_own_folder(place.parent_path())) throw StorageError(place.parent_path().string() + " can't be made");
  remove_beginnings(store, place.parent_path());
  RemoveUnlessBegun remove{place};
  for (const char* name : {".state", "runs"}) make_folder(place / name);
  std::optional<HeldFolder> held(place / ".state");
  const TryTrees trees(top, place);
  const TakenState state = trees.take();
  if (!without_project(top).empty())
    report("the project " + store.file().filename().string() +
           " and its files are in the checkout; like .git, they are no part of a try");
  plan.links = trees.ignored_inputs();
  plan.links.insert(plan.links.end(), state.too_large.begin(), state.too_large.end());
  plan.links.insert(plan.links.end(), state.submodules.begin(), state.submodules.end());
  fill_in_seals(plan, folder, state.tree, trees);
  seal_holdout(plan, state.tree, trees);
  for (const TrySeal& seal : plan.seals)
    if (!plan.machine.empty() && !seal.in_tree)
      throw UsageError("--seal " + seal.path + ": only files that git doesn't ignore are sent to " + plan.machine +
                       ", so nobody here sees what its runs read");
  order_plan(place, plan_json(plan));
  TrySeries series{.checkout = plan.checkout, .plan = shown_plan(plan_json(plan)).dump(), .begun_at = unix_now()};
  store.in_one_transaction([&] {
    series.ladder = store.create_ladder(
        {.uid = uid, .name = "tries of " + top.filename().string(), .source = "import", .source_path = top.string()});
    store.tries().save(series);
    store.tries().save(
        series.ladder,
        Try{.message = "unchanged", .tree = state.tree, .commit = state.commit, .begun_at = series.begun_at});
  });
  remove.is_begun = true;
  held.reset();
  runner.open(store, series, std::move(report), std::move(stop));
  if (!runner.measure_first()) return {};
  if (!runner.series_.is_open()) remove.is_begun = false;  // the unchanged state fails; its run is in the project
  return runner;
}

bool TrySeriesRunner::measure_first() {
  Try& first = tries_.front();
  const auto values = [&] { return std::ssize(values_of(0)); };
  while (values() < plan_.first_runs) {
    report_("run " + std::to_string(values() + 1) + " of " + std::to_string(plan_.first_runs) + ", unchanged");
    const auto run = run_state(0, 0);
    if (!run) return false;
    if (!is_missing(run->value)) continue;
    fail_beginning(Json::parse(run->others).value("error", ""));
    return true;
  }
  if (!far_) trees_->keep_leftovers_of(first.tree);
  first.verdict = to_string(TryVerdict::kept);
  first.ended_at = unix_now();
  first.answer = begin_json(*this).dump();
  note_unreported(0);
  store_->tries().save(series_.ladder, first);
  return true;
}

// A series whose command fails on the unchanged state has nothing to compare with.
void TrySeriesRunner::fail_beginning(const std::string& why) {
  Try& first = tries_.front();
  first.verdict = to_string(TryVerdict::failed);
  first.answer = Json{{"reason", why}}.dump();
  series_.ended_at = unix_now();
  store_->in_one_transaction([&] {
    store_->tries().save(series_.ladder, first);
    store_->tries().save(series_);
  });
}

}  // namespace stepladder
