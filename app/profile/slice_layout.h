// The part of a row of slices that is drawn at a given zoom: wide slices one by one, narrow ones together, so that a
// row costs as much as it has pixels, however many slices it has. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "storage/traces/step_slices.h"

namespace stepladder {

// A slice's place: its row, and its number in that row.
struct SlicePlace {
  std::size_t row = 0, slice = 0;
  bool operator==(const SlicePlace&) const = default;
};

// A step's slices with what makes drawing and searching quick. Made once, on any thread.
class SliceIndex {
 public:
  explicit SliceIndex(const StepSlices& step);

  // Nanoseconds that the slices [first, behind) of a row take.
  std::int64_t busy_ns(std::size_t row, std::size_t first, std::size_t behind) const {
    return busy_[row][behind] - busy_[row][first];
  }

  // The launch and the kernels that this slice is joined with, without itself; of an operator, those of all launches in
  // it. At most `most`, by row and time.
  std::vector<SlicePlace> joined_with(const StepSlices& step, SlicePlace slice, std::size_t most) const;

  // The kind that takes most of these slices' time, estimated from a few of them.
  OperatorKind kind_of(const SliceRow& row, std::size_t number, std::size_t first, std::size_t behind) const;

 private:
  friend class SliceSearch;
  std::span<const std::uint32_t> numbers_of(std::size_t name) const {
    return {by_name_.data() + name_starts_[name], by_name_.data() + name_starts_[name + 1]};
  }
  SlicePlace place_of(std::size_t number) const;
  struct Joined {
    std::uint32_t correlation = 0, number = 0;
  };
  static constexpr std::size_t block = 64;              // slices
  std::vector<std::vector<OperatorKind>> block_kinds_;  // that most time of each block of a row is of
  std::vector<std::vector<std::int64_t>> busy_;         // of the slices before each
  std::vector<std::string> lower_names_;
  std::vector<std::size_t> row_starts_;   // all slices are numbered row after row
  std::vector<std::uint32_t> by_name_;    // numbers of slices, those of a name together
  std::vector<std::size_t> name_starts_;  // where those of a name begin; and the end
  // For each frequent name, a bit for each slice, which costs less than its numbers; empty for other names.
  std::vector<std::vector<std::uint64_t>> name_bits_;
  std::vector<Joined> joined_;  // slices that have a correlation, by it
};

// Chosen slices: those whose names contain a text or are in a list, or those of one kind. Costs as much as there are
// names and matches; of a kind, as there are slices.
class SliceSearch {
 public:
  SliceSearch() = default;
  SliceSearch(const SliceIndex& index, const std::string& text);
  SliceSearch(const StepSlices& step, const SliceIndex& index, std::span<const std::string> names);
  SliceSearch(const StepSlices& step, const SliceIndex& index, OperatorKind kind);

  bool is_on() const { return is_on_; }
  bool matches(std::size_t row, std::size_t slice) const { return any(row, slice, slice + 1); }
  bool any(std::size_t row, std::size_t first, std::size_t behind) const;
  std::int64_t count() const { return count_; }

  // The match behind this place, or before it, row by row and by time, and from the end to the beginning; from nowhere
  // the first, or the last. nullopt: nothing matches.
  std::optional<SlicePlace> next(const std::optional<SlicePlace>& from) const;
  std::optional<SlicePlace> previous(const std::optional<SlicePlace>& from) const;
  std::int64_t rank_of(SlicePlace match) const;  // from 1, in that order

 private:
  void add_name(const SliceIndex& index, std::size_t name);
  SlicePlace place_of(std::size_t number) const;

  bool is_on_ = false;
  std::int64_t count_ = 0;
  std::vector<std::uint64_t> bits_;  // of all slices
  std::vector<std::size_t> row_starts_;
};

struct TimeRange {
  double from_ns = 0, to_ns = 0;
  double length() const { return to_ns - from_ns; }
};

struct DrawnSlice {
  float x0 = 0, x1 = 0;   // pixels from the row's left edge
  std::size_t first = 0;  // of the row
  std::size_t count = 1;  // slices that are drawn together
  OperatorKind kind = OperatorKind::between;
  float cover = 1;  // of these pixels by slices
  bool is_match = false;
  bool is_chosen = false;  // any of them
};

// Appends to `drawn`, from left to right. `search` and `chosen` mark slices.
void lay_out_row(const SliceRow& row, std::size_t number, const SliceIndex& index, const SliceSearch& search,
                 TimeRange shown, float width, std::vector<DrawnSlice>& drawn, const SliceSearch& chosen = {});

// The moment of a step with most memory in use; the step must know some.
const MemoryPoint& memory_peak(const StepSlices& step);
// The memory in use along the shown time: of each of so many equal parts the moment with most. null: before the first
// moment, and after the step.
std::vector<const MemoryPoint*> memory_columns(const StepSlices& step, TimeRange shown, std::size_t columns);
std::string memory_title(const StepSlices& step);  // "memory, at most 2.96 MB:"

// The words above a step, in the window and in reports: "eager, step 5, rank 1"; "60.1 ms, 31,510 slices".
std::string step_title(const StepSlices& step, const std::string& name, bool names_step);
std::string step_detail(const StepSlices& step);

// The slice of a row at this time, or the nearest within `slack_ns`; null: none.
const KeptSlice* slice_at(const SliceRow& row, double ns, double slack_ns);

}  // namespace stepladder
