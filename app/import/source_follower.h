// Follows logs, tables and other trackers' stores while they grow: each value is stored exactly once, whoever is
// restarted.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/import/contents.h"
#include "app/import/follow_request.h"
#include "storage/database/process.h"
#include "storage/database/run_store.h"
#include "storage/importers/growing_source.h"
#include "storage/importers/trackers/logged_steps.h"
#include "storage/intake/intake.h"
#include "storage/intake/source_search.h"

namespace stepladder {

// The rules of how logs and tables are read while they grow, as SourceSearch has them.
ImportOptions growing_text_options();

// Used by one thread, as its store.
class SourceFollower {
 public:
  // `report` gets a sentence for a person: a run begins or ends, a source was replaced or can't be read.
  SourceFollower(RunStore& store, FollowRequest request, std::function<void(const std::string&)> report);

  // Looks for new sources. Costs a walk through the folders.
  void scan();

  // One that the caller has found. `prefix` begins its run's name. With `joined`, it completes that run, as `merge`
  // says. One that is known already is ignored.
  void add(std::unique_ptr<GrowingSource> source, const std::string& prefix = {});
  void add(std::unique_ptr<GrowingSource> source, RunId joined, Merge merge = Merge::joined);

  // Stores what the sources have more since the last call, a piece of each. Returns whether there may be more at once.
  // Throws StorageError if the database of the runs fails; then nothing of the piece is stored, and the next call tries
  // it again.
  bool poll();

  // Runs whose writer is gone end as their source says. `poll` does so as well, after a while. `at_end`: this process
  // reads no more, so a run that no process is known to write ends too.
  void finish_idle_runs(bool at_end);

  std::vector<FollowedRun> runs() const;

  // Whether a source was left out, since it was imported before. Once it grows, it is read into a run of its own.
  bool has_imported() const { return has_imported_; }

  // Whether a joined source has had values of this metric, since this process follows it.
  bool has_joined(const std::string& metric) const { return joined_metrics_.contains(metric); }

 private:
  using Clock = std::chrono::steady_clock;

  struct Followed {
    std::unique_ptr<GrowingSource> source;
    FollowedSource stored;  // as the file has it; run 0: nothing
    SourcePosition from;
    LoggedSteps steps{RepeatedLoss::is_kept};
    std::optional<RunId> joined;
    Merge merge = Merge::own;
    std::string prefix;
    RunId run = 0;
    bool position_known = false;
    bool starts_new_run = false;  // the source was replaced
    bool ended = false;           // as far as the source says
    bool is_imported = false;     // by `import`, as it is now
    bool drained = false;         // nothing new since the files changed last
    std::optional<ProcessIdentity> writer;
    std::optional<Clock::time_point> stuck_since;
    Clock::time_point grown = Clock::now();
    Clock::time_point next_look{};
    std::string trouble;  // reported
    std::int64_t values_read = 0;
    double newest_at = missing;
  };

  void add(std::unique_ptr<GrowingSource> source, std::unique_ptr<Followed> followed);
  bool poll(Followed& each);
  void load_position(Followed& each);
  bool has_more_before(const Followed& each);
  bool is_alone(const Followed& each) const;
  bool was_imported(Followed& each);
  void replace(Followed& each, const std::string& why);
  void store(Followed& each, SourcePiece& piece);
  void write(Followed& each, SourcePiece& piece, LoggedSteps& steps, double& newest_at);
  void write_events(Followed& each, const std::vector<SourceEvent>& events);
  void begin_run(Followed& each, const std::string& own_name);
  void begin_run_of_text(Followed& each, const RunBegins& begins);
  void find_writers();
  void finish_if_idle(Followed& each, bool at_end);
  bool store_rest(Followed& each);

  RunStore& store_;
  const FollowRequest request_;
  Intake intake_;
  SourceSearch search_;
  std::vector<std::unique_ptr<Followed>> followed_;
  std::set<std::string> known_;                // sources
  std::map<std::string, std::string> unread_;  // reported, by path
  std::set<std::string> joined_metrics_;
  Clock::time_point looked_for_writers_{};
  std::optional<ImportedContents> contents_;  // once they are needed
  bool has_imported_ = false;
};

}  // namespace stepladder
