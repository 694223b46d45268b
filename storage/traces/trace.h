// A profiler's trace in memory: what a GPU and the threads that feed it did, and when. Plain values, made by the
// readers of this folder (trace_file.h) and summed up by attribution.h.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "storage/traces/operator_work.h"

namespace stepladder {

// The file is not a trace that can be read. One sentence that begins in lower case and doesn't name the file: the
// caller adds the name ("trace.json: " + what()).
struct TraceError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class SliceKind : std::uint8_t {
  operation,     // of a CPU thread: an operator, a range that the program named
  module,        // of a CPU thread: the call of a module of the model
  launch,        // of a CPU thread: the call that asked the GPU for work
  kernel,        // of a stream: kernels, copies and fills
  step,          // the range of a step on a CPU thread
  device_step,   // the same on a stream
  device_window  // a step of a GPU from its beginning to the next one's, as Stepladder's export has it
};

struct TraceSlice {
  std::int64_t start_ns = 0;
  std::int64_t duration_ns = 0;
  std::uint32_t name = 0;      // of Trace::names
  std::uint32_t operands = 0;  // of Trace::operands; 0: nothing is known
  // Joins a launch and its kernels; 0: not known. Of steps: their number. Of operators: autograd's number of the
  // backward function that belongs to it, plus one.
  std::uint32_t correlation = 0;
  std::uint16_t lane = 0;  // of Trace::lanes
  SliceKind kind = SliceKind::operation;
};

// The facts that an operator's operands give.
struct Operands {
  std::uint32_t shapes = 0;  // of Trace::names: the matrices of a product; 0 is the empty text
  Work work;                 // of one call
};

// Memory that an allocator gave or took back.
struct MemoryChange {
  std::int64_t at_ns = 0;
  std::int64_t bytes = 0;  // negative: taken back
  std::int64_t total_bytes = 0;
  std::uint64_t address = 0;
  int device = -1;  // of a GPU; -1: the CPU's memory
};

struct TraceLane {
  std::string process, thread;  // of a CPU; of a GPU its number and the stream's
  bool operator<(const TraceLane& other) const {
    return std::pair(process, thread) < std::pair(other.process, other.thread);
  }
};

// Where and when a trace was taken, as far as it says so.
struct TraceOrigin {
  double began_at = missing;  // unix seconds
  double ended_at = missing;
  std::string host;      // in the name that torch.profiler.tensorboard_trace_handler gives its files
  std::int64_t pid = 0;  // of the traced process; 0: not known
};

// One process's trace. Everything that a file can make large has a limit, so a reader's memory is bounded: 32 bytes for
// each slice, and the names.
class Trace {
 public:
  static constexpr std::size_t most_slices = 20'000'000;
  static constexpr std::size_t most_lanes = 1'000;
  static constexpr std::size_t most_memory_changes = 5'000'000;  // what comes later is left out
  static constexpr std::size_t most_name_bytes = 64 << 20;       // of all different names together
  static constexpr std::size_t most_operands = 200'000;          // different ones; of more nothing is known

  Trace();

  // These throw TraceError beyond the limits, and for a slice that ends before it begins.
  std::uint32_t name(std::string_view text);  // long names are cut
  std::uint16_t lane(const TraceLane& lane);
  // The operands of an operator's call; 0: nothing is known of it.
  std::uint32_t operands(std::string_view name, std::span<const Operand> operands);
  void add(const TraceSlice& slice);
  void add(const MemoryChange& change);

  const std::string& text(std::uint32_t name) const { return names_[name]; }
  const Operands& operands(std::uint32_t number) const { return operands_[number]; }
  // Whether the slice is of a range that the program named, not of an operator: is_range(text(slice.name)).
  bool is_range(const TraceSlice& slice) const { return are_ranges_[slice.name]; }
  const std::vector<TraceSlice>& slices() const { return slices_; }
  const std::vector<TraceLane>& lanes() const { return lanes_; }

  const std::vector<MemoryChange>& memory() const { return memory_; }  // sorted: by time

  // Sets `origin` but its host. `base_ns`: the unix time of the trace's time 0.
  void find_origin(std::int64_t base_ns);

  // The slices in the order in which attribution.h reads them: by lane, time, and the longest first.
  void sort();

  std::vector<std::string> notes;  // sentences about what wasn't read
  std::string format;              // "kineto", "nsight"; of earlier versions "proton", "llm.c"
  int rank = -1;                   // of the process; -1: the file doesn't say
  int first_gpu = 0;               // the rank of the first of several GPUs
  std::string hardware;            // the GPU's name; empty: the file doesn't say
  TraceOrigin origin;
  std::string precision;  // of most products, as hardware.h names it; empty: the file doesn't say

 private:
  std::vector<TraceSlice> slices_;
  std::vector<MemoryChange> memory_;
  std::vector<std::string> names_;
  std::vector<bool> are_ranges_known_, are_ranges_;  // by name; found once, since a trace has many slices of few names
  std::unordered_map<std::string, std::uint32_t> known_names_;
  std::size_t name_bytes_ = 0;
  std::vector<Operands> operands_{1};
  std::map<std::array<std::uint64_t, 3>, std::uint32_t> known_operands_;
  std::vector<TraceLane> lanes_;
  std::map<TraceLane, std::uint16_t> known_lanes_;
};

// Names without a namespace are what the program or a compiler calls a range of its own.
bool is_range(std::string_view name);

// The number in "ProfilerStep#12"; -1 for other names.
std::int64_t step_number(std::string_view name);
// The same, also of "step 12" and "Iteration_12": of a range that a program named.
std::int64_t range_step(std::string_view name);

// The program that made the traces of a format: "Nsight Systems".
std::string format_name(std::string_view format);
// A sentence about what a format lacks; empty if it has the time of each kernel.
std::string format_note(std::string_view format);

}  // namespace stepladder
