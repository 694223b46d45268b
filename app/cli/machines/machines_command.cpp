// `stepladder machines`: the ssh hosts and clusters that runs are launched on.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>
#include <memory>

#include "app/cli/commands.h"
#include "app/cli/machines/on_machine.h"
#include "app/cli/table.h"
#include "app/exit_status.h"
#include "app/machines/adoption.h"
#include "app/machines/far_kind.h"
#include "app/machines/far_runs.h"
#include "app/machines/machine_check.h"
#include "app/runs/open_store.h"
#include "app/text/format.h"
#include "storage/bounded_text.h"
#include "storage/by_enum.h"

namespace stepladder {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds poll_patience(100);
constexpr std::chrono::seconds patience_of_questions(150);  // ssh may ask for a password first
constexpr std::chrono::seconds silent_patience(3);

struct MachinesFlags {
  Machine machine;
  std::string alias;
  bool forces = false;
  MachineSetup setup;
};

using Reports = std::map<std::string, MachineReport>;

bool is_done(const Reports& reports, const Machine& machine) {
  const auto report = reports.find(machine.alias.text());
  return report != reports.end() && (!report->second.is_reachable || report->second.is_complete);
}

// Says on stderr which machines haven't answered yet.
void say_who_is_waited_for(FarRuns& runs, const std::vector<Machine>& machines, const Reports& reports) {
  std::string answered;
  for (const Machine& machine : machines) {
    const std::string& name = machine.alias.text();
    if (is_done(reports, machine))
      answered += (answered.empty() ? "" : ", ") + name;
    else
      std::cerr << "stepladder: waiting for " << name << ": "
                << (runs.link(machine).is_up() ? "it is connected, and has not reported" : "ssh has not answered")
                << " for " << silent_patience.count() << " s\n";
  }
  std::cerr << "stepladder: " << (answered.empty() ? "" : answered + " answered already; ")
            << "Ctrl-C ends the wait and shows what is known" << std::endl;
}

enum class Installs { yes, no };

// Asks all of them at once. Installs::no: only those that have the far program answer.
Reports reports_of(RunStore& store, const std::vector<Machine>& machines, Installs installs) {
  if (machines.empty()) return {};
  FarRuns runs(store, {.report = [](const std::string&) {}}, asks_on_terminal());
  Reports reports;
  const auto give_up = Clock::now() + patience_of_questions;
  auto speaks = Clock::now() + silent_patience;
  for (const Machine& machine : machines)
    if (Link& link = runs.link(machine); installs == Installs::no) link.only_look();
  const auto all_done = [&] {
    return std::ranges::all_of(machines, [&](const Machine& machine) { return is_done(reports, machine); });
  };
  while (!interrupted() && !all_done() && Clock::now() < give_up) {
    runs.poll_links(poll_patience);
    for (const Machine& machine : machines) {
      Link& link = runs.link(machine);
      if (reports.contains(machine.alias.text())) continue;
      if (link.is_up())
        ask_for_report(link, reports[machine.alias.text()]);
      else if (!is_missing(link.lost_at()))
        reports[machine.alias.text()] = unreachable(link);
    }
    if (Clock::now() < speaks || all_done()) continue;
    say_who_is_waited_for(runs, machines, reports);
    speaks = Clock::time_point::max();
  }
  for (const Machine& machine : machines)
    if (!is_done(reports, machine) && !reports[machine.alias.text()].is_reachable)
      reports[machine.alias.text()] = unreachable(runs.link(machine));
  return reports;
}

Json queue_count_or_null(std::int64_t count) {
  return count < 0 ? Json() : Json(count);
}

// The cluster's partitions and the jobs of all users; null without Slurm.
Json queue_json(const MachineReport& report) {
  if (!report.has_slurm) return nullptr;
  Json partitions = Json::array();
  for (const MachinePartition& each : report.partitions)
    partitions.push_back({{"partition", each.name},
                          {"default", each.is_default},
                          {"time_limit", text_or_null(each.time_limit)},
                          {"nodes", each.nodes},
                          {"idle_nodes", each.idle_nodes},
                          {"allocated_nodes", each.allocated_nodes},
                          {"gpus", each.gpus},
                          {"running_jobs", queue_count_or_null(each.running_jobs)},
                          {"pending_jobs", queue_count_or_null(each.pending_jobs)}});
  return {{"read_at", number(report.queue_read_at)},
          {"running_jobs", queue_count_or_null(report.running_jobs)},
          {"pending_jobs", queue_count_or_null(report.pending_jobs)},
          {"partitions", partitions}};
}

Json machine_json(const Machine& machine, const MachineReport& report) {
  Json gpus = Json::array();
  for (const MachineGpu& gpu : report.gpus)
    gpus.push_back({{"name", gpu.name},
                    {"load", number(gpu.load)},
                    {"memory_bytes", count_or_null(gpu.memory_bytes)},
                    {"memory_total_bytes", count_or_null(gpu.all_memory_bytes)}});
  std::vector<std::string> partitions;
  for (const MachinePartition& each : report.partitions) partitions.push_back(each.name);
  const bool has_reported = report.is_reachable && report.reason.empty();
  return {{"alias", machine.alias.text()},
          {"reachable", report.is_reachable},
          {"version", text_or_null(report.version)},
          {"gpus", has_reported ? gpus : Json()},
          {"slurm", has_reported ? Json(report.has_slurm) : Json()},
          {"reason", text_or_null(report.reason)},
          {"host", text_or_null(report.host)},
          {"platform", text_or_null(report.platform)},
          {"folder", text_or_null(report.folder)},
          {"disk_free_bytes", count_or_null(report.free_disk_bytes)},
          {"load", number(report.load)},
          {"cores", count_or_null(report.cores)},
          {"clock_ahead_s", number(report.clock_ahead_s)},
          {"partitions", partitions},
          {"queue", has_reported ? queue_json(report) : Json()},
          {"logout_kills", report.logout_kills ? Json(*report.logout_kills) : Json()}};
}

const char* word(MachineCheck::Result result) {
  return by_enum<MachineCheck::Result>("ok", "warning", "failed", "not tried")[result];
}

// Names the machines that came with the project's file.
std::string in_file_text(const std::vector<MachineInFile>& machines) {
  std::string names;
  for (const MachineInFile& machine : machines) names += (names.empty() ? "" : ", ") + harmless(machine.alias);
  if (names.empty()) return {};
  return "the project's file also names " + bounded(names, longest_line) +
         "; nothing connects to them. `stepladder machines adopt NAME` shows what one would do, and makes it yours";
}

int list(const CommonOptions& common) {
  std::optional<RunStore> store = open_to_list(common);
  const std::vector<Machine> machines = store ? store->machines().machines() : std::vector<Machine>();
  const Reports reports = store ? reports_of(*store, machines, Installs::no) : Reports();
  if (common.json) {
    Json json = Json::array();
    for (const Machine& machine : machines) json.push_back(machine_json(machine, reports.at(machine.alias.text())));
    print(json);
    return exit_done;
  }
  if (const std::string came = store ? in_file_text(store->machines().machines_in_file()) : ""; !came.empty())
    std::cerr << "stepladder: " << came << "\n";
  if (machines.empty()) {
    std::cerr << "stepladder: no machines yet; `stepladder machines add ALIAS` adds a host of your ~/.ssh/config\n";
    return exit_done;
  }
  std::vector<std::vector<std::string>> rows = {
      {"machine", "state", "GPUs", "load / cores", "disk free", "Slurm", "Stepladder"}};
  for (const Machine& machine : machines) {
    const MachineReport& report = reports.at(machine.alias.text());
    rows.push_back({machine.alias.text(), report.reason.empty() ? "reachable" : report.reason,
                    report.gpus.empty() ? "-" : std::to_string(report.gpus.size()) + " x " + report.gpus.front().name,
                    is_missing(report.load) ? "-" : compact(report.load) + " / " + std::to_string(report.cores),
                    report.free_disk_bytes > 0 ? bytes_text(double(report.free_disk_bytes)) : "-",
                    report.has_slurm ? report.slurm_version : "-", report.version.empty() ? "-" : report.version});
  }
  std::cout << table(rows, {false, false, false, true, true, false, false});
  return exit_done;
}

int check(const std::string& alias, const CommonOptions& common) {
  RunStore store = open_existing(common.database);
  const Machine machine = find_machine(store, alias);
  const MachineReport report = reports_of(store, {machine}, Installs::yes).at(alias);
  const std::vector<MachineCheck> checks = checks_of(report, machine);
  const bool is_bad =
      std::ranges::any_of(checks, [](const auto& each) { return each.result == MachineCheck::Result::bad; });
  if (common.json) {
    Json json = machine_json(machine, report);
    json["checks"] = Json::array();
    for (const MachineCheck& each : checks)
      json["checks"].push_back({{"name", each.name}, {"result", word(each.result)}, {"text", each.text}});
    print(Json::array({json}));
  } else {
    std::vector<std::vector<std::string>> rows = {{"check", "result", ""}};
    for (const MachineCheck& each : checks) rows.push_back({each.name, word(each.result), each.text});
    std::cout << table(rows, {false, false, false});
  }
  return is_bad ? exit_failed : exit_done;
}

int add(const MachinesFlags& flags, const CommonOptions& common) {
  Machine machine = flags.machine;
  machine.alias = MachineAlias::from(flags.alias).value_or(MachineAlias());
  if (machine.alias.empty()) throw UsageError(MachineAlias::refused(flags.alias));
  machine.uses_slurm = machine.uses_slurm || machine.slurm != SlurmRequest{};
  RunStore store = RunStore::open(common.database);
  const bool is_new = !store.machines().machine(machine.alias);
  store.machines().save(machine);
  if (common.json) {
    print(Json::array({machine_json(machine, {})}));
  } else {
    std::cerr << "stepladder: " << flags.alias << (is_new ? " is added" : " is changed")
              << "; `stepladder machines check " << flags.alias << "` tries it\n";
  }
  return exit_done;
}

// Spells out what it would do before it asks.
int adopt(const MachinesFlags& flags, const CommonOptions& common) {
  RunStore store = open_existing(common.database);
  const std::vector<MachineInFile> known = store.machines().machines_in_file();
  const auto found = std::ranges::find(known, flags.alias, &MachineInFile::alias);
  if (found == known.end())
    throw NotFound("the project's file brought no machine " + harmless(flags.alias),
                   {.code = "no-such-machine",
                    .argument = "alias",
                    .value = flags.alias,
                    .hint = "`stepladder machines` names those that it brought"});
  const bool asks = !flags.setup.is_agreed && ::isatty(STDIN_FILENO) == 1;
  if (!common.json || asks)
    for (const std::string& sentence : adoption_text(*found)) std::cerr << sentence << "\n";
  if (!flags.setup.is_agreed && !asks)
    throw UsageError("--yes is needed to adopt " + harmless(flags.alias),
                     {.code = "missing-argument", .argument = "--yes"});
  if (!flags.setup.is_agreed && !agrees("Adopt " + harmless(flags.alias) + "?")) return exit_failed;
  const Machine machine = store.machines().adopt(*found);
  if (common.json) print(Json::array({machine_json(machine, {})}));
  std::cerr << "stepladder: " << machine.alias.text() << " is yours; `stepladder machines follow` takes in its runs\n";
  return exit_done;
}

int remove(const MachinesFlags& flags, const CommonOptions& common) {
  RunStore store = open_existing(common.database);
  const Machine machine = find_machine(store, flags.alias);
  std::size_t open = 0;
  for (const FarRun& run : store.machines().open_runs()) open += run.alias == machine.alias && has_runs_here(run.kind);
  if (open > 0 && !flags.forces)
    throw UsageError(plural(open, "run") + " at " + flags.alias + " may still have steps that aren't here",
                     {.code = "missing-argument", .argument = "--force", .hint = "--force removes it all the same"});
  store.machines().remove(machine.alias);
  if (common.json) print({{"removed", machine.alias.text()}});
  return exit_done;
}

// Follows everything that was started on machines until it is over, or Ctrl-C.
int follow_machines(const CommonOptions& common) {
  RunStore store = open_existing(common.database);
  if (store.machines().open_runs().empty()) {
    if (common.json)
      print({{"under_way", 0}});
    else
      std::cerr << "stepladder: nothing is under way on a machine\n";
    return exit_done;
  }
  FarRuns runs(store, callbacks_for_terminal(false), asks_on_terminal());
  runs.scan(false);
  while (!interrupted() && !runs.all_over()) runs.poll(poll_patience);
  if (common.json) print({{"under_way", store.machines().open_runs().size()}});
  return interrupted() ? exit_interrupted : exit_done;
}

}  // namespace

Subcommand machines_command(CLI::App& app, CommonOptions& common) {
  auto flags = std::make_shared<MachinesFlags>();
  auto chosen = std::make_shared<std::string>();
  CLI::App* command = add_with_json(app, common, "machines", "Hosts and clusters to run on: list, add, check, set up");
  command->require_subcommand(0, 1);
  const auto verb = [&](const char* name, const char* what, bool needs_alias) {
    CLI::App* sub = command->add_subcommand(name, what);
    sub->fallthrough();
    if (needs_alias) sub->add_option("alias", flags->alias, "Host of ~/.ssh/config, or user@host")->required();
    sub->callback([chosen, name] { *chosen = name; });
    return sub;
  };
  CLI::App* added = verb("add", "Add a machine, or change what it is asked for", true);
  add_checked_option(*added, "--folder", flags->machine.folder,
                     "Folder there, shared by its nodes (default: ~/.stepladder)");
  add_checked_option(*added, "--program", flags->machine.program,
                     "The Stepladder there (default: as its shell finds it)");
  added->add_flag("--local", flags->machine.is_local,
                  "This machine itself, without ssh: for the Slurm of a login node");
  added->add_flag("--slurm", flags->machine.uses_slurm, "What is launched there becomes a Slurm job");
  add_slurm_options(*added, flags->machine.slurm);
  verb("check", "Try it step by step, and explain what fails", true);
  CLI::App* setup = verb("setup", "Install Stepladder there, which ladders need", true);
  add_setup_options(*setup, flags->setup);
  verb("adopt", "Make a machine that came with the project's file one of yours", true)
      ->add_flag("--yes", flags->setup.is_agreed, "Without asking");
  CLI::App* removed = verb("remove", "Forget it; nothing changes there", true);
  removed->add_flag("--force", flags->forces, "Also if runs there may have more steps");
  verb("follow", "Take in steps until all that was started on machines is over", false);
  return {command, [flags, chosen, &common] {
            if (*chosen == "add") return add(*flags, common);
            if (*chosen == "check") return check(flags->alias, common);
            if (*chosen == "setup") return set_up(flags->alias, flags->setup, common);
            if (*chosen == "adopt") return adopt(*flags, common);
            if (*chosen == "remove") return remove(*flags, common);
            if (*chosen == "follow") return follow_machines(common);
            return list(common);
          }};
}

}  // namespace stepladder
