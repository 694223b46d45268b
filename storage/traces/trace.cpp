// The trace in memory: names, lanes and operands are stored once and referred to by number; name 0 and operands 0 mean
// none. Every table has a limit, beyond which it throws TraceError or drops the rest, so a reader's memory is bounded.
#include "storage/traces/trace.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <tuple>

#include "storage/analysis/kernel_kind.h"
#include "storage/bounded_text.h"
#include "storage/number_text.h"
#include "storage/wording.h"

namespace stepladder {
namespace {

constexpr std::int64_t longest_trace_ns = std::int64_t{1} << 61;  // sums of two still fit

}  // namespace

Trace::Trace() {
  name("");
}

std::uint32_t Trace::name(std::string_view text) {
  std::string kept = bounded(std::string(text), longest_kernel_name);
  if (const auto found = known_names_.find(kept); found != known_names_.end()) return found->second;
  name_bytes_ += kept.size() + 64;
  if (name_bytes_ > most_name_bytes) throw TraceError("has more different names than a trace of a training");
  const auto number = static_cast<std::uint32_t>(names_.size());
  names_.push_back(kept);
  are_ranges_.push_back(false);
  are_ranges_known_.push_back(false);
  known_names_.emplace(std::move(kept), number);
  return number;
}

std::uint16_t Trace::lane(const TraceLane& lane) {
  if (const auto found = known_lanes_.find(lane); found != known_lanes_.end()) return found->second;
  if (lanes_.size() == most_lanes) throw TraceError(fmt::format("has more than {} threads and streams", most_lanes));
  const auto number = static_cast<std::uint16_t>(lanes_.size());
  lanes_.push_back({bounded(lane.process, longest_name), bounded(lane.thread, longest_name)});
  known_lanes_.emplace(lane, number);
  return number;
}

std::uint32_t Trace::operands(std::string_view operator_name, std::span<const Operand> operands) {
  const Operands made{.shapes = name(product_shapes(operator_name, operands)),
                      .work = work_of(operator_name, operands)};
  if (made.shapes == 0 && !made.work.is_known()) return 0;
  const std::array<std::uint64_t, 3> key{made.shapes, std::bit_cast<std::uint64_t>(made.work.flops),
                                         std::bit_cast<std::uint64_t>(made.work.bytes)};
  if (const auto found = known_operands_.find(key); found != known_operands_.end()) return found->second;
  if (operands_.size() > most_operands) return 0;
  const auto number = static_cast<std::uint32_t>(operands_.size());
  operands_.push_back(made);
  known_operands_.emplace(key, number);
  return number;
}

void Trace::add(const TraceSlice& slice) {
  if (slice.duration_ns < 0) throw TraceError("has a slice that ends before it begins, '" + text(slice.name) + "'");
  if (slice.start_ns > longest_trace_ns || slice.start_ns < -longest_trace_ns || slice.duration_ns > longest_trace_ns)
    throw TraceError("has a slice at an impossible time, '" + text(slice.name) + "'");
  if (slices_.size() == most_slices)
    throw TraceError(fmt::format("has more than {} million slices; profile fewer steps", most_slices / 1'000'000));
  if (slice.kind == SliceKind::operation && !are_ranges_known_[slice.name]) {
    are_ranges_known_[slice.name] = true;
    are_ranges_[slice.name] = stepladder::is_range(text(slice.name));
  }
  slices_.push_back(slice);
}

void Trace::add(const MemoryChange& change) {
  constexpr std::int64_t most = std::int64_t{1} << 50;  // bytes
  const auto is_sane = [&](std::int64_t bytes) { return bytes <= most && bytes >= -most; };
  if (memory_.size() < most_memory_changes && is_sane(change.bytes) && is_sane(change.total_bytes) &&
      change.at_ns <= longest_trace_ns && change.at_ns >= -longest_trace_ns)
    memory_.push_back(change);
}

void Trace::sort() {
  std::ranges::stable_sort(memory_, {}, &MemoryChange::at_ns);
  std::ranges::sort(slices_, [](const TraceSlice& a, const TraceSlice& b) {
    return std::tuple(a.lane, a.start_ns, -a.duration_ns) < std::tuple(b.lane, b.start_ns, -b.duration_ns);
  });
}

bool is_range(std::string_view name) {
  return name.find("::") == std::string_view::npos && !name.starts_with("## Call ") && !name.starts_with("cpp_fused") &&
         !name.starts_with("triton_") && !is_communication(name);
}

static std::int64_t step_of(std::string_view digits) {
  const auto number = parse_number<std::uint32_t>(digits);
  return number ? std::int64_t{*number} : -1;
}

void Trace::find_origin(std::int64_t base_ns) {
  constexpr std::int64_t year_2006_ns = std::int64_t{1} << 60, longest_ns = INT64_MAX / 4;
  std::map<std::string, std::int64_t> slices_of;  // a CPU's processes
  std::int64_t first = INT64_MAX, last = INT64_MIN;
  for (const TraceSlice& slice : slices_) {
    const std::string& process = lanes_[slice.lane].process;
    if (process.starts_with("device ")) continue;
    ++slices_of[process];
    if (slice.start_ns <= 0) continue;  // a clock that wasn't read
    first = std::min(first, slice.start_ns);
    last = std::max(last, slice.start_ns + slice.duration_ns);
  }
  const auto most =
      std::ranges::max_element(slices_of, [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == slices_of.end()) return;
  const std::string& process = most->first;
  if (!process.empty() && process.size() < 10 && process.find_first_not_of("0123456789") == std::string::npos)
    origin.pid = std::stoll(process);
  if (first > last || base_ns < 0 || base_ns > longest_ns || first > longest_ns || base_ns + first < year_2006_ns)
    return;
  origin.began_at = static_cast<double>(base_ns + first) / 1e9;
  origin.ended_at = static_cast<double>(base_ns + last) / 1e9;
}

std::int64_t step_number(std::string_view name) {
  constexpr std::string_view word = "ProfilerStep#";
  if (!name.starts_with(word)) return -1;
  return step_of(name.substr(word.size()));
}

std::int64_t range_step(std::string_view name) {
  if (const std::int64_t number = step_number(name); number >= 0) return number;
  const std::size_t digits = name.find_first_of("0123456789");
  if (digits == std::string_view::npos) return -1;
  std::string word;
  for (const char c : name.substr(0, digits)) {
    if (std::isalpha(static_cast<unsigned char>(c)))
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  if (word != "step" && word != "iter" && word != "iteration" && word != "trainstep") return -1;
  return step_of(name.substr(digits));
}

std::string format_name(std::string_view format) {
  if (format == "nsight") return "Nsight Systems";
  if (format == "kineto") return "PyTorch's profiler";
  return format == "stepladder" ? "traced here" : std::string(format);
}

// Earlier versions read these.
std::string format_note(std::string_view format) {
  const bool is_table = format == "proton" || format == "llm.c";
  return is_table ? "A table of kernels, laid end to end: idle time isn't known." : "";
}

}  // namespace stepladder
