// Orders are read from the OrderBook only; the project's tables have copies for readers, and keep the results.
#include "storage/database/machine_store.h"

#include <algorithm>
#include <map>

#include "storage/bounded_text.h"
#include "storage/database/database.h"
#include "storage/database/run_rows.h"
#include "storage/errors.h"
#include "storage/json_values.h"
#include "storage/name_pattern.h"

namespace stepladder {
namespace {

double time_in(const Json& json, const char* name) {
  const Json time = field_in(json, name);
  return time.is_number() ? time.get<double>() : missing;
}

// A text of an order, if its rule allows it.
template <class Text>
bool take(const Json& json, const char* name, Text& into) {
  const auto text = Text::from(text_in(json, name));
  if (text) into = *text;
  return text.has_value();
}

// The part of a request that following a run needs: neither command, environment, folder nor Slurm's values.
std::string to_follow(const std::string& request) {
  const Json asked = object_in(request);
  Json kept = Json::object();
  for (const char* name : {"name", "here", "repeats"})
    if (const auto found = asked.find(name); found != asked.end()) kept[name] = *found;
  return json_text(kept);
}

Order order_of(const Machine& machine) {
  const SlurmRequest& slurm = machine.slurm;
  return {machine.alias.text(), json_text(Json{{"alias", machine.alias.text()},
                                               {"is_local", machine.is_local},
                                               {"folder", machine.folder.text()},
                                               {"program", machine.program.text()},
                                               {"uses_slurm", machine.uses_slurm},
                                               {"partition", slurm.partition.text()},
                                               {"account", slurm.account.text()},
                                               {"time", slurm.time.text()},
                                               {"gpus", slurm.gpus},
                                               {"nodes", slurm.nodes},
                                               {"tasks_per_node", slurm.tasks_per_node},
                                               {"added_at", machine.added_at}})};
}

// nullopt if a value isn't allowed.
std::optional<Machine> machine_in(const Order& order) {
  const Json json = object_in(order.text);
  Machine machine{.is_local = flag_in(json, "is_local"),
                  .uses_slurm = flag_in(json, "uses_slurm"),
                  .added_at = time_in(json, "added_at")};
  SlurmRequest& slurm = machine.slurm;
  const bool is_allowed = take(json, "alias", machine.alias) && take(json, "folder", machine.folder) &&
                          take(json, "program", machine.program) && take(json, "partition", slurm.partition) &&
                          take(json, "account", slurm.account) && take(json, "time", slurm.time);
  slurm.gpus = integer_in(json, "gpus");
  slurm.nodes = integer_in(json, "nodes");
  slurm.tasks_per_node = integer_in(json, "tasks_per_node");
  return is_allowed ? std::optional(machine) : std::nullopt;
}

Order order_of(const FarRun& run) {
  return {run.uid.text(), json_text(Json{{"alias", run.alias.text()},
                                         {"kind", run.kind},
                                         {"name", run.name},
                                         {"request", run.request},
                                         {"shown", run.shown},
                                         {"sent", run.sent},
                                         {"state", run.state},
                                         {"asked_at", run.asked_at},
                                         {"is_started", run.is_started},
                                         {"is_over", run.is_over}})};
}

std::optional<FarRun> far_run_in(const Order& order) {
  const auto uid = Uid::from(order.subject);
  const Json json = object_in(order.text);
  const auto alias = MachineAlias::from(text_in(json, "alias"));
  if (!uid || !alias) return std::nullopt;
  return FarRun{.uid = *uid,
                .alias = *alias,
                .kind = text_in(json, "kind"),
                .name = text_in(json, "name"),
                .request = text_in(json, "request"),
                .shown = text_in(json, "shown"),
                .sent = text_in(json, "sent"),
                .state = text_in(json, "state"),
                .asked_at = time_in(json, "asked_at"),
                .is_started = flag_in(json, "is_started"),
                .is_over = flag_in(json, "is_over")};
}

}  // namespace

Uid new_uid() {
  return *Uid::from(random_uid());
}

// Completes an order with what the link has found out, which is stored in the project.
std::optional<Machine> MachineStore::machine_from(const Order& order) {
  std::optional<Machine> machine = machine_in(order);
  if (!machine) return std::nullopt;
  Statement row(project_, "SELECT facts, heard_at, lost_at, lost_why FROM machines WHERE alias = ?",
                machine->alias.text());
  if (!row.step()) return machine;
  machine->facts = row.text(0);
  machine->heard_at = row.real(1);
  machine->lost_at = row.real(2);
  machine->lost_why = row.text(3);
  return machine;
}

std::vector<Machine> MachineStore::machines() {
  std::vector<Machine> machines;
  for (const Order& order : orders_.all(order_kind::machine))
    if (auto machine = machine_from(order)) machines.push_back(std::move(*machine));
  std::ranges::sort(
      machines, [](const Machine& a, const Machine& b) { return naturally_before(a.alias.text(), b.alias.text()); });
  return machines;
}

std::optional<Machine> MachineStore::machine(const MachineAlias& alias) {
  const auto text = orders_.find(order_kind::machine, alias.text());
  return text ? machine_from({alias.text(), *text}) : std::nullopt;
}

void MachineStore::save(const Machine& asked) {
  Machine machine = asked;
  if (is_missing(machine.added_at)) machine.added_at = unix_now();
  const SlurmRequest& slurm = machine.slurm;
  project_.run(
      "INSERT INTO machines (alias, is_local, folder, program, uses_slurm, partition, account, time_limit, gpus, "
      "nodes, tasks_per_node, added_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (alias) DO UPDATE "
      "SET is_local = excluded.is_local, folder = excluded.folder, program = excluded.program, uses_slurm = "
      "excluded.uses_slurm, partition = excluded.partition, account = excluded.account, time_limit = "
      "excluded.time_limit, gpus = excluded.gpus, nodes = excluded.nodes, tasks_per_node = "
      "excluded.tasks_per_node",
      machine.alias.text(), int{machine.is_local}, machine.folder.text(), machine.program.text(),
      int{machine.uses_slurm}, slurm.partition.text(), slurm.account.text(), slurm.time.text(), slurm.gpus, slurm.nodes,
      slurm.tasks_per_node, machine.added_at);
  orders_.put(order_kind::machine, {order_of(machine)});
}

void MachineStore::remove(const MachineAlias& alias) {
  orders_.remove(order_kind::machine, alias.text());
  project_.run("DELETE FROM machines WHERE alias = ?", alias.text());
}

std::vector<MachineInFile> MachineStore::machines_in_file() {
  std::vector<MachineInFile> machines;
  Statement rows(project_,
                 "SELECT alias, is_local, folder, program, uses_slurm, partition, account, time_limit, gpus, nodes, "
                 "tasks_per_node FROM machines LIMIT 1000");  // nobody has more; a stranger's file may
  while (rows.step()) {
    if (orders_.find(order_kind::machine, rows.text(0))) continue;
    machines.push_back({.alias = rows.text(0),
                        .folder = rows.text(2),
                        .program = rows.text(3),
                        .partition = rows.text(5),
                        .account = rows.text(6),
                        .time = rows.text(7),
                        .gpus = std::clamp<std::int64_t>(rows.integer(8), 0, 64),
                        .nodes = std::clamp<std::int64_t>(rows.integer(9), 0, 4096),
                        .tasks_per_node = std::clamp<std::int64_t>(rows.integer(10), 0, 64),
                        .is_local = rows.integer(1) != 0,
                        .uses_slurm = rows.integer(4) != 0});
  }
  Statement runs(project_,
                 "SELECT alias, uid, kind, name, request, sent, is_started FROM far_runs WHERE is_over = 0 ORDER BY "
                 "asked_at, uid LIMIT 10000");
  std::map<std::string, MachineInFile*> by_alias;
  for (MachineInFile& machine : machines) by_alias[machine.alias] = &machine;
  while (runs.step())
    if (const auto found = by_alias.find(runs.text(0)); found != by_alias.end())
      found->second->open_runs.push_back(
          {runs.text(1), runs.text(2), runs.text(3), runs.text(4), runs.text(5), runs.integer(6) != 0});
  std::ranges::sort(machines,
                    [](const MachineInFile& a, const MachineInFile& b) { return naturally_before(a.alias, b.alias); });
  return machines;
}

Machine MachineStore::adopt(const MachineInFile& shown) {
  const std::vector<MachineInFile> now = machines_in_file();
  if (std::ranges::find(now, shown) == now.end())
    throw StorageError("the project's file says something else of the machine by now: look at it again");
  const auto checked = [&]<class Text>(Text& into, const std::string& text) {
    if (const std::string why = Text::refused(text); !why.empty())
      throw StorageError("the machine can't be adopted: " + why);
    into = *Text::from(text);
  };
  Machine machine{.is_local = shown.is_local, .uses_slurm = shown.uses_slurm, .added_at = unix_now()};
  checked(machine.alias, shown.alias);
  checked(machine.folder, shown.folder);
  checked(machine.program, shown.program);
  checked(machine.slurm.partition, shown.partition);
  checked(machine.slurm.account, shown.account);
  checked(machine.slurm.time, shown.time);
  machine.slurm.gpus = shown.gpus;
  machine.slurm.nodes = shown.nodes;
  machine.slurm.tasks_per_node = shown.tasks_per_node;
  std::vector<Order> started;
  for (const MachineInFile::Started& run : shown.open_runs) {
    const auto uid = Uid::from(run.uid);
    if (!uid || !run.is_started) continue;
    const std::string request = to_follow(run.request);
    started.push_back(order_of({.uid = *uid,
                                .alias = machine.alias,
                                .kind = run.kind,
                                .name = bounded(run.name, longest_name),
                                .request = request,
                                .shown = request,
                                .sent = nests_deep(run.sent) ? "" : run.sent,
                                .asked_at = unix_now(),
                                .is_started = true}));
  }
  orders_.put(order_kind::far_run, started);
  orders_.put(order_kind::machine, {order_of(machine)});
  return machine;
}

void MachineStore::heard(const MachineAlias& alias, double at, const std::string& facts) {
  project_.run(
      "UPDATE machines SET heard_at = ?, lost_at = NULL, lost_why = NULL, facts = CASE WHEN ?2 = '' THEN facts ELSE "
      "?2 END WHERE alias = ?3",
      at, facts, alias.text());
}

void MachineStore::lost(const MachineAlias& alias, double at, const std::string& why) {
  project_.run("UPDATE machines SET lost_at = coalesce(lost_at, ?), lost_why = ? WHERE alias = ?", at,
               bounded(why, longest_line), alias.text());
}

std::vector<FarRun> MachineStore::add_runs(std::vector<FarRun> runs) {
  std::vector<Order> orders;
  Transaction all(project_);
  for (FarRun& run : runs) {
    run.asked_at = unix_now();
    run.name = bounded(run.name, longest_name);
    project_.insert("INTO far_runs", "uid, alias, kind, name, request, sent, state, asked_at, is_started, is_over",
                    run.uid.text(), run.alias.text(), run.kind, run.name, run.shown, run.sent, run.state, run.asked_at,
                    int{run.is_started}, int{run.is_over});
    orders.push_back(order_of(run));
  }
  all.commit();
  orders_.put(order_kind::far_run, orders);  // last: an order without its row would be carried out unseen
  return runs;
}

std::vector<FarRun> MachineStore::open_runs() {
  std::vector<FarRun> runs;
  for (const Order& order : orders_.all(order_kind::far_run))
    if (auto run = far_run_in(order); run && !run->is_over) runs.push_back(std::move(*run));
  std::ranges::sort(runs, [](const FarRun& a, const FarRun& b) {
    return std::pair(a.asked_at, a.uid.text()) < std::pair(b.asked_at, b.uid.text());
  });
  return runs;
}

std::optional<FarRun> MachineStore::far_run(const Uid& uid) {
  const auto text = orders_.find(order_kind::far_run, uid.text());
  return text ? far_run_in({uid.text(), *text}) : std::nullopt;
}

void MachineStore::update(const FarRun& run) {
  project_.run("UPDATE far_runs SET request = ?, state = ?, is_started = ?, is_over = ? WHERE uid = ?", run.shown,
               run.state, int{run.is_started}, int{run.is_over}, run.uid.text());
  orders_.put(order_kind::far_run, {order_of(run)});
}

void MachineStore::add_member(RunId run, const Uid& far_uid) {
  project_.insert("OR REPLACE INTO far_members", "run_id, far_uid", run, far_uid.text());
}

std::vector<RunId> MachineStore::members(const Uid& far_uid) {
  return project_.integers("SELECT run_id FROM far_members WHERE far_uid = ? ORDER BY run_id", far_uid.text());
}

std::optional<FarPlace> MachineStore::place_of(RunId run) {
  Statement row(
      project_,
      "SELECT far_runs.alias, far_runs.uid, machines.lost_at FROM far_members JOIN far_runs ON far_runs.uid = "
      "far_members.far_uid LEFT JOIN machines ON machines.alias = far_runs.alias WHERE far_members.run_id = ?",
      run);
  if (!row.step()) return std::nullopt;
  return FarPlace{row.text(0), row.text(1), row.real(2)};
}

std::optional<FarRun> MachineStore::far_run_of(RunId run) {
  const auto known = place_of(run);
  const auto uid = known ? Uid::from(known->far_uid) : std::nullopt;
  return uid ? far_run(*uid) : std::nullopt;
}

}  // namespace stepladder
