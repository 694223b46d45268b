// Replays allocations up to a step's end and sums up the bytes in use by the part of the step that asked for them.
// Memory from before the trace is known only as a total. Thinning keeps the highest point of each group, so no peak
// vanishes.
#include "storage/traces/memory.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

namespace stepladder {
namespace {

// The times of each part of a step, on any thread: one that waits for another thread's backward pass does nothing else.
class PartSpans {
 public:
  explicit PartSpans(const Trace& trace) {
    for (const TraceSlice& slice : trace.slices()) {
      if (slice.kind != SliceKind::operation) continue;
      const std::uint8_t part = part_begun_by(trace.text(slice.name));
      if (part != step_part::unknown) spans_[part].push_back({slice.start_ns, slice.start_ns + slice.duration_ns});
    }
    for (std::vector<Span>& spans : spans_) join(spans);
  }

  MemoryUse use_at(std::int64_t ns) const {
    if (is_in(step_part::optimizer, ns)) return MemoryUse::optimizer;
    if (is_in(step_part::backward, ns)) return MemoryUse::gradients;
    return is_in(step_part::data, ns) ? MemoryUse::data : MemoryUse::activations;
  }

 private:
  using Span = std::pair<std::int64_t, std::int64_t>;

  static void join(std::vector<Span>& spans) {
    std::ranges::sort(spans);
    std::vector<Span> joined;
    for (const Span& span : spans) {
      if (!joined.empty() && span.first <= joined.back().second)
        joined.back().second = std::max(joined.back().second, span.second);
      else
        joined.push_back(span);
    }
    spans = std::move(joined);
  }

  bool is_in(std::uint8_t part, std::int64_t ns) const {
    const auto behind = std::ranges::upper_bound(spans_[part], Span{ns, INT64_MAX});
    return behind != spans_[part].begin() && ns < std::prev(behind)->second;
  }

  std::array<std::vector<Span>, 5> spans_;  // by part
};

// Keeps the highest of points that are close, and always the last one.
std::vector<MemoryPoint> thinned(std::vector<MemoryPoint> points) {
  const std::size_t most = StepSlices::most_memory;
  if (points.size() <= most) return points;
  const std::size_t group = (points.size() + most - 2) / (most - 1);
  std::vector<MemoryPoint> kept;
  for (std::size_t i = 0; i < points.size(); i += group) {
    const auto first = points.begin() + static_cast<std::ptrdiff_t>(i);
    const auto behind = points.begin() + static_cast<std::ptrdiff_t>(std::min(i + group, points.size()));
    kept.push_back(*std::max_element(first, behind,
                                     [](const MemoryPoint& a, const MemoryPoint& b) { return a.total() < b.total(); }));
  }
  if (kept.back().at_ns != points.back().at_ns && kept.size() < most) kept.push_back(points.back());
  return kept;
}

}  // namespace

std::vector<MemoryPoint> memory_of(const Trace& trace, const StepSpan& step, int device) {
  struct Block {
    std::int64_t bytes;
    MemoryUse use;
  };
  constexpr std::int64_t most_bytes = std::int64_t{1} << 50;
  if (trace.memory().empty()) return {};
  std::unordered_map<std::uint64_t, Block> blocks;
  std::vector<MemoryPoint> points;
  MemoryPoint now;
  const auto bytes_of = [&](MemoryUse use) -> std::int64_t& { return now.bytes[static_cast<std::size_t>(use)]; };
  const PartSpans parts(trace);
  bool is_first = true;
  for (const MemoryChange& change : trace.memory()) {
    if (change.device != device) continue;
    if (std::exchange(is_first, false))
      bytes_of(MemoryUse::before) = std::max<std::int64_t>(change.total_bytes - change.bytes, 0);
    if (change.at_ns >= step.end_ns) break;
    if (change.at_ns >= step.start_ns && points.empty()) {  // as the step begins
      now.at_ns = 0;
      points.push_back(now);
    }
    const auto known = blocks.find(change.address);
    if (change.bytes > 0) {
      if (known != blocks.end()) bytes_of(known->second.use) -= known->second.bytes;  // its end wasn't told
      if (now.total() + change.bytes > most_bytes) continue;                          // no machine has as much
      const MemoryUse use = parts.use_at(change.at_ns);
      blocks[change.address] = {change.bytes, use};
      bytes_of(use) += change.bytes;
    } else if (known != blocks.end()) {
      bytes_of(known->second.use) -= known->second.bytes;
      blocks.erase(known);
    } else {
      bytes_of(MemoryUse::before) = std::max<std::int64_t>(bytes_of(MemoryUse::before) + change.bytes, 0);
    }
    if (change.at_ns < step.start_ns) continue;
    now.at_ns = change.at_ns - step.start_ns;
    points.push_back(now);
  }
  return thinned(std::move(points));
}

}  // namespace stepladder
