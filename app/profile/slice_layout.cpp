// Lays out a row of slices for the icicle: wide slices alone, narrow ones per cell of two pixels. Cells are aligned to
// time, not to the window, so panning doesn't make them flicker. Costs grow with the pixels, so nothing here may visit
// all slices of a row.
#include "app/profile/slice_layout.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "storage/name_pattern.h"
#include "storage/wording.h"

namespace stepladder {
namespace {

constexpr float least_width = 2;  // of a slice that is drawn alone, and of those that are drawn together

double end_of(const KeptSlice& slice) {
  return static_cast<double>(slice.start_ns + slice.duration_ns);
}

using KindSums = std::array<std::int64_t, all_operator_kinds.size()>;

OperatorKind most_of(const KindSums& sums) {
  return static_cast<OperatorKind>(std::ranges::max_element(sums) - sums.begin());
}

// The first slice at or behind `first` that starts at `ns` or later; near ones are found quickly.
std::size_t first_from(const SliceRow& row, std::size_t first, double ns) {
  std::size_t step = 1, low = first;
  while (low + step < row.slices.size() && static_cast<double>(row.slices[low + step].start_ns) < ns) {
    low += step;
    step *= 2;
  }
  const std::size_t high = std::min(low + step + 1, row.slices.size());
  return static_cast<std::size_t>(
      std::lower_bound(
          row.slices.begin() + static_cast<std::ptrdiff_t>(low), row.slices.begin() + static_cast<std::ptrdiff_t>(high),
          ns, [](const KeptSlice& slice, double wanted) { return static_cast<double>(slice.start_ns) < wanted; }) -
      row.slices.begin());
}

// One more piece, joined with the one before if they look alike.
void append(std::vector<DrawnSlice>& drawn, std::size_t begin, const DrawnSlice& piece) {
  if (drawn.size() > begin) {
    DrawnSlice& last = drawn.back();
    if (last.count > 1 && piece.count > 1 && last.x1 == piece.x0 && last.kind == piece.kind &&
        last.is_match == piece.is_match && last.is_chosen == piece.is_chosen && last.cover == piece.cover) {
      last.x1 = piece.x1;
      last.count += piece.count;
      return;
    }
  }
  drawn.push_back(piece);
}

void set_bits(std::span<const std::uint32_t> numbers, std::vector<std::uint64_t>& bits) {
  for (const std::uint32_t number : numbers) bits[number / 64] |= std::uint64_t{1} << number % 64;
}

}  // namespace

SliceIndex::SliceIndex(const StepSlices& step) {
  lower_names_.reserve(step.names.size());
  for (const std::string& name : step.names) lower_names_.push_back(lower_case(name));
  name_starts_.assign(step.names.size() + 1, 0);
  std::size_t slices = 0;
  for (const SliceRow& row : step.rows) {
    row_starts_.push_back(slices);
    slices += row.slices.size();
    std::vector<std::int64_t>& sums = busy_.emplace_back();
    sums.reserve(row.slices.size() + 1);
    sums.push_back(0);
    std::vector<OperatorKind>& kinds = block_kinds_.emplace_back();
    KindSums in_block{};
    for (const KeptSlice& slice : row.slices) {
      sums.push_back(sums.back() + slice.duration_ns);
      ++name_starts_[slice.name + 1];
      in_block[static_cast<std::size_t>(slice.kind)] += slice.duration_ns + 1;
      if ((sums.size() - 1) % block != 0) continue;
      kinds.push_back(most_of(in_block));
      in_block = {};
    }
  }
  for (std::size_t i = 1; i < name_starts_.size(); ++i) name_starts_[i] += name_starts_[i - 1];
  by_name_.resize(slices);
  std::vector<std::size_t> next = name_starts_;
  std::uint32_t number = 0;
  for (const SliceRow& row : step.rows) {
    for (const KeptSlice& slice : row.slices) {
      if (slice.correlation != 0) joined_.push_back({slice.correlation, number});
      by_name_[next[slice.name]++] = number++;
    }
  }
  std::ranges::sort(joined_, [](const Joined& a, const Joined& b) {
    return std::pair(a.correlation, a.number) < std::pair(b.correlation, b.number);
  });
  name_bits_.resize(step.names.size());
  for (std::size_t name = 0; name < name_bits_.size(); ++name) {
    const std::span<const std::uint32_t> numbers = numbers_of(name);
    if (numbers.size() <= slices / 32) continue;
    name_bits_[name].resize(slices / 64 + 1);
    set_bits(numbers, name_bits_[name]);
  }
}

SlicePlace SliceIndex::place_of(std::size_t number) const {
  const auto behind = std::ranges::upper_bound(row_starts_, number);
  const auto row = static_cast<std::size_t>(behind - row_starts_.begin()) - 1;
  return {row, number - row_starts_[row]};
}

std::vector<SlicePlace> SliceIndex::joined_with(const StepSlices& step, SlicePlace slice, std::size_t most) const {
  const KeptSlice& of = step.rows[slice.row].slices[slice.slice];
  std::vector<std::uint32_t> correlations;
  if (of.correlation != 0) {
    correlations.push_back(of.correlation);
  } else if (const std::uint32_t lane = step.rows[slice.row].lane; !step.lanes[lane].on_gpu) {
    for (std::size_t row = slice.row + 1; row < step.rows.size() && step.rows[row].lane == lane; ++row) {
      const std::vector<KeptSlice>& inner = step.rows[row].slices;
      for (std::size_t i = first_from(step.rows[row], 0, static_cast<double>(of.start_ns));
           i < inner.size() && static_cast<double>(inner[i].start_ns) < end_of(of) && correlations.size() < most; ++i)
        if (inner[i].correlation != 0) correlations.push_back(inner[i].correlation);
    }
  }
  std::vector<SlicePlace> places;
  for (const std::uint32_t correlation : correlations) {
    auto at = std::lower_bound(joined_.begin(), joined_.end(), correlation,
                               [](const Joined& each, std::uint32_t wanted) { return each.correlation < wanted; });
    for (; at != joined_.end() && at->correlation == correlation && places.size() < most; ++at)
      if (const SlicePlace place = place_of(at->number); place != slice) places.push_back(place);
  }
  std::ranges::sort(places, [](const SlicePlace& a, const SlicePlace& b) {
    return std::pair(a.row, a.slice) < std::pair(b.row, b.slice);
  });
  return places;
}

OperatorKind SliceIndex::kind_of(const SliceRow& row, std::size_t number, std::size_t first, std::size_t behind) const {
  constexpr std::size_t looked_at = 12;
  KindSums sums{};
  if (behind - first >= 4 * block) {
    // Whole blocks, whose kinds are near each other in memory.
    const std::size_t from = first / block + 1, to = behind / block;
    const std::size_t stride = std::max<std::size_t>((to - from) / looked_at, 1);
    for (std::size_t i = from; i < to; i += stride) ++sums[static_cast<std::size_t>(block_kinds_[number][i])];
    return most_of(sums);
  }
  const std::size_t stride = std::max<std::size_t>((behind - first) / looked_at, 1);
  for (std::size_t i = first; i < behind; i += stride)
    sums[static_cast<std::size_t>(row.slices[i].kind)] += row.slices[i].duration_ns + 1;
  return most_of(sums);
}

SliceSearch::SliceSearch(const SliceIndex& index, const std::string& text) : is_on_(!text.empty()) {
  if (!is_on_) return;
  const std::string wanted = lower_case(text);
  row_starts_ = index.row_starts_;
  bits_.resize(index.by_name_.size() / 64 + 1);
  for (std::size_t name = 0; name < index.lower_names_.size(); ++name)
    if (index.lower_names_[name].find(wanted) != std::string::npos) add_name(index, name);
}

SliceSearch::SliceSearch(const StepSlices& step, const SliceIndex& index, std::span<const std::string> names)
    : is_on_(!names.empty()) {
  if (!is_on_) return;
  row_starts_ = index.row_starts_;
  bits_.resize(index.by_name_.size() / 64 + 1);
  for (std::size_t name = 0; name < step.names.size(); ++name)
    if (std::ranges::find(names, step.names[name]) != names.end()) add_name(index, name);
}

SliceSearch::SliceSearch(const StepSlices& step, const SliceIndex& index, OperatorKind kind) : is_on_(true) {
  row_starts_ = index.row_starts_;
  bits_.resize(index.by_name_.size() / 64 + 1);
  std::size_t number = 0;
  for (const SliceRow& row : step.rows) {
    for (const KeptSlice& slice : row.slices) {
      if (slice.kind == kind) {
        bits_[number / 64] |= std::uint64_t{1} << number % 64;
        ++count_;
      }
      ++number;
    }
  }
}

void SliceSearch::add_name(const SliceIndex& index, std::size_t name) {
  const std::span<const std::uint32_t> numbers = index.numbers_of(name);
  count_ += static_cast<std::int64_t>(numbers.size());
  const std::vector<std::uint64_t>& known = index.name_bits_[name];
  if (known.empty()) set_bits(numbers, bits_);
  for (std::size_t i = 0; i < known.size(); ++i) bits_[i] |= known[i];
}

SlicePlace SliceSearch::place_of(std::size_t number) const {
  const auto behind = std::ranges::upper_bound(row_starts_, number);
  const auto row = static_cast<std::size_t>(behind - row_starts_.begin()) - 1;
  return {row, number - row_starts_[row]};
}

std::optional<SlicePlace> SliceSearch::next(const std::optional<SlicePlace>& from) const {
  if (count_ == 0) return std::nullopt;
  std::size_t number = from ? row_starts_[from->row] + from->slice + 1 : 0;
  if (number / 64 >= bits_.size()) number = 0;
  std::uint64_t word = bits_[number / 64] & ~std::uint64_t{0} << number % 64;
  for (std::size_t i = number / 64;; word = bits_[i]) {
    if (word != 0) return place_of(i * 64 + static_cast<std::size_t>(std::countr_zero(word)));
    i = (i + 1) % bits_.size();
  }
}

std::optional<SlicePlace> SliceSearch::previous(const std::optional<SlicePlace>& from) const {
  if (count_ == 0) return std::nullopt;
  const std::size_t number = from ? row_starts_[from->row] + from->slice : 0;  // the first that doesn't count
  std::uint64_t word = bits_[number / 64] & ((std::uint64_t{1} << number % 64) - 1);
  for (std::size_t i = number / 64;; word = bits_[i]) {
    if (word != 0) return place_of(i * 64 + 63 - static_cast<std::size_t>(std::countl_zero(word)));
    i = (i + bits_.size() - 1) % bits_.size();
  }
}

std::int64_t SliceSearch::rank_of(SlicePlace match) const {
  const std::size_t number = row_starts_[match.row] + match.slice;
  std::int64_t rank = std::popcount(bits_[number / 64] & (~std::uint64_t{0} >> (63 - number % 64)));
  for (std::size_t i = 0; i < number / 64; ++i) rank += std::popcount(bits_[i]);
  return rank;
}

bool SliceSearch::any(std::size_t row, std::size_t first, std::size_t behind) const {
  if (!is_on_ || first >= behind) return false;
  const std::size_t from = row_starts_[row] + first, last = row_starts_[row] + behind - 1;
  const std::uint64_t head = ~std::uint64_t{0} << from % 64, tail = ~std::uint64_t{0} >> (63 - last % 64);
  if (from / 64 == last / 64) return (bits_[from / 64] & head & tail) != 0;
  if ((bits_[from / 64] & head) != 0 || (bits_[last / 64] & tail) != 0) return true;
  return std::any_of(bits_.begin() + static_cast<std::ptrdiff_t>(from / 64 + 1),
                     bits_.begin() + static_cast<std::ptrdiff_t>(last / 64),
                     [](std::uint64_t word) { return word != 0; });
}

void lay_out_row(const SliceRow& row, std::size_t number, const SliceIndex& index, const SliceSearch& search,
                 TimeRange shown, float width, std::vector<DrawnSlice>& drawn, const SliceSearch& chosen) {
  if (shown.length() <= 0 || width <= 0) return;
  const std::size_t begin = drawn.size();
  const double per_ns = width / shown.length();
  const auto x_of = [&](double ns) { return static_cast<float>((ns - shown.from_ns) * per_ns); };
  const double narrow_ns = least_width / per_ns;
  std::size_t i = first_from(row, 0, shown.from_ns);
  if (i > 0 && end_of(row.slices[i - 1]) > shown.from_ns) --i;
  while (i < row.slices.size() && static_cast<double>(row.slices[i].start_ns) < shown.to_ns) {
    const KeptSlice& slice = row.slices[i];
    if (static_cast<double>(slice.duration_ns) >= narrow_ns) {
      drawn.push_back({.x0 = std::max(x_of(static_cast<double>(slice.start_ns)), -1.0f),
                       .x1 = std::min(x_of(end_of(slice)), width + 1),
                       .first = i,
                       .kind = slice.kind,
                       .is_match = search.any(number, i, i + 1),
                       .is_chosen = chosen.any(number, i, i + 1)});
      ++i;
      continue;
    }
    // All narrow slices that begin in the same two pixels, on a grid that moves with the time.
    const double cell = std::floor(static_cast<double>(slice.start_ns) / narrow_ns);
    std::size_t behind = first_from(row, i, (cell + 1) * narrow_ns);
    behind = std::max(behind, i + 1);
    if (end_of(row.slices[behind - 1]) - static_cast<double>(row.slices[behind - 1].start_ns) >= narrow_ns &&
        behind > i + 1)
      --behind;  // a wide one ends the cell
    const double cover = static_cast<double>(index.busy_ns(number, i, behind)) / narrow_ns;
    append(drawn, begin,
           {.x0 = x_of(cell * narrow_ns),
            .x1 = x_of((cell + 1) * narrow_ns),
            .first = i,
            .count = std::max<std::size_t>(behind - i, 2),
            .kind = index.kind_of(row, number, i, behind),
            .cover = static_cast<float>(std::ceil(std::clamp(cover, 0.1, 1.0) * 4) / 4),
            .is_match = search.any(number, i, behind),
            .is_chosen = chosen.any(number, i, behind)});
    i = behind;
  }
}

std::string step_title(const StepSlices& step, const std::string& name, bool names_step) {
  return name + (names_step ? ", step " + std::to_string(step.step) : "") +
         (step.rank > 0 ? ", rank " + std::to_string(step.rank) : "");
}

std::string step_detail(const StepSlices& step) {
  return milliseconds_text(static_cast<double>(step.length_ns) / 1e6) + ", " + grouped(slice_count(step)) + " slices";
}

const KeptSlice* slice_at(const SliceRow& row, double ns, double slack_ns) {
  const std::size_t behind = first_from(row, 0, ns);
  const KeptSlice* nearest = nullptr;
  double distance = slack_ns;
  for (const std::size_t i : {behind - 1, behind}) {
    if (i >= row.slices.size()) continue;
    const KeptSlice& slice = row.slices[i];
    if (static_cast<double>(slice.start_ns) <= ns && ns < end_of(slice)) return &slice;
    const double away = std::max({static_cast<double>(slice.start_ns) - ns, ns - end_of(slice), 0.0});
    if (away <= distance && (away < distance || !nearest)) {
      nearest = &slice;
      distance = away;
    }
  }
  return nearest;
}

const MemoryPoint& memory_peak(const StepSlices& step) {
  return *std::ranges::max_element(step.memory, {}, &MemoryPoint::total);
}

std::vector<const MemoryPoint*> memory_columns(const StepSlices& step, TimeRange shown, std::size_t columns) {
  std::vector<const MemoryPoint*> all(columns);
  std::size_t next = 0;
  for (std::size_t i = 0; i < columns; ++i) {
    const double until = shown.from_ns + static_cast<double>(i + 1) / static_cast<double>(columns) * shown.length();
    const MemoryPoint* highest = next > 0 ? &step.memory[next - 1] : nullptr;  // it holds until the next one
    for (; next < step.memory.size() && static_cast<double>(step.memory[next].at_ns) < until; ++next)
      if (!highest || step.memory[next].total() > highest->total()) highest = &step.memory[next];
    if (until <= static_cast<double>(last_ns(step))) all[i] = highest;
  }
  return all;
}

std::string memory_title(const StepSlices& step) {
  const MemoryPoint& peak = memory_peak(step);
  const bool knows_before = peak.bytes[static_cast<std::size_t>(MemoryUse::before)] > 0;
  return (knows_before ? "memory, at most " : "memory that the trace saw allocated, at most ") +
         bytes_text(static_cast<double>(peak.total())) + ":";
}

}  // namespace stepladder
