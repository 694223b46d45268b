// Takes in other trackers' stores while they grow, each value exactly once, whoever is restarted.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/import/journal_follower.h"
#include "storage/database/process.h"
#include "storage/database/run_store.h"
#include "storage/importers/trackers/growing_store.h"
#include "storage/importers/trackers/logged_steps.h"

namespace stepladder {

// Used by one thread, as its store.
class StoreFollower {
 public:
  // `tell` gets a sentence for a person: a run begins or ends, a store was replaced or can't be read.
  StoreFollower(RunStore& store, FollowRequest request, std::function<void(const std::string&)> tell);

  // Looks for new stores. Costs a walk through the folders.
  void look();

  // One that the caller has found. `prefix` begins its run's name. With `joined`, its numbers complete that run, which
  // has an owner and an end of its own: where both know a step's value, the store's counts.
  void add(std::unique_ptr<GrowingStore> store, std::optional<RunId> joined = std::nullopt,
           const std::string& prefix = {});

  // Stores what the stores have more since the last call, a piece of each. Returns whether there may be more at once.
  // Throws StorageError if the database of the runs fails; then nothing of the piece is stored, and the next call tries
  // it again.
  bool take_in();

  // Runs whose writer is gone end as their store says. `take_in` does so as well, after a while. `at_end`: this process
  // reads no more, so a run that no process is known to write ends too.
  void settle(bool at_end);

  std::vector<FollowedRun> runs() const;

  // Whether a joined store has had values of this metric, since this process follows it.
  bool has_joined(const std::string& metric) const { return joined_metrics_.contains(metric); }

 private:
  using Clock = std::chrono::steady_clock;

  struct Followed {
    std::unique_ptr<GrowingStore> store;
    FollowedSource stored;  // as the file has it; run 0: nothing
    StorePosition from;
    LoggedSteps steps{RepeatedLoss::is_kept};
    std::optional<RunId> joined;
    std::string prefix;
    RunId run = 0;
    bool position_known = false;
    bool anew = false;     // the store was replaced, so the next piece begins another run
    bool ended = false;    // as far as the store tells
    bool drained = false;  // nothing new since the files changed last
    std::optional<ProcessIdentity> writer;
    std::optional<Clock::time_point> stuck_since;
    Clock::time_point grown = Clock::now();
    Clock::time_point next_look{};
    std::string trouble;  // told
    std::int64_t values_read = 0;
    double newest_at = missing;
  };

  bool take_in(Followed& each);
  void know_position(Followed& each);
  void replace(Followed& each, const std::string& why);
  void store(Followed& each, StorePiece& piece);
  void write(Followed& each, StorePiece& piece, LoggedSteps& steps, double& newest_at);
  void create_run(Followed& each, const StorePiece& piece);
  void write_batch(const Followed& each, const LoggedBatch& batch);
  void find_writers();
  void settle(Followed& each, bool at_end);

  RunStore& store_;
  const FollowRequest request_;
  const std::function<void(const std::string&)> tell_;
  StoreSearch search_;
  std::vector<std::unique_ptr<Followed>> followed_;
  std::map<std::string, std::string> unread_;  // told, by path
  std::set<std::string> joined_metrics_;
  Clock::time_point looked_for_writers_{};
};

}  // namespace stepladder
