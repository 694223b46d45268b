// Picks three steps of a rank (first, median, last) and copies their slices with kinds and nesting for the Profile
// view. If there are too many, only the longest stay; left_out counts the rest.
#include "storage/traces/slice_reader.h"

#include <algorithm>
#include <compare>
#include <map>
#include <numeric>
#include <set>
#include <unordered_map>
#include <utility>

#include "storage/bounded_text.h"

namespace stepladder {
namespace {

bool is_in(const StepSpan& span, std::int64_t ns) {
  return ns >= span.start_ns && ns < span.end_ns;
}

// The shortest slice that is kept if there are too many.
std::int64_t least_duration(std::vector<std::int64_t> durations) {
  if (static_cast<std::int64_t>(durations.size()) <= StepSlices::most) return 0;
  const auto border = durations.begin() + StepSlices::most;
  std::nth_element(durations.begin(), border, durations.end(), std::greater<>());
  return *border + 1;
}

class SliceReader {
 public:
  SliceReader(const Trace& trace, const Places& places, const LaunchedWork& work, const StepWindow& window)
      : trace_(trace), places_(places), work_(work), window_(window) {
    made_.rank = window.rank;
    made_.step = window.device.number;
    made_.length_ns = window.device.end_ns - window.device.start_ns;
    std::set<std::string> processes;
    for (const TraceLane& lane : trace.lanes()) {
      if (!lane.process.starts_with("device ")) processes.insert(lane.process);
    }
    has_processes_ = processes.size() > 1;
  }

  StepSlices read() {
    std::vector<std::int64_t> durations;
    for (const TraceSlice& slice : trace_.slices()) {
      if (counts(slice)) durations.push_back(slice.duration_ns);
    }
    least_ns_ = least_duration(std::move(durations));
    std::uint16_t lane = 0;
    for (std::size_t number = 0; number < trace_.slices().size(); ++number) {
      const TraceSlice& slice = trace_.slices()[number];
      if (!counts(slice)) continue;
      if (made_.lanes.empty() || slice.lane != lane) begin_lane(slice);
      lane = slice.lane;
      slice.kind == SliceKind::kernel ? read_kernel(slice) : read_call(slice, places_.of_slice[number]);
    }
    std::erase_if(made_.rows, [](const SliceRow& row) { return row.slices.empty(); });
    return std::move(made_);
  }

 private:
  struct Open {
    std::int64_t end_ns = 0;
    std::uint8_t part = 0;
  };

  bool counts(const TraceSlice& slice) const {
    if (slice.kind == SliceKind::device_step || slice.kind == SliceKind::device_window) return false;
    if (slice.kind != SliceKind::kernel) return is_in(window_.cpu, slice.start_ns);
    return window_.gpu && trace_.lanes()[slice.lane].process == *window_.gpu && is_in(window_.device, slice.start_ns);
  }

  void begin_lane(const TraceSlice& slice) {
    const bool on_gpu = slice.kind == SliceKind::kernel;
    const TraceLane& lane = trace_.lanes()[slice.lane];
    std::string title = (on_gpu ? "stream " : "thread ") + lane.thread;
    if (!on_gpu && has_processes_) title += " of process " + lane.process;
    made_.lanes.push_back({bounded(std::move(title), longest_name), on_gpu});
    open_.clear();
    first_row_ = made_.rows.size();
  }

  SliceRow* row(std::size_t depth) {
    if (depth >= StepSlices::deepest) return nullptr;
    while (made_.rows.size() <= first_row_ + depth)
      made_.rows.push_back({.lane = static_cast<std::uint32_t>(made_.lanes.size() - 1),
                            .depth = static_cast<std::uint32_t>(made_.rows.size() - first_row_),
                            .slices = {}});
    return &made_.rows[first_row_ + depth];
  }

  void add(SliceRow* row, const TraceSlice& slice, std::int64_t end_ns, OperatorKind kind, std::uint32_t detail,
           std::uint16_t place) {
    if (!row || slice.duration_ns < least_ns_) {
      ++made_.left_out;
      return;
    }
    row->slices.push_back({.start_ns = slice.start_ns - window_.device.start_ns,
                           .duration_ns = std::max<std::int64_t>(end_ns - slice.start_ns, 0),
                           .name = name_of(slice),
                           .kind = kind,
                           .correlation = is_launched_work(slice.kind) ? slice.correlation : 0,
                           .detail = detail,
                           .place = kept_place(place)});
  }

  static bool is_launched_work(SliceKind kind) { return kind == SliceKind::launch || kind == SliceKind::kernel; }

  // The number that a place of PlaceTimes has among those that are kept.
  std::uint16_t kept_place(std::uint16_t number) {
    const auto [known, is_new] = kept_places_.try_emplace(number);
    if (!is_new) return known->second;
    const Place& place = places_.places[PlaceTimes::place_of(number)];
    const WorkPlace kept{PlaceTimes::phase_of(number), place.part, place.block};
    const auto found = std::ranges::find(made_.places, kept);
    known->second = static_cast<std::uint16_t>(found - made_.places.begin());
    if (found == made_.places.end()) made_.places.push_back(kept);
    return known->second;
  }

  // Reads a slice of a thread. Slices nest; one that ends after the one around it is cut.
  void read_call(const TraceSlice& slice, std::uint16_t place) {
    while (!open_.empty() && open_.back().end_ns <= slice.start_ns) open_.pop_back();
    Open now{.end_ns = slice.start_ns + slice.duration_ns,
             .part = open_.empty() ? std::uint8_t{step_part::forward} : open_.back().part};
    if (!open_.empty()) now.end_ns = std::min(now.end_ns, open_.back().end_ns);
    const std::string& name = trace_.text(slice.name);
    if (const std::uint8_t part = part_begun_by(name); part != step_part::unknown) now.part = part;
    const bool is_operator = slice.kind == SliceKind::operation && !trace_.is_range(slice);
    const OperatorKind kind = is_operator ? kind_of_call(slice.name, now.part) : OperatorKind::between;
    const std::uint32_t detail =
        is_operator ? detail_of({.part = now.part, .operands = slice.operands, .works = true}) : 0;
    add(row(open_.size()), slice, now.end_ns, kind, detail, PlaceTimes::number(place, now.part));
    open_.push_back(now);
  }

  // Kernels of a stream mostly follow each other; those that don't are in the first row with room.
  void read_kernel(const TraceSlice& slice) {
    std::size_t depth = 0;
    while (depth < StepSlices::deepest) {
      const std::vector<KeptSlice>& known = row(depth)->slices;
      const std::int64_t start = slice.start_ns - window_.device.start_ns;
      if (known.empty() || known.back().start_ns + known.back().duration_ns <= start) break;
      ++depth;
    }
    const Launch* const launch = find_launch(work_.launches, slice.correlation);
    const std::uint32_t detail = launch ? detail_of({.part = launch->part,
                                                     .operands = launch->operands,
                                                     .launcher = launch->launcher,
                                                     .works = does_the_work(slice)})
                                        : 0;
    add(row(depth), slice, slice.start_ns + slice.duration_ns, kind_of_kernel(slice, launch), detail,
        launch ? launch->place : std::uint16_t{0});
  }

  // Whether this kernel does the work of the operator that launched it, as the rows of the profile have it.
  bool does_the_work(const TraceSlice& slice) const {
    auto at = std::lower_bound(work_.kernels.begin(), work_.kernels.end(), slice.start_ns,
                               [](const Segment& each, std::int64_t wanted) { return each.start_ns < wanted; });
    for (; at != work_.kernels.end() && at->start_ns == slice.start_ns; ++at) {
      if (at->lane == slice.lane && at->end_ns == slice.start_ns + slice.duration_ns) return at->operands != 0;
    }
    return false;
  }

  struct DetailKey {
    std::uint8_t part = 0;
    std::uint32_t operands = 0, launcher = 0;
    bool works = false;
    auto operator<=>(const DetailKey&) const = default;
  };

  std::uint32_t detail_of(const DetailKey& key) {
    const auto [known, is_new] = details_.try_emplace(key, 0);
    if (!is_new) return known->second;
    const Operands& operands = trace_.operands(key.operands);
    const Work work = key.works ? operands.work : Work{};
    SliceDetail detail{.part = part_names[key.part],
                       .launcher = bounded(trace_.text(key.launcher), longest_name),
                       .shapes = trace_.text(operands.shapes),
                       .flops = work.flops,
                       .bytes = work.bytes};
    const bool is_empty = detail.part.empty() && detail.launcher.empty() && detail.shapes.empty() && !work.is_known();
    if (is_empty || made_.details.size() > StepSlices::most_details) return 0;
    made_.details.push_back(std::move(detail));
    return known->second = static_cast<std::uint32_t>(made_.details.size() - 1);
  }

  OperatorKind kind_of_call(std::uint32_t name, std::uint8_t part) {
    const auto [known, is_new] = call_kinds_.try_emplace(std::uint64_t{name} << 8 | part);
    if (is_new) known->second = stepladder::kind_of(OperatorTime{.part = part_names[part], .name = trace_.text(name)});
    return known->second;
  }

  OperatorKind kind_of_kernel(const TraceSlice& slice, const Launch* launch) {
    const std::tuple key(slice.name, launch ? launch->launcher : 0, launch ? launch->part : std::uint8_t{0});
    const auto [known, is_new] = kernel_kinds_.try_emplace(key);
    if (is_new) {
      TracedOperator row;
      row.time.name = trace_.text(slice.name);
      row.time.part = part_names[std::get<2>(key)];
      row.launcher = trace_.text(std::get<1>(key));
      known->second = stepladder::kind_of(row);
    }
    return known->second;
  }

  std::uint32_t name_of(const TraceSlice& slice) {
    const auto [known, is_new] = names_.try_emplace(slice.name, static_cast<std::uint32_t>(made_.names.size()));
    if (is_new) {
      const std::string& name = trace_.text(slice.name);
      made_.names.push_back(name.empty() && slice.kind == SliceKind::launch ? "launch" : name);
    }
    return known->second;
  }

  const Trace& trace_;
  const Places& places_;
  const LaunchedWork& work_;
  const StepWindow& window_;
  StepSlices made_;
  bool has_processes_ = false;  // several, of a CPU
  std::int64_t least_ns_ = 0;
  std::size_t first_row_ = 0;  // of the lane
  std::vector<Open> open_;
  std::unordered_map<std::uint32_t, std::uint32_t> names_;
  std::unordered_map<std::uint16_t, std::uint16_t> kept_places_;
  std::unordered_map<std::uint64_t, OperatorKind> call_kinds_;
  std::map<DetailKey, std::uint32_t> details_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint8_t>, OperatorKind> kernel_kinds_;
};

}  // namespace

std::vector<std::size_t> steps_to_keep(const std::vector<TracedStep>& steps) {
  if (steps.empty()) return {};
  std::vector<std::size_t> by_time(steps.size());
  std::iota(by_time.begin(), by_time.end(), std::size_t{0});
  constexpr std::size_t few = 10;
  if (steps.size() <= few) return by_time;
  std::ranges::stable_sort(by_time, [&](std::size_t a, std::size_t b) { return steps[a].dt_ms < steps[b].dt_ms; });
  const std::set<std::size_t> chosen{0, by_time[(steps.size() - 1) / 2], steps.size() - 1};
  return {chosen.begin(), chosen.end()};
}

StepSlices slices_of(const Trace& trace, const Places& places, const LaunchedWork& work, const StepWindow& window) {
  return SliceReader(trace, places, work, window).read();
}

}  // namespace stepladder
