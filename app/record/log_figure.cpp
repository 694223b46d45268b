#include "app/record/log_figure.h"

#include <cmath>
#include <utility>

#include "app/import/file_input.h"
#include "engine/stage.h"
#include "storage/analysis/summary.h"
#include "storage/importers/importer.h"

namespace stepladder {
namespace {

// Keeps the summary of the last run.
class SummarySink : public ImportSink {
 public:
  void begin_run(const Run&) override { steps_ = {}; }
  void step(const StepRecord& record) override { steps_.append(record); }
  void end_run(const Run& run) override {
    summary = summarise(run, steps_);
    tokens_per_step = run.tokens_per_step;
  }
  void ladder(const Ladder&, std::span<const int>) override {}
  void note(std::int64_t, std::string) override {}

  Summary summary;
  std::int64_t tokens_per_step = 0;

 private:
  Series steps_;
};

}  // namespace

const char* to_string(FigureBy by) {
  return by == FigureBy::throughput ? "throughput" : by == FigureBy::loss ? "loss" : "wall";
}

std::optional<FigureBy> figure_by(std::string_view name) {
  for (const FigureBy by : {FigureBy::throughput, FigureBy::loss, FigureBy::wall})
    if (name == to_string(by)) return by;
  return {};
}

LogFigure figure_of_log(const std::filesystem::path& log, FigureBy by) {
  SummarySink sink;
  try {
    FileInput input{log};
    ImportOptions options;
    options.known_stages = &known_stages();
    importer_for(input, options).read(input, options, sink);
  } catch (const ImportError& error) {
    throw NoFigure(error.what());
  }
  const Summary& summary = sink.summary;
  if (by == FigureBy::loss) {
    const double loss = is_missing(summary.val_loss_last) ? summary.loss_last : summary.val_loss_last;
    if (!std::isfinite(loss)) throw NoFigure("has no finite loss at its end");
    return {loss, "nats"};
  }
  if (summary.tokens_per_s > 0) return {1 / summary.tokens_per_s, "s/token"};
  if (summary.dt_ms_median > 0) return {summary.dt_ms_median / 1e3, "s/step"};
  throw NoFigure("has no step times");
}

}  // namespace stepladder
