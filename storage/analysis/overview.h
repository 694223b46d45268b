// A long series in few buckets: lowest, highest, mean, first and last of consecutive values, on several levels.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "storage/quantity.h"
#include "storage/records.h"

namespace stepladder {

// `missing` for metrics, which no step holds.
double value_of(const StepRecord& record, Quantity quantity);
double value_of(const Series& series, std::size_t i, Quantity quantity);

// Consecutive values of one quantity. Missing values are in no bucket; NaN and infinities are counted but
// are not in the figures, which are missing if a bucket holds nothing else.
struct Bucket {
  std::int64_t first_step = 0;
  std::int64_t last_step = 0;
  double min = missing;
  double max = missing;
  double mean = missing;
  double first = missing;
  double last = missing;
  std::uint32_t count = 0;  // of the finite ones
  std::uint32_t not_finite = 0;
};

Bucket bucket_of(std::int64_t step, double value);
void merge(Bucket& bucket, const Bucket& next);  // `next` follows `bucket`

// One level: every bucket has `width` values, except the last one and one at an edge that was cut.
struct Overview {
  Quantity quantity = Quantity::loss;
  std::int64_t width = 1;  // 1: the values themselves
  std::vector<Bucket> buckets;

  bool exact() const { return width == 1; }
  std::int64_t values() const;      // finite or not
  std::int64_t not_finite() const;  // of these
};

// Levels: 0 is the values themselves, 1 has 32 to a bucket, each further one four times as many.
inline constexpr std::size_t most_in_chunk = 4096;  // buckets
std::int64_t width_of_level(int level);

// The coarsest level that has a bucket for every two of `columns` pixels, if there are that many values.
int level_for(std::int64_t values, std::size_t columns);

// Neighbours merged, by a power of two, until there are at most `most` buckets.
Overview coarser(Overview overview, std::size_t most);

// Builds all levels value by value, in memory that grows with the logarithm of their number only. A level is begun when
// the previous one has more than most_in_chunk buckets, so the highest always is one chunk.
class OverviewBuilder {
 public:
  // Receives each complete chunk's buckets, in order; those of level 0 only if it is the only level.
  using Take = std::function<void(int level, std::span<const Bucket>)>;
  explicit OverviewBuilder(Take take = {});

  void add(std::int64_t step, double value);  // steps ascend; missing values are skipped
  void finish();                              // the incomplete buckets and chunks; nothing is added afterwards

  // The highest level of the values so far.
  Overview top(Quantity quantity) const;

 private:
  struct Level {
    Bucket open;
    int parts = 0;  // of the open bucket
    std::vector<Bucket> chunk;
  };
  void feed(std::size_t level, const Bucket& part);
  void complete(std::size_t level, const Bucket& bucket);

  Take take_;
  std::vector<Level> levels_;
};

// A chunk as the database keeps it (docs/database.md): figures rounded to seven digits, min down and max up, so that
// every value stays within them. nullopt for bytes that are not a whole chunk of this version.
std::string to_bytes(std::span<const Bucket> buckets);
std::optional<std::vector<Bucket>> buckets_from(std::string_view bytes);

}  // namespace stepladder
