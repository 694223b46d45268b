// The state of a machine as plain values, which the window and the command line show.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "storage/database/machine_store.h"
#include "storage/records.h"

namespace stepladder {

struct MachineGpu {
  std::string name;
  double load = missing;              // 0..1
  std::int64_t memory_bytes = 0;      // in use
  std::int64_t all_memory_bytes = 0;  // 0: not known
};

// A partition of a cluster, and the jobs of all users there. A count that Slurm didn't report is -1.
struct MachinePartition {
  std::string name;
  bool is_default = false;
  std::string time_limit;  // as Slurm writes it
  std::int64_t nodes = 0, idle_nodes = 0, allocated_nodes = 0;
  std::int64_t gpus = 0;  // of all its nodes
  std::int64_t running_jobs = -1, pending_jobs = -1;
};

// A machine's answers; texts are fit for a terminal.
struct MachineReport {
  bool is_reachable = false;
  std::string reason;   // why it isn't, and what to do about it
  std::string version;  // of the Stepladder there: "0.1.0"; empty: none was found
  std::string host, platform, home, folder;
  bool is_writable = false;
  std::string why_not_writable;
  double clock_ahead_s = missing;  // of ours
  double load = missing;           // processes that run or wait to, mean over a minute
  std::int64_t cores = 0;
  std::int64_t memory_bytes = 0, free_memory_bytes = 0, free_disk_bytes = 0;
  std::vector<MachineGpu> gpus;
  std::string no_gpu_because;
  std::optional<bool> logout_kills;  // systemd-logind ends the user's programs at a logout; empty: not known
  bool has_slurm = false;
  std::string slurm_version;
  std::vector<MachinePartition> partitions;
  std::int64_t running_jobs = -1, pending_jobs = -1;  // a job that waits for two partitions counts once
  double queue_read_at = missing;                     // unix seconds, by our clock
  bool slurm_keeps_accounts = false;
  std::string no_slurm_because;
  bool is_complete = false;  // every question was answered
};

struct MachineCheck {
  enum class Result { good, warning, bad, not_tried };
  std::string name;  // "Connection"
  Result result = Result::not_tried;
  std::string text;
};

// Something that was started there and isn't over.
struct FarWork {
  std::string uid;
  std::string kind;  // as FarRun::kind
  std::string name;
  std::string phase;  // docs/far.md
  std::string job;    // Slurm's number; empty: none
  std::vector<RunId> runs;
};

struct MachineStatus {
  enum class Link { idle, connecting, up, lost };
  Machine machine;
  Link link = Link::idle;
  double lost_at = missing;      // unix seconds
  std::string why;               // it can't be reached, with what the user can do
  MachineReport report;          // the last one that was complete
  double reported_at = missing;  // unix seconds
  bool is_asking = false;
  std::vector<MachineCheck> checks;
  std::vector<FarWork> work;
};

}  // namespace stepladder
