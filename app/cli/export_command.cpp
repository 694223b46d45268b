// `stepladder export`: checks all options before it reads anything, then writes a figure, table, report, trace or a
// checkpoint's weights. Forms with a line per step are written while the steps are read, so their memory doesn't grow
// with the run.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "app/cli/commands.h"
#include "app/cli/metric_report.h"
#include "app/cli/report.h"
#include "app/exit_status.h"
#include "app/figures/export.h"
#include "app/figures/run_figures.h"
#include "app/figures/step_pair.h"
#include "app/figures/tables.h"
#include "app/figures/tex.h"
#include "app/figures/trace.h"
#include "app/runs/find_run.h"
#include "app/runs/open_store.h"
#include "app/text/format.h"
#include "app/text/terminal_text.h"
#include "engine/files/run_checkpoints.h"
#include "engine/files/weights_export.h"
#include "storage/name_pattern.h"

namespace stepladder {
namespace {

struct ExportRequest {
  std::filesystem::path database;
  std::vector<std::string> runs;  // numbers or names; RUN@STEP for the weights of an older checkpoint
  std::string ladder;             // instead: all runs of a ladder
  std::string format;             // empty: by the ending of `out`
  std::string out;                // "-": standard output, for text
  std::string what;               // the figure's name; empty: the format's default
  std::string theme;
  std::string x;
  std::string size;
  std::string metrics;  // empty, "long" or "wide"
  bool table = false;
  bool forces = false;  // --force
};

enum class Form { csv, json, md, html, svg, png, pdf, tex, trace, safetensors, llmc, llmc_bf16 };

struct NamedForm {
  Form form;
  std::string_view name;
  std::vector<std::string_view> endings;
};

// Longer endings before the shorter ones that they end with.
const std::vector<NamedForm>& forms() {
  static const std::vector<NamedForm> all{{Form::trace, "trace", {".trace.json", ".trace", ".perfetto-trace"}},
                                          {Form::csv, "csv", {".csv"}},
                                          {Form::json, "json", {".json"}},
                                          {Form::md, "md", {".md", ".markdown"}},
                                          {Form::html, "html", {".html", ".htm"}},
                                          {Form::svg, "svg", {".svg"}},
                                          {Form::png, "png", {".png"}},
                                          {Form::pdf, "pdf", {".pdf"}},
                                          {Form::tex, "tex", {".tex"}},
                                          {Form::safetensors, "safetensors", {".safetensors"}},
                                          {Form::llmc, "llmc", {}},
                                          {Form::llmc_bf16, "llmc-bf16", {}}};
  return all;
}

std::vector<std::string> form_names() {
  std::vector<std::string> names;
  for (const NamedForm& named : forms()) names.emplace_back(named.name);
  return names;
}

Form form_of(const ExportRequest& request) {
  for (const NamedForm& named : forms())
    if (request.format == named.name) return named.form;
  const std::string out = lower_case(request.out);
  if (out == "-")
    throw UsageError("--out -: --format is needed: csv, json, md, html, svg, tex or trace",
                     {.code = "missing-argument", .argument = "--format"});
  for (const NamedForm& named : forms()) {
    for (const std::string_view ending : named.endings)
      if (out.ends_with(ending)) return named.form;
  }
  throw UsageError("--format is missing, and '" + request.out + "' does not end in a format's name",
                   {.code = "missing-argument", .argument = "--format", .hint = "`stepladder help export` lists them"});
}

std::string name_of(Form form) {
  for (const NamedForm& named : forms())
    if (named.form == form) return std::string(named.name);
  return {};
}

bool is_weights(Form form) {
  return form == Form::safetensors || form == Form::llmc || form == Form::llmc_bf16;
}
std::optional<FigureFormat> figure_format_of(Form form) {
  if (form == Form::svg) return FigureFormat::svg;
  if (form == Form::png) return FigureFormat::png;
  if (form == Form::pdf) return FigureFormat::pdf;
  return std::nullopt;
}

// Throws UsageError for an option without an effect.
void check_options(const ExportRequest& request, Form form) {
  const std::string name = name_of(form);
  const bool figure = figure_format_of(form).has_value();
  const auto refuse = [&](const char* option, const std::string& why) {
    throw UsageError(std::string(option) + " has no effect with --format " + name + ": " + why);
  };
  if (request.runs.empty() == request.ladder.empty()) throw UsageError("give either runs or --ladder");
  if (is_weights(form) && request.runs.size() != 1) throw UsageError("weights can be exported from one run at a time");
  if (request.out == "-" && (form == Form::png || form == Form::pdf || is_weights(form)))
    throw UsageError("--out -: " + name + " is not text; give a file");
  if (!request.theme.empty() && !figure && form != Form::html) refuse("--theme", "it is for svg, png, pdf and html");
  if (!request.size.empty() && !figure) refuse("--size", "it is for svg, png and pdf");
  if (request.table && form != Form::csv && form != Form::json) refuse("--table", "it is for csv and json");
  if (!request.metrics.empty() && form != Form::csv) refuse("--metrics", "it is for csv");
  if (!request.metrics.empty() && request.table) throw UsageError("--metrics and --table exclude each other");
  if (!request.x.empty() && !figure && form != Form::tex) refuse("--x", "it is for svg, png, pdf and tex");
  if (!request.what.empty() && !figure && form != Form::tex) {
    const bool usual =
        (form == Form::html && request.what == "report") || (form == Form::md && request.what == "ladder");
    if (!usual) refuse("--what", "figures are svg, png, pdf and tex");
  }
  if (request.what == "report" && form != Form::html)
    throw UsageError("--what report is an html file; --format " + name + " can only hold one figure");
}

SvgOptions svg_options(const ExportRequest& request) {
  SvgOptions options{.theme = request.theme == "dark" ? Theme::dark : Theme::light};
  if (request.size.empty()) return options;
  char end = 0;
  if (std::sscanf(request.size.c_str(), "%dx%d%c", &options.width, &options.height, &end) != 2 || options.width < 320 ||
      options.height < 200 || options.width > 8192 || options.height > 8192)
    throw UsageError("--size: '" + request.size + "' is not WIDTHxHEIGHT between 320x200 and 8192x8192");
  return options;
}

struct Chosen {
  std::string title;
  std::string origin;
  std::vector<Run> runs;
};

std::string origin_of(const std::string& source, const std::string& source_path, double created_at) {
  if (source == "launched") return "Measured here, " + local_time_text(created_at);
  const std::string file = source_path.substr(source_path.find_last_of('/') + 1);
  return file.empty() ? "" : "From " + file;
}

Chosen choose(RunStore& store, const ExportRequest& request) {
  if (!request.ladder.empty()) {
    const Ladder ladder = find_ladder(store, request.ladder);
    Chosen chosen{ladder.name, origin_of(ladder.source, ladder.source_path, ladder.created_at),
                  store.runs_of(ladder.id)};
    if (chosen.runs.empty()) throw UsageError("ladder " + request.ladder + " has no runs");
    return chosen;
  }
  Chosen chosen;
  chosen.runs = find_runs(store, request.runs);
  const Run& first = chosen.runs.front();
  chosen.origin = origin_of(first.source, first.source_path, first.created_at);
  const bool one_ladder =
      first.ladder && std::ranges::all_of(chosen.runs, [&](const Run& run) { return run.ladder == first.ladder; });
  if (one_ladder && chosen.runs.size() > 1) {
    chosen.title = fmt::format("{}, {} of {} runs", find_ladder(store, std::to_string(*first.ladder)).name,
                               chosen.runs.size(), store.runs_of(*first.ladder).size());
    return chosen;
  }
  chosen.title = first.name;
  if (chosen.runs.size() == 2) chosen.title += " and " + chosen.runs[1].name;
  if (chosen.runs.size() > 2) chosen.title += fmt::format(" and {} more runs", chosen.runs.size() - 1);
  return chosen;
}

std::string json_text(const Json& json, const std::string& indent) {
  const std::string text = json.dump(2, ' ', false, Json::error_handler_t::replace);
  std::string indented = indent;
  for (const char c : text) {
    indented += c;
    if (c == '\n') indented += indent;
  }
  return indented;
}

// The run's JSON with its steps as the last field.
void write_run_json(RunStore& store, const Run& run, const Json& json, const std::string& indent, const Sink& sink) {
  std::string head = json_text(json, indent);
  head.resize(head.rfind('\n'));  // without the closing brace
  sink(head + ",\n" + indent + "  \"data\": [");
  bool any = false;
  store.for_steps(run.id, [&](std::span<const StepRecord> steps) {
    Series series;
    for (const StepRecord& step : steps) series.append(step);
    const std::string list = json_text(steps_json(series), indent + "  ");
    const std::size_t first = list.find('\n');  // between the brackets, which are only written once
    sink((any ? "," : "") + list.substr(first, list.rfind('\n') - first));
    any = true;
  });
  sink((any ? "\n" + indent + "  ]" : "]") + "\n" + indent + "}");
}

// Formatted as Json::dump(2) would format all of it; with `table` only the runs.
void write_json(RunStore& store, const std::vector<Run>& runs, bool table, const Sink& sink) {
  const RunContext context = load_run_context(&store);
  const std::string indent = "  ";
  sink("[\n");
  for (const Run& run : runs) {
    if (&run != &runs.front()) sink(",\n");
    const Summary summary = store.summary(run);
    Json json = run_json(run, summary, context);
    json.update(life_cycle_json(store, {run, summary}));
    if (table)
      sink(json_text(json, indent));
    else
      write_run_json(store, run, json, indent, sink);
  }
  sink("\n]\n");
}

void write_steps_csv(RunStore& store, const std::vector<Run>& runs, const Sink& sink) {
  sink(steps_csv_head());
  for (const Run& run : runs)
    store.for_steps(run.id, [&](std::span<const StepRecord> steps) { sink(steps_csv(run, steps)); });
}

FigureKind kind_of(const ExportRequest& request, const Study& study) {
  const auto asked = figure_kind(request.what);
  const FigureKind kind = asked.value_or(study.rungs.size() > 1 ? FigureKind::ladder : FigureKind::loss);
  if (!request.x.empty() && (kind == FigureKind::ladder || kind == FigureKind::dt))
    throw UsageError("--x has no effect with --what " + std::string(to_string(kind)) +
                     ", which has no steps on its axis");
  if (kind == FigureKind::loss_difference && study.rungs.size() < 2)
    throw UsageError("--what loss-difference needs a baseline and another run");
  return kind;
}

Figure figure_of(const ExportRequest& request, const Study& study) {
  const XAxis x = request.x == "tokens" ? XAxis::tokens : request.x == "time" ? XAxis::time : XAxis::step;
  return make_figure(kind_of(request, study), study, x);
}

std::string content_of(const ExportRequest& request, Form form, RunStore& store, const Chosen& chosen) {
  const RunContext context = load_run_context(&store);
  Study study = make_study(chosen.title, chosen.origin, load_runs(store, chosen.runs), context.hardware);
  for (const Ladder& ladder : store.ladders())
    if (study.is_ladder && chosen.runs.front().ladder == ladder.id) study.binned_runs = ladder.binned_runs;
  if (form == Form::csv) return summaries_csv(study, context);
  if (form == Form::md) return study_markdown(study);
  if (form == Form::tex) return to_tex(figure_of(request, study), study);
  if (form == Form::html) {
    study.steps = step_pair(study, store);
    return report_html(study, request.theme.empty()
                                  ? std::nullopt
                                  : std::optional(request.theme == "dark" ? Theme::dark : Theme::light));
  }
  return render(figure_of(request, study), *figure_format_of(form), svg_options(request));
}

// Writes the export. Forms with a line per step are written while they are read; the others are short.
void write_export(const ExportRequest& request, Form form, RunStore& store, const Chosen& chosen, const Sink& sink) {
  if (form == Form::trace) {
    const auto for_steps_of = [&](const Run& run, const auto& use) { store.for_steps(run.id, use); };
    return write_trace(chosen.runs, for_steps_of, sink);
  }
  if (form == Form::json) return write_json(store, chosen.runs, request.table, sink);
  if (!request.metrics.empty())
    return write_metrics_csv(store, chosen.runs, request.metrics == "long" ? MetricRows::tall : MetricRows::wide, sink);
  if (form == Form::csv && !request.table) return write_steps_csv(store, chosen.runs, sink);
  sink(content_of(request, form, store, chosen));
}

// With --json: what was written. `runs`: their ids.
int report_written(const std::string& file, const std::string& format, const Json& runs) {
  print({{"file", file},
         {"format", format},
         {"bytes", std::filesystem::is_regular_file(file) ? Json(std::filesystem::file_size(file)) : Json()},
         {"runs", runs}});
  return exit_done;
}

// The weights of a run's checkpoint, for other programs.
int export_weights_of(const ExportRequest& request, const CommonOptions& common) {
  const ExportFormat format = export_format(request.format.empty() ? "safetensors" : request.format);
  RunStore store = open_existing(request.database);
  const auto [run, step] = find_fork(store, request.runs.front());
  const ChosenCheckpoint chosen = choose_checkpoint(checkpoint_owner(store.file(), run), step);
  const Checkpoint& checkpoint = chosen.checkpoint;
  for (const std::string& sentence : chosen.passed_over) std::cerr << "stepladder: " << harmless(sentence) << "\n";
  const Recipe recipe = recipe_from_json(run.recipe);
  export_weights(WeightsFile(checkpoint.folder / checkpoint_weights), recipe.heads, request.out, format);
  if (common.json) return report_written(request.out, name_of(form_of(request)), Json::array({run.id}));
  std::cerr << "stepladder: " << request.out << " holds run " << run.id << " after step " << checkpoint.step << "\n";
  return exit_done;
}

int export_runs(const ExportRequest& request, const CommonOptions& common) {
  const Form form = form_of(request);
  if (common.json && request.out == "-")
    throw UsageError("--json and --out - both take standard output",
                     {.code = "conflicting-options", .argument = "--out", .value = "-"});
  check_options(request, form);
  if (request.out != "-") {
    keep_off_database(request.out, request.database);
    keep_existing(request.out, request.forces);
  }
  if (is_weights(form)) return export_weights_of(request, common);
  svg_options(request);  // throws before anything is read
  if (const auto format = figure_format_of(form)) {
    if (const auto reason = why_not(*format)) throw DataError(*reason);
  }
  RunStore store = open_existing(request.database);
  const Chosen chosen = choose(store, request);
  const auto write = [&](const Sink& sink) { write_export(request, form, store, chosen, sink); };
  if (request.out != "-") {
    write_file(request.out, write);
    if (common.json)
      return report_written(request.out, name_of(form), json_list(chosen.runs, [](const Run& run) { return run.id; }));
    std::cerr << "stepladder: " << request.out << " holds " << plural(std::ssize(chosen.runs), "run") << "\n";
  } else {
    write(write_data);
  }
  return exit_done;
}

}  // namespace

Subcommand export_command(CLI::App& app, CommonOptions& common) {
  auto request = std::make_shared<ExportRequest>();
  CLI::App* command = add_with_json(app, common, "export",
                                    "Write figures, tables, a report, a trace, or a checkpoint's weights to a file");
  std::vector<std::string> whats = figure_names();
  whats.emplace_back("report");
  command->add_option("runs", request->runs,
                      std::string(runs_help) + "; RUN@STEP for the weights of an older checkpoint");
  command->add_option("--ladder", request->ladder, "Export all runs of this ladder instead (number, name or latest)");
  command->add_option("--format", request->format, "Format (default: by the ending of --out)")
      ->check(one_of(form_names()));
  command->add_option("-o,--out,--output", request->out, "File to write; - for standard output (text formats)")
      ->required();
  add_force(*command, request->forces);
  command->add_option("--what", request->what, "Figure (default: the ladder, or one run's loss)")->check(one_of(whats));
  command->add_flag("--table", request->table, "Write summaries instead of all steps (csv, json)");
  command->add_option("--metrics", request->metrics, "Write every metric (csv): a row for each value, or for each step")
      ->check(one_of({"long", "wide"}));
  command
      ->add_option("--theme", request->theme,
                   "dark or light (default: light; an html report follows its reader's system)")
      ->check(one_of({"dark", "light"}));
  command->add_option("--x", request->x, "Horizontal axis of curves")->check(one_of({"step", "tokens", "time"}));
  command->add_option("--size", request->size,
                      "WIDTHxHEIGHT of a figure in CSS pixels; a png has twice the resolution");
  return {command, [request, &common] {
            request->database = common.database;
            return export_runs(*request, common);
          }};
}

}  // namespace stepladder
