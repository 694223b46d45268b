// `stepladder profile import`, `list`, `show`, `diff`, `export` and `remove`: the traces that profilers wrote. A side
// of `diff` is a trace or `run:12`, the step profile of a run. What makes a trace doubtful is printed on stderr.
#include "app/cli/profile/trace_commands.h"

#include <iostream>
#include <memory>

#include "app/cli/profile/trace_report.h"
#include "app/cli/table.h"
#include "app/exit_status.h"
#include "app/figures/export.h"
#include "app/figures/step_trace.h"
#include "app/host/environment.h"
#include "app/profile/roofline_report.h"
#include "app/profile/trace_owner.h"
#include "app/runs/find_run.h"
#include "app/runs/open_store.h"
#include "app/text/format.h"
#include "engine/files/data_error.h"
#include "storage/database/traces/trace_details.h"

namespace stepladder {
namespace {

struct TraceOptions {
  std::vector<std::string> files;
  std::string run, name, trace, out, hardware, precision;
  std::vector<std::string> others;
  std::string format = "chrome";
  std::optional<std::int64_t> step;
  std::optional<int> rank;
  bool again = false, all = false, steps = false, anatomy = false, roofline = false, forces = false;
  Limit limit;
};

void report_doubt(const std::string& what, const std::string& doubt) {
  if (!doubt.empty()) std::cerr << "stepladder: " << what << ": " << doubt << "\n";
}

int run_import(const TraceOptions& options, const CommonOptions& common) {
  const std::optional<StoredTrace> trace =
      import_trace({.files = options.files, .name = options.name}, options.run, options.again, common);
  if (!trace) return exit_interrupted;
  return print_as(
      common,
      [&] { return trace_details_json(*trace, open_existing(common.database).traces().details().anatomy(trace->id)); },
      [&] { return trace_text(*trace, false, false); });
}

// By number, or by a name that only one has.
StoredTrace find_trace(RunStore& store, const std::string& wanted) {
  std::vector<TraceId> found;
  for (const StoredTrace& each : store.traces().list()) {
    if (std::to_string(each.id) == wanted) return store.traces().find(each.id).value();
    if (each.name == wanted) found.push_back(each.id);
  }
  if (found.size() == 1) return store.traces().find(found.front()).value();
  if (found.empty())
    throw NotFound("there is no trace '" + wanted + "'", {.code = "no-such-trace",
                                                          .argument = "trace",
                                                          .value = wanted,
                                                          .hint = "`stepladder profile list` shows them"});
  throw UsageError("several traces are called '" + wanted + "'; give a number");
}

int run_list(const TraceOptions& options, const CommonOptions& common) {
  std::optional<RunStore> store = open_to_list(common);
  std::vector<StoredTrace> traces = store ? store->traces().list() : std::vector<StoredTrace>();
  options.limit.keep_newest(traces, "older trace", common);
  const char* const none = "there are no traces; `stepladder profile import FILE` adds one";
  return print_list(common, traces, trace_json, none, traces_table);
}

int run_show(const TraceOptions& options, const CommonOptions& common) {
  RunStore store = open_existing(common.database);
  const StoredTrace trace = find_trace(store, options.trace);
  const Anatomy anatomy = store.traces().details().anatomy(trace.id);
  report_doubt(fmt::format("trace {}", trace.id), doubt_about(store, trace));
  const Ceiling ceiling = ceiling_of(store, trace, options.hardware, options.precision);
  const std::vector<KindRoofline> kinds = rooflines(trace.profile, ceiling);
  if (common.json) {
    Json all = trace_details_json(trace, anatomy);
    all["roofline"] = roofline_json(kinds, ceiling);
    print(all);
    return exit_done;
  }
  if (options.roofline) {
    std::cout << table(roofline_table(kinds));
    std::cout << "\n" << notes_text(ceiling_text(kinds, ceiling, trace.id));
  } else if (options.anatomy) {
    std::cout << anatomy_text(trace, anatomy, options.all);
  } else {
    std::cout << trace_text(trace, options.all, options.steps);
  }
  return exit_done;
}

// One side of a difference: a trace, or "run:12" for what `operators 12` shows.
struct Side {
  std::string title;
  std::vector<TracedOperator> rows;
  std::string doubt;  // whether it may explain its run's speed
  StepSpread spread;  // of the steps whose mean the rows are
  ProfileFacts facts;
};

Side find_side(RunStore& store, const std::string& wanted) {
  constexpr std::string_view of_run = "run:";
  if (!wanted.starts_with(of_run)) {
    StoredTrace trace = find_trace(store, wanted);
    std::string doubt = doubt_about(store, trace);
    const StepSpread spread = step_spread(trace.profile);
    const std::optional<Run> run = trace.run ? store.run(*trace.run) : std::nullopt;
    ProfileFacts facts = facts_of(trace, run ? &*run : nullptr);
    return {fmt::format("trace {}, {}", trace.id, trace.name), std::move(trace.profile.operators), std::move(doubt),
            spread, std::move(facts)};
  }
  const Run run = find_run(store, wanted.substr(of_run.size()));
  const Summary summary = store.summary(run);
  const FittedProfile fitted =
      fit_to_step(store.recordings().profile(run.id), store.recordings().mean_parts(run, summary.warmup_steps),
                  summary.dt_ms_median);
  if (fitted.profile.steps == 0)
    throw UsageError(fmt::format("run {} has no profile: {}", run.id, why_no_profile(run)));
  return {fmt::format("run {}, {}", run.id, run.name),
          traced(fitted.profile),
          doubt_about(fitted.profiled_ms, fitted.measured_ms),
          {},
          facts_of(run)};
}

int run_several(RunStore& store, const TraceOptions& options, const CommonOptions& common) {
  std::vector<Side> sides{find_side(store, options.trace)};
  for (const std::string& other : options.others) sides.push_back(find_side(store, other));
  std::vector<std::span<const TracedOperator>> rows;
  std::vector<std::string> titles;
  for (const Side& side : sides) {
    rows.emplace_back(side.rows);
    titles.push_back(side.title);
  }
  const SeveralTraces made = beside_each_other(rows);
  print_as(
      common, [&] { return several_json(made, titles); }, [&] { return several_text(made, titles, options.all); });
  for (const Side& side : sides) report_doubt(side.title, side.doubt);
  return exit_done;
}

int run_diff(const TraceOptions& options, const CommonOptions& common) {
  RunStore store = open_existing(common.database);
  if (options.others.size() > 1) return run_several(store, options, common);
  const Side before = find_side(store, options.trace), after = find_side(store, options.others.front());
  const ProfileDifference made = difference(before.rows, after.rows, {before.spread, after.spread});
  print_as(
      common, [&] { return difference_json(made, before.title, after.title); },
      [&] { return difference_text(made, before.title, after.title, options.all); });
  for (const Side* side : {&before, &after}) report_doubt(side->title, side->doubt);
  const std::string unlike = unlike_text(before.facts, after.facts, HardwareTable::load(assets_folder()));
  if (!unlike.empty()) std::cerr << "stepladder: " << unlike << "\n";
  return exit_done;
}

// The kept steps that were asked for, at their places in time.
StepTrace steps_of(RunStore& store, const StoredTrace& trace, const TraceOptions& options) {
  TraceDetails details = store.traces().details();
  StepTrace made{.name = trace.name, .steps = {}};
  std::string kept;
  for (const KeptStepName& each : details.steps(trace.id)) {
    kept += (kept.empty() ? "" : ", ") + std::to_string(each.step);
    if ((options.step && each.step != *options.step) || (options.rank && each.rank != *options.rank)) continue;
    PlacedStep step{.slices = details.slices(trace.id, each.rank, each.step)};
    for (const TracedStep& known : trace.profile.steps)
      if (known.rank == each.rank && known.step == each.step) step.start_ms = known.start_ms;
    made.steps.push_back(std::move(step));
  }
  if (kept.empty())
    throw DataError(fmt::format("trace {} was imported by a version that kept no slices; import it again", trace.id));
  if (made.steps.empty()) throw UsageError("no slices of that step are kept, only of the steps " + kept);
  return made;
}

int run_export(const TraceOptions& options, const CommonOptions& common) {
  RunStore store = open_existing(common.database);
  const StoredTrace trace = find_trace(store, options.trace);
  const StepTrace steps = steps_of(store, trace, options);
  keep_off_database(options.out, common.database);
  keep_existing(options.out, options.forces);
  write_file(options.out, [&](const Sink& sink) {
    options.format == "perfetto" ? write_perfetto_trace(steps, sink) : write_chrome_trace(steps, sink);
  });
  std::int64_t slices = 0;
  for (const PlacedStep& step : steps.steps) slices += slice_count(step.slices);
  if (common.json) {
    print({{"file", options.out}, {"format", options.format}, {"steps", steps.steps.size()}, {"slices", slices}});
  } else {
    std::cerr << "stepladder: wrote " << grouped(slices) << " slices of " << plural(std::ssize(steps.steps), "step")
              << " to " << options.out << "\n";
  }
  return exit_done;
}

int run_attach(const TraceOptions& options, const CommonOptions& common) {
  open_existing(common.database);
  RunStore store = RunStore::open(common.database);
  StoredTrace trace = find_trace(store, options.trace);
  trace.run = options.run == "none" ? std::nullopt : std::optional(find_run(store, options.run).id);
  store.traces().attach(trace.id, trace.run);
  report_doubt(fmt::format("trace {}", trace.id), doubt_about(store, trace));
  if (common.json)
    print(trace_json(trace));
  else
    std::cerr << "stepladder: trace " << trace.id
              << (trace.run ? " belongs to run " + std::to_string(*trace.run) : std::string(" belongs to no run"))
              << "\n";
  return exit_done;
}

int run_remove(const TraceOptions& options, const CommonOptions& common) {
  open_existing(common.database);
  RunStore store = RunStore::open(common.database);
  const TraceId id = find_trace(store, options.trace).id;
  store.traces().remove(id);
  if (common.json) print({{"removed", id}});
  return exit_done;
}

}  // namespace

std::optional<StoredTrace> import_trace(const TraceFiles& files, const std::string& run, bool again,
                                        const CommonOptions& common) {
  struct Interrupted {};
  std::optional<ReadTrace> read;
  try {
    read = read_traces(files, [](double) {
      if (interrupted()) throw Interrupted();
    });
  } catch (const Interrupted&) {
    std::cerr << "stepladder: interrupted; nothing is kept\n";
    return std::nullopt;
  }
  RunStore store = RunStore::open(common.database);
  if (!run.empty()) read->trace.run = find_run(store, run).id;
  std::optional<StoredTrace> known;
  if (!again) known = store.traces().find_same(read->trace, read->process.profile);
  if (known)
    fmt::print(stderr, "stepladder: {} is in the project already (trace {}); --again imports it once more\n",
               harmless(files.files.front()), known->id);
  const TraceId id = known ? known->id : keep_trace(store.traces(), read->trace, read->process);
  for (const std::string& note : read->process.profile.notes) std::cerr << "stepladder: " << harmless(note) << "\n";
  StoredTrace stored = store.traces().find(id).value();
  const TraceOwner owner = known ? TraceOwner{} : attach_to_owner(store, stored);
  if (!owner.reason.empty())
    fmt::print(stderr, "stepladder: trace {}: {}{}\n", id, owner.reason,
               owner.run ? "" : fmt::format(" `stepladder profile attach {} RUN` attaches it", id));
  report_doubt(fmt::format("trace {}", id), doubt_about(store, stored));
  stored.profile.notes = std::move(read->process.profile.notes);
  return stored;
}

void add_trace_commands(CLI::App& profile, CommonOptions& common, ChosenCommand& chosen) {
  const auto options = std::make_shared<TraceOptions>();
  const auto choose = [&](CLI::App* command, auto run) { choose_if_parsed(*command, chosen, options, common, run); };
  CLI::App* import = add_with_json(profile, common, "import",
                                   "Keep where the time goes in a trace of PyTorch's profiler or Nsight Systems");
  import->add_option("file", options->files, "Trace (JSON, .json.gz, .sqlite); of several ranks, one for each")
      ->required();
  import->add_option("--run", options->run, "Run that it was taken of: number or name");
  import->add_flag("--again", options->again, "Also import what is in the project already");
  import->add_option("--name", options->name, "Name (default: that of the file)")->check(short_name());
  choose(import, run_import);
  add_trace_run_command(profile, common, chosen);
  CLI::App* list = add_with_json(profile, common, "list", "List the imported traces");
  options->limit.add_to(*list, "Only the newest, this many");
  choose(list, run_list);
  CLI::App* show = add_with_json(profile, common, "show", "Where the time of a traced step goes");
  show->add_option("trace", options->trace, "Number or name")->required();
  show->add_flag("--all", options->all, "List every row, with its shapes");
  show->add_flag("--steps", options->steps, "List the steps, too");
  show->add_flag("--anatomy", options->anatomy,
                 "The step by parts of the model: embedding, attention, MLP, head, loss; with --all, block by block");
  show->add_flag("--roofline", options->roofline, "How near each kind of work comes to what the device can do");
  show->add_option("--hardware", options->hardware,
                   "Device of the roofline's ceiling (default: the run's or the trace's)");
  show->add_option("--precision", options->precision, "Precision of its peak: fp32, tf32, bf16 ... (default: the same)")
      ->check([](const std::string& text) {
        return precision_from(text) == Precision::unknown ? "is not a precision: " + text : std::string();
      });
  choose(show, run_show);
  CLI::App* diff = add_with_json(profile, common, "diff", "Why one step is faster than another, row by row");
  diff->add_option("before", options->trace, "Trace (number or name), or run:NUMBER")->required();
  diff->add_option("after", options->others, "The same; several: a table of all, and what is new in later ones")
      ->required();
  diff->add_flag("--all", options->all, "List every row");
  choose(diff, run_diff);
  CLI::App* write = add_with_json(profile, common, "export", "Write a trace's kept steps for other viewers");
  write->add_option("trace", options->trace, "Number or name")->required();
  write
      ->add_option("--format", options->format,
                   "chrome: the JSON of PyTorch's profiler, for Perfetto and TensorBoard; perfetto: its own protobuf")
      ->check(one_of({"chrome", "perfetto"}));
  write->add_option("-o,--out,--output", options->out, "File")->required();
  add_force(*write, options->forces);
  write->add_option("--step", options->step, "Only this step")->check(between(0, 4e9));
  write->add_option("--rank", options->rank, "Only this rank")->check(between(0, 1e6));
  choose(write, run_export);
  CLI::App* attach = add_with_json(profile, common, "attach", "Say which run a trace was taken of");
  attach->add_option("trace", options->trace, "Number or name")->required();
  attach->add_option("run", options->run, "Number or name; none detaches it")->required();
  choose(attach, run_attach);
  CLI::App* remove = add_with_json(profile, common, "remove", "Remove an imported trace");
  remove->add_option("trace", options->trace, "Number or name")->required();
  choose(remove, run_remove);
}

}  // namespace stepladder
