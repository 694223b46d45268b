// Runs baseline and candidate in turns by a plan that is written before the first run. A run counts once its state file
// says so; a new process continues with the rest. A plan or results from elsewhere are never trusted: the commands must
// be given again, and old results are set aside.
#include "app/record/experiment.h"

#include <algorithm>
#include <random>
#include <utility>

#include "app/exit_status.h"
#include "app/record/experiment_plan.h"
#include "app/record/machine.h"
#include "app/text/secrets.h"
#include "storage/errors.h"
#include "storage/wording.h"

namespace stepladder {
namespace {

namespace fs = std::filesystem;

constexpr int experiment_version = 1;
constexpr int most_runs = 10'000;

Json side_json(const ExperimentSide& side) {
  return {{"command", side.command}, {"folder", side.folder.string()}};
}

ExperimentSide side_from(const Json& json) {
  return {json.at("command").get<std::vector<std::string>>(), json.at("folder").get<std::string>()};
}

Json json_of(const ExperimentPlan& plan) {
  std::vector<std::string> order;
  for (const bool candidate : plan.order) order.push_back(candidate ? "candidate" : "baseline");
  return {{"version", experiment_version},          {"runs", plan.runs}, {"baseline", side_json(plan.baseline)},
          {"candidate", side_json(plan.candidate)}, {"order", order},    {"machine", plan.machine}};
}

ExperimentPlan plan_from(const Json& json, const fs::path& folder) {
  const std::string isnt_one = (folder / ".state" / "plan.json").string() + " isn't a plan of record run";
  try {
    ExperimentPlan plan{.baseline = side_from(json.at("baseline")),
                        .candidate = side_from(json.at("candidate")),
                        .runs = json.at("runs").get<int>(),
                        .order = {},
                        .machine = json.at("machine")};
    for (const std::string& side : json.at("order").get<std::vector<std::string>>())
      plan.order.push_back(side == "candidate");
    const auto candidates = std::ranges::count(plan.order, true);
    if (plan.runs < 1 || plan.runs > most_runs || std::ssize(plan.order) != 2 * plan.runs || candidates != plan.runs ||
        plan.baseline.command.empty() || plan.candidate.command.empty())
      throw StorageError(isnt_one);
    return plan;
  } catch (const Json::exception&) {
    throw StorageError(isnt_one);
  }
}

// Pairs of both sides, each in random order, so that a drift of the machine reaches both alike.
std::vector<bool> random_order(int runs, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<bool> order;
  for (int i = 0; i < runs; ++i) {
    const bool candidate_first = (random() & 1) != 0;
    order.push_back(candidate_first);
    order.push_back(!candidate_first);
  }
  return order;
}

void require_same(const ExperimentPlan& there, const ExperimentPlan& asked, const fs::path& folder) {
  const std::string begun = folder.string() + " holds an experiment that was begun with ";
  if (asked.runs > 0 && asked.runs != there.runs)
    throw UsageError(fmt::format("{}{} runs of each side, not {}", begun, there.runs, asked.runs));
  for (const auto& [side, before, name] : {std::tuple(&asked.baseline, &there.baseline, "baseline"),
                                           std::tuple(&asked.candidate, &there.candidate, "candidate")})
    if (!side->command.empty() && *side != *before)
      throw UsageError(begun + "another command or folder of the " + name + "; name another folder");
  if (const std::string other = machine_difference(machine_fingerprint(), there.machine); !other.empty())
    throw StorageError(begun + "another machine: " + other);
}

// Accepts a plan that this user hasn't ordered only if this call asks for the same.
ExperimentPlan adopted(ExperimentPlan there, const ExperimentPlan& asked, const fs::path& folder) {
  const auto words = [](const char* name, const ExperimentSide& side) {
    return std::string("\n  ") + name + ", in " + side.folder.string() + ": " + without_secrets(side.command);
  };
  if (asked.baseline.command.empty() || asked.candidate.command.empty())
    throw UsageError(not_ordered(folder,
                                 fmt::format(", {} times each:{}{}", there.runs, words("baseline", there.baseline),
                                             words("candidate", there.candidate)),
                                 "give its commands and folders"));
  ExperimentPlan shown = asked;
  for (ExperimentSide* side : {&shown.baseline, &shown.candidate}) side->command = each_without_secrets(side->command);
  require_same(there, shown, folder);
  there.baseline = asked.baseline;
  there.candidate = asked.candidate;
  return there;
}

std::string padded(int number, int of) {
  const std::string text = std::to_string(number);
  return std::string(std::max<std::size_t>(2, std::to_string(of).size()) - text.size(), '0') + text;
}

std::vector<ExperimentRun> runs_of(const ExperimentPlan& plan, const fs::path& folder) {
  std::vector<ExperimentRun> runs;
  int counts[2] = {0, 0};
  for (const bool candidate : plan.order) {
    const int number = ++counts[candidate];
    const char* const side = candidate ? "candidate" : "baseline";
    const std::string name = padded(number, std::max(plan.runs, 10));
    const ExperimentSide& it = candidate ? plan.candidate : plan.baseline;
    runs.push_back({candidate,
                    number,
                    {.log = folder / side / (name + ".log"),
                     .state = folder / ".state" / (std::string(side) + "-" + name + ".json"),
                     .command = it.command,
                     .folder = it.folder,
                     .environment = {{"STEPLADDER_SIDE", side}, {"STEPLADDER_RUN", std::to_string(number)}}}});
  }
  return runs;
}

// Sets earlier results of a run aside: nobody knows who measured them, or whether anybody did.
void set_aside(const MeasuredCommand& run) {
  for (const fs::path& file : {run.state, run.log}) {
    std::error_code error;
    if (!fs::exists(fs::symlink_status(file, error))) continue;
    fs::rename(file, file.string() + ".elsewhere", error);
    if (error) throw StorageError(file.string() + " can't be set aside: " + error.message());
  }
}

}  // namespace

Experiment::Experiment(const fs::path& folder, ExperimentPlan asked, std::uint64_t seed)
    : folder_(experiment_folder(folder)) {
  const auto found = read_plan(folder_, "record run", experiment_version);
  std::error_code error;
  if (!found && (asked.runs == 0 || asked.baseline.command.empty() || asked.candidate.command.empty()))
    throw UsageError(folder_.string() + " holds no experiment yet, so record run needs --repeats and both commands");
  if (!found && asked.runs > most_runs) throw UsageError(fmt::format("--repeats is at most {}", most_runs));
  if (!found && fs::exists(folder_, error) && !fs::is_empty(folder_, error) && !fs::exists(folder_ / ".state", error))
    throw UsageError(folder_.string() + " isn't empty and holds no experiment");
  if (!found) {
    plan_ = std::move(asked);
    plan_.order = random_order(plan_.runs, seed);
    plan_.machine = machine_fingerprint();
  } else if (found->ordered) {
    plan_ = plan_from(*found->ordered, folder_);
    require_same(plan_, asked, folder_);
  } else {
    plan_ = adopted(plan_from(found->shown, folder_), asked, folder_);
  }
  for (const fs::path& made : {folder_ / ".state", baseline_folder(), candidate_folder()}) make_folder(made);
  held_.emplace(folder_ / ".state");
  runs_ = runs_of(plan_, folder_);
  if (!found || !found->ordered) {
    for (const ExperimentRun& run : runs_) set_aside(run.command);  // before it is ordered: then they would count
    order_plan(folder_, json_of(plan_));
  }
}

std::size_t Experiment::done() const {
  return static_cast<std::size_t>(std::ranges::count_if(runs_, [](const ExperimentRun& run) {
    const auto end = end_of_command(run.command.state);
    return end && end->exit_status == 0;
  }));
}

WallTimes Experiment::wall_times() const {
  std::vector<double> times[2];
  for (const ExperimentRun& run : runs_)
    if (const auto end = end_of_command(run.command.state); end && end->exit_status == 0)
      times[run.is_candidate].push_back(end->wall_s);
  WallTimes wall{figures_of(times[0]), figures_of(times[1])};
  if (wall.baseline.mean > 0 && wall.candidate.mean > 0) {
    wall.speedup = wall.baseline.mean / wall.candidate.mean;
    wall.ci95 = mean_ratio_interval(wall.baseline, wall.candidate);
    wall.verdict = verdict_of(wall.speedup, wall.ci95);
  }
  return wall;
}

bool Experiment::go_on(const std::function<void(const ExperimentRun&)>& begins, const std::function<bool()>& stop) {
  for (const ExperimentRun& run : runs_) {
    auto end = end_of_command(run.command.state);
    if (end && end->exit_status == 0) continue;
    if (end) put_log_aside(run.command, "failed");
    begins(run);
    end = run_measured(run.command, stop);
    if (!end) return false;
    if (end->exit_status == 0) continue;
    put_log_aside(run.command, "failed");
    throw StorageError(fmt::format(
        "run {} of the {} failed with exit status {}; its output is in {}. The same command line runs it again",
        run.number, run.is_candidate ? "candidate" : "baseline", end->exit_status,
        run.command.log.parent_path().string()));
  }
  return true;
}

}  // namespace stepladder
