// `stepladder profile run`: trains a few steps of a recipe under LibTorch's profiler, then imports the trace with the
// reader for everybody's traces, so both are judged alike. It records no run.
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/cli/profile/trace_commands.h"
#include "app/cli/profile/trace_report.h"
#include "app/cli/recipe_options.h"
#include "app/exit_status.h"
#include "app/host/machine_load.h"
#include "app/host/scratch_folder.h"
#include "app/import/trace_import.h"
#include "app/profile/trace_owner.h"
#include "app/runs/find_run.h"
#include "app/runs/open_store.h"
#include "app/session/session.h"
#include "engine/metrics_sampler.h"
#include "engine/preparation.h"
#include "engine/stage.h"
#include "engine/step_tracing.h"
#include "storage/database/traces/trace_details.h"

namespace stepladder {
namespace {

struct TraceRunOptions {
  RecipeOptions recipe;
  std::vector<std::string> stages;
  std::string run, name;
  StepTracing asked;
};

// The recipe to trace and the run that it belongs to, if any; checked to be trainable here.
struct Subject {
  std::optional<RunId> run;
  std::string name;
  Recipe recipe;
};

Subject subject_of(const TraceRunOptions& options, const CommonOptions& common, const DeviceReport& report) {
  Subject subject;
  if (options.run.empty()) {
    subject.recipe = prepare(with_absolute_paths(options.recipe.recipe())).recipe;
    apply_stages(subject.recipe, options.stages, report);
    subject.name = default_name(subject.recipe);
    if (!options.stages.empty()) subject.name += ": " + options.stages.back();
    return subject;
  }
  if (options.recipe.any() || !options.stages.empty())
    throw UsageError("a run is traced by its own recipe; give a run or a recipe");
  RunStore store = open_existing(common.database);
  const Run run = find_run(store, options.run);
  if (run.source != "launched")
    throw UsageError("run " + std::to_string(run.id) + " was not launched here, so its whole recipe isn't known");
  subject.run = run.id;
  subject.name = run.name;
  subject.recipe = prepare(recipe_from_json(run.recipe)).recipe;
  return subject;
}

// Writes the trace and reads it back with the importer that reads everybody's.
ReadTrace traced(const StepTracing& asked, const Subject& subject, const DeviceReport& report) {
  const std::string device = report.resolve(subject.recipe.device);
  trace_steps(asked, interrupted);
  TraceFiles written{.name = subject.name, .run = subject.run};
  for (int rank = 0; rank < subject.recipe.nproc; ++rank)
    written.files.push_back(trace_file_of(asked.file, rank).string());
  ReadTrace read = read_traces(written);
  if (device != "cpu" && !read.process.profile.on_gpu)
    throw StorageError("the trace holds no kernel of the GPU: the driver may allow profiling to administrators only (" +
                       std::string("NVreg_RestrictProfilingToAdminUsers)"));
  read.trace.format = own_trace_format;
  read.trace.hardware = report.hardware(device);
  read.trace.precision = precision_name(subject.recipe);
  Recipe recipe = subject.recipe;
  if (recipe.threads == 0) recipe.threads = report.cpu_cores;  // as runs record it
  read.trace.recipe = to_json(recipe);
  read.trace.source_path.clear();  // the file is gone
  return read;
}

int trace_run(TraceRunOptions options, const CommonOptions& common) {
  const DeviceReport report = probe_to_trace();
  const Subject subject = subject_of(options, common, report);
  const ScratchFolder folder("stepladder-trace");
  options.asked.recipe = subject.recipe;
  options.asked.file = folder.path() / "trace.json";
  const std::string device = report.resolve(subject.recipe.device);
  std::cerr << "stepladder: tracing " << options.asked.steps << " steps of " << subject.name << " on "
            << report.hardware(device) << ", after " << options.asked.skipped << " others; no run is recorded\n";
  {
    const MachineLoad load = LoadWatch().wait_and_read();
    const Recipe& recipe = subject.recipe;
    const int threads = recipe.threads > 0 ? recipe.threads : report.cpu_cores;
    if (load.would_disturb(needed_cores(device, threads, recipe.nproc)))
      std::cerr << "stepladder: " << load.text() << ", which disturbs the traced steps\n";
  }
  std::optional<ReadTrace> read;
  try {
    read = traced(options.asked, subject, report);
  } catch (const std::exception& error) {
    if (interrupted()) return report_error(error, exit_interrupted);
    throw;
  }
  if (!options.name.empty()) read->trace.name = options.name;
  RunStore store = RunStore::open(common.database);
  const TraceId id = keep_trace(store.traces(), read->trace, read->process);
  const StoredTrace stored = store.traces().find(id).value();
  if (const std::string doubt = doubt_about(store, stored); !doubt.empty())
    std::cerr << "stepladder: trace " << id << ": " << doubt << "\n";
  return print_as(
      common, [&] { return trace_details_json(stored, store.traces().details().anatomy(id)); },
      [&] { return trace_text(stored, false, false); });
}

}  // namespace

void add_trace_run_command(CLI::App& profile, CommonOptions& common, ChosenCommand& chosen) {
  const auto options = std::make_shared<TraceRunOptions>();
  CLI::App* command = add_with_json(profile, common, "run",
                                    "Trace a few steps of a run's recipe, or of one given here, in a training of its "
                                    "own that records no run");
  command->add_option("run", options->run, "Number or name (default: the recipe of the options below)");
  command->add_option("--stage,--stages", options->stages, "Stages to apply to the recipe")->delimiter(',');
  command->add_option("--name", options->name, "Name of the trace (default: the run's)")->check(short_name());
  command->add_option("--traced", options->asked.steps, "Steps to trace (default 5)")->check(between(1, 1'000));
  command->add_option("--after", options->asked.skipped, "Untraced steps before them (default 3)")
      ->check(between(0, 100'000));
  options->recipe.add_to(*command);
  choose_if_parsed(*command, chosen, options, common, trace_run);
}

}  // namespace stepladder
