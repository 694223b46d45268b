// Bisects commits in a clone that borrows the repository's objects; the user's checkout isn't touched. Its state is the
// plan and the files of finished runs: a new process replays these into Bisection and continues. The plan is only run
// if this user has ordered it.
#include "app/record/commit_search.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "app/exit_status.h"
#include "app/record/experiment_plan.h"
#include "app/record/machine.h"
#include "app/record/measured_command.h"
#include "app/text/secrets.h"
#include "engine/files/files.h"
#include "storage/errors.h"
#include "storage/own_folder.h"
#include "storage/wording.h"

namespace stepladder {
namespace {

namespace fs = std::filesystem;

constexpr int search_version = 1;
constexpr std::size_t most_commits = 1'000'000;

std::string commit_named(const GitCheckout& repository, const std::string& name) {
  const std::string commit = repository.commit_named(name);
  if (commit.empty()) throw UsageError("'" + name + "' is not a commit of " + repository.top().string());
  return commit;
}

// The good one, and those after it along first parents up to the bad one.
std::vector<std::string> commits_between(const GitCheckout& repository, const std::string& good,
                                         const std::string& bad) {
  std::vector<std::string> commits{good};
  std::istringstream lines(repository.git({"rev-list", "--reverse", "--first-parent", good + ".." + bad}));
  for (std::string line; std::getline(lines, line);) commits.push_back(line);
  if (commits.size() < 2) throw UsageError("there is no commit after " + good + " on the way to " + bad);
  if (commits.size() > most_commits) throw UsageError("there are more than a million commits between the two");
  try {
    repository.git({"merge-base", "--is-ancestor", good, bad});
  } catch (const StorageError&) {
    throw UsageError(good.substr(0, 12) + " isn't an ancestor of " + bad.substr(0, 12));
  }
  return commits;
}

std::string run_name(std::size_t run, const std::string& commit) {
  return fmt::format("{:04}-{}", run, commit.substr(0, 12));
}

std::string would_run(const Json& plan) {
  try {
    return ", in checkouts of " + plan.at("repository").get<std::string>() + ":\n  " +
           without_secrets(plan.at("command").get<std::vector<std::string>>());
  } catch (const Json::exception&) {
    return " a command that its plan doesn't name";
  }
}

void require_same_plan(const Json& there, const Json& asked, const fs::path& folder) {
  for (const char* key : {"commits", "command", "by", "first_runs", "machine"})
    if (!there.contains(key) || there[key] != asked[key])
      throw UsageError(folder.string() + " holds a bisection that was begun with another \"" + key +
                       "\" in its plan.json; name another folder");
  if (there.value("metric", Json()) != asked.value("metric", Json()))
    throw UsageError(folder.string() + " holds a bisection that was begun with another metric; name another folder");
}

}  // namespace

CommitSearch::CommitSearch(const CommitSearchRequest& request) : folder_(experiment_folder(request.folder)) {
  const auto found = read_plan(folder_, "record bisect", search_version);
  std::error_code error;
  if (!found && (request.good.empty() || request.command.empty()))
    throw UsageError(folder_.string() +
                     " holds no bisection yet, so record bisect needs GOOD, BAD and a command after --");
  if (!found && fs::exists(folder_, error) && !fs::is_empty(folder_, error) && !fs::exists(folder_ / ".state", error))
    throw UsageError(folder_.string() + " isn't empty and holds no bisection");
  const bool is_ordered = found && found->ordered;
  if (found && !is_ordered && (request.good.empty() || request.command.empty()))
    throw UsageError(not_ordered(folder_, would_run(found->shown), "give GOOD, BAD and the command"));
  const Json plan = is_ordered ? *found->ordered : asked_plan(request);
  use(plan);
  if (is_ordered)
    require_same(request, plan);
  else if (found)
    require_same_plan(found->shown, shown_plan(plan), folder_);
  for (const fs::path& made : {folder_ / ".state", folder_ / "runs"}) make_folder(made);
  held_.emplace(folder_ / ".state");
  if (!is_ordered) {
    remove_checkout();  // files that somebody else has left there would be part of what is measured
    order_plan(folder_, plan);
  }
  BisectionLimits limits = request.limits;
  limits.first_runs = plan["first_runs"].get<std::size_t>();
  limits.most_per_commit = std::max(limits.most_per_commit, 8 * limits.first_runs);
  bisection_.emplace(commits_.size(), limits);
}

Json CommitSearch::asked_plan(const CommitSearchRequest& request) {
  try {
    repository_.emplace(request.repository);
  } catch (const StorageError& error) {
    throw UsageError(request.repository.string() + " isn't in a git checkout that can be read: " + error.what());
  }
  const auto commits =
      commits_between(*repository_, commit_named(*repository_, request.good), commit_named(*repository_, request.bad));
  Json plan = {{"version", search_version},
               {"repository", repository_->top().string()},
               {"command", request.command},
               {"by", to_string(request.question.by)},
               {"first_runs", request.limits.first_runs},
               {"machine", machine_fingerprint()},
               {"commits", commits}};
  if (request.question.by == FigureBy::metric) plan["metric"] = to_string(request.question.metric);
  return plan;
}

void CommitSearch::use(const Json& plan) {
  const StorageError isnt_one(folder_.string() + "/.state/plan.json isn't a plan of record bisect");
  try {
    if (!repository_) repository_.emplace(plan.at("repository").get<std::string>());
    command_ = plan.at("command").get<std::vector<std::string>>();
    commits_ = plan.at("commits").get<std::vector<std::string>>();
    const auto by = figure_by(plan.at("by").get<std::string>());
    if (!by || commits_.size() < 2 || command_.empty() || plan.at("first_runs").get<std::size_t>() == 0 ||
        !plan.contains("machine") || !std::all_of(commits_.begin(), commits_.end(), is_commit_hash))
      throw isnt_one;
    question_.by = *by;
    if (question_.by == FigureBy::metric) {
      const auto metric = metric_figure_from(plan.at("metric").get<std::string>());
      if (!metric) throw isnt_one;
      question_.metric = *metric;
    }
  } catch (const Json::exception&) {
    throw isnt_one;
  }
}

void CommitSearch::require_same(const CommitSearchRequest& request, const Json& plan) const {
  const std::string begun = folder_.string() + " holds a bisection that was begun ";
  const auto first_runs = plan["first_runs"].get<std::size_t>();
  if (!request.good.empty() && (commit_named(*repository_, request.good) != commits_.front() ||
                                commit_named(*repository_, request.bad) != commits_.back()))
    throw UsageError(begun + "between other commits; name another folder");
  if (!request.command.empty() && request.command != command_) throw UsageError(begun + "with another command");
  if (!request.good.empty() &&
      (name_of(request.question) != name_of(question_) || request.limits.first_runs != first_runs))
    throw UsageError(begun + "with " + option_text(question_) + " --repeats " + std::to_string(first_runs));
  if (const std::string other = machine_difference(machine_fingerprint(), plan["machine"]); !other.empty())
    throw StorageError(begun + "on another machine: " + other);
}

void CommitSearch::remove_checkout() const {
  const Descriptor folder = open_folder(folder_.string());
  for (const char* name : {"tree", "tree.part"})
    if (!remove_tree(folder.get(), name)) throw StorageError((folder_ / name).string() + " cannot be removed");
}

// Checks out into a checkout of its own that borrows the repository's objects: neither the user's checkout nor its list
// of worktrees changes. Files that a build has left there stay.
void CommitSearch::check_out(const std::string& commit) {
  const fs::path tree = folder_ / "tree", part = folder_ / "tree.part";
  std::error_code error;
  if (!fs::exists(tree / ".git" / "HEAD", error)) {
    remove_checkout();
    repository_->share_objects_with(part);
    fs::rename(part, tree);
  }
  const GitCheckout checkout(tree);
  if (checkout.top() != tree || checkout.repository() != tree / ".git")
    throw StorageError(tree.string() + " isn't the checkout that record bisect has made; remove it, and call it again");
  checkout.git({"read-tree", "--reset", "-u", commit});
  write_whole(checkout.repository() / "HEAD", commit + "\n", private_file);
}

void CommitSearch::take(std::size_t commit, const fs::path& log, int exit_status, double wall_s) {
  if (exit_status != 0) return bisection_->cannot_measure(commit);
  LogFigure figure{wall_s, "s"};
  try {
    if (question_.by != FigureBy::wall) figure = figure_of_log(log, question_);
  } catch (const NoFigure& error) {
    throw StorageError(log.string() + ": " + error.what() + "; --by wall compares the commands' duration");
  }
  if (!unit_.empty() && figure.unit != unit_)
    throw StorageError(log.string() + " gives " + figure.unit + ", and earlier runs " + unit_);
  unit_ = figure.unit;
  bisection_->add(commit, takes_time(question_) ? std::log(figure.value) : figure.value);
}

bool CommitSearch::go_on(const std::function<void(const std::string&)>& begins, const std::function<bool()>& stop) {
  while (const auto commit = bisection_->next()) {
    const std::string& hash = commits_[*commit];
    const std::string name = run_name(bisection_->runs() + 1, hash);
    const MeasuredCommand run{
        .log = folder_ / "runs" / (name + ".log"),
        .state = folder_ / ".state" / (name + ".json"),
        .command = command_,
        .folder = folder_ / "tree",
        .environment = {{"STEPLADDER_COMMIT", hash}, {"STEPLADDER_RUN", std::to_string(bisection_->runs() + 1)}}};
    auto end = end_of_command(run.state);
    if (!end) {
      if (stop()) return false;
      begins(hash);
      if (!is_under_way(run)) {
        check_out(hash);
      }
      end = run_measured(run, stop);
    }
    if (!end) return false;
    take(*commit, run.log, end->exit_status, end->wall_s);
  }
  return true;
}

std::string CommitSearch::subject(std::size_t commit) const {
  // Unlike log, rev-list doesn't check signatures, whatever the configuration says. Its first line is the hash.
  const std::string lines = repository_->git({"rev-list", "--max-count=1", "--format=%s", commits_[commit], "--"});
  return first_line(lines.substr(std::min(lines.size(), lines.find('\n') + 1)));
}

double CommitSearch::figure(std::size_t commit) const {
  const CommitFigures& figures = bisection_->figures(commit);
  if (figures.values.empty()) return missing;
  return takes_time(question_) ? std::exp(figures.mean()) : figures.mean();
}

double CommitSearch::change(std::size_t before, std::size_t after) const {
  const double difference = bisection_->difference(before, after);
  return takes_time(question_) ? std::exp(difference) : difference;
}

Interval CommitSearch::change_ci95(std::size_t before, std::size_t after) const {
  Interval interval = bisection_->difference_ci95(before, after);
  if (!takes_time(question_) || !interval.known()) return interval;
  return {std::exp(interval.low), std::exp(interval.high)};
}

}  // namespace stepladder
