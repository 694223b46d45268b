// The pieces of time from which attribution.cpp makes its rows. Inside storage/traces/ only.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "storage/traces/anatomy.h"
#include "storage/traces/attribution.h"
#include "storage/traces/places.h"
#include "storage/traces/trace.h"

namespace stepladder {

// The ranges of a trace's steps. Inside storage/traces/ only.

inline constexpr std::size_t most_steps = 10'000;  // of a trace, of all its devices together

// The range of a step, on the CPU or on one GPU.
struct StepSpan {
  std::int64_t number = 0;
  std::int64_t start_ns = 0, end_ns = 0;
};

void require_few_steps(std::size_t steps);  // throws TraceError

// Sorts spans by time and cuts overlaps. Throws TraceError if there are too many.
std::vector<StepSpan> in_order(std::vector<StepSpan> spans);

// Makes the span of this number, or lets it hold this range too.
void widen(std::map<std::int64_t, StepSpan>& spans, std::int64_t number, std::int64_t start, std::int64_t end);

// The steps as the CPU marks them or, with a process, as its streams do.
std::vector<StepSpan> marked_steps(const Trace& trace, SliceKind kind, const std::string* process = nullptr);

// The step in which this moment is; null: none. `steps` are in the order of time and don't overlap.
const StepSpan* step_at(const std::vector<StepSpan>& steps, std::int64_t ns);

// The parts of a step, as numbers of part_names.
namespace step_part {
enum : std::uint8_t { unknown, data, forward, backward, optimizer, whole };
}
// "" (not known), "data", "forward", "backward", "optimiser"; "" again for a whole step that one call starts.
extern const std::array<const char*, 6> part_names;
// The part that a range or an operator begins; unknown: it continues that of the one around it.
std::uint8_t part_begun_by(std::string_view name);

// The key of a row, as numbers of names.
struct RowKey {
  std::uint32_t name = 0, shapes = 0, launcher = 0;
  std::uint8_t part = 0;  // of part_names
  bool operator==(const RowKey&) const = default;
};

struct Row {
  RowKey key;
  OperatorKind kind = OperatorKind::between;
  int order = 0;
  double calls = 0, self_ns = 0, busy_ns = 0;
  Work work;                               // of all calls
  std::uint64_t step = 0;                  // the last one that it takes part in, as RowTable counts them
  double in_step_ns = 0, squares_ns2 = 0;  // self_ns of that step; the sum of squares of the steps before it
};

// All rows of one process, numbered in the order in which they were met.
class RowTable {
 public:
  static constexpr std::size_t most_rows = 100'000;

  explicit RowTable(const Trace& trace) : trace_(trace) {}
  std::uint32_t row(const RowKey& key);                            // throws TraceError beyond the limit
  std::uint32_t gap(std::string_view name);                        // a row of no operator
  TracedOperator operator_of(const Row& row, double steps) const;  // as a mean
  std::vector<Row>& rows() { return rows_; }
  void begin_step() { ++step_; }
  void add_time(Row& row, double self_ns, double busy_ns);  // in the step that was begun last
  double overlapped_ns = 0;                                 // in which slices of one lane are at the same time

 private:
  std::uint32_t add(const RowKey& key, OperatorTime time, const std::string& launcher);
  struct Hash {
    std::size_t operator()(const RowKey& key) const {
      return ((std::size_t{key.name} * 1'000'003 + key.shapes) * 1'000'003 + key.launcher) * 7 + key.part;
    }
  };
  const Trace& trace_;
  std::vector<Row> rows_;
  std::vector<std::string> gap_names_;
  std::uint64_t step_ = 0;
  std::unordered_map<RowKey, std::uint32_t, Hash> known_;
};

struct Segment {
  std::int64_t start_ns = 0, end_ns = 0;
  std::uint32_t row = 0;
  std::uint16_t place = 0;       // of PlaceTimes
  std::int64_t launched_ns = 0;  // of a kernel; 0: not known
  std::uint32_t operands = 0;    // of the operator whose work this kernel did; 0: nothing is known
  std::uint16_t lane = 0;        // of the trace
};

// The call that launched work on a GPU.
struct Launch {
  std::int64_t at_ns = 0;
  std::uint32_t correlation = 0, launcher = 0, operands = 0;
  std::uint32_t call = 0;   // of the launcher, in its process; 0: none
  std::uint16_t place = 0;  // of PlaceTimes
  std::uint8_t part = 0;
};

struct CpuTime {
  std::vector<Segment> segments;  // of the innermost operators, if they were asked for
  std::vector<Launch> launches;   // by correlation
  std::int64_t operations = 0;    // in steps, if segments were asked for
  std::int64_t cut = 0;           // slices that end after the one around them does
  std::uint32_t calls = 0;        // of operators
};

// The time of one process in each part of a step and of the model.
class PlaceTimes {
 public:
  explicit PlaceTimes(std::vector<Place> places)
      : places_(std::move(places)), ns_(places_.size() * part_names.size()) {}

  // The part of the step that a number has, and its place of the model.
  static StepPhase phase_of(std::uint16_t number);
  static std::uint16_t place_of(std::uint16_t number) { return static_cast<std::uint16_t>(number / part_names.size()); }
  static std::uint16_t number(std::uint16_t place, std::uint8_t part) {
    return static_cast<std::uint16_t>(place * part_names.size() + part);
  }
  void add(std::uint16_t number, OperatorKind kind, double ns);
  Anatomy anatomy(double steps) const;  // a mean

 private:
  std::vector<Place> places_;
  std::vector<double> ns_;  // by number
  double idle_ns_ = 0, communication_ns_ = 0;
};

// Reads the CPU's threads. `steps` are in the order of time. null `rows`: launches only.
CpuTime cpu_time(const Trace& trace, const Places& places, const std::vector<StepSpan>& steps, RowTable* rows);

const Launch* find_launch(const std::vector<Launch>& launches, std::uint32_t correlation);  // null: none
// Distributes each step over the segments, which it sorts, and adds up rows, kinds and places. Of two slices of one
// lane, an instant is the later one's: a stream runs one kernel after the other. `gaps` names the gaps of
// a GPU by their cause; without it, time in no segment is between operators.
std::vector<TracedStep> distribute(std::vector<Segment>& segments, const std::vector<StepSpan>& steps, RowTable& rows,
                                   PlaceTimes& places, bool gaps);

}  // namespace stepladder
