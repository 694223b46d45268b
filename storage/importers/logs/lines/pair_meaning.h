// Finds the meaning of a number from the words in front of it and the unit behind it, in any spelling.
#pragma once

#include <cstdint>
#include <string_view>

#include "storage/by_enum.h"
#include "storage/importers/logs/lines/pair_scanner.h"
#include "storage/importers/logs/units.h"

namespace stepladder {

// The words of a key, last one first, in lower case: "trainLoss", "train/loss" and "train loss" are all loss, train.
// A copy's words still point into the original.
struct KeyWords {
  static constexpr int most = 6;
  char letters[most][24];
  std::string_view words[most];
  int count = 0;
  explicit KeyWords(std::string_view key);
  std::string_view last() const { return count > 0 ? words[0] : std::string_view(); }
  bool is(int i, std::string_view word) const { return i < count && words[i] == word; }
  bool has(std::string_view word) const;
  void drop_last();
};

// "val", "eval", "test" ...
bool is_validation(std::string_view word);

enum class Field : std::uint8_t {
  none,
  step,
  batch,  // place within an epoch
  epoch,
  loss,
  val_loss,
  perplexity,  // e to the loss
  val_perplexity,
  time,        // of a step, most likely
  total_time,  // of all parts of a step if the line prints these, else since the start
  elapsed,     // since the start
  mean_time,   // of all steps so far
  throughput,
  lr,
  grad_norm,
  tokens,      // of a step, or so far
  batch_size,  // sequences of a step
  rank,        // of the process that printed the line
  summary,     // found only on the last line of a training
  moment,      // unix time
};
inline constexpr int field_count = enum_count<Field>();

// The meaning of a number, from the words in front of it and the unit behind it. `rank` is 0 for the plainest spelling;
// if two numbers claim the same field, the lower rank wins, then the first.
struct Meaning {
  Field field = Field::none;
  int rank = 9;
  TimeUnit unit = TimeUnit::unknown;
  RateLabel rate = RateLabel::none;
  double scale = 1;         // 1000 for "k tok/s"
  bool per_device = false;  // a rate of one device
  bool is_part = false;     // the time of a part of a step ("forward"): it has no field
  bool interval = false;    // a time since the last line
  bool of_step = false;     // a time that is called that of a step
};
Meaning meaning_of(const Pair& pair);

}  // namespace stepladder
