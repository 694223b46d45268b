// What the processes that share a file tell each other through it, and what is done for those that have exited. A part
// of RunStore, which has its threads, locks and errors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "storage/database/process.h"
#include "storage/records.h"

namespace stepladder {

class Bin;
class Database;
class Derived;
class MetricStore;

// A run that a process trains or will train.
struct QueuedRun {
  RunId run = 0;
  bool is_paused = false;
  bool operator==(const QueuedRun&) const = default;
};

// Among the waiting runs; 0: the next one to train.
struct QueuePlace {
  std::size_t place = 0;
};
using RunChange = std::variant<RunRequest, QueuePlace>;

class ProcessStore {
 public:
  ProcessStore(Database& database, Derived& derived, MetricStore& metrics, Bin& bin)
      : database_(database), derived_(derived), metrics_(metrics), bin_(bin) {}

  // Queued and running ones, whoever owns them: by process, and of each in the order in which they train.
  std::vector<Run> runs_under_way();
  std::vector<RunId> runs_owned_by(const ProcessIdentity& owner);  // oldest first; also those that are over
  std::optional<ProcessIdentity> owner_of(RunId run);

  // Queues a run that is over again, owned by this process, for `planned_steps` steps in total.
  void queue_again(RunId run, std::int64_t planned_steps);

  // Publishes the queue of this process, the run that trains first in front, for `runs_under_way` and `is_paused` of
  // all. Replaces the one published before; leaves out runs that are over.
  void publish_queue(std::span<const QueuedRun> queue);
  bool is_paused(RunId run);

  // Whether another connection, of this process or not, has written since the last call. Costs microseconds.
  bool others_have_written();

  // `request` asks the process that owns a run; `take_requests` returns the requests of other processes about runs of
  // this one, each once.
  void request(RunId run, const RunChange& change);
  std::vector<std::pair<RunId, RunChange>> take_requests();

  // Closes queued and running runs of processes that have exited as `interrupted`, at their last step. Returns how
  // many. Leaves runs of other live processes alone. First stores the events that such processes left behind (see
  // left_events.h); what is stored already isn't stored again.
  int close_dead_runs();

  // After close_dead_runs: a sentence for each file of left events that could not be stored, and is kept.
  const std::vector<std::string>& left_behind() const { return left_behind_; }

 private:
  std::map<std::int64_t, std::string> store_left_events();

  Database& database_;
  Derived& derived_;
  MetricStore& metrics_;
  Bin& bin_;
  std::vector<std::string> left_behind_;
  std::int64_t seen_version_ = 0;  // of PRAGMA data_version
};

}  // namespace stepladder
