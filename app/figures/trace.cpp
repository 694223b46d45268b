// Writes the steps of runs on the wall clock as Chrome's trace events. Each run is read twice, first to find when its
// steps began, then to write; only the current piece is in memory.
#include "app/figures/trace.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "app/runs/run_json.h"

namespace stepladder {
namespace {

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

// The time when a run's steps began, found from all of them.
struct Clock {
  bool any_steps = false;
  bool on_every_step = true;
  double start_s = missing;

  void add(std::span<const StepRecord> steps) {
    if (!any_steps && !steps.empty()) start_s = stepladder::start_s(steps.front());
    any_steps = any_steps || !steps.empty();
    on_every_step =
        on_every_step && std::ranges::all_of(steps, [](const StepRecord& step) { return std::isfinite(step.at); });
  }
};

class Writer {
 public:
  explicit Writer(const Sink& sink) : sink_(sink) {}

  void event(const Json& event) {
    text_ += (has_events_ ? ",\n" : "\n") + event.dump(-1, ' ', false, Json::error_handler_t::replace);
    has_events_ = true;
    if (text_.size() < 1 << 20) return;
    sink_(text_);
    text_.clear();
  }
  void finish(const Json& other) {
    sink_(text_ + "\n],\"otherData\":" + other.dump(-1, ' ', false, Json::error_handler_t::replace) + "}\n");
  }

 private:
  const Sink& sink_;
  std::string text_ = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";  // not yet in the sink
  bool has_events_ = false;
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
    slice(writer, std::string(in_words(part.name)), run, 2, at, ms * 1000);
    at += ms * 1000;
  }
}

void add_step(Writer& writer, const StepRecord& step, std::int64_t run, double at) {
  const double duration = step.dt_ms * 1000;
  Json arguments = {{"step", step.step},
                    {"loss", number(step.loss)},
                    {"tokens", step.tokens > 0 ? Json(step.tokens) : Json()},
                    {"lr", number(step.lr)},
                    {"grad_norm", number(step.grad_norm)}};
  slice(writer, "step " + std::to_string(step.step), run, 1, at, duration, std::move(arguments));
  add_parts(writer, step, run, at);
  if (std::isfinite(step.loss))
    writer.event({{"name", "loss"},
                  {"ph", "C"},
                  {"ts", microseconds(at + duration)},
                  {"pid", run},
                  {"args", {{"loss", step.loss}}}});
}

void add_run(Writer& writer, const Run& run, const ForStepsOf& for_steps_of, bool has_clock, double origin_s) {
  const auto name = [&](const char* what, int thread, const std::string& text) {
    writer.event({{"name", what}, {"ph", "M"}, {"pid", run.id}, {"tid", thread}, {"args", {{"name", text}}}});
  };
  name("process_name", 0, "run " + std::to_string(run.id) + ": " + run.name);
  name("thread_name", 1, "steps");
  name("thread_name", 2, "parts");
  double end = 0;
  for_steps_of(run, [&](std::span<const StepRecord> steps) {
    for (const StepRecord& step : steps) {
      if (!is_timed(step)) continue;
      // Wall clock and step timer are two clocks: a step never begins before the previous one has ended.
      const double at = has_clock ? std::max(end, (start_s(step) - origin_s) * 1e6) : end;
      add_step(writer, step, run.id, at);
      end = at + step.dt_ms * 1000;
    }
  });
}

}  // namespace

void write_trace(const std::vector<Run>& runs, const ForStepsOf& for_steps_of, const Sink& sink) {
  double origin_s = missing;
  Json end_to_end = Json::array();
  std::vector<bool> has_clock;
  for (const Run& run : runs) {
    Clock clock;
    for_steps_of(run, [&](std::span<const StepRecord> steps) { clock.add(steps); });
    has_clock.push_back(clock.on_every_step);
    if (!clock.on_every_step) end_to_end.push_back(run.id);
    if (clock.any_steps && clock.on_every_step)
      origin_s = is_missing(origin_s) ? clock.start_s : std::min(origin_s, clock.start_s);
  }
  Writer writer(sink);
  for (std::size_t i = 0; i < runs.size(); ++i) add_run(writer, runs[i], for_steps_of, has_clock[i], origin_s);
  writer.finish({{"program", std::string("stepladder ") + STEPLADDER_VERSION},
                 {"origin_unix_s", number(origin_s)},
                 {"runs_without_wall_clock", end_to_end}});
}

}  // namespace stepladder
