// Posts what an importer reads of a log to the recorder while the log is being printed.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "storage/database/recorder.h"
#include "storage/importers/importer.h"

namespace stepladder {

// A run of a watched program that another tracker has recorded in part.
struct RecordedRun {
  RunId run = 0;
  RecordedSteps steps;
  bool ended = false;  // that tracker has recorded its end
};

// Posts the importer's steps to the writer thread. The first run is `first`, which has a row already; a program that
// begins another run gets another row. A tracker that reads an output again posts only what isn't recorded yet.
class LiveSink : public ImportSink {
 public:
  // `recorded` are the program's runs so far, `first` included, if another tracker has begun. Unless `whole`, the
  // output has a gap between its head and the rest, where the caller calls `skip_gap`.
  LiveSink(std::function<RunId(const Run&)> create_run, Recorder& recorder, const Run& first,
           std::vector<RecordedRun> recorded = {}, bool whole = true)
      : create_run_(std::move(create_run)),
        recorder_(recorder),
        template_(first),
        recorded_(std::move(recorded)),
        whole_(whole),
        run_(first.id),
        post_([this](const RunEvent& event, bool) { recorder_.post(event); }) {}

  void begin_run(const Run& run) override;
  void step(const StepRecord& record) override;
  void metric(const Metric& metric, std::span<const MetricPoint> points) override;
  void end_run(const Run& run) override;
  void note(std::int64_t line, std::string text) override {
    if (text.find("not read as a step") != std::string::npos || text.find("be read as such") != std::string::npos)
      unread_.push_back((line > 0 ? "line " + std::to_string(line) + ": " : "") + text);
  }

  // Passes steps and metrics to `post` instead of the recorder; call it before the first run begins. `post` drops those
  // that are stored already. `steps_are_counted`: the output prints no step numbers.
  using Post = std::function<void(const RunEvent& event, bool steps_are_counted)>;
  void print_to(Post post) { post_ = std::move(post); }

  // The output that follows belongs to the last run, and begins before the first step that isn't recorded.
  void skip_gap();
  void end(RunStatus status, const std::string& reason);  // of the last run; earlier ones have finished
  std::int64_t steps() const { return steps_; }           // read so far, in all runs
  // Of lines that look like steps and weren't read, a sentence each, up to the importer's limit.
  const std::vector<std::string>& unread() const { return unread_; }

 private:
  void start(const Run& run);
  bool has_ended(RunId run) const;

  const std::function<RunId(const Run&)> create_run_;
  Recorder& recorder_;
  Run template_;
  const std::vector<RecordedRun> recorded_;
  bool whole_;
  RunId run_;
  Post post_;
  bool steps_are_counted_ = false;
  std::optional<RunId> previous_;
  std::size_t begun_ = 0;
  std::int64_t steps_ = 0;
  std::vector<std::string> unread_;
  std::int64_t skip_ = 0;                   // so many of the steps that follow are recorded
  std::optional<std::int64_t> skip_until_;  // ... and those up to this one
};

}  // namespace stepladder
