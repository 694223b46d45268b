#include "app/import/piecewise_import.h"

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

namespace stepladder {
namespace {

struct GivenUp {};

class EventSink : public ImportSink {
 public:
  std::vector<ImportedEvent> events;

  void begin_run(const Run& run) override { events.emplace_back(BegunRun{run}); }
  void step(const StepRecord& record) override { events.emplace_back(record); }
  void metric(const Metric& metric, std::span<const MetricPoint> points) override {
    events.emplace_back(ImportedPoints{metric, {points.begin(), points.end()}});
  }
  void end_run(const Run& run) override { events.emplace_back(EndedRun{run}); }
  void ladder(const Ladder&, std::span<const int>) override {}
  void note(std::int64_t, std::string) override {}
};

}  // namespace

class PiecewiseImport::Work : public ImportInput, public EventSink {
 public:
  Work(const Importer& importer, const ImportOptions& options, std::filesystem::path path, std::string head)
      : options_(options),
        path_(std::move(path)),
        head_(std::move(head)),
        thread_([this, &importer] { run(importer); }) {}

  ~Work() override {
    {
      std::lock_guard lock(mutex_);
      gives_up_ = true;
      may_run_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  void give(std::string bytes) {
    std::unique_lock lock(mutex_);
    if (done_) return;
    piece_ = std::move(bytes);
    may_run_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !may_run_; });
  }

  // What follows is the importer's while it runs, and the caller's while that waits.
  std::string failure;

  // ImportInput
  std::string_view head() override { return head_; }
  std::string_view next() override {
    std::unique_lock lock(mutex_);
    if (std::exchange(has_begun_, true)) {
      may_run_ = false;
      changed_.notify_all();
      changed_.wait(lock, [this] { return may_run_; });
    }
    if (gives_up_) throw GivenUp();
    return piece_;
  }
  const std::filesystem::path& path() const override { return path_; }

  void holds_back(std::function<void(ImportSink&)> pass_on) override { pass_on_ = std::move(pass_on); }

  std::vector<ImportedEvent> held() {
    std::unique_lock lock(mutex_);
    EventSink sink;
    if (!done_ && has_begun_ && pass_on_) pass_on_(sink);
    return std::move(sink.events);
  }

 private:
  void run(const Importer& importer) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return may_run_; });
    }
    std::string why;
    try {
      if (!gives_up_) importer.read(*this, options_, *this);
    } catch (const GivenUp&) {
    } catch (const std::exception& error) {
      why = error.what();
    }
    std::lock_guard lock(mutex_);
    pass_on_ = nullptr;
    failure = std::move(why);
    done_ = true;
    may_run_ = false;
    changed_.notify_all();
  }

  const ImportOptions options_;
  const std::filesystem::path path_;
  const std::string head_;
  std::string piece_;
  bool has_begun_ = false;
  std::function<void(ImportSink&)> pass_on_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool may_run_ = false;
  bool gives_up_ = false;
  bool done_ = false;
  std::thread thread_;
};

PiecewiseImport::PiecewiseImport(const Importer& importer, const ImportOptions& options, std::filesystem::path path,
                                 std::string head)
    : work_(std::make_unique<Work>(importer, options, std::move(path), std::move(head))) {}

PiecewiseImport::~PiecewiseImport() = default;

void PiecewiseImport::give(std::string bytes) {
  if (!bytes.empty()) work_->give(std::move(bytes));
}

void PiecewiseImport::finish() {
  work_->give({});
}

std::vector<ImportedEvent> PiecewiseImport::take() {
  return std::exchange(work_->events, {});
}

std::vector<ImportedEvent> PiecewiseImport::held() const {
  return work_->held();
}

const std::string& PiecewiseImport::failure() const {
  return work_->failure;
}

}  // namespace stepladder
