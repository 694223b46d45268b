// Finds the stores that a watched program opens and follows them, beside what the program prints.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "app/import/journal_follower.h"
#include "app/import/open_files.h"
#include "app/import/source_follower.h"
#include "storage/database/recorder.h"

namespace stepladder {

// The rule for several stores: the first that holds numbers of this program joins the watched run, in the order of the
// processes that write them and of their paths. Every other store, and every other run of a store, becomes a run of its
// own beside it, so no value is stored twice under one name.
//
// From then on a number that both the store and the output have is the store's: what is printed only adds what the
// store doesn't know. If the output prints no step numbers, its steps, which were only counted, don't count beside
// those of the store; if such steps were stored before a store was found, none joins. If it prints another loss than
// the store's, that is the metric "printed loss".
class StoreWatch {
 public:
  struct Program {
    ProcessIdentity process;
    double started_at = missing;  // older runs in its stores aren't its
    bool has_joined = false;      // a store has joined the run under an earlier tracker
    std::string step_key = {};    // as in ImportOptions
  };

  // Starts a thread, which has its own connection to `database`. `report` is called there.
  StoreWatch(std::filesystem::path database, const Run& run, Program program, Recorder& recorder,
             std::function<void(const std::string&)> report);
  ~StoreWatch();
  StoreWatch(const StoreWatch&) = delete;
  StoreWatch& operator=(const StoreWatch&) = delete;

  // Stores what the program has printed, a step or metrics: records it or, once a store has joined this run, adds it
  // where the store has no value. Steps that were only counted wait for a store at first. Blocks while too many values
  // wait. Any thread.
  void print(const RunEvent& printed, bool is_counted);

  // Reads what the program has left in its stores, and ends their own runs. Blocks until it is stored, but for as long
  // as `gives_up` says. Returns whether a store has joined.
  bool finish(const std::function<bool()>& gives_up);

 private:
  void work();
  void rejoin();
  std::set<std::string> noted_sources(RunStore& store) const;
  void note_joined(const std::string& source);
  std::vector<std::int64_t> processes() const;
  void scan();
  void scan_workplaces(const std::vector<std::int64_t>& processes);
  void scan_file(const std::filesystem::path& file);
  void scan_databases();
  void add(std::unique_ptr<GrowingSource> store);
  void add_to_follower(std::unique_ptr<GrowingSource> source, bool joins);
  void add_journal(const std::filesystem::path& file);
  bool has_joined();
  bool join();
  bool poll();
  bool holds_counted() const;
  bool store_printed();
  bool compare_losses();
  void store_losses(Intake& intake);

  const std::filesystem::path database_;
  const RunId run_;
  const std::string uid_;
  const Program program_;
  Recorder& recorder_;
  const std::function<void(const std::string&)> report_;
  const std::string name_;

  // Used by the thread only.
  std::unique_ptr<RunStore> store_;
  std::unique_ptr<JournalFollower> journals_;
  std::unique_ptr<SourceFollower> others_;
  SourceSearch search_{{}, program_.step_key};
  std::set<std::filesystem::path> seen_;
  std::set<std::int64_t> processes_;            // of the program, so far
  std::set<std::filesystem::path> workplaces_;  // their working directories, and where Trackio keeps its databases
  std::set<std::filesystem::path> databases_;
  std::filesystem::path joined_journals_;  // the folder of the journals that have joined the run
  std::set<std::string> sources_;
  std::set<std::string> joined_sources_;  // as they are noted for later trackers
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begun_ = Clock::now();
  Clock::time_point next_look_{};
  Clock::time_point next_walk_{};
  enum class PrintedLoss { unknown, is_the_stores, is_another } printed_loss_ = PrintedLoss::unknown;
  std::vector<StepRecord> losses_;  // printed beside a store, until it is known which loss they are
  Clock::time_point losses_since_{};
  std::int64_t printed_until_ = -1;  // up to this step a stored loss may be a printed one
  bool dropped_counted_ = false;

  OpenNotices openings_;  // of databases that may be the program's

  std::mutex mutex_;
  std::condition_variable changed_;
  bool joined_ = false;
  bool finishing_ = false;
  bool given_up_ = false;
  bool done_ = false;
  struct Printed {
    RunEvent event;
    bool is_counted = false;
  };
  std::deque<Printed> printed_;
  std::vector<StepRecord> early_losses_;  // printed and recorded before a store joined; the last ones are forgotten
  Clock::time_point held_since_{};        // the first counted step
  bool counted_are_stored_ = false;
  std::thread thread_;
};

}  // namespace stepladder
