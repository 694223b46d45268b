// ThreadReader turns nested CPU slices into segments of own time; Sweep walks the instants of a process and shares each
// among the rows that are active, compute before communication before copies. Every nanosecond of a step is counted
// exactly once, so rows add up to it.
#include "storage/traces/segments.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "storage/analysis/kernel_kind.h"
#include "storage/analysis/own_kernels.h"
#include "storage/wording.h"

namespace stepladder {

const std::array<const char*, 6> part_names{"", "data", "forward", "backward", "optimiser", ""};

std::uint8_t part_begun_by(std::string_view name) {
  if (name.starts_with("Optimizer.") || name == "optimizer" || name == "optimiser" || name == "optimizer_step")
    return step_part::optimizer;
  if (name.starts_with("autograd::engine::evaluate_function") || name == "backward") return step_part::backward;
  if (name.starts_with("enumerate(DataLoader)") || name == "data") return step_part::data;
  if (name == "captured step") return step_part::whole;
  if (const std::string_view pass = pass_of_plan_kernel(name); !pass.empty())
    return pass == "backward" ? step_part::backward : step_part::optimizer;
  return name == "forward" ? step_part::forward : step_part::unknown;
}

namespace {

// Reads one thread's slices, which nest.
class ThreadReader {
 public:
  ThreadReader(const Trace& trace, const Places& places, const std::vector<StepSpan>& steps, RowTable* rows,
               CpuTime& time)
      : trace_(trace), places_(places), steps_(steps), rows_(rows), time_(time) {}

  void read(std::size_t number) {
    const TraceSlice& slice = trace_.slices()[number];
    leave_until(slice.start_ns);
    lane_ = slice.lane;
    const Frame around = stack_.empty() ? Frame{.part = step_part::forward} : stack_.back();
    const std::uint16_t place = places_.of_slice[number];
    if (slice.kind == SliceKind::launch) {
      if (slice.correlation != 0)
        time_.launches.push_back({slice.start_ns, slice.correlation, around.launcher, around.operands, around.call,
                                  PlaceTimes::number(place, around.part), around.part});
      return;
    }
    if (slice.kind == SliceKind::module) return;  // its time is that of what is around it
    const std::string& name = trace_.text(slice.name);
    Frame frame{.end_ns = slice.start_ns + slice.duration_ns, .part = part_begun_by(name)};
    if (frame.part == step_part::unknown) frame.part = around.part;
    frame.place = PlaceTimes::number(place, frame.part);
    if (!stack_.empty() && frame.end_ns > around.end_ns) {
      frame.end_ns = around.end_ns;
      ++time_.cut;
    }
    const bool is_operator = !trace_.is_range(slice);
    frame.launcher = is_operator ? slice.name : around.launcher;
    frame.operands = is_operator ? slice.operands : around.operands;
    frame.call = is_operator ? ++time_.calls : around.call;
    if (rows_) enter(slice, frame, is_operator);
    stack_.push_back(frame);
  }

  void finish() { leave_until(INT64_MAX); }

 private:
  struct Frame {
    std::int64_t end_ns = 0;
    std::uint32_t row = 0, launcher = 0, operands = 0, call = 0;
    bool counts = false;     // as a call of its row
    double inner_bytes = 0;  // of operators within it
    std::uint16_t place = 0;
    std::uint8_t part = 0;
  };

  void enter(const TraceSlice& slice, Frame& frame, bool is_operator) {
    const std::uint32_t shapes = trace_.operands(slice.operands).shapes;
    frame.row = is_operator ? rows_->row({.name = slice.name, .shapes = shapes, .part = frame.part})
                            : rows_->row({.part = frame.part});
    if (step_at(steps_, slice.start_ns)) {
      ++time_.operations;
      frame.counts = is_operator;
      if (is_operator) ++rows_->rows()[frame.row].calls;
    }
    if (!stack_.empty()) emit(stack_.back(), slice.start_ns);
    cursor_ = slice.start_ns;
  }
  void emit(const Frame& frame, std::int64_t until) {
    if (rows_ && until > cursor_)
      time_.segments.push_back(
          {.start_ns = cursor_, .end_ns = until, .row = frame.row, .place = frame.place, .lane = lane_});
  }
  void leave_until(std::int64_t ns) {
    while (!stack_.empty() && stack_.back().end_ns <= ns) {
      emit(stack_.back(), stack_.back().end_ns);
      cursor_ = std::max(cursor_, stack_.back().end_ns);
      const Frame left = stack_.back();
      stack_.pop_back();
      const double moved = count_work(left);
      if (!stack_.empty()) stack_.back().inner_bytes += moved;
    }
  }
  // An operator whose inner ones move most of its bytes only calls them. Returns the bytes that have been counted.
  double count_work(const Frame& left) {
    const Work& work = trace_.operands(left.operands).work;
    const double bytes = is_missing(work.bytes) ? 0 : work.bytes;
    const bool is_mine = left.counts && work.is_known() && (!is_missing(work.flops) || left.inner_bytes * 2 < bytes);
    if (is_mine) rows_->rows()[left.row].work += work;
    return left.inner_bytes + (is_mine ? bytes : 0);
  }

  const Trace& trace_;
  const Places& places_;
  const std::vector<StepSpan>& steps_;
  RowTable* rows_;
  CpuTime& time_;
  std::vector<Frame> stack_;
  std::int64_t cursor_ = 0;
  std::uint16_t lane_ = 0;
};

// The instants of one process, from left to right.
class Sweep {
 public:
  Sweep(const std::vector<Segment>& segments, const std::vector<StepSpan>& steps, RowTable& rows, PlaceTimes& places,
        bool gaps)
      : segments_(segments), steps_(steps), rows_(rows), places_(places), gaps_(gaps) {}

  std::vector<TracedStep> run() {
    for (const StepSpan& span : steps_) {
      rows_.begin_step();
      TracedStep step{.step = span.number,
                      .start_ms = static_cast<double>(span.start_ns - steps_.front().start_ns) / 1e6,
                      .dt_ms = static_cast<double>(span.end_ns - span.start_ns) / 1e6};
      for (std::int64_t now = span.start_ns; now < span.end_ns;) {
        ingest(now);
        const std::int64_t until = next_change(span.end_ns);
        share(step, now, until);
        now = until;
      }
      done_.push_back(step);
    }
    return std::move(done_);
  }

 private:
  static constexpr std::size_t most_at_once = 1'000;

  void ingest(std::int64_t now) {
    std::erase_if(active_, [&](const Segment* each) { return each->end_ns <= now; });
    for (; next_ < segments_.size() && segments_[next_].start_ns <= now; ++next_) {
      if (segments_[next_].end_ns > now) active_.push_back(&segments_[next_]);
    }
    if (active_.size() > most_at_once)
      throw TraceError("has more than " + std::to_string(most_at_once) + " kernels at the same time");
  }

  std::int64_t next_change(std::int64_t end) const {
    if (next_ < segments_.size()) end = std::min(end, segments_[next_].start_ns);
    for (const Segment* each : active_) end = std::min(end, each->end_ns);
    return end;
  }

  void add(TracedStep& step, Row& row, std::uint16_t place, double self_ns, double busy_ns) {
    places_.add(place, row.kind, self_ns);
    rows_.add_time(row, self_ns, busy_ns);
    const auto kind = static_cast<std::size_t>(row.kind);
    step.ms[kind] += self_ns / 1e6;
    step.busy_ms[kind] += busy_ns / 1e6;
  }

  void share(TracedStep& step, std::int64_t now, std::int64_t until) {
    const auto ns = static_cast<double>(until - now);
    if (active_.empty()) return leave_idle(step, now, until);
    std::vector<Row>& rows = rows_.rows();
    int order = INT32_MAX;
    for (const Segment* each : active_) order = std::min(order, rows[each->row].order);
    ++instant_;
    sharing_.assign(active_.size(), false);
    double count = 0;
    for (std::size_t i = active_.size(); i-- > 0;) {  // the latest first
      if (rows[active_[i]->row].order != order) continue;
      if (std::exchange(seen_[active_[i]->lane], instant_) == instant_) {
        rows_.overlapped_ns += ns;
      } else {
        sharing_[i] = true;
        ++count;
      }
    }
    for (std::size_t i = 0; i < active_.size(); ++i)
      add(step, rows[active_[i]->row], active_[i]->place, sharing_[i] ? ns / count : 0, ns);
  }

  void leave_idle(TracedStep& step, std::int64_t now, std::int64_t until) {
    const auto idle = [&](std::string_view name, std::int64_t ns) {
      if (ns <= 0) return;
      add(step, rows_.rows()[rows_.gap(name)], 0, static_cast<double>(ns), static_cast<double>(ns));
    };
    if (!gaps_) return idle("", until - now);
    const std::int64_t launched = next_ < segments_.size() ? segments_[next_].launched_ns : 0;
    if (launched == 0) return idle(idle_gap, until - now);
    const std::int64_t waits_until = std::clamp(launched, now, until);
    idle(launch_gap, waits_until - now);
    idle(kernel_gap, until - waits_until);
  }

  const std::vector<Segment>& segments_;
  const std::vector<StepSpan>& steps_;
  RowTable& rows_;
  PlaceTimes& places_;
  bool gaps_;
  std::size_t next_ = 0;
  std::vector<const Segment*> active_;                   // in the order in which they began
  std::vector<bool> sharing_;                            // of `active_`: those to which the instant belongs
  std::array<std::uint64_t, Trace::most_lanes> seen_{};  // by lane: the last instant that it took part in
  std::uint64_t instant_ = 0;
  std::vector<TracedStep> done_;
};

}  // namespace

int order_of(OperatorKind kind, std::string_view name) {
  if (kind == OperatorKind::between) return 3;
  if (name.starts_with("Memcpy") || name.starts_with("Memset") || name.starts_with("[CUDA mem")) return 2;
  return kind == OperatorKind::communication ? 1 : 0;
}

std::uint32_t RowTable::add(const RowKey& key, OperatorTime time, const std::string& launcher) {
  if (rows_.size() == most_rows)
    throw TraceError("has more than " + std::to_string(most_rows) + " different operators and kernels");
  Row row{.key = key, .kind = kind_of(TracedOperator{.time = std::move(time), .launcher = launcher})};
  row.order = order_of(row.kind, trace_.text(key.name));
  rows_.push_back(row);
  return static_cast<std::uint32_t>(rows_.size() - 1);
}

std::uint32_t RowTable::row(const RowKey& key) {
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  const std::uint32_t number =
      add(key, {.part = part_names[key.part], .name = trace_.text(key.name)}, trace_.text(key.launcher));
  known_.emplace(key, number);
  return number;
}

// Gaps have names that the trace lacks: their rows have numbers behind all names.
std::uint32_t RowTable::gap(std::string_view name) {
  if (name.empty()) return row({});
  const auto known = std::ranges::find(gap_names_, name);
  const auto number = static_cast<std::uint32_t>(known - gap_names_.begin());
  const RowKey key{.name = 0, .shapes = 0, .launcher = UINT32_MAX - number};
  if (known != gap_names_.end()) return known_.at(key);
  gap_names_.emplace_back(name);
  const std::uint32_t row = add({}, {.name = std::string(name)}, "");
  rows_[row].key = key;
  known_.emplace(key, row);
  return row;
}

TracedOperator RowTable::operator_of(const Row& row, double steps) const {
  const bool is_gap = row.key.launcher > UINT32_MAX - 100;
  TracedOperator made{.busy_ms = row.busy_ns / 1e6 / steps, .launcher = is_gap ? "" : trace_.text(row.key.launcher)};
  made.time.part = part_names[row.key.part];
  made.time.name = is_gap ? gap_names_[UINT32_MAX - row.key.launcher] : trace_.text(row.key.name);
  made.time.shapes = trace_.text(row.key.shapes);
  made.time.calls = row.calls / steps;
  made.time.self_ms = row.self_ns / 1e6 / steps;
  if (!is_missing(row.work.flops)) made.time.flops = row.work.flops / steps;
  if (!is_missing(row.work.bytes)) made.bytes = row.work.bytes / steps;
  if (steps >= 2) {
    const double squares = row.squares_ns2 + row.in_step_ns * row.in_step_ns;
    made.sd_ms = std::sqrt(std::max(squares - row.self_ns * row.self_ns / steps, 0.0) / (steps - 1)) / 1e6;
  }
  return made;
}

void RowTable::add_time(Row& row, double self_ns, double busy_ns) {
  if (row.step != step_) {
    row.squares_ns2 += row.in_step_ns * row.in_step_ns;
    row.in_step_ns = 0;
    row.step = step_;
  }
  row.in_step_ns += self_ns;
  row.self_ns += self_ns;
  row.busy_ns += busy_ns;
}

StepPhase PlaceTimes::phase_of(std::uint16_t number) {
  constexpr std::array phases{StepPhase::other,    StepPhase::data,      StepPhase::forward,
                              StepPhase::backward, StepPhase::optimizer, StepPhase::other};
  static_assert(phases.size() == part_names.size());
  return phases[number % phases.size()];
}

void PlaceTimes::add(std::uint16_t number, OperatorKind kind, double ns) {
  if (kind == OperatorKind::idle) {
    idle_ns_ += ns;
  } else if (kind == OperatorKind::communication) {
    communication_ns_ += ns;
  } else {
    ns_[number] += ns;
  }
}

Anatomy PlaceTimes::anatomy(double steps) const {
  Anatomy rows;
  for (std::size_t i = 0; i < ns_.size(); ++i) {
    if (ns_[i] <= 0) continue;
    AnatomyRow row{.phase = phase_of(static_cast<std::uint16_t>(i)), .ms = ns_[i] / 1e6 / steps};
    if (row.phase == StepPhase::forward || row.phase == StepPhase::backward) {
      const Place& place = places_[i / part_names.size()];
      row.part = place.part;
      row.block = place.block;
      row.known_by = place.known_by;
    }
    rows.push_back(row);
  }
  if (communication_ns_ > 0) rows.push_back({.phase = StepPhase::communication, .ms = communication_ns_ / 1e6 / steps});
  if (idle_ns_ > 0) rows.push_back({.phase = StepPhase::idle, .ms = idle_ns_ / 1e6 / steps});
  return mean_anatomy({{std::move(rows), 1}});
}

CpuTime cpu_time(const Trace& trace, const Places& places, const std::vector<StepSpan>& steps, RowTable* rows) {
  CpuTime time;
  const std::vector<TraceSlice>& slices = trace.slices();
  for (std::size_t i = 0; i < slices.size();) {
    const std::uint16_t lane = slices[i].lane;
    ThreadReader thread(trace, places, steps, rows, time);
    for (; i < slices.size() && slices[i].lane == lane; ++i) {
      const SliceKind kind = slices[i].kind;
      if (kind == SliceKind::operation || kind == SliceKind::module || kind == SliceKind::launch) thread.read(i);
    }
    thread.finish();
  }
  std::ranges::sort(time.launches, {}, &Launch::correlation);
  return time;
}

const Launch* find_launch(const std::vector<Launch>& launches, std::uint32_t correlation) {
  if (correlation == 0) return nullptr;
  const auto found =
      std::lower_bound(launches.begin(), launches.end(), correlation,
                       [](const Launch& each, std::uint32_t wanted) { return each.correlation < wanted; });
  return found != launches.end() && found->correlation == correlation ? &*found : nullptr;
}

std::vector<TracedStep> distribute(std::vector<Segment>& segments, const std::vector<StepSpan>& steps, RowTable& rows,
                                   PlaceTimes& places, bool gaps) {
  std::ranges::sort(segments, {}, &Segment::start_ns);
  return Sweep(segments, steps, rows, places, gaps).run();
}

void require_few_steps(std::size_t steps) {
  if (steps > most_steps) throw TraceError("has more than " + grouped(most_steps) + " steps");
}

std::vector<StepSpan> in_order(std::vector<StepSpan> spans) {
  std::ranges::sort(spans, {}, &StepSpan::start_ns);
  for (std::size_t i = 0; i + 1 < spans.size(); ++i) spans[i].end_ns = std::min(spans[i].end_ns, spans[i + 1].start_ns);
  std::erase_if(spans, [](const StepSpan& each) { return each.end_ns <= each.start_ns; });
  require_few_steps(spans.size());
  return spans;
}

void widen(std::map<std::int64_t, StepSpan>& spans, std::int64_t number, std::int64_t start, std::int64_t end) {
  const auto [place, is_new] = spans.try_emplace(number, StepSpan{number, start, end});
  if (is_new) return;
  place->second.start_ns = std::min(place->second.start_ns, start);
  place->second.end_ns = std::max(place->second.end_ns, end);
}

std::vector<StepSpan> marked_steps(const Trace& trace, SliceKind kind, const std::string* process) {
  std::map<std::int64_t, StepSpan> spans;
  for (const TraceSlice& slice : trace.slices()) {
    if (slice.kind != kind || (process && trace.lanes()[slice.lane].process != *process)) continue;
    widen(spans, slice.correlation, slice.start_ns, slice.start_ns + slice.duration_ns);
  }
  std::vector<StepSpan> all;
  for (const auto& [number, span] : spans) all.push_back(span);
  return in_order(std::move(all));
}

const StepSpan* step_at(const std::vector<StepSpan>& steps, std::int64_t ns) {
  const auto behind = std::upper_bound(
      steps.begin(), steps.end(), ns, [](std::int64_t wanted, const StepSpan& each) { return wanted < each.start_ns; });
  return behind != steps.begin() && ns < std::prev(behind)->end_ns ? &*std::prev(behind) : nullptr;
}

}  // namespace stepladder
