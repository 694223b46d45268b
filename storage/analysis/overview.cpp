// Builds the levels of buckets value by value, and packs chunks for the database. min is rounded down and max up, so no
// value leaves its bucket. The bytes are a format on disk: a change needs a new `format` number, and old chunks are
// then rebuilt.
#include "storage/analysis/overview.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "storage/checksum.h"

namespace stepladder {
namespace {

static_assert(std::endian::native == std::endian::little, "chunks are kept in little-endian bytes");

constexpr int first_width = 32;
constexpr int next_width = 4;  // buckets of one level in one of the next

std::size_t parts_in_bucket(std::size_t level) {
  return level == 0 ? 1 : level == 1 ? first_width : next_width;
}

// --- bytes ---
constexpr std::uint32_t format = 0x31'76'6f'53;  // "Sov1"

// The way in which a column is written: one value for all buckets, all values, or the same as the previous column.
enum class Column : std::uint8_t { constant, plain, as_before };
// Evenly spaced steps need four numbers, others two a bucket.
enum class Axis : std::uint8_t { even, plain };

class Writer {
 public:
  template <class T>
  void put(T value) {
    char raw[sizeof value];
    std::memcpy(raw, &value, sizeof value);
    bytes.append(raw, sizeof value);
  }
  template <class T>
  void column(const std::vector<T>& values, const std::type_identity_t<std::vector<T>>* before = nullptr) {
    const auto same = [](T a, T b) { return std::memcmp(&a, &b, sizeof a) == 0; };  // NaN is itself
    if (before && std::equal(values.begin(), values.end(), before->begin(), same)) {
      put(Column::as_before);
    } else if (std::ranges::all_of(values, [&](T value) { return same(value, values.front()); })) {
      put(Column::constant);
      put(values.front());
    } else {
      put(Column::plain);
      bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
    }
  }
  std::string bytes;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  template <class T>
  T get() {
    T value{};
    copy(&value, sizeof value);
    return value;
  }
  template <class T>
  std::vector<T> column(std::size_t size, const std::vector<T>* before = nullptr) {
    switch (static_cast<Column>(get<std::uint8_t>())) {
      case Column::as_before:
        if (before) return *before;
        break;
      case Column::constant:
        return std::vector<T>(size, get<T>());
      case Column::plain: {
        std::vector<T> values(size);
        copy(values.data(), size * sizeof(T));
        return values;
      }
    }
    good_ = false;
    return std::vector<T>(size);
  }
  bool finished() const { return good_ && bytes_.empty(); }
  bool good() const { return good_; }

 private:
  void copy(void* to, std::size_t size) {
    if (size > bytes_.size()) {
      good_ = false;
      return;
    }
    std::memcpy(to, bytes_.data(), size);
    bytes_.remove_prefix(size);
  }
  std::string_view bytes_;
  bool good_ = true;
};

constexpr double farthest = std::numeric_limits<float>::max();

float nearest_float(double value) {
  return is_missing(value) ? std::numeric_limits<float>::quiet_NaN()
                           : static_cast<float>(std::clamp(value, -farthest, farthest));
}
float float_below(double value) {
  const float near = nearest_float(value);
  return near > value ? std::nextafter(near, -std::numeric_limits<float>::max()) : near;
}
float float_above(double value) {
  const float near = nearest_float(value);
  return near < value ? std::nextafter(near, std::numeric_limits<float>::max()) : near;
}
double from_float(float value) {
  return std::isnan(value) ? missing : static_cast<double>(value);
}

template <class F>
auto column_of(std::span<const Bucket> buckets, F&& value) {
  std::vector<decltype(value(buckets.front()))> values;
  values.reserve(buckets.size());
  for (const Bucket& bucket : buckets) values.push_back(value(bucket));
  return values;
}

// a + times x b, without overflow for absurdly large steps.
std::int64_t stepped(std::int64_t a, std::size_t times, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + times * static_cast<std::uint64_t>(b));
}

std::int64_t difference(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}

// Whether steps begin `stride` after each other and end `span` later; the last bucket may be shorter.
bool is_even(std::span<const Bucket> buckets, std::int64_t stride, std::int64_t span) {
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    if (buckets[i].first_step != stepped(buckets[0].first_step, i, stride)) return false;
    if (i + 1 < buckets.size() && buckets[i].last_step != stepped(buckets[i].first_step, 1, span)) return false;
  }
  return true;
}

}  // namespace

double value_of(const StepRecord& record, Quantity quantity) {
  const QuantityFacts* const field = facts_of(quantity);
  if (!field) return missing;
  if (field->of_step) return record.*field->of_step;
  return record.tokens > 0 && record.dt_ms > 0 ? static_cast<double>(record.tokens) * 1000.0 / record.dt_ms : missing;
}

double value_of(const Series& series, std::size_t i, Quantity quantity) {
  const QuantityFacts* const field = facts_of(quantity);
  if (!field) return missing;
  return field->of_series ? (series.*field->of_series)[i] : series.tokens_per_s(i);
}

Bucket bucket_of(std::int64_t step, double value) {
  Bucket bucket{.first_step = step, .last_step = step};
  if (std::isfinite(value)) {
    bucket.min = bucket.max = bucket.mean = bucket.first = bucket.last = value;
    bucket.count = 1;
  } else {
    bucket.not_finite = 1;
  }
  return bucket;
}

void merge(Bucket& bucket, const Bucket& next) {
  bucket.last_step = next.last_step;
  bucket.not_finite += next.not_finite;
  if (next.count == 0) return;
  if (bucket.count == 0) {
    bucket.min = next.min;
    bucket.max = next.max;
    bucket.mean = next.mean;
    bucket.first = next.first;
  } else {
    bucket.min = std::min(bucket.min, next.min);
    bucket.max = std::max(bucket.max, next.max);
    const double share = static_cast<double>(next.count) / (static_cast<double>(bucket.count) + next.count);
    bucket.mean = bucket.mean * (1 - share) + next.mean * share;  // no difference: that of two huge ones overflows
  }
  bucket.last = next.last;
  bucket.count += next.count;
}

std::int64_t Overview::values() const {
  std::int64_t sum = not_finite();
  for (const Bucket& bucket : buckets) sum += bucket.count;
  return sum;
}

std::int64_t Overview::not_finite() const {
  std::int64_t sum = 0;
  for (const Bucket& bucket : buckets) sum += bucket.not_finite;
  return sum;
}

std::int64_t width_of_level(int level) {
  std::int64_t width = 1;
  for (int i = 1; i <= level; ++i) width *= i == 1 ? first_width : next_width;
  return width;
}

int level_for(std::int64_t values, std::size_t columns) {
  const auto wanted = static_cast<std::int64_t>(std::max<std::size_t>(columns / 2, 1));
  int level = 0;
  while (width_of_level(level + 1) <= values / wanted) ++level;
  return level;
}

Overview coarser(Overview overview, std::size_t most) {
  most = std::max<std::size_t>(most, 1);
  while (overview.buckets.size() > most) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < overview.buckets.size(); i += 2) {
      Bucket bucket = overview.buckets[i];
      if (i + 1 < overview.buckets.size()) merge(bucket, overview.buckets[i + 1]);
      overview.buckets[kept++] = bucket;
    }
    overview.buckets.resize(kept);
    overview.width *= 2;
  }
  return overview;
}

OverviewBuilder::OverviewBuilder(Take take) : take_(std::move(take)), levels_(1) {}

void OverviewBuilder::add(std::int64_t step, double value) {
  if (!is_missing(value)) complete(0, bucket_of(step, value));
}

void OverviewBuilder::feed(std::size_t level, const Bucket& part) {
  Level& into = levels_[level];
  if (into.parts == 0)
    into.open = part;
  else
    merge(into.open, part);
  if (static_cast<std::size_t>(++into.parts) < parts_in_bucket(level)) return;
  into.parts = 0;
  complete(level, Bucket(into.open));
}

void OverviewBuilder::complete(std::size_t level, const Bucket& bucket) {
  if (levels_[level].chunk.size() == most_in_chunk) {
    if (level + 1 == levels_.size()) {
      levels_.emplace_back();
      for (std::size_t i = 0; i < most_in_chunk; ++i) feed(level + 1, Bucket(levels_[level].chunk[i]));
    }
    if (take_ && level > 0) take_(static_cast<int>(level), levels_[level].chunk);
    levels_[level].chunk.clear();
  }
  const bool is_highest = level + 1 == levels_.size();
  if (level > 0 || is_highest) levels_[level].chunk.push_back(bucket);
  if (!is_highest) feed(level + 1, bucket);
}

void OverviewBuilder::finish() {
  for (std::size_t level = 0; level < levels_.size(); ++level) {
    if (levels_[level].parts > 0) {
      levels_[level].parts = 0;
      complete(level, Bucket(levels_[level].open));
    }
    const Level& done = levels_[level];
    if (take_ && (level > 0 || levels_.size() == 1)) take_(static_cast<int>(level), done.chunk);
  }
}

Overview OverviewBuilder::top(Quantity quantity) const {
  const Level& highest = levels_.back();
  Overview overview{
      .quantity = quantity, .width = width_of_level(static_cast<int>(levels_.size()) - 1), .buckets = highest.chunk};
  // The buckets still open on this level and all below, the oldest highest.
  std::optional<Bucket> open;
  for (std::size_t level = levels_.size(); level-- > 0;) {
    if (levels_[level].parts == 0) continue;
    if (open)
      merge(*open, levels_[level].open);
    else
      open = levels_[level].open;
  }
  if (open) overview.buckets.push_back(*open);
  return overview;
}

std::string to_bytes(std::span<const Bucket> buckets) {
  Writer out;
  out.put(format);
  out.put(static_cast<std::uint32_t>(buckets.size()));
  if (!buckets.empty()) {
    const std::int64_t stride = buckets.size() > 1 ? difference(buckets[1].first_step, buckets[0].first_step) : 0;
    const std::int64_t span = difference(buckets[0].last_step, buckets[0].first_step);
    if (is_even(buckets, stride, span)) {
      out.put(Axis::even);
      for (const std::int64_t number : {buckets[0].first_step, stride, span, buckets.back().last_step}) out.put(number);
    } else {
      out.put(Axis::plain);
      out.column(column_of(buckets, [](const Bucket& b) { return b.first_step; }));
      out.column(column_of(buckets, [](const Bucket& b) { return b.last_step; }));
    }
    const auto min = column_of(buckets, [](const Bucket& b) { return float_below(b.min); });
    const auto max = column_of(buckets, [](const Bucket& b) { return float_above(b.max); });
    const auto mean = column_of(buckets, [](const Bucket& b) { return nearest_float(b.mean); });
    const auto first = column_of(buckets, [](const Bucket& b) { return nearest_float(b.first); });
    const auto last = column_of(buckets, [](const Bucket& b) { return nearest_float(b.last); });
    out.column(min);
    out.column(max, &min);
    out.column(mean, &max);
    out.column(first, &mean);
    out.column(last, &first);
    out.column(column_of(buckets, [](const Bucket& b) { return b.count; }));
    out.column(column_of(buckets, [](const Bucket& b) { return b.not_finite; }));
  }
  out.put(crc32(out.bytes));
  return std::move(out.bytes);
}

std::optional<std::vector<Bucket>> buckets_from(std::string_view bytes) {
  constexpr std::size_t checksum_size = sizeof(std::uint32_t);
  if (bytes.size() < checksum_size) return std::nullopt;
  const std::string_view body = bytes.substr(0, bytes.size() - checksum_size);
  if (Reader(bytes.substr(body.size())).get<std::uint32_t>() != crc32(body)) return std::nullopt;
  Reader in(body);
  if (in.get<std::uint32_t>() != format) return std::nullopt;
  const auto size = in.get<std::uint32_t>();
  if (!in.good() || size > most_in_chunk) return std::nullopt;
  std::vector<Bucket> buckets(size);
  if (size == 0) return in.finished() ? std::optional(std::move(buckets)) : std::nullopt;

  if (static_cast<Axis>(in.get<std::uint8_t>()) == Axis::even) {
    const auto first = in.get<std::int64_t>();
    const auto stride = in.get<std::int64_t>();
    const auto span = in.get<std::int64_t>();
    for (std::size_t i = 0; i < size; ++i) {
      buckets[i].first_step = stepped(first, i, stride);
      buckets[i].last_step = stepped(buckets[i].first_step, 1, span);
    }
    buckets.back().last_step = in.get<std::int64_t>();
  } else {
    const auto first = in.column<std::int64_t>(size);
    const auto last = in.column<std::int64_t>(size);
    for (std::size_t i = 0; i < size; ++i) {
      buckets[i].first_step = first[i];
      buckets[i].last_step = last[i];
    }
  }
  const auto min = in.column<float>(size);
  const auto max = in.column<float>(size, &min);
  const auto mean = in.column<float>(size, &max);
  const auto first = in.column<float>(size, &mean);
  const auto last = in.column<float>(size, &first);
  const auto count = in.column<std::uint32_t>(size);
  const auto not_finite = in.column<std::uint32_t>(size);
  if (!in.finished()) return std::nullopt;
  for (std::size_t i = 0; i < size; ++i) {
    buckets[i].min = from_float(min[i]);
    buckets[i].max = from_float(max[i]);
    buckets[i].mean = from_float(mean[i]);
    buckets[i].first = from_float(first[i]);
    buckets[i].last = from_float(last[i]);
    buckets[i].count = count[i];
    buckets[i].not_finite = not_finite[i];
  }
  return buckets;
}

}  // namespace stepladder
