// Asks a machine three questions (report, slurm, stepladder) and turns the answers, or ssh's error, into checks that
// end with a remedy. All text comes from another machine, so it is bounded and made harmless here.
#include "app/machines/machine_check.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "app/text/format.h"
#include "storage/bounded_text.h"
#include "storage/importers/journal/journal_reader.h"
#include "storage/json_values.h"

namespace stepladder {
namespace {

using Result = MachineCheck::Result;

constexpr std::size_t most_listed = 64;
constexpr double worth_saying_s = 2;
constexpr std::int64_t little_disk = std::int64_t{1} << 30;

std::string said(const Json& object, const char* name) {
  return bounded(harmless(text_in(object, name)), 300);
}

// The objects of a list, a bounded number of them.
std::vector<Json> listed(const Json& object, const char* name) {
  std::vector<Json> objects;
  const auto list = object.find(name);
  if (list == object.end() || !list->is_array()) return objects;
  for (const Json& each : *list)
    if (each.is_object() && objects.size() < most_listed) objects.push_back(each);
  return objects;
}

void take_hello(const Json& hello, MachineReport& report) {
  report.host = said(hello, "host");
  report.platform = said(hello, "system") + " " + said(hello, "arch");
  report.home = said(hello, "home");
  report.folder = said(hello, "folder");
  report.is_writable = hello.value("writable", Json()) == Json(true);
  report.why_not_writable = said(hello, "why");
}

void take_state(const Json& ok, MachineReport& report) {
  report.load = number_in(ok, "load");  // a mean over a minute
  report.cores = integer_in(ok, "cores");
  report.memory_bytes = integer_in(ok, "memory_total");
  report.free_memory_bytes = integer_in(ok, "memory_free");
  report.free_disk_bytes = integer_in(ok, "disk_free");
  report.logout_kills.reset();
  if (const auto logout = ok.find("logout"); logout != ok.end() && logout->is_object()) {
    const Json kills = logout->value("kills", Json());
    if (kills.is_boolean()) report.logout_kills = kills == Json(true) && logout->value("lingers", Json()) != Json(true);
  }
  report.no_gpu_because = said(ok, "gpu_reason");
  report.gpus.clear();
  for (const Json& gpu : listed(ok, "gpus"))
    report.gpus.push_back({.name = said(gpu, "name"),
                           .load = number_in(gpu, "load"),
                           .memory_bytes = integer_in(gpu, "memory"),
                           .all_memory_bytes = integer_in(gpu, "memory_total")});
}

void take_slurm(const Json& ok, MachineReport& report) {
  report.has_slurm = ok.value("available", Json()) == Json(true);
  report.slurm_version = said(ok, "version");
  report.slurm_keeps_accounts = ok.value("accounting", Json()) == Json(true);
  report.no_slurm_because = said(ok, "reason");
  report.partitions.clear();
  for (const Json& partition : listed(ok, "partitions"))
    report.partitions.push_back({.name = said(partition, "name"),
                                 .is_default = partition.value("default", Json()) == Json(true),
                                 .time_limit = said(partition, "time_limit"),
                                 .nodes = integer_in(partition, "nodes"),
                                 .idle_nodes = integer_in(partition, "idle"),
                                 .allocated_nodes = integer_in(partition, "allocated"),
                                 .gpus = integer_in(partition, "gpus"),
                                 .running_jobs = integer_in(partition, "running", -1),
                                 .pending_jobs = integer_in(partition, "pending", -1)});
  report.running_jobs = integer_in(ok, "running", -1);
  report.pending_jobs = integer_in(ok, "pending", -1);
  // The machine's clock may be wrong, but the age of the answer isn't.
  const double age_s = number_in(ok, "now") - number_in(ok, "time");
  report.queue_read_at = unix_now() - std::max(0.0, is_missing(age_s) ? 0 : age_s);
}

std::string partitions_text(const std::vector<MachinePartition>& partitions) {
  std::string all;
  for (const MachinePartition& each : partitions)
    all += (all.empty() ? "" : ", ") + each.name + " (" + std::to_string(each.idle_nodes) + " of " +
           std::to_string(each.nodes) + " nodes idle)";
  return all;
}

std::string slurm_text(const MachineReport& report) {
  if (!report.has_slurm) return "none: " + report.no_slurm_because;
  std::string text = report.slurm_version + ", partitions " + partitions_text(report.partitions);
  if (const std::string queue = queue_text(report); !queue.empty()) text += "; " + queue;
  return text + (report.slurm_keeps_accounts ? "" : "; accounting is off");
}

MachineCheck logout_check(const MachineReport& report) {
  if (!report.logout_kills) return {"Logout", Result::good, "no systemd-logind that ends programs was found"};
  if (!*report.logout_kills) return {"Logout", Result::good, "programs there go on after a logout"};
  return {"Logout", Result::warning,
          "systemd-logind ends your programs there at a logout (KillUserProcesses=yes), so runs end with the "
          "connection: `loginctl enable-linger` there prevents it, or `machines add --slurm` if it is a cluster"};
}

std::string gpus_text(const std::vector<MachineGpu>& gpus) {
  std::vector<std::string> texts;
  for (const MachineGpu& gpu : gpus) {
    std::string text = gpu.name;
    if (!is_missing(gpu.load)) text += ", " + percent_text(gpu.load) + " busy";
    if (gpu.all_memory_bytes > 0)
      text += ", " + bytes_text(double(gpu.memory_bytes)) + " of " + bytes_text(double(gpu.all_memory_bytes));
    texts.push_back(text);
  }
  std::string all;
  for (const std::string& text : texts) all += (all.empty() ? "" : "; ") + text;
  return all;
}

}  // namespace

std::string explained(const std::string& why, const std::string& alias) {
  struct Known {
    const char* part;
    std::string remedy;
  };
  const Known all[] = {
      {"Could not resolve hostname", "No host has this name: is there a `Host " + alias + "` in ~/.ssh/config?"},
      {"Permission denied",
       "It doesn't accept your key: `ssh-copy-id " + alias + "` gives it one, `ssh-add` unlocks yours."},
      {"Host key verification failed",
       "Its host key isn't known here, or has changed: run `ssh " + alias + "` once and compare it."},
      {"Connection refused", "It is there, but nothing listens for ssh: is sshd running, and is the port right?"},
      {"Connection timed out", "Nothing answers: is the machine on, and does it need a VPN or a ProxyJump?"},
      {"No route to host", "No network leads there: is a VPN needed?"},
      {"ssh' cannot be started", "OpenSSH's client isn't installed here."},
      {"Too many authentication failures",
       "ssh offers too many keys: set IdentityFile and IdentitiesOnly in ~/.ssh/config."},
      {"aren't Stepladder's",
       "Something else writes into the connection: look at what `ssh " + alias +
           " true` prints. It is tried again ever more rarely, at last every quarter of an hour; `machines check " +
           alias + "` tries it at once."},
      {"No space left",
       "Its disk is full: make room, or choose another folder with `machines add " + alias + " --folder`."},
      {"Read-only file system",
       "Its home can't be written: choose another folder with `machines add " + alias + " --folder`."},
      {"Disk quota exceeded",
       "Your quota there is used up: make room, or choose another folder with `machines add " + alias + " --folder`."}};
  for (const Known& known : all)
    if (why.find(known.part) != std::string::npos) return why + (why.ends_with('.') ? " " : ". ") + known.remedy;
  return why;
}

std::string queue_text(const MachineReport& report) {
  if (report.running_jobs < 0 || report.pending_jobs < 0) return {};
  return plural(report.running_jobs, "job") + " running, " + grouped(report.pending_jobs) + " waiting, as of " +
         local_time_text(report.queue_read_at);
}

void ask_for_report(Link& link, MachineReport& report) {
  report.is_reachable = true;
  take_hello(link.hello(), report);
  report.is_complete = false;
  const auto open = std::make_shared<int>(3);
  const auto answered = [open, &report] { report.is_complete = --*open == 0; };
  const std::string& given = link.machine().program.text();
  const std::string program = given.empty() ? "stepladder" : given;
  link.ask(
      "report", Json::object(),
      [answered, &report](const Json& ok, const std::string& error) {
        if (error.empty()) {
          take_state(ok, report);
          // The time on the way is half of that between question and answer: negligible here.
          report.clock_ahead_s = number_in(ok, "time") - unix_now();
        }
        answered();
      },
      Link::WhenLost::fail);
  link.ask(
      "slurm", Json::object(),
      [answered, &report](const Json& ok, const std::string& error) {
        if (error.empty()) take_slurm(ok, report);
        answered();
      },
      Link::WhenLost::fail);
  link.ask(
      "stepladder", {{"program", program}},
      [answered, &report](const Json& ok, const std::string& error) {
        if (error.empty()) report.version = said(ok, "version");
        answered();
      },
      Link::WhenLost::fail);
}

MachineReport unreachable(const Link& link) {
  MachineReport report;
  const std::string why = link.why().empty() ? "it hasn't answered yet" : link.why();
  report.reason = link.machine().is_local ? why : explained(why, link.machine().alias.text());
  report.is_reachable = report.is_complete = link.lacks_program();
  return report;
}

std::vector<MachineCheck> checks_of(const MachineReport& report, const Machine& machine) {
  if (!report.is_reachable) {
    std::vector<MachineCheck> checks = {{"Connection", Result::bad, report.reason}};
    for (const char* name : {"Folder", "Clock", "Machine", "GPUs", "Slurm", "Stepladder"})
      checks.push_back({name, Result::not_tried, ""});
    return checks;
  }
  const std::string& alias = machine.alias.text();
  std::vector<MachineCheck> checks = {
      {"Connection", Result::good, report.host + ", " + report.platform + "; the far program is there and verified"}};
  const bool has_room = report.free_disk_bytes > little_disk;
  checks.push_back({"Folder",
                    !report.is_writable ? Result::bad
                    : has_room          ? Result::good
                                        : Result::warning,
                    !report.is_writable ? report.folder + " can't be written: " + report.why_not_writable +
                                              ". Choose another one with `machines add " + alias + " --folder`."
                                        : report.folder + ", " + bytes_text(double(report.free_disk_bytes)) + " free"});
  const bool is_off = std::abs(report.clock_ahead_s) > worth_saying_s;
  checks.push_back({"Clock", is_off ? Result::warning : Result::good,
                    is_missing(report.clock_ahead_s) ? "not known"
                    : is_off                         ? duration_text(std::abs(report.clock_ahead_s)) +
                                   (report.clock_ahead_s > 0 ? " ahead of" : " behind") +
                                   " this machine's; steps keep that machine's times"
                             : "agrees with this machine's"});
  checks.push_back({"Machine", Result::good,
                    std::to_string(report.cores) + " cores, " +
                        (is_missing(report.load) ? "load not known" : "load " + compact(report.load)) + "; " +
                        bytes_text(double(report.free_memory_bytes)) + " of " +
                        bytes_text(double(report.memory_bytes)) + " memory free"});
  checks.push_back(
      {"GPUs", Result::good, report.gpus.empty() ? "none: " + report.no_gpu_because : gpus_text(report.gpus)});
  const bool lacks_slurm = machine.uses_slurm && !report.has_slurm;
  checks.push_back({"Slurm", lacks_slurm ? Result::bad : Result::good, slurm_text(report)});
  if (!machine.uses_slurm) checks.push_back(logout_check(report));
  checks.push_back({"Stepladder", report.version.empty() ? Result::warning : Result::good,
                    report.version.empty() ? "not installed, which `ladder --on` and `train --on` need (`watch --on` "
                                             "doesn't): `machines setup " +
                                                 alias + "` installs it"
                                           : report.version});
  return checks;
}

}  // namespace stepladder
