// Shares each moment of a step among kinds once (as storage/traces/segments.cpp does for whole steps), and keeps
// running sums at intervals, so that the sums of a stretch need only its two ends.
#include "app/profile/range_sums.h"

#include <algorithm>
#include <utility>

namespace stepladder {
namespace {

// A kernel, or the time of a thread in which this slice is the innermost.
struct Stretch {
  std::int64_t start_ns = 0, end_ns = 0;
  std::uint32_t lane = 0;
  OperatorKind kind = OperatorKind::between;
  int order = 0;
};

// Cuts the nested slices of one thread into the stretches in which each is the innermost.
class Thread {
 public:
  explicit Thread(std::vector<Stretch>& into) : into_(into) {}

  void read(std::vector<Stretch>& slices) {
    std::ranges::stable_sort(slices, [](const Stretch& a, const Stretch& b) {
      return std::pair(a.start_ns, -a.end_ns) < std::pair(b.start_ns, -b.end_ns);
    });
    for (const Stretch& slice : slices) {
      leave_until(slice.start_ns);
      if (!open_.empty()) emit(slice.start_ns);
      at_ = slice.start_ns;
      open_.push_back(slice);
    }
    leave_until(INT64_MAX);
  }

 private:
  void emit(std::int64_t until) {
    Stretch piece = open_.back();
    piece.start_ns = at_;
    piece.end_ns = until;
    if (until > at_) into_.push_back(piece);
  }
  void leave_until(std::int64_t ns) {
    while (!open_.empty() && open_.back().end_ns <= ns) {
      emit(open_.back().end_ns);
      at_ = std::max(at_, open_.back().end_ns);
      open_.pop_back();
    }
  }
  std::vector<Stretch>& into_;
  std::vector<Stretch> open_;
  std::int64_t at_ = 0;
};

// All work that counts, by its start: kernels, or without a GPU what its threads do.
std::vector<Stretch> stretches_of(const StepSlices& step, bool on_gpu) {
  std::vector<Stretch> all, thread;
  std::uint32_t lane = 0;
  const auto finish_thread = [&] {
    if (!on_gpu) Thread(all).read(thread);
    thread.clear();
  };
  for (const SliceRow& row : step.rows) {
    if (step.lanes[row.lane].on_gpu != on_gpu) continue;
    if (row.lane != lane) finish_thread();
    lane = row.lane;
    for (const KeptSlice& slice : row.slices) {
      if (!on_gpu && slice.correlation != 0) continue;  // a launch is its operator's time
      (on_gpu ? all : thread)
          .push_back({slice.start_ns, slice.start_ns + slice.duration_ns, row.lane, slice.kind,
                      order_of(slice.kind, step.names[slice.name])});
    }
  }
  finish_thread();
  std::ranges::sort(all, {}, &Stretch::start_ns);
  return all;
}

}  // namespace

RangeSums::RangeSums(const StepSlices& step) {
  const bool on_gpu = std::ranges::any_of(step.lanes, &SliceLane::on_gpu);
  const std::vector<Stretch> work = stretches_of(step, on_gpu);
  const OperatorKind nothing = on_gpu ? OperatorKind::idle : OperatorKind::between;
  std::vector<Stretch> active;
  std::vector<Share> now;
  std::vector<bool> is_taken(step.lanes.size());
  const std::int64_t end = last_ns(step);
  std::size_t next = 0;
  for (std::int64_t at = first_ns(step); at < end;) {
    std::erase_if(active, [&](const Stretch& each) { return each.end_ns <= at; });
    for (; next < work.size() && work[next].start_ns <= at; ++next)
      if (work[next].end_ns > at) active.push_back(work[next]);
    int order = 4;
    for (const Stretch& each : active) order = std::min(order, each.order);
    now.clear();
    is_taken.assign(is_taken.size(), false);
    for (std::size_t i = active.size(); i-- > 0;) {  // of one lane the latest
      const Stretch& each = active[i];
      if (each.order != order || is_taken[each.lane]) continue;
      is_taken[each.lane] = true;
      now.push_back({static_cast<std::uint8_t>(each.kind), 1});
    }
    if (now.empty()) now.push_back({static_cast<std::uint8_t>(nothing), 1});
    for (Share& each : now) each.share = 1 / static_cast<float>(now.size());
    const bool is_same = !moments_.empty() && shares_.size() - moments_.back().first == 1 && now.size() == 1 &&
                         shares_.back().kind == now.front().kind;
    if (!is_same) {
      moments_.push_back({at, shares_.size()});
      shares_.insert(shares_.end(), now.begin(), now.end());
    }
    std::int64_t until = next < work.size() ? std::min(end, work[next].start_ns) : end;
    for (const Stretch& each : active) until = std::min(until, each.end_ns);
    at = until;
  }
  moments_.push_back({std::max(end, first_ns(step)), shares_.size()});
  KindArray sums{};
  for (std::size_t i = 0; i + 1 < moments_.size(); ++i) {
    if (i % between_sums == 0) sums_.push_back(sums);
    add(sums, i, static_cast<double>(moments_[i + 1].at_ns));
  }
  if (sums_.empty()) sums_.push_back(sums);
}

void RangeSums::add(KindArray& sums, std::size_t moment, double until_ns) const {
  const double ns = until_ns - static_cast<double>(moments_[moment].at_ns);
  for (std::size_t i = moments_[moment].first; i < moments_[moment + 1].first; ++i)
    sums[shares_[i].kind] += ns * static_cast<double>(shares_[i].share);
}

KindArray RangeSums::until(double ns) const {
  const auto behind = std::upper_bound(moments_.begin(), moments_.end(), ns, [](double wanted, const Moment& each) {
    return wanted < static_cast<double>(each.at_ns);
  });
  if (behind == moments_.begin()) return {};
  const auto last = static_cast<std::size_t>(behind - moments_.begin()) - 1;  // that has begun
  const std::size_t kept = std::min(last / between_sums, sums_.size() - 1);
  KindArray sums = sums_[kept];
  for (std::size_t i = kept * between_sums; i < last; ++i) add(sums, i, static_cast<double>(moments_[i + 1].at_ns));
  if (last + 1 < moments_.size()) add(sums, last, ns);
  return sums;
}

KindArray RangeSums::in(TimeRange range) const {
  const KindArray before = until(range.from_ns);
  KindArray sums = until(range.to_ns);
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = std::max(sums[i] - before[i], 0.0) / 1e6;
  return sums;
}

}  // namespace stepladder
