// `stepladder follow`: takes in the journals of Python scripts while they grow.
#include <chrono>
#include <iostream>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "app/cli/commands.h"
#include "app/exit_status.h"
#include "app/format.h"
#include "app/import/journal_follower.h"
#include "storage/wording.h"

namespace stepladder {
namespace {

constexpr std::chrono::milliseconds between_reads(200);
constexpr std::chrono::seconds between_looks(1);

struct FollowFlags {
  FollowRequest request;
  bool once = false;
};

// The median step time of each rank of a run with several.
std::map<std::string, double> rank_times(RunStore& store, RunId run) {
  std::map<std::string, double> times;
  for (const auto& [metric, figures] : store.metrics().of_run(run)) {
    const std::string_view name = metric.name;
    constexpr std::string_view begin = "rank/", end = "/dt_ms";
    if (!name.starts_with(begin) || !name.ends_with(end)) continue;
    const std::string_view rank = name.substr(begin.size(), name.size() - begin.size() - end.size());
    if (rank.find_first_not_of("0123456789") == std::string_view::npos) times[std::string(rank)] = figures.median;
  }
  return times;
}

std::map<std::string, double>::const_iterator slowest(const std::map<std::string, double>& times) {
  return std::max_element(times.begin(), times.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
}

void print_runs(RunStore& store, const std::vector<FollowedRun>& followed, bool as_json) {
  const PlausibilityContext context = load_plausibility_context(&store);
  Json json = Json::array();
  std::vector<RunAndSummary> rows;
  for (const FollowedRun& each : followed) {
    const auto run = store.run(each.run);
    if (!run) continue;
    rows.push_back({*run, store.summary(*run)});
    const auto times = rank_times(store, each.run);
    Json row = run_json(*run, rows.back().summary, context);
    row["ranks"] = each.ranks;
    row["rank_dt_ms_median"] = Json::object();
    for (const auto& [rank, ms] : times) row["rank_dt_ms_median"][rank] = number(ms);
    row["slowest_rank"] = times.size() > 1 ? Json(std::stoll(slowest(times)->first)) : Json();
    json.push_back(std::move(row));
    if (times.size() > 1 && !as_json)
      std::cerr << "stepladder: run " << each.run << ": rank " << slowest(times)->first << " is the slowest of "
                << times.size() << ", " << milliseconds_text(slowest(times)->second) << " a step\n";
  }
  if (as_json)
    print(json);
  else if (!rows.empty())
    std::cout << runs_table(rows);
}

// Reads what there is. A locked database or a full disk is no reason to end: it is tried again.
class Reading {
 public:
  explicit Reading(JournalFollower& follower) : follower_(follower) {}

  // Returns whether there may be more at once.
  bool read() {
    try {
      const bool more = follower_.take_in();
      if (!trouble_.empty()) std::cerr << "stepladder: everything is stored again\n";
      trouble_.clear();
      return more;
    } catch (const StorageError& error) {
      if (trouble_ != error.what()) std::cerr << "stepladder: " << error.what() << "; trying again\n";
      trouble_ = error.what();
      return false;
    }
  }

  bool failing() const { return !trouble_.empty(); }

 private:
  JournalFollower& follower_;
  std::string trouble_;
};

int follow(const FollowFlags& flags, const CommonOptions& common) {
  RunStore store = RunStore::open(common.database);
  store.close_dead_runs();
  JournalFollower follower(store, flags.request,
                           [](const std::string& text) { std::cerr << "stepladder: " << harmless(text) << "\n"; });
  Reading reading(follower);
  follower.look();
  while (!interrupted() && (reading.read() || (flags.once && reading.failing()))) {
  }
  if (!flags.once) {
    if (follower.runs().empty()) std::cerr << "stepladder: waiting for the first journal\n";
    for (auto looked = std::chrono::steady_clock::now(); !interrupted();) {
      if (reading.read()) continue;
      std::this_thread::sleep_for(between_reads);
      if (std::chrono::steady_clock::now() - looked < between_looks) continue;
      looked = std::chrono::steady_clock::now();
      follower.look();
    }
  }
  const std::vector<FollowedRun> runs = follower.runs();
  print_runs(store, runs, common.json);
  if (interrupted() && flags.once) return exit_interrupted;
  if (!runs.empty() || !flags.once) return exit_done;
  std::cerr << "stepladder: found no journal there; a script that uses stepladder.py writes one\n";
  return exit_failed;
}

}  // namespace

Subcommand follow_command(CLI::App& app, CommonOptions& common) {
  auto flags = std::make_shared<FollowFlags>();
  CLI::App* command =
      add_with_json(app, common, "follow", "Take in the journals of Python scripts (stepladder.py) while they grow");
  command->add_option("paths", flags->request.paths, "Journals, folders of runs, or folders of those")->required();
  command->add_flag("--once", flags->once, "Take in what is there, and end");
  command->add_option("--name", flags->request.name, "Name of the runs (default: the scripts' own)")
      ->check(short_name());
  return {command, [flags, &common] { return follow(*flags, common); }};
}

}  // namespace stepladder
