// `stepladder runs`, `show` and `check`: they only read, so none of them creates a database. `check` exits with a
// failure status for an impossible number only if runs were named.
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <set>

#include "app/cli/commands.h"
#include "app/cli/find_run.h"
#include "app/cli/live/unread_output.h"
#include "app/cli/metric_report.h"
#include "app/cli/report.h"
#include "app/cli/table.h"
#include "app/exit_status.h"
#include "app/runs/excerpt.h"
#include "app/runs/open_store.h"
#include "app/runs/run_filter.h"
#include "app/text/format.h"
#include "app/text/terminal_text.h"

namespace stepladder {
namespace {

struct RunsOptions {
  std::string filter;
  std::string columns;  // empty: the usual table
};

struct ListedRun {
  RunAndSummary run;
  Curation curation;
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

// The runs' values in the columns of --columns.
std::vector<std::vector<Json>> values_of(const std::vector<ListedRun>& runs, const std::vector<RunField>& columns,
                                         const PlausibilityContext& context, const FigureTable& metrics) {
  std::vector<std::vector<Json>> rows;
  for (const ListedRun& listed : runs) {
    RunValues values(listed.run.run, listed.run.summary, context, listed.curation, metrics);
    rows.emplace_back();
    for (const RunField& column : columns) rows.back().push_back(values[column]);
  }
  return rows;
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
    right.push_back(std::all_of(values.begin(), values.end(), [&](const auto& row) {
      return row[i].is_number() || row[i].is_null() || columns[i].of == RunField::Of::metric;
    }));
  }
  for (const std::vector<Json>& row : values) {
    rows.emplace_back();
    for (const Json& value : row) rows.back().push_back(cell_text(value));
  }
  std::cout << table(rows, right);
}

void print_runs(const std::vector<ListedRun>& runs, const PlausibilityContext& context, bool as_json) {
  std::vector<RunAndSummary> plain;
  for (const ListedRun& listed : runs) plain.push_back(listed.run);
  if (!as_json) {
    std::cout << runs_table(plain);
    return;
  }
  Json list = Json::array();
  for (const RunAndSummary& run : plain) list.push_back(run_json(run.run, run.summary, context));
  print(list);
}

int list_runs(const RunsOptions& options, const CommonOptions& common) {
  auto store = open_to_read(common.database);
  const ProjectNames names{.recipe =
                               [&] {
                                 std::set<std::string> found;
                                 if (store)
                                   for (const Run& run : store->runs()) add_recipe_names(run, found);
                                 return found;
                               },
                           .metrics =
                               [&] {
                                 std::set<std::string> found;
                                 if (store)
                                   for (const Metric& metric : store->metrics().all_names()) found.insert(metric.name);
                                 return found;
                               }};
  const RunFilter filter(options.filter, names);
  std::vector<RunField> columns;
  RunFieldNames field_names(names);
  try {
    if (!options.columns.empty()) columns = run_fields_from(options.columns, field_names);
  } catch (const RunFieldError& error) {
    throw UsageError("--columns: " + std::string(error.what()));
  }
  std::vector<MetricFigure> figures = filter.figures();
  for (MetricFigure& figure : figures_of(columns))
    if (std::find(figures.begin(), figures.end(), figure) == figures.end()) figures.push_back(std::move(figure));
  const PlausibilityContext context = load_plausibility_context(store ? &*store : nullptr);
  std::vector<ListedRun> runs;
  FigureTable metrics;
  if (store) {
    metrics = store->metrics().table(std::move(figures));
    std::map<RunId, Curation> curations = store->curation().all();
    for (RunAndSummary& run : store->runs_with_summaries()) {
      const Curation& curation = curations[run.run.id];
      if (filter.accepts(run.run, run.summary, context, curation, metrics)) runs.push_back({std::move(run), curation});
    }
  }
  if (!common.json && runs.empty()) {
    std::cerr << "stepladder: no runs"
              << (options.filter.empty() ? " yet; start with `stepladder ladder`\n" : " match\n");
  } else if (columns.empty()) {
    print_runs(runs, context, common.json);
  } else {
    print_columns(columns, values_of(runs, columns, context, metrics), common.json);
  }
  if (!common.json) tell_of_unread_outputs(common.database);
  return exit_done;
}

struct ShowOptions {
  std::string run;
  bool steps = false;
  bool metrics = false;
  bool console = false;
};

void print_steps(const Series& series) {
  const auto columns = {"step", "loss", "val_loss", "dt_ms", "tokens_per_s", "lr", "grad_norm"};
  std::string line;
  for (const char* column : columns) line += (line.empty() ? "" : "\t") + std::string(column);
  std::cout << "\n" << line << "\n";
  for (const Json& step : steps_json(series)) {
    line.clear();
    for (const char* column : columns) {
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

int show(const ShowOptions& options, const CommonOptions& common) {
  RunStore store = open_existing(common.database);
  const Run found = find_run(store, options.run);
  if (options.console && !common.json) {
    const std::string printed = store.recordings().console(found.id, std::numeric_limits<std::size_t>::max());
    if (printed.empty()) std::cerr << "stepladder: no output of run " << found.id << " was kept\n";
    print_console(printed);
    return exit_done;
  }
  const PlausibilityContext context = load_plausibility_context(&store);
  if (common.json) {
    const Summary summary = store.summary(found);
    Json json = run_json(found, summary, context);
    json.update(life_cycle_json(store, {found, summary}));
    if (options.steps) json["data"] = steps_json(store.series(found.id));
    if (options.metrics) json["metrics"] = metrics_json(store, found.id);
    print(json);
    return exit_done;
  }
  std::cout << run_text(load_run(store, found, most_steps_of_each(1)), context);
  if (options.metrics) std::cout << "\n" << metrics_text(store, found.id);
  if (options.steps) print_steps(store.series(found.id));
  return exit_done;
}

int check(const std::vector<std::string>& named, const CommonOptions& common) {
  std::vector<RunAndSummary> runs;
  auto store = open_to_read(common.database);
  if (!named.empty()) {
    if (!store) open_existing(common.database);  // throws the error
    for (const std::string& wanted : named) {
      const Run run = find_run(*store, wanted);
      runs.push_back({run, store->summary(run)});
    }
  } else if (store) {
    runs = store->runs_with_summaries();
  }
  const std::vector<CheckedRun> checked = check_runs(runs, load_plausibility_context(store ? &*store : nullptr));
  if (common.json) {
    print(check_json(checked));
  } else if (checked.empty()) {
    std::cerr << "stepladder: no runs yet; start with `stepladder ladder`\n";
  } else {
    std::cout << check_text(checked);
  }
  const bool impossible = std::any_of(checked.begin(), checked.end(), [](const CheckedRun& run) {
    return run.plausibility.trust == Trust::impossible;
  });
  return impossible && !named.empty() ? exit_implausible : exit_done;
}

}  // namespace

Subcommand runs_command(CLI::App& app, CommonOptions& common) {
  auto options = std::make_shared<RunsOptions>();
  CLI::App* command = add_with_json(app, common, "runs", "The runs in the database");
  command->add_option("--filter", options->filter,
                      "Words and conditions: nano status=finished tokens_per_s>20000 min(val/loss)<3.3");
  command->add_option("--columns", options->columns,
                      "Fields of --json, values of recipes and metrics: id,name,batch,min(val/loss),at(val/acc, 1000)");
  return {command, [options, &common] { return list_runs(*options, common); }};
}

Subcommand show_command(CLI::App& app, CommonOptions& common) {
  auto options = std::make_shared<ShowOptions>();
  CLI::App* command = add_with_json(app, common, "show", "One run");
  command->add_option("run", options->run, "Its number or name")->required();
  command->add_flag("--steps", options->steps, "Add every step");
  command->add_flag("--metrics", options->metrics,
                    "Add every number that the run logged: figures, with --json all values");
  command->add_flag("--console", options->console,
                    "Only the output of its program (watch); unchanged unless written to a terminal");
  return {command, [options, &common] { return show(*options, common); }};
}

Subcommand check_command(CLI::App& app, CommonOptions& common) {
  auto runs = std::make_shared<std::vector<std::string>>();
  CLI::App* command = add_with_json(
      app, common, "check", "Flags: reasons to doubt a run's numbers; exits with 12 if a named run is impossible");
  command->add_option("runs", *runs, "The runs to check (all unless given)");
  return {command, [runs, &common] { return check(*runs, common); }};
}

}  // namespace stepladder
