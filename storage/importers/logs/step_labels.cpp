#include "storage/importers/logs/step_labels.h"

#include <cmath>

namespace stepladder {

void StepLabels::read(const StepLine& line) {
  if (time_unit == TimeUnit::unknown && !is_missing(line.time)) time_unit = line.time_unit;
  if (elapsed_unit == TimeUnit::unknown && !is_missing(line.elapsed)) elapsed_unit = line.elapsed_unit;
  if (rate == RateLabel::none && !is_missing(line.throughput)) {
    rate = line.rate;
    rate_text = line.rate_text;
  }
  if (planned_steps == 0 && line.total > 0) planned_steps = line.total;
  process_clock |= line.process_clock;
  rounded_tokens |= line.rounded_tokens;
}

void StepLabels::convert(const StepLine& line, const RunProgress& run, PrintedStep& printed) const {
  const auto turn = [](double& value, TimeUnit from, TimeUnit into) {
    if (from == into || from == TimeUnit::unknown || into == TimeUnit::unknown || is_missing(value)) return;
    value *= milliseconds_in(from) / milliseconds_in(into);
  };
  turn(printed.time, line.time_unit, time_unit);
  turn(printed.elapsed, line.elapsed_unit, elapsed_unit);
  if (line.interval) {
    const std::int64_t gap = run.steps > 0 ? printed.step - run.last_step : 0;
    if (gap > 0) {
      printed.time /= static_cast<double>(gap);
    } else {  // so many steps as its steps/s says
      const double seconds = printed.time * (time_unit == TimeUnit::unknown ? 1 : milliseconds_in(time_unit) / 1000);
      const double covered = std::round(seconds * printed.iterations);
      printed.time = covered >= 1 ? printed.time / covered : missing;
    }
  }
  if (!is_missing(printed.throughput) && line.rate != rate) printed.throughput = missing;
}

}  // namespace stepladder
