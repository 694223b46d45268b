// Reads curves on one thread for all charts. Each frame replaces what the frame before wanted, and a curve that is
// being read, or was read and not taken, isn't queued again. Errors are values: a lock or a bad disk becomes `problem`.
#include "app/curves/curve_reader.h"

#include <exception>
#include <set>

#include "storage/errors.h"

namespace stepladder {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t whole_buckets = 512;
constexpr std::size_t zoomed_columns = 2000;
constexpr std::chrono::milliseconds between_wakes{16};

}  // namespace

CurveWanted::Key CurveWanted::key() const {
  return {run, quantity, is_steps, zoom.has_value()};
}

CurveRead read_curve(RunStore& store, const CurveWanted& wanted) {
  const auto begun = Clock::now();
  const auto [first, last] = wanted.zoom.value_or(std::pair<std::int64_t, std::int64_t>());
  CurveRead read{.wanted = wanted};
  if (wanted.is_steps) {
    read.steps = std::make_shared<Series>(store.series(wanted.run, first, last));
  } else if (wanted.zoom) {
    OverviewCurve curve = curve_of(store.overview(wanted.run, wanted.quantity, first, last, zoomed_columns));
    curve.first = first;
    curve.last = last;
    read.curve = std::make_shared<OverviewCurve>(std::move(curve));
  } else {
    read.curve =
        std::make_shared<OverviewCurve>(curve_of(coarser(store.overview(wanted.run, wanted.quantity), whole_buckets)));
  }
  read.at = Clock::now();
  read.took = read.at - begun;
  return read;
}

namespace {

template <class Store>
CurveRead read_or_say(const Store& store, const CurveWanted& wanted) {
  try {
    return read_curve(store(), wanted);
  } catch (const std::exception& error) {  // StorageError: the disk, or a lock that another process holds
    return {.wanted = wanted, .curve = {}, .steps = {}, .problem = error_text(error), .at = Clock::now()};
  }
}

}  // namespace

CurveReader::CurveReader(RunStore& store, std::function<void()> wake)
    : store_(store),
      file_(store.file()),
      mode_(store.read_only() ? RunStore::Mode::read_only : RunStore::Mode::read_write),
      wake_(std::move(wake)) {}

void CurveReader::want(const std::vector<CurveWanted>& wanted) {
  bool must_start = false;
  {
    const MutexLock lock(mutex_);
    wanted_.clear();
    std::set<CurveWanted::Key> known;  // there may be thousands
    // One that is being read now is asked for again in the next frame if it isn't enough.
    if (reading_) known.insert(reading_->key());
    for (const CurveRead& each : read_) known.insert(each.wanted.key());
    for (const CurveWanted& each : wanted)
      if (known.insert(each.key()).second) wanted_.push_back(each);
    must_start = !wanted_.empty() && !is_reading_ && !file_.empty();
    is_reading_ = is_reading_ || must_start;
  }
  if (!must_start) return;
  job_.cancel();  // the last one has read everything that it was asked for
  try {
    job_.start([this](const JobControl& job) {
      read_wanted(job);
      return true;
    });
  } catch (...) {  // no thread: the next frame asks again
    MutexLock lock(mutex_);
    is_reading_ = false;
    throw;
  }
}

std::vector<CurveRead> CurveReader::take(std::chrono::milliseconds patience) {
  MutexLock lock(mutex_);
  if (file_.empty()) {
    for (const CurveWanted& each : std::exchange(wanted_, {}))
      read_.push_back(read_or_say([&]() -> RunStore& { return store_; }, each));
  } else if (patience > patience.zero()) {
    changed_.wait_for(lock, patience, [this]() REQUIRES(mutex_) { return has_all(); });
  }
  return std::exchange(read_, {});
}

bool CurveReader::is_busy() const {
  const MutexLock lock(mutex_);
  return !has_all() || !read_.empty();
}

void CurveReader::read_wanted(const JobControl& job) {
  const auto own_store = [this]() -> RunStore& {
    if (!own_store_) own_store_ = RunStore::open(file_, mode_);
    return *own_store_;
  };
  Clock::time_point woken;
  MutexLock lock(mutex_);
  while (!wanted_.empty() && !job.is_interrupted()) {
    reading_ = wanted_.front();
    wanted_.pop_front();
    const CurveWanted wanted = *reading_;
    lock.unlock();
    CurveRead read = read_or_say(own_store, wanted);
    lock.lock();
    reading_.reset();
    read_.push_back(std::move(read));
    const bool wakes = has_all() || Clock::now() - woken >= between_wakes;
    if (!wakes) continue;
    woken = Clock::now();
    lock.unlock();
    changed_.notify_all();
    wake_();
    lock.lock();
  }
  is_reading_ = false;
}

}  // namespace stepladder
