// Imports a log while it is being printed: its bytes as an importer's input, and its steps posted to the recorder.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "storage/database/recorder.h"
#include "storage/importers/importer.h"

namespace stepladder {

// Fills `piece` with the next bytes and sets their number; false at the end. Blocks.
using MoreBytes = std::function<bool(std::vector<char>& piece, std::size_t& size)>;

inline constexpr std::size_t live_piece_size = 64 * 1024;

class LiveInput : public ImportInput {
 public:
  LiveInput(MoreBytes more, std::filesystem::path path)
      : more_(std::move(more)), path_(std::move(path)), piece_(live_piece_size) {}

  std::string_view head() override;  // the first piece only: it can't wait for later ones
  std::string_view next() override;
  const std::filesystem::path& path() const override { return path_; }

 private:
  MoreBytes more_;
  std::filesystem::path path_;
  std::vector<char> piece_;
  std::string head_;
  bool head_read_ = false;
  bool head_waits_ = false;  // next() hasn't returned it yet
};

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
        run_(first.id) {}

  void begin_run(const Run& run) override;
  void step(const StepRecord& record) override;
  void metric(const Metric& metric, std::span<const MetricPoint> points) override;
  void end_run(const Run& run) override;
  void ladder(const Ladder&, std::span<const int>) override {}
  void note(std::int64_t, std::string) override {}

  // Sends steps and metrics to these functions instead of the recorder; call it before the first run begins. The caller
  // drops those that are stored already.
  struct Printed {
    std::function<void(const StepRecord&)> step;
    std::function<void(const MetricValues&)> values;
  };
  void print_to(Printed printed) { printed_ = std::move(printed); }

  // The output that follows belongs to the last run, and begins before the first step that isn't recorded.
  void skip_gap();
  void end(RunStatus status, const std::string& reason);  // of the last run; earlier ones have finished
  std::int64_t steps() const { return steps_; }           // read so far, in all runs

 private:
  void start(const Run& run);
  bool has_ended(RunId run) const;

  const std::function<RunId(const Run&)> create_run_;
  Recorder& recorder_;
  Run template_;
  const std::vector<RecordedRun> recorded_;
  bool whole_;
  RunId run_;
  Printed printed_;
  std::optional<RunId> previous_;
  std::size_t begun_ = 0;
  std::int64_t steps_ = 0;
  std::int64_t skip_ = 0;                   // so many of the steps that follow are recorded
  std::optional<std::int64_t> skip_until_;  // ... and those up to this one
};

// `more`, and the first 8 MiB of its bytes, `recorded` of them already, are recorded as the run's console output.
MoreBytes with_console(MoreBytes more, Recorder& recorder, RunId run, std::size_t recorded = 0);

// `more`, but it waits before each piece until most of the earlier ones' events are in the database, so that a flood
// takes no memory. Stops waiting if `gives_up`.
MoreBytes with_patience(MoreBytes more, Recorder& recorder, std::function<bool()> gives_up);

}  // namespace stepladder
