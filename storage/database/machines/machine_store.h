// Machines that runs are launched on, and what was started there (docs/database.md). A part of RunStore, which has its
// threads, locks and errors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "storage/records.h"

namespace stepladder {

class Database;

// What Slurm is asked for; empty and 0: what the cluster gives without being asked.
struct SlurmRequest {
  std::string partition;
  std::string account;
  std::string time;       // as sbatch takes it: "02:00:00"
  std::int64_t gpus = 0;  // of each node
  std::int64_t nodes = 0;
  std::int64_t tasks_per_node = 0;
  bool operator==(const SlurmRequest&) const = default;
};

struct Machine {
  std::string alias;        // what ssh calls it; names and shell words can't begin with "-"
  bool is_local = false;    // this machine: nothing goes through ssh
  std::string folder;       // there; empty: ~/.stepladder
  std::string program;      // the installed Stepladder there; empty: `stepladder` as the shell finds it
  bool uses_slurm = false;  // what is launched there becomes a job
  SlurmRequest slurm;
  double added_at = missing;

  // As they were when the machine was last heard; not changed by `save`.
  std::string facts;  // JSON: docs/far.md, `hello` and `report`
  double heard_at = missing;
  double lost_at = missing;  // since when it can't be reached; missing: it can
  std::string lost_why;
};

// Something that was started on a machine: a watched command, or a Stepladder there that trains.
struct FarRun {
  std::string uid;  // 32 hexadecimal digits, also the name of its folder there
  std::string alias;
  std::string kind;  // "watch", "train", "ladder", "sweep", "record", "setup"
  std::string name;
  std::string request;  // JSON: `start` of docs/far.md
  std::string sent;     // JSON: the working tree that was sent; empty: none
  std::string state;    // JSON, as the machine said last; empty: it has said nothing
  double asked_at = missing;
  bool is_started = false;  // the machine has taken the request
  bool is_over = false;     // it has ended there, and everything from there is stored
};

// Where a run trains, if it isn't here.
struct FarPlace {
  std::string alias;
  std::string far_uid;
  double lost_at = missing;  // as Machine's
};

class MachineStore {
 public:
  explicit MachineStore(Database& database) : database_(database) {}

  std::vector<Machine> machines();  // by alias
  std::optional<Machine> machine(std::string_view alias);
  void save(const Machine& machine);  // adds it, or replaces what was asked for
  void remove(std::string_view alias);

  // What the link to it has found out.
  void heard(std::string_view alias, double at, const std::string& facts);  // empty facts: as they were
  void lost(std::string_view alias, double at, const std::string& why);

  // Draws the uid and the time.
  FarRun add_run(FarRun run);
  std::vector<FarRun> open_runs();  // not over, oldest first
  std::optional<FarRun> far_run(std::string_view uid);
  void update(const FarRun& run);  // request, state, is_started, is_over

  // Which of the file's runs it has become.
  void add_member(RunId run, std::string_view far_uid);
  std::vector<RunId> members(std::string_view far_uid);
  std::optional<FarPlace> place_of(RunId run);

 private:
  Database& database_;
};

}  // namespace stepladder
