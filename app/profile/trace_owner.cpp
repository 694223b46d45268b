// A run comes into question if the trace was taken while it trained, or if its log is one of few in the trace's folder.
// Runs of other hosts, other hardware or another model don't. Figures are imported too, and their times are those of
// the import, so only runs with a host count.
#include "app/profile/trace_owner.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <span>
#include <tuple>

#include "app/host/environment.h"
#include "app/text/format.h"
#include "storage/analysis/kernel_kind.h"
#include "storage/analysis/recipe_facts.h"
#include "storage/analysis/step_profile.h"
#include "storage/json_values.h"
#include "storage/wording.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

constexpr double clocks_differ_s = 2;
constexpr std::size_t most_in_folder = 3;  // a folder with more logs says nothing about one of them

struct Where {
  std::set<std::string> hosts;  // that trained it
  fs::path folder;              // in which it was started
  std::int64_t pid = 0;         // of a watched program, whose run belongs to its keeper
};

Where where(const Run& run) {
  Where found;
  const Json environment = Json::parse(run.environment, nullptr, false);
  if (!environment.is_object()) return found;
  if (const std::string host = text_in(environment, "host"); !host.empty()) found.hosts.insert(host);
  if (const auto hosts = environment.find("hosts"); hosts != environment.end() && hosts->is_array()) {
    for (const Json& host : *hosts)
      if (host.is_string()) found.hosts.insert(host.get<std::string>());
  }
  found.pid = integer_in(environment, "program_pid");
  const std::string cwd = text_in(environment, "cwd");
  found.folder = cwd.empty() ? text_in(environment, "folder") : cwd;
  return found;
}

bool is_below(const fs::path& file, const fs::path& folder) {
  if (folder.empty() || file.empty()) return false;
  const fs::path inner = file.lexically_normal().lexically_relative(folder.lexically_normal());
  return !inner.empty() && *inner.begin() != "..";
}

bool is_during(const Run& run, const TraceOrigin& origin) {
  const double from = is_missing(run.started_at) ? run.created_at : run.started_at;
  if (is_missing(origin.began_at) || is_missing(from) || from > origin.began_at + clocks_differ_s) return false;
  if (!is_over(run.status)) return true;
  return !is_missing(run.ended_at) && origin.ended_at < run.ended_at + clocks_differ_s;
}

bool differ(std::int64_t one, std::int64_t other) {
  return one > 0 && other > 0 && one != other;
}

bool have_other_devices(const ProfileFacts& one, const ProfileFacts& other, const HardwareTable& hardware) {
  return (one.on_gpu && other.on_gpu && *one.on_gpu != *other.on_gpu) || hardware.differ(one.hardware, other.hardware);
}

bool have_other_models(const ProfileFacts& one, const ProfileFacts& other) {
  return differ(one.layers, other.layers) || differ(one.d_model, other.d_model);
}

std::string device_of(const ProfileFacts& facts) {
  if (!facts.hardware.empty()) return facts.hardware;
  return *facts.on_gpu ? "a GPU" : "a CPU";
}

std::string model_of(const ProfileFacts& facts) {
  return plural(facts.layers, "layer") + (facts.d_model > 0 ? fmt::format(" of {}", grouped(facts.d_model)) : "");
}

std::string numbers(const std::vector<RunId>& runs) {
  constexpr std::size_t most = 5;
  const std::size_t left = runs.size() - std::min(most, runs.size());
  const std::span<const RunId> named(runs.data(), runs.size() - left);
  return fmt::format("{} {}{}", runs.size() == 1 ? "run" : "runs", fmt::join(named, ", "),
                     left > 0 ? fmt::format(" and {} more", left) : "");
}

}  // namespace

ProfileFacts facts_of(const Run& run) {
  ProfileFacts facts{.name = run.name, .hardware = run.hardware};
  if (run.device == "cpu" || run.device == "cuda") facts.on_gpu = run.device == "cuda";
  const RecipeFacts recipe = recipe_facts(run);
  facts.layers = recipe.layers;
  facts.d_model = recipe.d_model;
  return facts;
}

ProfileFacts facts_of(const StoredTrace& trace, const Run* run) {
  Run traced;
  traced.recipe = trace.recipe;
  if (run) traced = *run;
  ProfileFacts facts = facts_of(traced);
  facts.name = trace.name;
  if (!trace.hardware.empty()) facts.hardware = trace.hardware;
  if (trace.profile.on_gpu) facts.on_gpu = true;
  facts.is_whole_trace = !trace.profile.has_steps;
  return facts;
}

std::string unlike_text(const ProfileFacts& before, const ProfileFacts& after, const HardwareTable& hardware) {
  std::vector<std::string> why;
  if (before.is_whole_trace != after.is_whole_trace) {
    const auto& [whole, step] = before.is_whole_trace ? std::tie(before, after) : std::tie(after, before);
    why.push_back(fmt::format("{} is a whole trace, {} one step", whole.name, step.name));
  }
  if (have_other_devices(before, after, hardware))
    why.push_back(fmt::format("{} ran on {}, {} on {}", before.name, device_of(before), after.name, device_of(after)));
  if (have_other_models(before, after))
    why.push_back(fmt::format("{} has {}, {} has {}", before.name, model_of(before), after.name, model_of(after)));
  return why.empty() ? "" : fmt::format("These two aren't alike, so neither is better: {}.", fmt::join(why, "; "));
}

TraceOwner owner_of(RunStore& store, const StoredTrace& trace) {
  TraceOwner owner;
  std::vector<RunId> same_process, same_place, during, beside;
  const fs::path file = trace.source_path;
  const HardwareTable hardware = HardwareTable::load(assets_folder());
  const ProfileFacts traced = facts_of(trace, nullptr);
  for (const Run& run : store.runs()) {
    const ProfileFacts trained = facts_of(run);
    if (have_other_devices(traced, trained, hardware) || have_other_models(traced, trained)) continue;
    if (!file.empty() && !run.source_path.empty() && fs::path(run.source_path).parent_path() == file.parent_path())
      beside.push_back(run.id);
    const Where place = where(run);
    if (place.hosts.empty() || !is_during(run, trace.origin)) continue;
    if (!trace.origin.host.empty() && !place.hosts.contains(trace.origin.host)) continue;
    during.push_back(run.id);
    const std::optional<ProcessIdentity> process = store.processes().owner_of(run.id);
    // A process number says nothing on another machine: without a host in its name, a trace counts as of this one.
    const bool is_process = trace.origin.pid > 0 &&
                            (place.pid == trace.origin.pid || (process && process->pid == trace.origin.pid)) &&
                            place.hosts.contains(trace.origin.host.empty() ? this_host() : trace.origin.host);
    if (is_process) same_process.push_back(run.id);
    const bool is_another_process = trace.origin.pid > 0 && place.pid > 0 && !is_process;
    if (!trace.origin.host.empty() && !is_another_process && is_below(file, place.folder)) same_place.push_back(run.id);
  }
  if (same_process.size() == 1) {
    owner.run = same_process.front();
    owner.reason =
        fmt::format("It belongs to run {}: process {} trained it at that time.", *owner.run, trace.origin.pid);
  } else if (same_place.size() == 1 && during.size() == 1) {
    owner.run = same_place.front();
    owner.reason = fmt::format("It belongs to run {}, which trained on {} at that time, in the folder of the trace.",
                               *owner.run, trace.origin.host);
  } else if (!during.empty()) {
    owner.possible = during;
    owner.reason = fmt::format("It may belong to {}, which trained at that time.", numbers(during));
  } else if (!beside.empty() && beside.size() <= most_in_folder) {
    owner.possible = beside;
    owner.reason = fmt::format("It may belong to {}, whose log is in the same folder.", numbers(beside));
  }
  return owner;
}

TraceOwner attach_to_owner(RunStore& store, StoredTrace& trace) {
  if (trace.run) return {};
  TraceOwner owner = owner_of(store, trace);
  if (owner.run) {
    store.traces().attach(trace.id, owner.run);
    trace.run = owner.run;
  }
  return owner;
}

std::string doubt_about(double profiled_step_ms, double run_step_ms) {
  if (is_missing(profiled_step_ms) || !(run_step_ms > 0) || is_comparable(profiled_step_ms, run_step_ms)) return "";
  return "A step of this profile takes " + milliseconds_text(profiled_step_ms) + ", a step of its run " +
         milliseconds_text(run_step_ms) +
         (profiled_step_ms < run_step_ms
              ? ": the run's steps hold time that this profile doesn't, such as other programs, data loading or pauses."
              : ": other programs disturbed it, or the profiler slows this step down.") +
         " It doesn't explain the run's speed.";
}

std::vector<std::string> notes_of(const TraceProfile& profile) {
  std::vector<std::string> notes = profile.notes;
  KindArray sums{};
  std::set<std::int64_t> last;
  for (std::size_t i = 0; i < profile.steps.size(); ++i) {
    for (std::size_t kind = 0; kind < sums.size(); ++kind) sums[kind] += profile.steps[i].ms[kind];
    if (!is_followed(profile.steps, i)) last.insert(profile.steps[i].step);
  }
  if (profile.on_gpu && profile.has_steps && std::ssize(profile.steps) == profile.ranks) {
    notes.emplace_back("The trace holds one step and nothing behind it, so the step ends when its work is done.");
  } else if (profile.on_gpu && profile.has_steps && !last.empty()) {
    notes.push_back(fmt::format(
        "No step follows step {}, which ends when its work is done, or after the CPU's time for it if that is later.",
        fmt::join(last, ", ")));
  }
  const auto mean_of = [&](OperatorKind kind) {
    return sums[static_cast<std::size_t>(kind)] / static_cast<double>(std::max<std::size_t>(profile.steps.size(), 1));
  };
  const auto share = [&](double ms) {
    return milliseconds_text(ms) + " of a step (" + fine_percent_text(ms / mean_step_ms(profile)) + ")";
  };
  if (const double ms = mean_of(OperatorKind::other); ms > 0)
    notes.push_back(share(ms) + " is the time of kernels whose names Stepladder doesn't know: \"other\".");
  double by_launcher = 0;
  for (const TracedOperator& each : profile.operators)
    if (!each.launcher.empty() && !kernel_kind(each.time.name) && kind_of(each) != OperatorKind::other)
      by_launcher += each.time.self_ms;
  if (by_launcher > 0)
    notes.push_back(share(by_launcher) +
                    " has the kind of the operator that launched it: the kernel's name says none.");
  if (const double ms = mean_of(OperatorKind::graph); ms > 0)
    notes.push_back(share(ms) +
                    " is the time of CUDA graphs that the profiler traced as a whole; its option "
                    "--cuda-graph-trace=node shows their kernels.");
  return notes;
}

std::string doubt_about(RunStore& store, const StoredTrace& trace) {
  const std::optional<Run> run = trace.run ? store.run(*trace.run) : std::nullopt;
  return run ? doubt_about(store.traces().step_ms(trace.id), store.summary(*run).dt_ms_median) : "";
}

}  // namespace stepladder
