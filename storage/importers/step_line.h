// Finds what one line of a training log says: step, losses, times, throughput, wherever they stand and however they are
// spelled. Knows nothing of the lines around it. Pure, allocates nothing.
#pragma once

#include <cstdint>
#include <string_view>

#include "storage/records.h"

namespace stepladder {

enum class TimeUnit : std::uint8_t { unknown, us, ms, s, min, h };
double milliseconds_in(TimeUnit unit);  // 1 for unknown

// What a printed rate counts, by its label. The label is evidence, never proof (see units.h).
enum class RateLabel : std::uint8_t { none, unlabelled, tokens, tokens_per_ms, samples, iterations };

// One number with what stands before and after it.
struct Pair {
  std::string_view key;   // "elapsed time per iteration": the words in front, without separators; may be empty
  std::string_view hint;  // a unit in parentheses after the key: "ms"
  std::string_view unit;  // glued to the number or one space behind it, where it is a known one
  std::string_view text;  // the number itself
  double value = missing;
  std::int64_t whole = -1;  // the number where it is a whole one >= 0
  std::int64_t total = -1;  // N of "5/N"
  std::size_t at = 0;       // where the number begins
  std::size_t end = 0;      // behind the number, its total and its unit
  bool separated = false;   // ':' or '=' between key and number
  bool clock = false;       // was written h:mm:ss; the value is in seconds
};

// Goes through the numbers of a line from left to right. Dates, versions, and digits inside words are no numbers.
class PairScanner {
 public:
  explicit PairScanner(std::string_view line) : line_(line) {}
  bool next(Pair& pair);

 private:
  bool number(std::size_t at, Pair& pair);
  void take_key(std::string_view gap, Pair& pair);

  std::string_view line_;
  std::size_t at_ = 0;
  std::size_t gap_ = 0;  // behind the last pair
};

// The words of a key, last one first, in lower case: "trainLoss", "train/loss" and "train loss" are all loss, train.
struct KeyWords {
  static constexpr int most = 6;
  char letters[most][24];
  std::string_view words[most];
  int count = 0;
  explicit KeyWords(std::string_view key);
  bool is(int i, std::string_view word) const { return i < count && words[i] == word; }
  bool has(std::string_view word) const;
};

enum class Field : std::uint8_t {
  none,
  step,
  batch,  // place within an epoch
  epoch,
  loss,
  val_loss,
  time,       // of a step, most likely
  elapsed,    // since the start
  mean_time,  // of all steps so far
  throughput,
  lr,
  grad_norm,
  tokens,      // of a step, or so far
  batch_size,  // sequences of a step
  summary,     // only the last line of a training has this
};

// What the words in front of a number (and the unit behind it) say that it is. `rank` is 0 for the plainest spelling;
// of two numbers that claim the same field the lower rank wins, then the first.
struct Meaning {
  Field field = Field::none;
  int rank = 9;
  TimeUnit unit = TimeUnit::unknown;
  RateLabel rate = RateLabel::none;
  double scale = 1;  // 1000 for "k tok/s"
};
Meaning meaning_of(const Pair& pair);

// What a line says; -1 and `missing` for what it does not.
struct StepLine {
  std::int64_t step = -1;
  std::int64_t total = -1;  // planned steps: N of "step 5/N"
  std::int64_t batch = -1;  // place within the epoch, where the line counts so
  std::int64_t batches = -1;
  double epoch = missing;
  double loss = missing;
  double val_loss = missing;
  double time = missing;
  double elapsed = missing;
  double mean_time = missing;
  double throughput = missing;
  double lr = missing;
  double grad_norm = missing;
  double tokens = missing;
  double batch_size = missing;
  TimeUnit time_unit = TimeUnit::unknown;
  TimeUnit elapsed_unit = TimeUnit::unknown;
  RateLabel rate = RateLabel::none;
  std::string_view rate_text;  // its label as printed: "tokens/sec"
  bool bar = false;            // a progress bar: redrawn, and not always at a step's end
  bool keras = false;          // its losses are means over the epoch so far
  bool record = false;         // a dictionary or JSON object
  bool summary = false;        // says what a whole training came to
  bool named_loss = false;     // the loss is called a training loss: "train loss", "trl"

  bool has_step() const { return step >= 0; }
  bool has_loss() const { return !is_missing(loss) || !is_missing(val_loss); }
};

// Everything that `line` (one line, no colour codes) says. `says_step` is whether a training program could have printed
// it: source code, tables and prose say none, whatever words they hold.
struct ReadLine {
  StepLine line;
  bool says_step = false;
};
ReadLine read_step_line(std::string_view line);

// Whether it could be source code, by its marks: calls, comparisons, format specifiers.
bool looks_like_code(std::string_view line);

// Without regard to case.
bool contains_word(std::string_view text, std::string_view word);

}  // namespace stepladder
