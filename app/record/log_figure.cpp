// Reads a log's figure with the importers; values that no importer recognises are read from the lines themselves.
#include "app/record/log_figure.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>

#include "engine/stage.h"
#include "storage/analysis/metric_figures.h"
#include "storage/analysis/overview.h"
#include "storage/analysis/summary.h"
#include "storage/by_enum.h"
#include "storage/database/metrics/metric_store.h"
#include "storage/importers/importer.h"
#include "storage/importers/text.h"
#include "storage/importers/trackers/store_file.h"
#include "storage/quantity.h"
#include "storage/speedrun/log_line.h"

namespace stepladder {
namespace {

class CollectingSink : public ImportSink {
 public:
  explicit CollectingSink(LoggedRun& logged) : logged_(logged) {}

  void begin_run(const Run& run) override { logged_ = {.run = run, .log = logged_.log}; }
  void step(const StepRecord& record) override { logged_.steps.push_back(record); }
  void metric(const Metric& metric, std::span<const MetricPoint> points) override {
    auto& [known, all] = logged_.metrics[metric.name];
    std::string& unit = units_[metric.name];
    if (!metric.unit.empty()) unit = metric.unit;
    known = metric;
    known.unit = unit;
    all.insert(all.end(), points.begin(), points.end());
  }
  void end_run(const Run& run) override { logged_.run = run; }
  void ladder(const Ladder&, std::span<const int>) override {}
  void note(std::int64_t, std::string) override {}

 private:
  LoggedRun& logged_;
  std::map<std::string, std::string> units_;  // which a log may say once, for all of its runs
};

double value_of(const std::vector<MetricPoint>& values, const MetricFigure& figure) {
  MetricFiguresBuilder builder;
  double at = missing;
  for (const MetricPoint& point : values) {
    builder.add(point.step, point.value);
    if (point.step == figure.step) at = point.value;
  }
  return figure.kind == MetricFigure::Kind::at ? at : figure_of(builder.finish(), figure.kind);
}

// The number behind a key's end, with or without blanks and a quote before it: `: 0.9979`, `=0.9979`, `": 0.9979`.
// `rest`: what follows it.
std::optional<double> value_behind(std::string_view line, std::size_t at, std::string_view& rest) {
  for (const std::string_view end : {":", "=", " :", " =", "\":", "':"}) {
    if (!line.substr(at).starts_with(end)) continue;
    const std::string_view text = line.substr(at + end.size());
    std::size_t number_end = 0;
    const auto value = leading_number(text, number_end);
    if (!value) continue;
    rest = text.substr(number_end);
    return value;
  }
  return {};
}

// A unit or a remark behind a value, which make another figure of it: "nats", "%", "(ema)", "<". Of a bracket the
// letters count.
std::string unit_behind(std::string_view rest) {
  constexpr std::string_view units[] = {"nats", "nat", "bits", "bit", "bpb",   "b",       "kb",    "mb",    "gb",
                                        "tb",   "kib", "mib",  "gib", "bytes", "ns",      "us",    "ms",    "s",
                                        "sec",  "min", "h",    "m",   "hours", "seconds", "tok/s", "tok/ms"};
  rest = trimmed(rest);
  if (rest.empty()) return {};
  if (std::string_view("%<#").find(rest.front()) != std::string_view::npos) return std::string(rest.substr(0, 1));
  if (rest.front() == '(') {
    std::string letters;
    const std::string_view inside = rest.substr(1, std::min(rest.find(')'), rest.size()) - 1);
    if (inside.find_first_of(":=") != inside.npos) return {};  // other values
    for (const char letter : inside)
      if (is_alpha(letter)) letters += lower(letter);
    return letters.empty() ? letters : "(" + letters + ")";
  }
  std::size_t end = 0;
  while (end < rest.size() && (is_alpha(rest[end]) || rest[end] == '/')) ++end;
  std::string word;
  for (const char letter : rest.substr(0, end)) word += lower(letter);
  const bool is_name = end < rest.size() && (is_word(rest[end]) || rest[end] == ':' || rest[end] == '=');
  return !is_name && std::ranges::find(units, word) != std::end(units) ? word : "";
}

// The words before a key that make another name of it: "best" of "step 100 best val_bpb: 0.95". They begin after a
// value, a comma, a bar or a semicolon; digits in them ("rank0") and brackets don't count.
std::string words_before(std::string_view line) {
  std::string words;
  while (true) {
    const std::size_t last = line.find_last_not_of(" \t\"'{}()[]");
    if (last == line.npos || std::string_view(",|;").find(line[last]) != std::string_view::npos) return words;
    std::size_t first = last + 1;
    while (first > 0 && std::string_view(" \t\"'{}()[],|;").find(line[first - 1]) == std::string_view::npos) --first;
    const std::string_view token = line.substr(first, last + 1 - first);
    const std::size_t sign = token.find_first_of("=:");
    const bool is_value = is_digit(token.front()) ||
                          (token.size() > 1 && !is_word(token.front()) && is_digit(token[1])) ||
                          (sign != token.npos && sign > 0 && sign + 1 < token.size());
    if (is_value) return words;
    std::string letters;
    for (const char letter : token)
      if (is_word(letter) && !is_digit(letter)) letters += lower(letter);
    for (const std::string_view prefix : {"rank", "default", "info", "debug", "warning"})  // of any line
      if (letters == prefix) letters.clear();
    if (!letters.empty()) words = letters + (words.empty() ? "" : " ") + words;
    line = line.substr(0, first);
  }
}

struct PrintedValues {
  std::vector<MetricPoint> values;
  std::string unit;
};

// Every value that the lines give under this name: "val_bpb: 0.9979", "val_bpb=0.9979", "\"val_bpb\": 0.9979". The name
// stands alone: "train/val_bpb" and "ema-val_bpb" are others. "best val_bpb" is the name only where nothing is called
// so without another word, and one word alone is before it. Units and remarks behind the value make others of it too.
// Throws NoFigure if there are several, and the last one isn't without both.
PrintedValues printed_values(const std::filesystem::path& log, const std::string& name) {
  using Beside = std::pair<std::string, std::string>;  // the words before the name, and what is behind the value
  std::map<Beside, std::vector<MetricPoint>> found;
  std::string last;  // behind the last value of those without words
  std::ifstream file(log);
  for (std::string line; std::getline(file, line);) {
    for (std::size_t at = line.find(name); at != line.npos; at = line.find(name, at + 1)) {
      if (at > 0 && (is_word(line[at - 1]) || std::string_view("/-.@+\\").find(line[at - 1]) != std::string_view::npos))
        continue;  // another name
      std::string_view rest;
      const auto value = value_behind(line, at + name.size(), rest);
      if (!value) continue;
      const std::string before = words_before(std::string_view(line).substr(0, at)), unit = unit_behind(rest);
      std::vector<MetricPoint>& values = found[{before, unit}];
      values.push_back({.step = static_cast<std::int64_t>(values.size()), .value = *value});
      if (before.empty()) last = unit;
    }
  }
  if (found.contains({"", ""}) && last.empty()) return {found[{"", ""}], ""};
  const auto alone = std::ranges::count_if(found, [](const auto& each) { return each.first.first.empty(); });
  if (alone > 1)
    throw NoFigure("has several values called " + name + ", the last one with \"" + last +
                   "\" behind it and others without; print the one that counts last, and alone");
  if (alone == 1 || found.size() == 1) return {found.begin()->second, found.begin()->first.second};
  if (found.empty()) return {};
  throw NoFigure("has several values called " + name + " (\"" + found.begin()->first.first + "\", \"" +
                 std::next(found.begin())->first.first + "\" before it), and none that is called so alone");
}

// The values of a metric: those that the log calls so, and those of the steps' own field.
std::vector<MetricPoint> values_named(const LoggedRun& logged, const std::string& name) {
  std::vector<MetricPoint> values;
  if (const auto found = logged.metrics.find(name); found != logged.metrics.end()) values = found->second.second;
  const Quantity quantity = quantity_named(name);
  if (!is_field(quantity)) return values;
  std::map<std::int64_t, double> by_step;  // of a run that went on from an earlier step the newer values count
  for (const StepRecord& step : logged.steps)
    if (const double value = stepladder::value_of(step, quantity); !is_missing(value)) by_step[step.step] = value;
  for (const auto& [step, value] : by_step) values.push_back({.step = step, .value = value});
  return values;
}

LogFigure metric_of(const LoggedRun& logged, const MetricFigure& figure) {
  const bool is_whole = logged.problem.empty();  // else the lines may go on where the reader stopped
  std::string unit;
  std::size_t count = 0;
  const auto printed = [&] {
    if (figure.kind == MetricFigure::Kind::at) return missing;
    const PrintedValues found = printed_values(logged.log, figure.metric);
    unit = found.unit;
    count = found.values.size();
    return value_of(found.values, figure);
  };
  double value = is_whole ? missing : printed();
  if (is_missing(value)) {
    const std::vector<MetricPoint> values = values_named(logged, figure.metric);
    if (is_extreme(figure)) count = values.size();
    value = value_of(values, figure);
  }
  if (is_missing(value) && is_whole) value = printed();
  if (is_missing(value)) throw NoFigure("has no " + name_of(figure));
  if (!std::isfinite(value)) throw NoFigure("has no finite " + name_of(figure));
  const auto found = logged.metrics.find(figure.metric);
  return {.value = value,
          .unit = unit.empty() && found != logged.metrics.end() ? found->second.first.unit : unit,
          .printed = count};
}

}  // namespace

const char* to_string(FigureBy by) {
  return by_enum<FigureBy>("throughput", "loss", "wall", "metric")[by];
}

std::optional<FigureBy> figure_by(std::string_view name) {
  for (const FigureBy by : {FigureBy::throughput, FigureBy::loss, FigureBy::wall, FigureBy::metric})
    if (name == to_string(by)) return by;
  return {};
}

std::string name_of(const FigureQuestion& question) {
  return question.by == FigureBy::metric ? name_of(question.metric) : to_string(question.by);
}

std::string option_text(const FigureQuestion& question) {
  if (question.by != FigureBy::metric) return "--by " + name_of(question);
  return "--metric " + name_of(question) + (question.lower_is_better ? " --lower" : "");
}

std::string unknown_direction(const std::string& metric) {
  return "nobody says whether a lower or higher " + metric + " is better; give --lower or --higher";
}

std::string unit_words(const std::string& unit) {
  return unit.empty() ? "a value without a unit" : unit;
}

bool takes_time(const FigureQuestion& question) {
  return question.by == FigureBy::throughput || question.by == FigureBy::wall;
}

LoggedRun read_logged_run(const std::filesystem::path& log) {
  LoggedRun logged{.log = log};
  CollectingSink sink(logged);
  try {
    StoreFile input{log};
    ImportOptions options;
    options.known_stages = &known_stages();
    importer_for(input, options).read(input, options, sink);
  } catch (const ImportError& error) {
    logged.problem = error.what();
  }
  return logged;
}

LogFigure figure_of_log(const LoggedRun& logged, const FigureQuestion& question) {
  if (question.by == FigureBy::metric) return metric_of(logged, question.metric);
  if (!logged.problem.empty()) throw NoFigure(logged.problem);
  Series steps;
  for (const StepRecord& step : logged.steps) steps.append(step);
  const Summary summary = summarise(logged.run, steps);
  if (question.by == FigureBy::loss) {
    const double loss = is_missing(summary.val_loss_last) ? summary.loss_last : summary.val_loss_last;
    if (!std::isfinite(loss)) throw NoFigure("has no finite loss at its end");
    return {loss, "nats"};
  }
  const double share = summary.dt_ms_median > 0 ? summary.dt_grain_ms / summary.dt_ms_median : 0;  // of a grain
  if (summary.tokens_per_s > 0) return {1 / summary.tokens_per_s, "s/token", share / summary.tokens_per_s};
  if (summary.dt_ms_median > 0) return {summary.dt_ms_median / 1e3, "s/step", summary.dt_grain_ms / 1e3};
  throw NoFigure("has no step times");
}

}  // namespace stepladder
