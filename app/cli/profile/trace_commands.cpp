#include "app/cli/profile/trace_commands.h"

#include <filesystem>
#include <iostream>
#include <memory>
#include <set>

#include "app/cli/find_run.h"
#include "app/cli/profile/trace_report.h"
#include "app/exit_status.h"
#include "app/open_store.h"
#include "storage/traces/trace_file.h"

namespace stepladder {
namespace {

struct TraceOptions {
  std::vector<std::string> files;
  std::string run, name, trace, other;
  bool all = false, steps = false;
};

// Of all files, one for each rank. Throws StorageError, which names the file.
TraceProfile read_ranks(const std::vector<std::string>& files, std::string& format) {
  std::vector<TraceProfile> ranks;
  std::set<int> known;
  for (const std::string& file : files) {
    try {
      Trace trace = read_trace(file);
      if (trace.rank < 0) trace.rank = static_cast<int>(ranks.size());
      if (files.size() > 1 && !known.insert(trace.rank).second)
        throw TraceError("is of rank " + std::to_string(trace.rank) +
                         ", as another file is; import traces of different runs one by one");
      format = trace.format;
      ranks.push_back(attribute(trace));
    } catch (const TraceError& error) {
      throw StorageError(file + " " + error.what());
    }
  }
  return ranks.size() == 1 ? std::move(ranks.front()) : join_ranks(std::move(ranks));
}

int run_import(const TraceOptions& options, const CommonOptions& common) {
  StoredTrace trace;
  trace.profile = read_ranks(options.files, trace.format);
  const std::filesystem::path first(options.files.front());
  trace.name = options.name;
  if (trace.name.empty()) {
    trace.name = first.filename().string();
    for (const std::string_view ending : {".gz", ".json", ".pt.trace", ".sqlite"}) {
      if (trace.name.size() > ending.size() && trace.name.ends_with(ending))
        trace.name.resize(trace.name.size() - ending.size());
    }
  }
  trace.source_path = std::filesystem::absolute(first).string();
  RunStore store = RunStore::open(common.database);
  if (!options.run.empty()) trace.run = find_run(store, options.run).id;
  const TraceId id = store.traces().insert(trace);
  for (const std::string& note : trace.profile.notes) std::cerr << "stepladder: " << note << "\n";
  const StoredTrace stored = store.traces().find(id).value();
  if (common.json)
    print(trace_details_json(stored));
  else
    std::cout << trace_text(stored, false, false);
  return exit_done;
}

// By number, or by a name that only one has.
StoredTrace find_trace(RunStore& store, const std::string& wanted) {
  std::vector<TraceId> found;
  for (const StoredTrace& each : store.traces().list()) {
    if (std::to_string(each.id) == wanted) return store.traces().find(each.id).value();
    if (each.name == wanted) found.push_back(each.id);
  }
  if (found.size() == 1) return store.traces().find(found.front()).value();
  throw UsageError(found.empty() ? "there is no trace '" + wanted + "'; `stepladder profile list` shows them"
                                 : "several traces are called '" + wanted + "'; give a number");
}

int run_list(const CommonOptions& common) {
  std::optional<RunStore> store = open_to_read(common.database);
  const std::vector<StoredTrace> traces = store ? store->traces().list() : std::vector<StoredTrace>();
  if (common.json) {
    Json list = Json::array();
    for (const StoredTrace& each : traces) list.push_back(trace_json(each));
    print(list);
  } else if (traces.empty()) {
    std::cerr << "stepladder: there are no traces; `stepladder profile import FILE` adds one\n";
  } else {
    std::cout << traces_table(traces);
  }
  return exit_done;
}

int run_show(const TraceOptions& options, const CommonOptions& common) {
  RunStore store = open_existing(common.database);
  const StoredTrace trace = find_trace(store, options.trace);
  if (common.json)
    print(trace_details_json(trace));
  else
    std::cout << trace_text(trace, options.all, options.steps);
  return exit_done;
}

// One side of a difference: a trace, or "run:12" for what `operators 12` shows.
struct Side {
  std::string title;
  std::vector<TracedOperator> rows;
};

Side find_side(RunStore& store, const std::string& wanted) {
  constexpr std::string_view of_run = "run:";
  if (!wanted.starts_with(of_run)) {
    StoredTrace trace = find_trace(store, wanted);
    return {"trace " + std::to_string(trace.id) + ", " + trace.name, std::move(trace.profile.operators)};
  }
  const Run run = find_run(store, wanted.substr(of_run.size()));
  const FittedProfile fitted = fit_to_step(store.profile(run.id), store.summary(run).dt_ms_median);
  if (fitted.profile.steps == 0)
    throw UsageError("run " + std::to_string(run.id) + " has no profile: " + why_no_profile(run));
  return {"run " + std::to_string(run.id) + ", " + run.name, traced(fitted.profile)};
}

int run_diff(const TraceOptions& options, const CommonOptions& common) {
  RunStore store = open_existing(common.database);
  const Side before = find_side(store, options.trace), after = find_side(store, options.other);
  const ProfileDifference made = difference(before.rows, after.rows);
  if (common.json)
    print(difference_json(made, before.title, after.title));
  else
    std::cout << difference_text(made, before.title, after.title, options.all);
  return exit_done;
}

int run_remove(const TraceOptions& options, const CommonOptions& common) {
  open_existing(common.database);
  RunStore store = RunStore::open(common.database);
  store.traces().remove(find_trace(store, options.trace).id);
  return exit_done;
}

}  // namespace

void add_trace_commands(CLI::App& profile, CommonOptions& common, std::function<int()>& chosen) {
  const auto options = std::make_shared<TraceOptions>();
  const auto choose = [&](CLI::App* command, auto run) {
    command->callback(
        [options, &common, &chosen, run] { chosen = [options, &common, run] { return run(*options, common); }; });
  };
  CLI::App* import = add_with_json(profile, common, "import",
                                   "Keep where the time goes in a trace of PyTorch's profiler or Nsight Systems");
  import->add_option("file", options->files, "Trace (JSON, .json.gz, .sqlite); of several ranks, one for each")
      ->required();
  import->add_option("--run", options->run, "Run that it was taken of: number or name");
  import->add_option("--name", options->name, "Name (default: that of the file)")->check(short_name());
  choose(import, run_import);
  choose(add_with_json(profile, common, "list", "List the imported traces"),
         [](const TraceOptions&, const CommonOptions& given) { return run_list(given); });
  CLI::App* show = add_with_json(profile, common, "show", "Where the time of a traced step goes");
  show->add_option("trace", options->trace, "Number or name")->required();
  show->add_flag("--all", options->all, "List every row, with its shapes");
  show->add_flag("--steps", options->steps, "List the steps, too");
  choose(show, run_show);
  CLI::App* diff = add_with_json(profile, common, "diff", "Why one step is faster than another, row by row");
  diff->add_option("before", options->trace, "Trace (number or name), or run:NUMBER")->required();
  diff->add_option("after", options->other, "The same")->required();
  diff->add_flag("--all", options->all, "List every row");
  choose(diff, run_diff);
  CLI::App* remove = profile.add_subcommand("remove", "Remove an imported trace");
  remove->add_option("trace", options->trace, "Number or name")->required();
  choose(remove, run_remove);
}

}  // namespace stepladder
