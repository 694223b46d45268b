// Reads curves from the database on a thread of its own, so that no frame waits for the disk.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "app/curves/overview_curve.h"
#include "app/job.h"
#include "storage/database/run_store.h"
#include "storage/thread_safety.h"

namespace stepladder {

// A curve that a chart lacks, or steps that may have got late values.
struct CurveWanted {
  RunId run = 0;
  Quantity quantity = Quantity::loss;
  // First and last step of the visible part, which is read at a window's resolution. Nullopt: the whole run, in a few
  // hundred points.
  std::optional<std::pair<std::int64_t, std::int64_t>> zoom = {};
  bool is_steps = false;       // the steps of `zoom` themselves, as they are now, instead of a curve
  std::uint64_t asked_at = 0;  // returned to the caller: what was known at the time of the request
  std::uint64_t logged = 0;

  // Equal if both are the whole curve, both its visible part, or both steps; the visible ranges may differ.
  using Key = std::tuple<RunId, Quantity, bool, bool>;
  Key key() const;
};

struct CurveRead {
  CurveWanted wanted;
  std::shared_ptr<const OverviewCurve> curve;  // null: steps were wanted, or it could not be read
  std::shared_ptr<const Series> steps;         // null: a curve was wanted, or they could not be read
  std::string problem;                         // why it could not be read
  std::chrono::steady_clock::time_point at;    // when the reading was done
  std::chrono::steady_clock::duration took{};
};

// Blocks while it reads. Throws StorageError.
CurveRead read_curve(RunStore& store, const CurveWanted& wanted);

// Used by one thread, which draws; its job reads one curve after the other through a connection of its own.
class CurveReader {
 public:
  // `store` must outlive this. One in memory has a single connection, so its curves are read by take() itself. `wake`
  // is called on the other thread when curves can be taken: after the last one, and about 60 times a second before. The
  // destructor waits for the curve that is being read.
  CurveReader(RunStore& store, std::function<void()> wake);

  // Requests the curves that this frame's charts lack, the most urgent first. Replaces earlier requests that haven't
  // begun, so that nothing is read for a view that has changed. Never blocks.
  void want(const std::vector<CurveWanted>& wanted);

  // The curves that were read since the last call. Waits at most `patience` for all that are wanted.
  std::vector<CurveRead> take(std::chrono::milliseconds patience);

  bool is_busy() const;  // something is wanted, or read and not yet taken

 private:
  void read_wanted(const JobControl& job);
  bool has_all() const REQUIRES(mutex_) { return wanted_.empty() && !reading_; }

  RunStore& store_;
  const std::filesystem::path file_;  // empty: in memory
  const RunStore::Mode mode_;
  const std::function<void()> wake_;
  mutable Mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<CurveWanted> wanted_ GUARDED_BY(mutex_);
  std::optional<CurveWanted> reading_ GUARDED_BY(mutex_);
  std::vector<CurveRead> read_ GUARDED_BY(mutex_);
  bool is_reading_ GUARDED_BY(mutex_) = false;  // the job takes what is wanted
  std::optional<RunStore> own_store_;           // of the job
  Job<bool> job_;                               // as long as something is wanted
};

}  // namespace stepladder
