// `stepladder runs`, `show` and `check`: they only read, so none of them creates a database. `check` exits with a
// failure status for an impossible number only if runs were named.
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <tuple>

#include "app/cli/commands.h"
#include "app/cli/metric_report.h"
#include "app/cli/report.h"
#include "app/cli/table.h"
#include "app/exit_status.h"
#include "app/host/patch.h"
#include "app/runs/excerpt.h"
#include "app/runs/find_run.h"
#include "app/runs/open_store.h"
#include "app/runs/run_filter.h"
#include "app/text/format.h"
#include "app/text/terminal_text.h"

namespace stepladder {
namespace {

struct RunsOptions {
  std::string filter;
  std::string columns;  // empty: the usual table
  std::string since;
  std::string sort;
  bool reverses = false;
  Limit limit;
};

std::string cell_text(const Json& value) {
  if (value.is_null()) return "-";
  if (value.is_number_float()) return metric_text(value.get<double>());
  if (value.is_array()) {
    std::string words;
    for (const Json& each : value) words += (words.empty() ? "" : " ") + cell_text(each);
    return words.empty() ? "-" : words;
  }
  return value.is_string() ? value.get<std::string>() : value.dump();
}

void print_columns(const std::vector<RunField>& columns, const std::vector<std::vector<Json>>& values, bool as_json) {
  if (as_json) {
    Json list = Json::array();
    for (const std::vector<Json>& row : values) {
      Json run = Json::object();
      for (std::size_t i = 0; i < columns.size(); ++i) run[title_of(columns[i])] = row[i];
      list.push_back(std::move(run));
    }
    return print(list);
  }
  std::vector<std::vector<std::string>> rows(1);
  std::vector<bool> right;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    rows.front().push_back(title_of(columns[i]));
    right.push_back(std::ranges::all_of(values, [&](const auto& row) {
      return row[i].is_number() || row[i].is_null() || columns[i].of == RunField::Of::metric;
    }));
  }
  for (const std::vector<Json>& row : values) {
    rows.emplace_back();
    for (const Json& value : row) rows.back().push_back(cell_text(value));
  }
  std::cout << table(rows, right);
}

std::vector<RunField> fields_named(const std::string& text, const char* argument, RunFieldNames& names) {
  if (text.empty()) return {};
  try {
    return run_fields_from(text, names);
  } catch (const RunFieldError& error) {
    throw UsageError(std::string(argument) + ": " + error.what(), {.argument = argument, .value = text});
  }
}

// The filter that --since is: a time, or a span until now such as 7d.
std::string since_filter(const std::string& since) {
  if (since.empty()) return {};
  std::size_t end = 0;
  double count = missing;
  try {
    count = std::stod(since, &end);
  } catch (const std::exception&) {  // no number
  }
  const std::map<std::string, double> units = {{"min", 60}, {"h", 3600}, {"d", 86400}, {"w", 7 * 86400}};
  if (const auto unit = units.find(since.substr(end)); count >= 0 && unit != units.end())
    return "created_at>=" + time_json(std::max(0.0, unix_now() - count * unit->second)).get<std::string>();
  try {
    const RunFilter tried("created_at>=\"" + since + "\"");
  } catch (const FilterError&) {
    throw UsageError("--since: '" + since +
                     "' is neither a time such as 2026-11-01 or 2026-11-01T14:00 (UTC) nor a span such as 7d, 12h, "
                     "30min or 2w");
  }
  return "created_at>=\"" + since + "\"";
}

// Numbers, then words; unknown values last, whichever way it is sorted.
void sort_by(std::vector<RunAndSummary>& runs, const RunField& field, const RunsOptions& options,
             const RunContext& context, const FigureTable& metrics) {
  struct Key {
    int place = 0;  // 0: a number, 1: words, 2: unknown
    double number = 0;
    std::string text;
  };
  std::map<RunId, Key> keys;
  for (const RunAndSummary& run : runs) {
    const Json value = RunValues(run.run, run.summary, context, metrics)[field];
    Key& key = keys[run.run.id];
    if (value.is_number())
      key.number = value.get<double>();
    else if (value == "Infinity" || value == "-Infinity")
      key.number = (value == "Infinity" ? 1 : -1) * std::numeric_limits<double>::infinity();
    else
      key = {.place = value.is_null() || value == "NaN" ? 2 : 1, .text = cell_text(value)};
  }
  std::ranges::stable_sort(runs, [&](const RunAndSummary& a, const RunAndSummary& b) {
    const Key &first = keys[a.run.id], &second = keys[b.run.id];
    if (first.place != second.place) return first.place < second.place;
    const auto less = [](const Key& x, const Key& y) {
      return std::tie(x.number, x.text) < std::tie(y.number, y.text);
    };
    return options.reverses ? less(second, first) : less(first, second);
  });
}

// Without an order, the newest are kept.
void limit(std::vector<RunAndSummary>& runs, const RunsOptions& options, const CommonOptions& common) {
  if (options.sort.empty() && !options.reverses) return options.limit.keep_newest(runs, "more run", common);
  const std::size_t most = options.limit.of(runs.size(), common);
  Limit::note_left_out(runs.size() - most, "more run");
  runs.resize(most);
}

int list_runs(const RunsOptions& options, const CommonOptions& common) {
  auto store = open_to_list(common);
  const ProjectNames names = project_names(store ? &*store : nullptr);
  const RunFilter filter(options.filter, names), since(since_filter(options.since));
  RunFieldNames field_names(names);
  const std::vector<RunField> columns = fields_named(options.columns, "--columns", field_names);
  const std::vector<RunField> order = fields_named(options.sort, "--sort", field_names);
  if (order.size() > 1) throw UsageError("--sort takes one field");
  const RunContext context = load_run_context(store ? &*store : nullptr);
  std::vector<RunAndSummary> runs;
  FigureTable metrics;
  if (store) {
    std::vector<MetricFigure> figures = filter.figures();
    for (const std::vector<RunField>& fields : {columns, order})
      for (MetricFigure& figure : figures_of(fields))
        if (std::ranges::find(figures, figure) == figures.end()) figures.push_back(std::move(figure));
    metrics = store->metrics().table(std::move(figures));
    for (RunAndSummary& run : store->runs_with_summaries())
      if (filter.accepts(run.run, run.summary, context, metrics) && since.accepts(run.run, run.summary, context))
        runs.push_back(std::move(run));
  }
  if (!order.empty())
    sort_by(runs, order.front(), options, context, metrics);
  else if (options.reverses)
    std::ranges::reverse(runs);
  limit(runs, options, common);
  if (!common.json && runs.empty()) {
    std::cerr << "stepladder: no runs"
              << (options.filter.empty() && options.since.empty() ? " yet; start with `stepladder ladder`\n"
                                                                  : " match\n");
  } else if (!columns.empty()) {
    std::vector<std::vector<Json>> rows;
    for (const RunAndSummary& run : runs) {
      RunValues values(run.run, run.summary, context, metrics);
      rows.emplace_back();
      for (const RunField& column : columns) rows.back().push_back(values[column]);
    }
    print_columns(columns, rows, common.json);
  } else {
    const auto to_json = [&](const RunAndSummary& run) { return run_json(run.run, run.summary, context); };
    print_as(
        common, [&] { return json_list(runs, to_json); }, [&] { return runs_table(runs, context); });
  }
  if (!common.json) tell_of_unread_outputs(common.database);
  return exit_done;
}

struct ShowOptions {
  std::vector<std::string> runs;
  bool steps = false;
  bool metrics = false;
  bool console = false;
  bool patch = false;
  bool ndjson = false;
  Limit limit;  // of the steps
};

// The steps that --limit leaves.
Json shown_steps(const Series& series, const Limit& limit, const CommonOptions& common) {
  Json steps = steps_json(series);
  limit.keep_newest(steps.get_ref<Json::array_t&>(), "more step", common);
  return steps;
}

// A table on a terminal; elsewhere all digits, separated by tabs.
void print_steps(const Series& series, const Limit& limit, const CommonOptions& common) {
  const std::vector<std::string> columns = {"step", "loss", "val_loss", "dt_ms", "tokens_per_s", "lr", "grad_norm"};
  const Json steps = shown_steps(series, limit, common);
  std::cout << "\n";
  if (terminal_columns() > 0) {
    std::vector<std::vector<std::string>> rows{columns};
    for (const Json& step : steps) {
      std::vector<std::string>& row = rows.emplace_back();
      for (const std::string& column : columns) row.push_back(cell_text(step.at(column)));
    }
    std::cout << table(rows, std::vector<bool>(columns.size(), true));
    return;
  }
  std::string line;
  for (const std::string& column : columns) line += (line.empty() ? "" : "\t") + column;
  std::cout << line << "\n";
  for (const Json& step : steps) {
    line.clear();
    for (const std::string& column : columns) {
      const Json& value = step.at(column);
      line += (line.empty() ? "" : "\t") + (value.is_null()     ? "-"
                                            : value.is_string() ? value.get<std::string>()
                                                                : value.dump());
    }
    std::cout << line << "\n";
  }
}

// Prints a program's output byte by byte; on a terminal only its lines, since it must not steer the terminal.
void print_console(const std::string& printed) {
  if (!::isatty(STDOUT_FILENO)) return write_data(printed);
  for (const std::string& line : console_lines(printed)) std::cout << line << "\n";
}

Json shown_json(RunStore& store, const Run& run, const ShowOptions& options, const RunContext& context,
                const CommonOptions& common) {
  const Summary summary = store.summary(run);
  Json json = run_json(run, summary, context);
  json.update(life_cycle_json(store, {run, summary}));
  if (options.patch) json["patch"] = text_or_null(store.recordings().patch(run.id).text);
  if (options.steps) json["data"] = shown_steps(store.series(run.id), options.limit, common);
  if (options.metrics) json["metrics"] = metrics_json(store, run.id);
  return json;
}

void show_text(RunStore& store, const Run& run, const ShowOptions& options, const RunContext& context,
               const CommonOptions& common) {
  if (options.console) {
    const std::string printed = store.recordings().console(run.id, std::numeric_limits<std::size_t>::max());
    if (printed.empty()) std::cerr << "stepladder: no output of run " << run.id << " was kept\n";
    return print_console(printed);
  }
  const RunPatch patch = store.recordings().patch(run.id);
  if (options.patch) {
    if (patch.text.empty())
      std::cerr << "stepladder: no patch of run " << run.id
                << (patch.bytes > 0                 ? " was kept: it is longer than 1 MiB\n"
                    : patch.bytes == unknown_length ? " was kept: git failed or took too long\n"
                                                    : " was kept\n");
    return print_console(patch.text);
  }
  std::cout << run_text(load_run(store, run, most_steps_of_each(1)), context);
  if (patch.bytes > 0 || !patch.left_out.empty())
    std::cout << notes_text(fmt::format(
        "  uncommitted    {} of changes; `show {} --patch` prints them{}", bytes_text(static_cast<double>(patch.bytes)),
        run.id, patch.left_out.empty() ? "" : "; without " + plural(std::ssize(patch.left_out), "file")));
  if (options.metrics) std::cout << "\n" << metrics_text(store, run.id);
  if (options.steps) print_steps(store.series(run.id), options.limit, common);
}

int show(const ShowOptions& options, const CommonOptions& common) {
  if (options.limit.is_given() && !options.steps && !options.ndjson)
    throw UsageError("--limit is of steps, so it needs --steps or --ndjson",
                     {.code = "missing-argument", .argument = "--steps"});
  RunStore store = open_existing(common.database);
  const std::vector<Run> found = find_runs(store, options.runs);
  if (options.ndjson) {
    for (const Run& run : found)
      for (Json step : shown_steps(store.series(run.id), options.limit, common)) {
        step["run"] = run.id;
        print_line(step, std::cout);
      }
    return exit_done;
  }
  const RunContext context = load_run_context(&store);
  if (!common.json) {
    for (const Run& run : found) {
      if (&run != &found.front()) std::cout << "\n";
      show_text(store, run, options, context, common);
    }
    return exit_done;
  }
  // One run that is named as one is an object; whatever may name several is a list.
  if (options.runs.size() == 1 && !is_for_several(options.runs.front())) {
    print(shown_json(store, found.front(), options, context, common));
    return exit_done;
  }
  print(json_list(found, [&](const Run& run) { return shown_json(store, run, options, context, common); }));
  return exit_done;
}

struct GetOptions {
  std::string run, field;
};

// Prints bare values, for scripts: numbers with all digits, null if unknown.
int get(const GetOptions& options, const CommonOptions& common) {
  RunStore store = open_existing(common.database);
  RunFieldNames names(project_names(&store));
  const std::vector<RunField> fields = fields_named(options.field, "field", names);
  const RunContext context = load_run_context(&store);
  const FigureTable metrics = store.metrics().table(figures_of(fields));
  Json all = Json::array();
  std::string text;
  for (const Run& run : find_runs(store, {options.run})) {
    const Summary summary = store.summary(run);
    RunValues values(run, summary, context, metrics);
    Json row = Json::object();
    for (const RunField& field : fields) {
      const Json value = row[title_of(field)] = values[field];
      if (&field != &fields.front()) text += "\t";
      if (value.is_array())
        for (std::size_t i = 0; i < value.size(); ++i) text += (i ? "," : "") + cell_text(value[i]);
      else
        text += value.is_string() ? value.get<std::string>() : value.dump();
    }
    text += "\n";
    all.push_back(std::move(row));
  }
  if (!common.json)
    std::cout << harmless(text);
  else
    print(is_for_several(options.run) ? all : fields.size() > 1 ? all.front() : all.front().front());
  return exit_done;
}

struct CheckOptions {
  std::vector<std::string> runs;
  Limit limit;
};

int check(const CheckOptions& options, const CommonOptions& common) {
  const std::vector<std::string>& named = options.runs;
  std::vector<RunAndSummary> runs;
  auto store = named.empty() ? open_to_list(common) : open_existing(common.database);
  if (!named.empty())
    for (const Run& run : find_runs(*store, named)) runs.push_back({run, store->summary(run)});
  else if (store)
    runs = store->runs_with_summaries();
  std::vector<CheckedRun> checked = check_runs(runs, load_run_context(store ? &*store : nullptr));
  const bool impossible =
      std::ranges::any_of(checked, [](const CheckedRun& run) { return run.plausibility.trust == Trust::impossible; });
  options.limit.keep_newest(checked, "more run", common);
  if (common.json)
    print(check_json(checked));
  else if (checked.empty())
    std::cerr << "stepladder: no runs yet; start with `stepladder ladder`\n";
  else
    std::cout << check_text(checked);
  return impossible && !named.empty() ? exit_implausible : exit_done;
}

}  // namespace

Subcommand runs_command(CLI::App& app, CommonOptions& common) {
  auto options = std::make_shared<RunsOptions>();
  CLI::App* command = add_with_json(app, common, "runs", "The runs in the database");
  command->add_option("--filter", options->filter,
                      "Words and conditions: nano status=finished,stopped tokens_per_s>20000 not (min(val/loss)<3.3 or "
                      "id=11-13)");
  command->add_option("--columns", options->columns,
                      "Fields of --json, values of recipes and metrics: id,name,batch,min(val/loss),at(val/acc, 1000)");
  command->add_option("--since", options->since,
                      "Only runs that were created since: 7d, 12h, 30min, 2w or 2026-11-01 (UTC)");
  command->add_option("--sort", options->sort, "Field to sort by, smallest first (default: the oldest first)");
  command->add_flag("--reverse", options->reverses, "The other way round");
  options->limit.add_to(*command, "At most so many: the first of --sort, else the newest");
  return {command, [options, &common] { return list_runs(*options, common); }};
}

Subcommand show_command(CLI::App& app, CommonOptions& common) {
  auto options = std::make_shared<ShowOptions>();
  CLI::App* command = add_with_json(app, common, "show", "One run, or several");
  command->add_option("runs", options->runs, runs_help)->required();
  CLI::Option* steps = command->add_flag("--steps", options->steps, "Add every step");
  CLI::Option* lines = command->add_flag("--ndjson", options->ndjson, "Only the steps, each a line of JSON");
  options->limit.add_to(*command, "Only the newest steps, this many");
  CLI::Option* metrics = command->add_flag("--metrics", options->metrics,
                                           "Add every number that the run logged: figures, with --json all values");
  CLI::Option* console = command->add_flag(
      "--console", options->console, "Only the output of its program (watch); unchanged unless written to a terminal");
  CLI::Option* patch = command->add_flag("--patch", options->patch,
                                         "Only what was uncommitted in the checkout when it started, as a patch");
  for (CLI::Option* only : {lines, console, patch})
    for (CLI::Option* other : {steps, lines, metrics, console, patch})
      if (only != other && !(only == lines && other == steps) && !(only == steps && other == lines))
        only->excludes(other);
  return {command, [options, &common] { return show(*options, common); }};
}

Subcommand get_command(CLI::App& app, CommonOptions& common) {
  auto options = std::make_shared<GetOptions>();
  CLI::App* command = add_with_json(app, common, "get", "One value of a run, bare, for scripts");
  command->add_option("run", options->run, runs_help)->required();
  command->add_option("field", options->field, "As in runs --columns: tokens_per_s, min(val/loss), id,lr")->required();
  return {command, [options, &common] { return get(*options, common); }};
}

Subcommand check_command(CLI::App& app, CommonOptions& common) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App* command = add_with_json(
      app, common, "check", "Flags: reasons to doubt a run's numbers; exits with 12 if a named run is impossible");
  command->add_option("runs", options->runs, std::string(runs_help) + "; all unless given");
  options->limit.add_to(*command, "Only the newest runs, this many");
  return {command, [options, &common] { return check(*options, common); }};
}

}  // namespace stepladder
