#include "app/figures/trace.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "app/run_json.h"

namespace stepladder {
namespace {

bool has_clock(const std::vector<StepRecord>& steps) {
  return std::all_of(steps.begin(), steps.end(), [](const StepRecord& step) { return std::isfinite(step.at); });
}

bool is_timed(const StepRecord& step) {
  return std::isfinite(step.dt_ms) && step.dt_ms >= 0;
}

double start_s(const StepRecord& step) {
  return step.at - (is_timed(step) ? step.dt_ms / 1000 : 0);
}

// Whole nanoseconds: finer than any clock here, and short in the file.
double microseconds(double value) {
  return std::round(value * 1000) / 1000;
}

class Writer {
 public:
  void event(const Json& event) {
    text_ += (text_.empty() ? "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n" : ",\n") +
             event.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  std::string finish(const Json& other) {
    if (text_.empty()) text_ = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
    return text_ + "\n],\"otherData\":" + other.dump(-1, ' ', false, Json::error_handler_t::replace) + "}\n";
  }

 private:
  std::string text_;
};

void slice(Writer& writer, const std::string& name, std::int64_t run, int thread, double at, double duration,
           Json arguments = {}) {
  Json event = {{"name", name},           {"cat", thread == 1 ? "step" : "part"}, {"ph", "X"},
                {"ts", microseconds(at)}, {"dur", microseconds(duration)},        {"pid", run},
                {"tid", thread}};
  if (!arguments.is_null()) event["args"] = std::move(arguments);
  writer.event(event);
}

void add_parts(Writer& writer, const StepRecord& step, std::int64_t run, double at) {
  for (const NamedStepPart& part : all_step_parts) {
    const double ms = step.parts.*part.ms;
    if (!std::isfinite(ms) || ms <= 0) continue;
    slice(writer, std::string(part.name), run, 2, at, ms * 1000);
    at += ms * 1000;
  }
}

void add_run(Writer& writer, const Run& run, const std::vector<StepRecord>& steps, double origin_s) {
  const auto name = [&](const char* what, int thread, const std::string& text) {
    writer.event({{"name", what}, {"ph", "M"}, {"pid", run.id}, {"tid", thread}, {"args", {{"name", text}}}});
  };
  name("process_name", 0, "run " + std::to_string(run.id) + ": " + run.name);
  name("thread_name", 1, "steps");
  name("thread_name", 2, "parts");
  const bool clock = has_clock(steps);
  double end = 0;
  for (const StepRecord& step : steps) {
    if (!is_timed(step)) continue;
    // Wall clock and step timer are two clocks: a step never begins before the previous one has ended.
    const double at = clock ? std::max(end, (start_s(step) - origin_s) * 1e6) : end;
    const double duration = step.dt_ms * 1000;
    Json arguments = {{"step", step.step},
                      {"loss", number(step.loss)},
                      {"tokens", step.tokens > 0 ? Json(step.tokens) : Json()},
                      {"lr", number(step.lr)},
                      {"grad_norm", number(step.grad_norm)}};
    slice(writer, "step " + std::to_string(step.step), run.id, 1, at, duration, std::move(arguments));
    add_parts(writer, step, run.id, at);
    if (std::isfinite(step.loss))
      writer.event({{"name", "loss"},
                    {"ph", "C"},
                    {"ts", microseconds(at + duration)},
                    {"pid", run.id},
                    {"args", {{"loss", step.loss}}}});
    end = at + duration;
  }
}

}  // namespace

std::string trace_json(const std::vector<TracedRun>& runs) {
  double origin_s = missing;
  Json end_to_end = Json::array();
  for (const TracedRun& traced : runs) {
    if (traced.steps->empty()) continue;
    if (!has_clock(*traced.steps)) {
      end_to_end.push_back(traced.run->id);
      continue;
    }
    const double start = start_s(traced.steps->front());
    origin_s = is_missing(origin_s) ? start : std::min(origin_s, start);
  }
  Writer writer;
  for (const TracedRun& traced : runs) add_run(writer, *traced.run, *traced.steps, origin_s);
  return writer.finish({{"program", std::string("stepladder ") + STEPLADDER_VERSION},
                        {"origin_unix_s", number(origin_s)},
                        {"runs_without_wall_clock", end_to_end}});
}

}  // namespace stepladder
