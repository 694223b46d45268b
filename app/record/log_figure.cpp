// Reads a log's figure with the importers; values that no importer recognises are read from the lines themselves.
#include "app/record/log_figure.h"

#include <cmath>
#include <fstream>
#include <vector>

#include "app/import/file_input.h"
#include "engine/stage.h"
#include "storage/analysis/metric_figures.h"
#include "storage/analysis/overview.h"
#include "storage/analysis/summary.h"
#include "storage/database/metrics/figure_table.h"
#include "storage/importers/importer.h"
#include "storage/quantity.h"
#include "storage/speedrun/log_line.h"

namespace stepladder {
namespace {

// Keeps the summary of the last run, and the values of one name.
class SummarySink : public ImportSink {
 public:
  explicit SummarySink(const std::string& name) : name_(name), quantity_(quantity_named(name)) {}

  void begin_run(const Run&) override {
    steps_ = {};
    values.clear();
  }
  void step(const StepRecord& record) override { steps_.append(record); }
  void metric(const Metric& metric, std::span<const MetricPoint> points) override {
    if (metric.name != name_) return;
    if (!metric.unit.empty()) unit = metric.unit;
    values.insert(values.end(), points.begin(), points.end());
  }
  void end_run(const Run& run) override {
    summary = summarise(run, steps_);
    tokens_per_step = run.tokens_per_step;
    if (name_.empty() || !is_field(quantity_)) return;
    for (std::size_t i = 0; i < steps_.size(); ++i)
      if (const double value = stepladder::value_of(steps_, i, quantity_); !is_missing(value))
        values.push_back({.step = steps_.step[i], .value = value});
  }
  void ladder(const Ladder&, std::span<const int>) override {}
  void note(std::int64_t, std::string) override {}

  Summary summary;
  std::int64_t tokens_per_step = 0;
  std::vector<MetricPoint> values;
  std::string unit;

 private:
  const std::string name_;
  const Quantity quantity_;
  Series steps_;
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

// Every value that the lines give under this name: "val_bpb: 0.9979", "val_bpb=0.9979", "\"val_bpb\": 0.9979".
std::vector<MetricPoint> printed_values(const std::filesystem::path& log, const std::string& name) {
  std::vector<MetricPoint> values;
  std::ifstream file(log);
  for (std::string line; std::getline(file, line);) {
    for (const char* const end : {":", "=", " :", " =", "\":", "':"}) {
      const auto value = number_after(line, name + end);
      if (!value) continue;
      values.push_back({.step = static_cast<std::int64_t>(values.size()), .value = *value});
      break;
    }
  }
  return values;
}

LogFigure metric_of(const std::filesystem::path& log, const MetricFigure& figure, const SummarySink& sink) {
  double value = value_of(sink.values, figure);
  if (is_missing(value) && figure.kind != MetricFigure::Kind::at)
    value = value_of(printed_values(log, figure.metric), figure);
  if (is_missing(value)) throw NoFigure("has no " + name_of(figure));
  if (!std::isfinite(value)) throw NoFigure("has no finite " + name_of(figure));
  return {value, sink.unit};
}

}  // namespace

const char* to_string(FigureBy by) {
  switch (by) {
    case FigureBy::throughput:
      return "throughput";
    case FigureBy::loss:
      return "loss";
    case FigureBy::wall:
      return "wall";
    case FigureBy::metric:
      return "metric";
  }
  return "";
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

bool takes_time(const FigureQuestion& question) {
  return question.by == FigureBy::throughput || question.by == FigureBy::wall;
}

LogFigure figure_of_log(const std::filesystem::path& log, const FigureQuestion& question) {
  SummarySink sink(question.by == FigureBy::metric ? question.metric.metric : "");
  try {
    FileInput input{log};
    ImportOptions options;
    options.known_stages = &known_stages();
    importer_for(input, options).read(input, options, sink);
  } catch (const ImportError& error) {
    if (question.by != FigureBy::metric) throw NoFigure(error.what());
  }
  if (question.by == FigureBy::metric) return metric_of(log, question.metric, sink);
  const Summary& summary = sink.summary;
  if (question.by == FigureBy::loss) {
    const double loss = is_missing(summary.val_loss_last) ? summary.loss_last : summary.val_loss_last;
    if (!std::isfinite(loss)) throw NoFigure("has no finite loss at its end");
    return {loss, "nats"};
  }
  if (summary.tokens_per_s > 0) return {1 / summary.tokens_per_s, "s/token"};
  if (summary.dt_ms_median > 0) return {summary.dt_ms_median / 1e3, "s/step"};
  throw NoFigure("has no step times");
}

}  // namespace stepladder
