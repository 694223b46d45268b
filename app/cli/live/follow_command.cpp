// `stepladder follow`: imports journals and other trackers' stores while they grow.
#include <chrono>
#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "app/cli/commands.h"
#include "app/cli/profile/trace_commands.h"
#include "app/exit_status.h"
#include "app/host/patch.h"
#include "app/import/follower.h"
#include "app/import/trace_import.h"
#include "app/text/format.h"
#include "storage/traces/trace_file.h"
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
  return std::ranges::max_element(times, [](const auto& a, const auto& b) { return a.second < b.second; });
}

void print_runs(RunStore& store, const std::vector<FollowedRun>& followed, bool as_json) {
  const RunContext context = load_run_context(&store);
  Json json = Json::array();
  std::vector<RunAndSummary> rows;
  for (const FollowedRun& each : followed) {
    const auto run = store.run(each.run);
    if (!run) continue;
    rows.push_back({*run, store.summary(*run)});
    const auto times = rank_times(store, each.run);
    Json row = run_json(*run, rows.back().summary, context);
    row["ranks"] = each.ranks;
    row["format"] = each.format;
    row["newest_value_at"] = time_json(each.newest_at);
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
    std::cout << runs_table(rows, context);
}

// Keeps what is uncommitted in the checkout that a run's process works in, if it has just begun: what one that has
// ended ran, or what has been edited since, nobody knows.
class Patches {
 public:
  void keep(RunStore& store, const std::vector<FollowedRun>& runs) {
    for (const FollowedRun& each : runs) {
      if (each.ended || done_.contains(each.run)) continue;
      const auto owner = store.processes().owner_of(each.run);
      // A project from elsewhere may name any process by its number alone.
      const bool is_known = owner && owner->start > 0 && !owner->boot.empty() && is_alive(*owner);
      if (!is_known || owner->pid == this_process().pid) continue;
      done_.insert(each.run);
      constexpr double just_begun_s = 60;
      if (!(unix_now() - store.existing_run(each.run).created_at < just_begun_s)) continue;
      std::error_code error;
      const auto folder = std::filesystem::read_symlink("/proc/" + std::to_string(owner->pid) + "/cwd", error);
      if (!error && store.recordings().patch(each.run).bytes == 0)
        store.recordings().keep_patch(each.run, patch_in(folder));
    }
  }

 private:
  std::set<RunId> done_;
};

// Reads what is new. After a locked database or a full disk it tries again.
class Reading {
 public:
  Reading(Follower& follower, RunStore& store) : follower_(follower), store_(store) {}

  // Returns whether there may be more at once.
  bool read() {
    try {
      const bool more = follower_.poll();
      patches_.keep(store_, follower_.runs());
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
  Follower& follower_;
  RunStore& store_;
  Patches patches_;
  std::string trouble_;
};

// Reports that a store's writer holds values back: once per run, and again whenever they are twice as late.
class Lateness {
 public:
  void report(const std::vector<FollowedRun>& runs) {
    for (const FollowedRun& run : runs) {
      const double age_s = unix_now() - run.newest_at;
      double& reported_s = reported_[run.run];
      if (run.ended || !(age_s >= late_after_s)) {
        reported_s = 0;
      } else if (const std::string text = lateness_text(run.format, age_s); !text.empty() && age_s >= 2 * reported_s) {
        reported_s = age_s;
        std::cerr << "stepladder: run " << run.run << ": " << text << "\n";
      }
    }
  }

 private:
  std::map<RunId, double> reported_;  // seconds
};

// Imports the traces of profilers that appear beside what is followed. One that can't be read is reported.
class Traces {
 public:
  Traces(std::vector<std::filesystem::path> paths, const CommonOptions& common)
      : paths_(std::move(paths)), common_(common) {}

  void ingest(bool is_last) {
    for (const std::string& file : search_.find_new(paths_, is_last)) {
      try {
        const std::optional<StoredTrace> trace = import_trace({.files = {file}}, "", false, common_);
        if (!trace) return;  // interrupted
        ++count_;
        std::cerr << "stepladder: trace " << trace->id << " is of " << harmless(file) << "; `stepladder profile show "
                  << trace->id << "` shows it\n";
      } catch (const StorageError& error) {
        std::cerr << "stepladder: " << harmless(error.what()) << "\n";
      }
    }
  }
  int count() const { return count_; }

 private:
  const std::vector<std::filesystem::path> paths_;
  const CommonOptions& common_;
  TraceSearch search_;
  int count_ = 0;
};

// A locked database is no reason to forget how runs ended; their next reader sees it too.
void finish_idle_runs(Follower& follower) {
  try {
    follower.finish_idle_runs();
  } catch (const StorageError& error) {
    std::cerr << "stepladder: " << error.what() << "\n";
  }
}

int follow(FollowFlags flags, const CommonOptions& common) {
  flags.request.once = flags.once;
  for (const auto& path : flags.request.paths)
    if (flags.once && !std::filesystem::exists(path))
      throw NotFound(std::filesystem::path(path).string() + " does not exist",
                     {.argument = "paths", .value = std::filesystem::path(path).string()});
  RunStore store = RunStore::open(common.database);
  store.processes().close_dead_runs();
  Traces traces(flags.request.paths, common);
  std::erase_if(flags.request.paths, [](const std::filesystem::path& path) { return looks_like_trace(path); });
  Follower follower(store, flags.request,
                    [](const std::string& text) { std::cerr << "stepladder: " << harmless(text) << "\n"; });
  Lateness lateness;
  Reading reading(follower, store);
  follower.scan();
  while (!interrupted() && (reading.read() || (flags.once && reading.failing()))) {
  }
  traces.ingest(flags.once);
  if (!flags.once) {
    if (follower.runs().empty() && traces.count() == 0)
      std::cerr << "stepladder: waiting for the first journal or store\n";
    for (auto looked = std::chrono::steady_clock::now(); !interrupted();) {
      if (reading.read()) continue;
      std::this_thread::sleep_for(between_reads);
      if (std::chrono::steady_clock::now() - looked < between_looks) continue;
      looked = std::chrono::steady_clock::now();
      follower.scan();
      traces.ingest(false);
      lateness.report(follower.runs());
    }
  }
  finish_idle_runs(follower);
  const std::vector<FollowedRun> runs = follower.runs();
  if (runs.empty() && flags.once && traces.count() == 0 && !follower.has_imported() && !interrupted())
    throw NotFound(
        "found nothing to follow there: no journal of stepladder.py, no TensorBoard, W&B, MLflow or Trackio store, and "
        "no CSV or JSON lines with training steps, and no profiler's trace",
        {.argument = "paths", .hint = "a log is followed only if it is named itself, not its folder"});
  print_runs(store, runs, common.json);
  return interrupted() && flags.once ? exit_interrupted : exit_done;
}

}  // namespace

Subcommand follow_command(CLI::App& app, CommonOptions& common) {
  auto flags = std::make_shared<FollowFlags>();
  CLI::App* command = add_with_json(app, common, "follow",
                                    "Take in journals (stepladder.py) and other trackers' stores while they grow");
  command
      ->add_option("paths", flags->request.paths,
                   "Journals; TensorBoard, W&B, MLflow and Trackio stores; CSV and JSON lines; folders of them")
      ->required();
  command->add_flag("--once", flags->once, "Take in what is there, and end");
  command->add_option("--name", flags->request.name, "Name of the runs (default: the script's or the store's)")
      ->check(new_name());
  command->add_option("--step-key", flags->request.step_key, "Logged number that is the step (W&B, Trackio)")
      ->check(short_name());
  return {command, [flags, &common] { return follow(*flags, common); }};
}

}  // namespace stepladder
