// One file that TextFollower takes in.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "app/import/contents.h"
#include "app/import/text_follower.h"
#include "engine/stage.h"
#include "storage/database/process.h"
#include "storage/importers/importer.h"
#include "storage/regular_file.h"

namespace stepladder {

struct ImportedPoints {
  Metric metric;
  std::vector<MetricPoint> points;
};
struct BegunRun {
  Run run;
};
struct EndedRun {
  Run run;
};
using ImportedEvent = std::variant<BegunRun, StepRecord, ImportedPoints, EndedRun>;

// Keeps what an importer reads as values.
class EventSink : public ImportSink {
 public:
  void begin_run(const Run& run) override { events_.emplace_back(BegunRun{run}); }
  void step(const StepRecord& record) override { events_.emplace_back(record); }
  void metric(const Metric& metric, std::span<const MetricPoint> points) override {
    events_.emplace_back(ImportedPoints{metric, {points.begin(), points.end()}});
  }
  void end_run(const Run& run) override { events_.emplace_back(EndedRun{run}); }
  void ladder(const Ladder&, std::span<const int>) override {}
  void note(std::int64_t, std::string) override {}

  std::vector<ImportedEvent> take() { return std::exchange(events_, {}); }

 private:
  std::vector<ImportedEvent> events_;
};

// Names and numbers of what an importer has told so far.
class ToldHash {
 public:
  void take(const ImportedEvent& event) {
    ++events_;
    std::visit([this](const auto& told) { take(told); }, event);
  }
  std::int64_t events() const { return events_; }
  std::string text() const { return hash_.text(); }

 private:
  void take(const BegunRun& begun) { take(begun.run.stage); }
  void take(const EndedRun&) {}
  void take(const StepRecord& step) {
    take(step.step);
    for (const double value : {step.loss, step.val_loss, step.dt_ms, step.lr, step.grad_norm}) take(value);
  }
  void take(const ImportedPoints& told) {
    take(told.metric.name);
    for (const MetricPoint& point : told.points) {
      take(point.step);
      take(point.value);
    }
  }
  void take(const std::string& text) { hash_.take(text + "\n"); }
  template <class Number>
  requires std::is_arithmetic_v<Number>
  void take(Number number) { hash_.take({reinterpret_cast<const char*>(&number), sizeof number}); }

  std::int64_t events_ = 0;
  ContentHash hash_;
};

class TextFollower::File {
 public:
  File(RunStore& store, const FollowRequest& request, const std::function<void(const std::string&)>& tell,
       std::filesystem::path path, std::optional<RunId> joined, std::optional<Printed> printed = std::nullopt)
      : store_(store),
        request_(request),
        tell_(tell),
        path_(std::move(path)),
        source_("text " + path_.string()),
        joined_(joined),
        printed_(std::move(printed)),
        options_(printed_ ? printed_->options : ImportOptions{}) {
    options_.live = true;
    options_.known_stages = &known_stages();
  }

  bool take_in();
  void settle(bool at_end);
  void find_writer(const std::map<std::filesystem::path, std::int64_t>& open);
  FollowedRun followed() const {
    return {.run = run_,
            .folder = path_,
            .ranks = 1,
            .values_read = values_,
            .format = importer_->id,
            .newest_at = missing,
            .ended = ended_};
  }
  RunId run() const { return run_; }
  bool is_open() const { return reader_ && !ended_; }

 private:
  enum class Batch {
    lines,  // by the lines so far: in any order of pieces the same
    held,   // what the next lines may complete, and the reader reports again
    end,
  };
  using Losses = std::map<std::int64_t, double>;  // by step

  bool begin();
  bool is_replaced() const;
  bool take_piece();
  std::string why_refused(const std::function<void()>& read);
  void give_rest();
  void store_rest();
  void store_held(std::vector<ImportedEvent> events);
  bool is_another_file(const std::vector<ImportedEvent>& held);
  void start_again(bool as_new_run);
  void end();
  void store(std::vector<ImportedEvent> events, Batch batch);
  std::string state_of(const ToldHash& told, const Losses& held, bool has_ended) const;
  void store(const ImportedEvent& event);
  void begin_run(const Run& told);
  void write_waiting();
  void leave_out_stored(std::vector<ImportedEvent>& events);

  RunStore& store_;
  const FollowRequest& request_;
  const std::function<void(const std::string&)>& tell_;
  const std::filesystem::path path_;
  const std::string source_;
  const std::optional<RunId> joined_;
  const std::optional<Printed> printed_;
  ImportOptions options_;
  const Importer of_output_ = importers::step_log();
  const Importer* importer_ = nullptr;
  EventSink events_;  // of the reader
  std::unique_ptr<ImportReader> reader_;
  std::int64_t given_ = 0;  // bytes
  ToldHash told_;
  FollowedSource stored_;
  std::int64_t stored_events_ = 0;  // the reader must tell these again, with this hash
  std::string stored_hash_;
  std::int64_t merge_until_ = -1;  // steps that an end that wasn't one has told already
  Losses held_;                    // steps that were stored while they were held back
  bool is_held_stored_ = true;
  bool rereads_ = false;               // what an earlier reader has stored
  std::unique_ptr<RegularFile> open_;  // while it may grow: also when it has lost its name
  nlohmann::ordered_json mark_;
  std::vector<StepRecord> waiting_;
  RunId run_ = 0;
  bool begun_ = false;  // the importer has begun a run since it began
  bool anew_ = false;
  bool ended_ = false;
  bool not_ours_ = false;
  std::int64_t values_ = 0;
  std::optional<ProcessIdentity> writer_;
  bool is_writer_known_ = false;  // as far as somebody has looked
  Clock::time_point grown_ = Clock::now();
  Clock::time_point next_look_{};
  bool is_looked_at_ = false;
  bool is_rest_due_ = false;
  std::string stamp_ = "?";
};

}  // namespace stepladder
