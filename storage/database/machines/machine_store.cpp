#include "storage/database/machines/machine_store.h"

#include <algorithm>

#include "storage/bounded_text.h"
#include "storage/database/database.h"
#include "storage/database/run_rows.h"
#include "storage/errors.h"
#include "storage/natural_order.h"

namespace stepladder {
namespace {

constexpr const char* machine_columns =
    "alias, is_local, folder, program, uses_slurm, partition, account, time_limit, gpus, nodes, tasks_per_node, "
    "added_at, "
    "facts, heard_at, lost_at, lost_why";
constexpr const char* far_run_columns = "uid, alias, kind, name, request, sent, state, asked_at, is_started, is_over";

Machine read_machine(Statement& row) {
  return {.alias = row.text(0),
          .is_local = row.integer(1) != 0,
          .folder = row.text(2),
          .program = row.text(3),
          .uses_slurm = row.integer(4) != 0,
          .slurm = {.partition = row.text(5),
                    .account = row.text(6),
                    .time = row.text(7),
                    .gpus = row.integer(8),
                    .nodes = row.integer(9),
                    .tasks_per_node = row.integer(10)},
          .added_at = row.real(11),
          .facts = row.text(12),
          .heard_at = row.real(13),
          .lost_at = row.real(14),
          .lost_why = row.text(15)};
}

FarRun read_far_run(Statement& row) {
  return {.uid = row.text(0),
          .alias = row.text(1),
          .kind = row.text(2),
          .name = row.text(3),
          .request = row.text(4),
          .sent = row.text(5),
          .state = row.text(6),
          .asked_at = row.real(7),
          .is_started = row.integer(8) != 0,
          .is_over = row.integer(9) != 0};
}

}  // namespace

std::vector<Machine> MachineStore::machines() {
  Statement rows(database_, std::string("SELECT ") + machine_columns + " FROM machines");
  std::vector<Machine> machines;
  while (rows.step()) machines.push_back(read_machine(rows));
  std::sort(machines.begin(), machines.end(),
            [](const Machine& a, const Machine& b) { return naturally_before(a.alias, b.alias); });
  return machines;
}

std::optional<Machine> MachineStore::machine(std::string_view alias) {
  Statement row(database_, std::string("SELECT ") + machine_columns + " FROM machines WHERE alias = ?");
  row.bind(alias);
  return row.step() ? std::optional(read_machine(row)) : std::nullopt;
}

void MachineStore::save(const Machine& machine) {
  Statement put(
      database_,
      "INSERT INTO machines (alias, is_local, folder, program, uses_slurm, partition, account, time_limit, gpus, "
      "nodes, tasks_per_node, added_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (alias) DO UPDATE "
      "SET is_local = excluded.is_local, folder = excluded.folder, program = excluded.program, uses_slurm = "
      "excluded.uses_slurm, partition = excluded.partition, account = excluded.account, time_limit = "
      "excluded.time_limit, gpus = excluded.gpus, nodes = excluded.nodes, tasks_per_node = "
      "excluded.tasks_per_node");
  put.bind(machine.alias).bind(int{machine.is_local}).bind(machine.folder).bind(machine.program);
  put.bind(int{machine.uses_slurm}).bind(machine.slurm.partition).bind(machine.slurm.account).bind(machine.slurm.time);
  put.bind(machine.slurm.gpus).bind(machine.slurm.nodes).bind(machine.slurm.tasks_per_node);
  put.bind(is_missing(machine.added_at) ? unix_now() : machine.added_at).run();
}

void MachineStore::remove(std::string_view alias) {
  Statement(database_, "DELETE FROM machines WHERE alias = ?").bind(alias).run();
}

void MachineStore::heard(std::string_view alias, double at, const std::string& facts) {
  Statement(
      database_,
      "UPDATE machines SET heard_at = ?, lost_at = NULL, lost_why = NULL, facts = CASE WHEN ?2 = '' THEN facts ELSE "
      "?2 END WHERE alias = ?3")
      .bind(at)
      .bind(facts)
      .bind(alias)
      .run();
}

void MachineStore::lost(std::string_view alias, double at, const std::string& why) {
  Statement(database_, "UPDATE machines SET lost_at = coalesce(lost_at, ?), lost_why = ? WHERE alias = ?")
      .bind(at)
      .bind(bounded(why, longest_line))
      .bind(alias)
      .run();
}

FarRun MachineStore::add_run(FarRun run) {
  run.uid = random_uid();
  run.asked_at = unix_now();
  run.name = bounded(run.name, longest_name);
  Statement(database_,
            std::string("INSERT INTO far_runs (") + far_run_columns + ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
      .bind(run.uid)
      .bind(run.alias)
      .bind(run.kind)
      .bind(run.name)
      .bind(run.request)
      .bind(run.sent)
      .bind(run.state)
      .bind(run.asked_at)
      .bind(int{run.is_started})
      .bind(int{run.is_over})
      .run();
  return run;
}

std::vector<FarRun> MachineStore::open_runs() {
  Statement rows(database_,
                 std::string("SELECT ") + far_run_columns + " FROM far_runs WHERE is_over = 0 ORDER BY asked_at, uid");
  std::vector<FarRun> runs;
  while (rows.step()) runs.push_back(read_far_run(rows));
  return runs;
}

std::optional<FarRun> MachineStore::far_run(std::string_view uid) {
  Statement row(database_, std::string("SELECT ") + far_run_columns + " FROM far_runs WHERE uid = ?");
  row.bind(uid);
  return row.step() ? std::optional(read_far_run(row)) : std::nullopt;
}

void MachineStore::update(const FarRun& run) {
  Statement(database_, "UPDATE far_runs SET request = ?, state = ?, is_started = ?, is_over = ? WHERE uid = ?")
      .bind(run.request)
      .bind(run.state)
      .bind(int{run.is_started})
      .bind(int{run.is_over})
      .bind(run.uid)
      .run();
}

void MachineStore::add_member(RunId run, std::string_view far_uid) {
  Statement(database_, "INSERT OR REPLACE INTO far_members (run_id, far_uid) VALUES (?, ?)")
      .bind(run)
      .bind(far_uid)
      .run();
}

std::vector<RunId> MachineStore::members(std::string_view far_uid) {
  Statement rows(database_, "SELECT run_id FROM far_members WHERE far_uid = ? ORDER BY run_id");
  rows.bind(far_uid);
  std::vector<RunId> runs;
  while (rows.step()) runs.push_back(rows.integer(0));
  return runs;
}

std::optional<FarPlace> MachineStore::place_of(RunId run) {
  Statement row(
      database_,
      "SELECT far_runs.alias, far_runs.uid, machines.lost_at FROM far_members JOIN far_runs ON far_runs.uid = "
      "far_members.far_uid LEFT JOIN machines ON machines.alias = far_runs.alias WHERE far_members.run_id = ?");
  row.bind(run);
  if (!row.step()) return std::nullopt;
  return FarPlace{row.text(0), row.text(1), row.real(2)};
}

}  // namespace stepladder
