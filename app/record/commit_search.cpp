#include "app/record/commit_search.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <utility>

#include "app/exit_status.h"
#include "app/record/git.h"
#include "app/record/machine.h"
#include "app/record/measured_command.h"
#include "storage/errors.h"

namespace stepladder {
namespace {

namespace fs = std::filesystem;

constexpr int search_version = 1;
constexpr std::size_t most_commits = 1'000'000;

std::string commit_named(const fs::path& repository, const std::string& name) {
  try {
    return git(repository, {"rev-parse", "--verify", "--quiet", "--end-of-options", name + "^{commit}"});
  } catch (const StorageError&) {
    throw UsageError("'" + name + "' is not a commit of " + repository.string());
  }
}

// The good one, and those after it along first parents up to the bad one.
std::vector<std::string> commits_between(const fs::path& repository, const std::string& good, const std::string& bad) {
  std::vector<std::string> commits{good};
  std::istringstream lines(git(repository, {"rev-list", "--reverse", "--first-parent", good + ".." + bad}));
  for (std::string line; std::getline(lines, line);) commits.push_back(line);
  if (commits.size() < 2) throw UsageError("there is no commit after " + good + " on the way to " + bad);
  if (commits.size() > most_commits) throw UsageError("there are more than a million commits between the two");
  try {
    git(repository, {"merge-base", "--is-ancestor", good, bad});
  } catch (const StorageError&) {
    throw UsageError(good.substr(0, 12) + " isn't an ancestor of " + bad.substr(0, 12));
  }
  return commits;
}

std::string run_name(std::size_t run, const std::string& commit) {
  char number[24];
  std::snprintf(number, sizeof number, "%04zu", run);
  return std::string(number) + "-" + commit.substr(0, 12);
}

}  // namespace

CommitSearch::CommitSearch(const CommitSearchRequest& request)
    : folder_(fs::absolute(request.folder).lexically_normal()) {
  const fs::path file = folder_ / ".state" / "plan.json";
  std::error_code error;
  const bool is_new = !fs::exists(file, error);
  if (is_new && (request.good.empty() || request.command.empty()))
    throw UsageError(folder_.string() +
                     " holds no bisection yet, so record bisect needs GOOD, BAD and a command after --");
  if (is_new && fs::exists(folder_, error) && !fs::is_empty(folder_, error) && !fs::exists(folder_ / ".state", error))
    throw UsageError(folder_.string() + " isn't empty and holds no bisection");
  for (const fs::path& made : {folder_ / ".state", folder_ / "runs"}) make_folder(made);
  held_.emplace(folder_ / ".state");
  BisectionLimits limits = request.limits;
  if (is_new)
    make_plan(request, file);
  else
    limits.first_runs = read_plan(request, file);
  limits.most_per_commit = std::max(limits.most_per_commit, 8 * limits.first_runs);
  bisection_.emplace(commits_.size(), limits);
}

void CommitSearch::make_plan(const CommitSearchRequest& request, const fs::path& file) {
  try {
    repository_ = git(request.repository, {"rev-parse", "--show-toplevel"});
  } catch (const StorageError&) {
    throw UsageError(request.repository.string() + " isn't in a git checkout");
  }
  commits_ =
      commits_between(repository_, commit_named(repository_, request.good), commit_named(repository_, request.bad));
  command_ = request.command;
  by_ = request.by;
  write_whole(file, Json{{"version", search_version},
                         {"repository", repository_.string()},
                         {"command", command_},
                         {"by", to_string(by_)},
                         {"first_runs", request.limits.first_runs},
                         {"machine", machine_fingerprint()},
                         {"commits", commits_}}
                            .dump(2) +
                        "\n");
}

std::size_t CommitSearch::read_plan(const CommitSearchRequest& request, const fs::path& file) {
  std::size_t first_runs = 0;
  Json machine;
  try {
    std::ifstream in(file);
    const Json json = Json::parse(in);
    if (json.at("version") != search_version) throw StorageError(file.string() + " was written by a newer version");
    repository_ = json.at("repository").get<std::string>();
    command_ = json.at("command").get<std::vector<std::string>>();
    commits_ = json.at("commits").get<std::vector<std::string>>();
    first_runs = json.at("first_runs").get<std::size_t>();
    machine = json.at("machine");
    const auto by = figure_by(json.at("by").get<std::string>());
    if (!by || commits_.size() < 2 || command_.empty())
      throw StorageError(file.string() + " isn't a plan of record bisect");
    by_ = *by;
  } catch (const Json::exception&) {
    throw StorageError(file.string() + " isn't a plan of record bisect");
  }
  const std::string begun = folder_.string() + " holds a bisection that was begun ";
  if (!request.good.empty() && (commit_named(repository_, request.good) != commits_.front() ||
                                commit_named(repository_, request.bad) != commits_.back()))
    throw UsageError(begun + "between other commits; name another folder");
  if (!request.command.empty() && request.command != command_) throw UsageError(begun + "with another command");
  if (!request.good.empty() && (request.by != by_ || request.limits.first_runs != first_runs))
    throw UsageError(begun + "with --by " + to_string(by_) + " --runs " + std::to_string(first_runs));
  if (const std::string other = machine_difference(machine_fingerprint(), machine); !other.empty())
    throw StorageError(begun + "on another machine: " + other);
  return first_runs;
}

// A clone that borrows the repository's objects: neither its checkout nor its list of worktrees changes.
void CommitSearch::make_tree() {
  const fs::path tree = folder_ / "tree";
  std::error_code error;
  if (fs::exists(tree / ".git" / "HEAD", error)) return;
  fs::remove_all(tree, error);
  git(folder_, {"clone", "--quiet", "--shared", "--no-checkout", repository_.string(), tree.string()});
}

void CommitSearch::take(std::size_t commit, const fs::path& log, int exit_status, double wall_s) {
  if (exit_status != 0) return bisection_->cannot_measure(commit);
  LogFigure figure{wall_s, "s"};
  try {
    if (by_ != FigureBy::wall) figure = figure_of_log(log, by_);
  } catch (const NoFigure& error) {
    throw StorageError(log.string() + ": " + error.what() + "; --by wall compares the commands' duration");
  }
  if (!unit_.empty() && figure.unit != unit_)
    throw StorageError(log.string() + " gives " + figure.unit + ", and earlier runs " + unit_);
  unit_ = figure.unit;
  bisection_->add(commit, by_ == FigureBy::loss ? figure.value : std::log(figure.value));
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
        make_tree();
        git(folder_ / "tree", {"checkout", "--quiet", "--force", "--detach", hash});
      }
      end = run_measured(run, stop);
    }
    if (!end) return false;
    take(*commit, run.log, end->exit_status, end->wall_s);
  }
  return true;
}

std::string CommitSearch::subject(std::size_t commit) const {
  return git(repository_, {"log", "-1", "--format=%s", commits_[commit]});
}

double CommitSearch::figure(std::size_t commit) const {
  const CommitFigures& figures = bisection_->figures(commit);
  if (figures.values.empty()) return missing;
  return by_ == FigureBy::loss ? figures.mean() : std::exp(figures.mean());
}

double CommitSearch::change(std::size_t before, std::size_t after) const {
  const double difference = bisection_->difference(before, after);
  return by_ == FigureBy::loss ? difference : std::exp(difference);
}

Interval CommitSearch::change_ci95(std::size_t before, std::size_t after) const {
  Interval interval = bisection_->difference_ci95(before, after);
  if (by_ == FigureBy::loss || !interval.known()) return interval;
  return {std::exp(interval.low), std::exp(interval.high)};
}

}  // namespace stepladder
