// Packs a step's slices into the compressed bytes that the database keeps, and unpacks them. The bytes may be damaged
// or hostile, so every count is bounded. A change of the layout needs a new `version`; older bytes are still read.
#include "storage/traces/step_slices.h"

#include <zlib.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "storage/bounded_text.h"
#include "storage/traces/trace.h"

namespace stepladder {
namespace {

constexpr std::uint64_t version = 4, version_with_correlations = 2, version_with_details = 3, version_with_places = 4;
constexpr std::size_t most_bytes = 100 << 20;  // unpacked

// Seven bits a byte, the lowest first.
class Packer {
 public:
  void number(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  void signed_number(std::int64_t value) {
    number(static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63));
  }
  void text(const std::string& value) {
    number(value.size());
    bytes_ += value;
  }
  // A double's bits; not a decimal, so that it comes back as it was.
  void real(double value) { number(std::bit_cast<std::uint64_t>(value)); }
  std::string compressed() const {
    uLongf size = compressBound(bytes_.size());
    std::string packed(size, '\0');
    compress2(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(bytes_.data()),
              bytes_.size(), 6);
    packed.resize(size);
    return packed;
  }

 private:
  std::string bytes_;
};

[[noreturn]] void refuse() {
  throw TraceError("holds damaged slices; import the trace again");
}

// Unpacks piece by piece: damaged bytes may claim any size.
std::string uncompressed(std::string_view packed) {
  z_stream stream{};
  if (inflateInit(&stream) != Z_OK) throw TraceError("cannot be unpacked: out of memory");
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  std::string bytes;
  std::vector<char> piece(1 << 18);
  int result = Z_OK;
  while (result == Z_OK && bytes.size() <= most_bytes) {
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = static_cast<uInt>(piece.size());
    result = inflate(&stream, Z_NO_FLUSH);
    bytes.append(piece.data(), piece.size() - stream.avail_out);
  }
  inflateEnd(&stream);
  if (result != Z_STREAM_END) refuse();
  return bytes;
}

class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : rest_(bytes) {}

  std::uint64_t number() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) refuse();
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    refuse();
  }
  std::int64_t signed_number() {
    const std::uint64_t value = number();
    return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
  }
  // The number of items of at least one byte each.
  std::size_t count(std::size_t most) {
    const std::uint64_t value = number();
    if (value > most || value > rest_.size()) refuse();
    return static_cast<std::size_t>(value);
  }
  // A count of work: missing, or neither negative nor infinite.
  double amount() {
    const auto value = std::bit_cast<double>(number());
    if (!is_missing(value) && !(value >= 0 && value < 1e30)) refuse();
    return value;
  }
  std::string text() {
    const std::size_t size = count(longest_kernel_name);
    std::string value(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return value;
  }

 private:
  std::string_view rest_;
};

// Times within about a day of each other, so that sums don't overflow.
std::int64_t checked(std::int64_t ns) {
  constexpr std::int64_t longest = std::int64_t{1} << 61;
  if (ns > longest || ns < -longest) refuse();
  return ns;
}

void pack_row(Packer& out, const SliceRow& row) {
  out.number(row.lane);
  out.number(row.depth);
  out.number(row.slices.size());
  std::int64_t end = 0;
  for (const KeptSlice& slice : row.slices) {
    out.signed_number(slice.start_ns - end);
    out.number(static_cast<std::uint64_t>(slice.duration_ns));
    out.number(slice.name);
    out.number(static_cast<std::uint64_t>(slice.kind));
    out.number(slice.correlation);
    out.number(slice.detail);
    out.number(slice.place);
    end = slice.start_ns + slice.duration_ns;
  }
}

SliceRow unpack_row(Unpacker& in, const StepSlices& step, std::size_t most, std::uint64_t packed_version) {
  SliceRow row{.lane = static_cast<std::uint32_t>(in.number()), .depth = static_cast<std::uint32_t>(in.number())};
  if (row.lane >= step.lanes.size() || row.depth >= StepSlices::deepest) refuse();
  std::int64_t end = 0;
  const std::size_t count = in.count(most);
  row.slices.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    KeptSlice slice{.start_ns = checked(end + checked(in.signed_number()))};
    slice.duration_ns = checked(static_cast<std::int64_t>(in.number()));
    const std::uint64_t name = in.number(), kind = in.number();
    if (slice.duration_ns < 0 || name >= step.names.size() || kind >= all_operator_kinds.size() ||
        (i > 0 && slice.start_ns < end))
      refuse();
    slice.name = static_cast<std::uint32_t>(name);
    slice.kind = static_cast<OperatorKind>(kind);
    if (packed_version >= version_with_correlations) slice.correlation = static_cast<std::uint32_t>(in.number());
    const std::uint64_t detail = packed_version >= version_with_details ? in.number() : 0;
    if (detail >= step.details.size()) refuse();
    slice.detail = static_cast<std::uint32_t>(detail);
    if (packed_version >= version_with_places) {
      const std::uint64_t place = in.number();
      if (place >= step.places.size()) refuse();
      slice.place = static_cast<std::uint16_t>(place);
    }
    end = slice.start_ns + slice.duration_ns;
    row.slices.push_back(slice);
  }
  return row;
}

void pack_details(Packer& out, const std::vector<SliceDetail>& details) {
  out.number(details.size());
  for (const SliceDetail& detail : details) {
    out.text(detail.part);
    out.text(detail.launcher);
    out.text(detail.shapes);
    out.real(detail.flops);
    out.real(detail.bytes);
  }
}

std::vector<SliceDetail> unpack_details(Unpacker& in) {
  std::vector<SliceDetail> details(in.count(StepSlices::most_details + 1));
  if (details.empty()) refuse();
  for (SliceDetail& detail : details) {
    detail.part = in.text();
    detail.launcher = in.text();
    detail.shapes = in.text();
    detail.flops = in.amount();
    detail.bytes = in.amount();
  }
  return details;
}

void pack_places(Packer& out, const std::vector<WorkPlace>& places) {
  out.number(places.size());
  for (const WorkPlace& place : places) {
    out.number(static_cast<std::uint64_t>(place.phase));
    out.number(static_cast<std::uint64_t>(place.part));
    out.signed_number(place.block);
  }
}

std::vector<WorkPlace> unpack_places(Unpacker& in) {
  std::vector<WorkPlace> places(in.count(StepSlices::most_places));
  if (places.empty()) refuse();
  for (WorkPlace& place : places) {
    const std::uint64_t phase = in.number(), part = in.number();
    const std::int64_t block = in.signed_number();
    if (phase >= all_step_phases.size() || part >= all_model_parts.size() || block < -1 || block > INT32_MAX) refuse();
    place = {static_cast<StepPhase>(phase), static_cast<ModelPart>(part), static_cast<int>(block)};
  }
  return places;
}

void pack_memory(Packer& out, const std::vector<MemoryPoint>& points) {
  out.number(points.size());
  MemoryPoint last;
  for (const MemoryPoint& point : points) {
    out.signed_number(point.at_ns - last.at_ns);
    for (std::size_t i = 0; i < point.bytes.size(); ++i) out.signed_number(point.bytes[i] - last.bytes[i]);
    last = point;
  }
}

std::vector<MemoryPoint> unpack_memory(Unpacker& in) {
  std::vector<MemoryPoint> points(in.count(StepSlices::most_memory));
  MemoryPoint last;
  for (MemoryPoint& point : points) {
    point.at_ns = checked(last.at_ns + checked(in.signed_number()));
    for (std::size_t i = 0; i < point.bytes.size(); ++i) {
      constexpr std::int64_t most_memory_bytes = std::int64_t{1} << 52;
      point.bytes[i] = last.bytes[i] + checked(in.signed_number());
      if (point.bytes[i] < 0 || point.bytes[i] > most_memory_bytes) refuse();
    }
    last = point;
  }
  return points;
}

// GPU streams before the CPU's threads, and of these the one that marks the step first; otherwise in the order in which
// they were stored.
void put_in_order(StepSlices& step) {
  std::vector<bool> marks_step(step.lanes.size());
  for (const SliceRow& row : step.rows) {
    if (row.depth == 0 && !row.slices.empty() && step_number(step.names[row.slices.front().name]) >= 0)
      marks_step[row.lane] = true;
  }

  std::vector<std::uint32_t> order(step.lanes.size()), place(step.lanes.size());
  std::iota(order.begin(), order.end(), 0U);
  const auto threads =
      std::stable_partition(order.begin(), order.end(), [&](std::uint32_t lane) { return step.lanes[lane].on_gpu; });
  std::stable_partition(threads, order.end(), [&](std::uint32_t lane) { return marks_step[lane]; });
  std::vector<SliceLane> lanes;
  lanes.reserve(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    place[order[i]] = static_cast<std::uint32_t>(i);
    lanes.push_back(std::move(step.lanes[order[i]]));
  }
  step.lanes = std::move(lanes);
  for (SliceRow& row : step.rows) row.lane = place[row.lane];
  std::ranges::stable_sort(step.rows, {}, &SliceRow::lane);
}

}  // namespace

std::string_view to_string(MemoryUse use) {
  return by_enum<MemoryUse>("before", "data", "activations", "gradients", "optimiser")[use];
}

std::int64_t MemoryPoint::total() const {
  return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
}

std::int64_t slice_count(const StepSlices& step) {
  std::int64_t count = 0;
  for (const SliceRow& row : step.rows) count += static_cast<std::int64_t>(row.slices.size());
  return count;
}

std::int64_t first_ns(const StepSlices& step) {
  std::int64_t first = 0;
  for (const SliceRow& row : step.rows) {
    if (!row.slices.empty()) first = std::min(first, row.slices.front().start_ns);
  }
  return first;
}

std::int64_t last_ns(const StepSlices& step) {
  std::int64_t last = step.length_ns;
  for (const SliceRow& row : step.rows) {
    if (!row.slices.empty()) last = std::max(last, row.slices.back().start_ns + row.slices.back().duration_ns);
  }
  return last;
}

KeptStep pack(const StepSlices& step) {
  Packer out;
  out.number(version);
  out.signed_number(step.rank);
  out.signed_number(step.step);
  out.number(static_cast<std::uint64_t>(step.length_ns));
  out.number(static_cast<std::uint64_t>(step.left_out));
  out.number(step.names.size());
  for (const std::string& name : step.names) out.text(name);
  pack_details(out, step.details);
  out.number(step.lanes.size());
  for (const SliceLane& lane : step.lanes) {
    out.text(lane.title);
    out.number(lane.on_gpu);
  }
  pack_places(out, step.places);
  out.number(step.rows.size());
  for (const SliceRow& row : step.rows) pack_row(out, row);
  pack_memory(out, step.memory);
  return {.rank = step.rank, .step = step.step, .slices = slice_count(step), .packed = out.compressed()};
}

StepSlices unpack(std::string_view packed) {
  const std::string bytes = uncompressed(packed);
  Unpacker in(bytes);
  const std::uint64_t packed_version = in.number();
  if (packed_version > version) throw TraceError("holds slices of a newer version of Stepladder");
  StepSlices step;
  step.rank = static_cast<int>(in.signed_number());
  step.step = in.signed_number();
  step.length_ns = checked(static_cast<std::int64_t>(in.number()));
  step.left_out = checked(static_cast<std::int64_t>(in.number()));
  if (step.length_ns < 0 || step.left_out < 0) refuse();
  step.names.resize(in.count(StepSlices::most));
  for (std::string& name : step.names) name = in.text();
  if (packed_version >= version_with_details) step.details = unpack_details(in);
  step.lanes.resize(in.count(Trace::most_lanes));
  for (SliceLane& lane : step.lanes) {
    lane.title = in.text();
    lane.on_gpu = in.number() != 0;
  }
  if (packed_version >= version_with_places) step.places = unpack_places(in);
  const std::size_t rows = in.count(Trace::most_lanes * StepSlices::deepest);
  std::size_t left = StepSlices::most;
  for (std::size_t i = 0; i < rows; ++i) {
    step.rows.push_back(unpack_row(in, step, left, packed_version));
    left -= step.rows.back().slices.size();
  }
  step.memory = unpack_memory(in);
  put_in_order(step);
  return step;
}

}  // namespace stepladder
