// Machines that runs are launched on, and what was started there (docs/database.md, docs/security.md). A part of
// RunStore, which has its threads, locks and errors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "storage/checked_text.h"
#include "storage/database/orders/order_book.h"
#include "storage/records.h"

namespace stepladder {

class Database;

// The resources requested from Slurm; empty and 0: what the cluster gives by default.
struct SlurmRequest {
  SlurmWord partition;
  SlurmWord account;
  SlurmWord time;         // as sbatch takes it: "02:00:00"
  std::int64_t gpus = 0;  // of each node
  std::int64_t nodes = 0;
  std::int64_t tasks_per_node = 0;
  bool operator==(const SlurmRequest&) const = default;
};

struct Machine {
  MachineAlias alias;
  bool is_local = false;    // this machine: nothing goes through ssh
  MachineFolder folder;     // there; empty: ~/.stepladder
  MachineProgram program;   // the installed Stepladder there; empty: `stepladder` as the shell finds it
  bool uses_slurm = false;  // what is launched there becomes a job
  SlurmRequest slurm;
  double added_at = missing;

  // As they were when the machine last answered; not changed by `save`.
  std::string facts;  // JSON: docs/far.md, `hello` and `report`
  double heard_at = missing;
  double lost_at = missing;  // since when it can't be reached; missing: it can
  std::string lost_why;
};

// Something that was started on a machine: a watched command, or a Stepladder there that trains.
struct FarRun {
  Uid uid;  // also the name of its folder there
  MachineAlias alias;
  std::string kind;  // "watch", "train", "ladder", "sweep", "record", "setup", "try"
  std::string name;
  std::string request;  // JSON: `start` of docs/far.md
  std::string shown;    // the same without secrets, which is all that the project gets
  std::string sent;     // JSON: the working tree that was sent; empty: none
  std::string state;    // JSON, as the machine said last; empty: it has said nothing
  double asked_at = missing;
  bool is_started = false;  // the machine has taken the request
  bool is_over = false;     // it has ended there, and everything from there is stored
};

// The place where a run trains, if it isn't here, as the project has it: texts to show. FarRun::alias is what may be
// connected to.
struct FarPlace {
  std::string alias;
  std::string far_uid;
  double lost_at = missing;  // as Machine's
};

// A machine of the project's table that isn't this user's: the file came from elsewhere, was moved or copied, or an
// earlier version wrote it. Texts to show; nothing connects to it.
struct MachineInFile {
  std::string alias, folder, program, partition, account, time;
  std::int64_t gpus = 0, nodes = 0, tasks_per_node = 0;
  bool is_local = false;
  bool uses_slurm = false;
  struct Started {
    std::string uid, kind, name;
    std::string request, sent;  // JSON
    bool is_started = false;
    bool operator==(const Started&) const = default;
  };
  std::vector<Started> open_runs;  // not over, oldest first
  bool operator==(const MachineInFile&) const = default;
};

Uid new_uid();  // random

// Machines, and what was asked of them, are orders: they are kept in the user's OrderBook, by the project's id and
// path. The project has copies of them for readers, which nobody acts on, and their results.
class MachineStore {
 public:
  MachineStore(Database& project, ProjectOrders& orders) : project_(project), orders_(orders) {}

  std::vector<Machine> machines();  // by alias
  std::optional<Machine> machine(const MachineAlias& alias);
  void save(const Machine& machine);  // adds it, or replaces what was asked for
  void remove(const MachineAlias& alias);

  std::vector<MachineInFile> machines_in_file();  // by alias
  // Makes it one of the user's machines, with what has been started there, which is then followed: nothing of a request
  // is kept that could be executed. What wasn't started stays history. Throws StorageError, with the reason, if a value
  // isn't allowed, or the file has something else by now than the user was shown.
  Machine adopt(const MachineInFile& shown);

  // Stores what the link to it has found out.
  void heard(const MachineAlias& alias, double at, const std::string& facts);  // empty facts: as they were
  void lost(const MachineAlias& alias, double at, const std::string& why);

  // Adds all of them or none. Sets their time, and returns them as they are stored.
  std::vector<FarRun> add_runs(std::vector<FarRun> runs);
  std::vector<FarRun> open_runs();  // not over, oldest first
  std::optional<FarRun> far_run(const Uid& uid);
  void update(const FarRun& run);  // request, shown, state, is_started, is_over

  // Notes that it has become this run of the file.
  void add_member(RunId run, const Uid& far_uid);
  std::vector<RunId> members(const Uid& far_uid);
  std::optional<FarPlace> place_of(RunId run);
  std::optional<FarRun> far_run_of(RunId run);  // the order behind it; nullopt also if it isn't this user's

 private:
  std::optional<Machine> machine_from(const Order& order);

  Database& project_;
  ProjectOrders& orders_;
};

}  // namespace stepladder
