// `stepladder operators`: prints the step profile of one run, or the kinds of several side by side. Times are scaled to
// the run's measured step (`fit_to_step`); the column of changes appears only for two comparable profiles.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>

#include "app/cli/commands.h"
#include "app/exit_status.h"
#include "app/runs/find_run.h"
#include "app/runs/open_store.h"
#include "app/text/format.h"
#include "app/text/verdict_text.h"
#include "storage/analysis/step_profile.h"
#include "storage/wording.h"

namespace stepladder {
namespace {

struct OperatorsOptions {
  std::vector<std::string> runs;
  bool shapes = false;
};

struct ProfiledRun {
  Run run;
  FittedProfile fitted;
};

// Operators below this share of a step are summed in one line.
constexpr double least_share = 0.005;

Json operators_json(const ProfiledRun& profiled) {
  const StepProfile& profile = profiled.fitted.profile;
  const KindTimes times(profile);
  Json kinds = Json::array();
  for (const OperatorKind kind : kinds_in({&times, 1}))
    kinds.push_back({{"kind", to_string(kind)}, {"ms", times.of(kind)}});
  Json rows = Json::array();
  for (const OperatorTime& each : profile.operators) {
    rows.push_back({{"part", each.part},
                    {"name", each.name},
                    {"shapes", each.shapes},
                    {"kind", to_string(kind_of(each))},
                    {"calls", each.calls},
                    {"self_ms", each.self_ms},
                    {"flops", number(each.flops)}});
  }
  return {{"id", profiled.run.id},
          {"name", profiled.run.name},
          {"steps", profile.steps},
          {"step_ms", profile.steps > 0 ? Json(step_ms(profile)) : Json()},
          {"profiled_ms", number(profiled.fitted.profiled_ms)},
          {"measured_ms", number(profiled.fitted.measured_ms)},
          {"comparable", profiled.fitted.is_comparable},
          {"kinds", kinds},
          {"operators", rows}};
}

std::string heading(const ProfiledRun& profiled) {
  return fmt::format("run {}, {}", profiled.run.id, profiled.run.name);
}

std::string operators_text(const ProfiledRun& profiled, bool shapes) {
  const StepProfile& profile = profiled.fitted.profile;
  const double whole = step_ms(profile);
  std::vector<std::vector<std::string>> cells{{"part", "operator", "calls", "a step", "share", "FLOP/s"}};
  std::vector<bool> right{false, false, true, true, true, true};
  if (shapes) {
    cells.front().emplace_back("shapes");
    right.push_back(false);
  }
  std::size_t small = 0;
  double small_ms = 0;
  for (const OperatorTime& each : shapes ? profile.operators : by_name(profile)) {
    if (!shapes && each.self_ms < least_share * whole) {
      ++small;
      small_ms += each.self_ms;
      continue;
    }
    cells.push_back({each.part, title_of(each), each.calls > 0 ? compact(each.calls) : "-",
                     milliseconds_text(each.self_ms), percent_text(each.self_ms / whole), flop_rate_text(each)});
    if (shapes) cells.back().push_back(each.shapes);
  }
  std::string notes;
  if (const std::string fit = fit_text(profiled.fitted); !fit.empty()) notes += fit + "\n";
  if (small > 0) notes += fmt::format("{} smaller operators: {} (--shapes: all)\n", small, milliseconds_text(small_ms));
  return notes_text(fmt::format("{}: {} of {}, operator by operator", heading(profiled),
                                profiled.fitted.is_comparable ? "the median step" : "a profiled step",
                                milliseconds_text(whole))) +
         table(cells, right) + notes_text(notes);
}

// A row for each kind, a column for each run; for two runs the change.
std::string kinds_text(const std::vector<ProfiledRun>& runs) {
  std::vector<std::string> head{""};
  for (const ProfiledRun& each : runs) head.push_back(fmt::format("run {}", each.run.id));
  const bool compares = std::ranges::all_of(runs, [](const ProfiledRun& each) { return each.fitted.is_comparable; });
  const bool has_change = runs.size() == 2 && compares;
  if (has_change) head.emplace_back("change");
  std::vector<std::vector<std::string>> cells{head};
  std::vector<bool> right(head.size(), true);
  right.front() = false;
  const auto change = [](double ms) { return (ms < 0 ? "-" : "+") + milliseconds_text(std::fabs(ms)); };
  const auto add = [&](std::string_view title, const std::vector<double>& ms) {
    std::vector<std::string> line{std::string(title)};
    for (const double each : ms) line.push_back(milliseconds_text(each));
    if (has_change) line.push_back(change(ms[1] - ms[0]));
    cells.push_back(std::move(line));
  };
  std::vector<KindTimes> times;
  std::vector<double> whole;
  for (const ProfiledRun& each : runs) {
    times.emplace_back(each.fitted.profile);
    whole.push_back(step_ms(each.fitted.profile));
  }
  for (const OperatorKind kind : kinds_in(times)) {
    std::vector<double> ms;
    for (const KindTimes& each : times) ms.push_back(each.of(kind));
    add(to_string(kind), ms);
  }
  add("a step", whole);
  std::string text;
  for (const ProfiledRun& each : runs) {
    const std::string fit = fit_text(each.fitted);
    text += heading(each) + (fit.empty() ? "" : ". " + fit) + "\n";
  }
  return notes_text(text) + "\n" + table(cells, right);
}

int operators(const OperatorsOptions& options, const CommonOptions& common) {
  RunStore store = open_existing(common.database);
  std::vector<ProfiledRun> runs;
  for (Run& run : find_runs(store, options.runs)) {
    const Summary summary = store.summary(run);
    FittedProfile fitted = fit_to_step(store.recordings().profile(run.id),
                                       store.recordings().mean_parts(run, summary.warmup_steps), summary.dt_ms_median);
    runs.push_back({std::move(run), std::move(fitted)});
  }
  if (common.json) {
    print(json_list(runs, operators_json));
    return exit_done;
  }
  std::erase_if(runs, [](const ProfiledRun& each) {
    if (each.fitted.profile.steps > 0) return false;
    std::cerr << "stepladder: run " << each.run.id << " has no profile: " << why_no_profile(each.run)
              << (each.run.source == "launched"
                      ? fmt::format("; `stepladder profile run {}` traces its recipe", each.run.id)
                      : "")
              << "\n";
    return true;
  });
  if (runs.empty()) return exit_failed;
  std::cout << (runs.size() == 1 ? operators_text(runs.front(), options.shapes) : kinds_text(runs));
  return exit_done;
}

}  // namespace

Subcommand operators_command(CLI::App& app, CommonOptions& common) {
  auto options = std::make_shared<OperatorsOptions>();
  CLI::App* command = add_with_json(app, common, "operators",
                                    "The time of each operator in a run's steps; for several runs, the change");
  command->add_option("runs", options->runs, runs_help)->required();
  command->add_flag("--shapes", options->shapes, "List every operator, products by their shapes");
  return {command, [options, &common] { return operators(*options, common); }};
}

}  // namespace stepladder
