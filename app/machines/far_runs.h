// Follows what was started on other machines: links, copies of the journals there, and the runs that they become.
// docs/far.md has the protocol, docs/machines.md the user's side.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "app/import/journal_follower.h"
#include "app/import/source_follower.h"
#include "app/machines/link.h"
#include "app/machines/output_file.h"
#include "storage/database/run_store.h"
#include "storage/json_values.h"

namespace stepladder {

// A program to be started on a machine. Paths are the machine's.
struct FarCommand {
  std::string kind;                  // as FarRun::kind (app/machines/far_kind.h)
  std::string name;                  // of the run; empty: the command's
  std::vector<std::string> command;  // program and arguments; no shell sees them
  std::string folder;                // where it runs; empty: a new one, with the tree that was sent
  std::map<std::string, std::string> environment;
  std::optional<SlurmRequest> slurm;
  std::int64_t at_once = 0;    // of repeats; 0: as many as the cluster has room for
  std::filesystem::path tree;  // here: a tar.gz that is unpacked there first; empty: none
  std::string sent;            // JSON: what the tree is, recorded with the run
  ImportOptions options;       // of a watched program's output
  std::optional<Uid> uid;      // of one that its caller wants to find again; else a new one
};

// The progress of one command, for people.
struct FarProgress {
  FarRun run;
  std::string phase;   // docs/far.md; "asked" before the machine has accepted the request
  std::string reason;  // why it ended, or could not start
  std::int64_t exit_status = 0;
  std::vector<RunId> runs;
  std::string output_tail;  // the last 4 KiB of what it printed
};

// The runs that stop, pause or continue affect when one run is named: "the run", or all runs of a ladder.
std::string asked_of(RunStore& store, const FarPlace& place);

// Not thread-safe: one thread, that of its store. Two processes may follow the same runs.
class FarRuns {
 public:
  struct Callbacks {
    std::function<void(const std::string&)> report;  // a sentence for a person
    // The program's output, in order, as it arrives; from the start if this process began before it arrived.
    std::function<void(const Uid& uid, std::string_view bytes)> output = {};
  };

  // Throws std::runtime_error if the far program is missing.
  FarRuns(RunStore& store, Callbacks callbacks, SshAsks asks = {});
  ~FarRuns();

  // Stores the request first, so that it will start even if this process is killed before the machine has answered.
  // Throws StorageError, or std::runtime_error for a tree that can't be read.
  FarRun start(const Machine& machine, const FarCommand& command);

  // The same, `count` times, as one array of a cluster's jobs: `slurm` is set. The repeats of one rung, in their order.
  std::vector<FarRun> start_repeats(const Machine& machine, const FarCommand& command, std::int64_t count);

  // Follows the open request of this kind that was made there before; nullopt if there is none. If the machine hasn't
  // taken it yet, `tree` replaces the one of that request. Throws as `start`.
  std::optional<FarRun> follow_open(const Machine& machine, const std::string& kind, const std::filesystem::path& tree);

  // Starts this command in the same folder once the earlier one is over, as its next attempt. Its runs continue.
  FarRun restart(const Uid& uid, const std::vector<std::string>& command);

  // Polls the links and stores what has arrived. Waits at most `patience` for something to happen. Never throws for an
  // error of a machine or the database: reports it once, and tries again.
  void poll(std::chrono::milliseconds patience);

  // Polls the links only, for questions; doesn't follow runs.
  void poll_links(std::chrono::milliseconds patience);

  // Begins to follow what other processes have started since; with `at_all_machines` also opens links to machines on
  // which nothing was started.
  void scan(bool at_all_machines);

  std::optional<FarProgress> progress(const Uid& uid);
  bool all_over() const { return followed_.empty(); }

  // `signal` of docs/far.md: stop, terminate, kill, pause, continue. `done` gets an error's sentence, or none.
  void signal(const Uid& uid, const std::string& signal, std::function<void(const std::string&)> done);

  Link& link(const Machine& machine);  // for questions of the caller's own
  const std::map<std::string, std::unique_ptr<Link>>& links() const { return links_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Followed;

  Followed& follow(const FarRun& run);
  void send_start(Followed& followed);
  bool may_be_sent(Followed& followed);
  void send_tree(Followed& followed);
  void ask_to_follow(const std::string& alias);
  void on_line(const std::string& alias, const Json& line);
  void on_file(Followed& followed, const Json& file);
  void on_state(Followed& followed, const Json& state);
  void ingest();
  bool ingest(Followed& followed);
  void join(Followed& followed);
  void end(Followed& followed);
  void refuse(Followed& followed, const std::string& why);
  void register_run(const FarRun& far_run, RunId run);
  void join_repeats(const FarRun& far_run, RunId run);
  void set_reason_of_runs(const std::string& alias, const std::string& reason);
  void note_links();

  RunStore& store_;
  const Callbacks callbacks_;
  const SshAsks asks_;
  const FarProgram program_;
  std::map<std::string, std::unique_ptr<Link>> links_;         // by alias
  std::map<std::string, std::unique_ptr<Followed>> followed_;  // by uid
  std::map<std::string, FarProgress> ended_;                   // the runs that ended while this process followed them
  std::map<std::string, double> noted_;                        // when a link's state was written down, by alias
  std::set<std::string> to_follow_;                            // aliases whose runs have to be asked for again
  Clock::time_point follow_again_{};
  Clock::time_point scanned_{};
  Clock::time_point ask_again_{};  // about requests that a machine hasn't accepted yet
  std::string trouble_;
};

}  // namespace stepladder
