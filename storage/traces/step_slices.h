// The slices of one traced step, kept beside the sums so that the view Profile shows them without the trace's file.
// Pure.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "storage/analysis/step_profile.h"
#include "storage/by_enum.h"
#include "storage/traces/anatomy.h"

namespace stepladder {

// The part of the step and of the model that a slice works for.
struct WorkPlace {
  StepPhase phase = StepPhase::other;
  ModelPart part = ModelPart::unknown;
  int block = -1;  // -1: not known
  bool operator==(const WorkPlace&) const = default;
};

struct KeptSlice {
  std::int64_t start_ns = 0;  // since the step's start; negative: before it, as a launch of its first kernel
  std::int64_t duration_ns = 0;
  std::uint32_t name = 0;  // of StepSlices::names
  OperatorKind kind = OperatorKind::between;
  std::uint32_t correlation = 0;  // joins a launch and its kernels; 0: not known
  std::uint32_t detail = 0;       // of StepSlices::details; 0: nothing more is known
  std::uint16_t place = 0;        // of StepSlices::places
};

// The facts that an operator or kernel has beside its name. Many slices share one.
struct SliceDetail {
  std::string part;        // "forward"; empty: not known
  std::string launcher;    // of a kernel: the operator that launched it
  std::string shapes;      // the operands of a product: of the operator, or of the kernel's launcher
  double flops = missing;  // of one call; of a kernel only if it does its operator's work
  double bytes = missing;  // that the call has to move at least
};

struct SliceLane {
  std::string title;  // "thread 77", "stream 7"
  bool on_gpu = false;
};

// Slices that don't overlap, in the order of time: those of one lane that are nested this deep. Kernels that run beside
// each other on one stream are in rows of their own.
struct SliceRow {
  std::uint32_t lane = 0;  // of StepSlices::lanes
  std::uint32_t depth = 0;
  std::vector<KeptSlice> slices;
};

// The uses of memory, by the part of the step that asked for it. `before`: memory from before the profile, whose use
// isn't known.
enum class MemoryUse : std::uint8_t { before, data, activations, gradients, optimizer };
inline constexpr auto all_memory_uses = enumerators<MemoryUse>();
std::string_view to_string(MemoryUse use);

// The memory in use from this moment on.
struct MemoryPoint {
  std::int64_t at_ns = 0;  // since the step's start
  std::array<std::int64_t, all_memory_uses.size()> bytes{};
  std::int64_t total() const;
};

struct StepSlices {
  static constexpr std::int64_t most = 2'000'000;      // slices of a step; beyond that only the longest are kept
  static constexpr std::uint32_t deepest = 64;         // rows of a lane
  static constexpr std::size_t most_memory = 4'000;    // points; of several the highest is kept
  static constexpr std::size_t most_details = 50'000;  // of more different ones, nothing is known
  static constexpr std::size_t most_places = 65'536;

  int rank = 0;
  std::int64_t step = 0;
  std::int64_t length_ns = 0;  // of the step
  std::int64_t left_out = 0;   // slices beyond these limits
  std::vector<std::string> names;
  std::vector<SliceDetail> details{1};  // the first: nothing is known
  std::vector<SliceLane> lanes;
  std::vector<WorkPlace> places{WorkPlace{}};  // the first: not known, as are those of traces of earlier versions
  std::vector<SliceRow> rows;                  // by lane, then depth
  std::vector<MemoryPoint> memory;             // by time; empty: the trace has none (profile_memory=True)
};

std::int64_t slice_count(const StepSlices& step);
std::int64_t first_ns(const StepSlices& step);  // the earliest start, at most 0
std::int64_t last_ns(const StepSlices& step);   // the latest end, at least length_ns

// A step as it is stored: zlib over numbers of variable length.
struct KeptStep {
  int rank = 0;
  std::int64_t step = 0;
  std::int64_t slices = 0;
  std::string packed;
};
KeptStep pack(const StepSlices& step);
// Unpacks a step: GPU streams before the CPU's threads, and the thread that marks the step before the others, whatever
// the order in which they were packed. Throws TraceError if these aren't such bytes, or hold more than a step may.
StepSlices unpack(std::string_view packed);

}  // namespace stepladder
