#include "storage/importers/step_line.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <limits>

namespace stepladder {
namespace {

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
constexpr char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}
constexpr bool is_alpha(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
constexpr bool is_word(char c) {
  return is_alpha(c) || is_digit(c) || c == '_';
}
constexpr bool is_space(char c) {
  return c == ' ' || c == '\t';
}
constexpr bool is_ascii(char c) {
  return static_cast<unsigned char>(c) < 0x80;
}

bool one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool equal_in_lower(std::string_view text, std::string_view word) {
  return text.size() == word.size() &&
         std::equal(text.begin(), text.end(), word.begin(), [](char a, char b) { return lower(a) == b; });
}

// --- units
// ------------------------------------------------------------------------------------------------------------

struct Unit {
  TimeUnit time = TimeUnit::unknown;
  RateLabel rate = RateLabel::none;
  double scale = 1;
  bool per_step = false;  // "ms/step", "s/it": a time although it has a slash
  bool other = false;     // known, and nothing of ours: %, GiB
  bool known = false;
};

constexpr std::string_view micro_signs[] = {"\xC2\xB5s", "\xCE\xBCs"};

TimeUnit time_unit(std::string_view text) {
  if (one_of(text, {"ms", "msec", "msecs", "millisecond", "milliseconds", "millis"})) return TimeUnit::ms;
  if (one_of(text, {"s", "sec", "secs", "second", "seconds"})) return TimeUnit::s;
  if (one_of(text, {"us", "usec", "microseconds", micro_signs[0], micro_signs[1]})) return TimeUnit::us;
  if (one_of(text, {"min", "mins", "minute", "minutes", "m"})) return TimeUnit::min;
  if (one_of(text, {"h", "hr", "hrs", "hour", "hours"})) return TimeUnit::h;
  return TimeUnit::unknown;
}

// "tok/s", "tokens/ms", "k tok/s", "it/s", "s/it", "ms/step", "ms", "GiB", "%".
Unit unit_of(std::string_view text) {
  char buffer[24];
  if (text.empty() || text.size() > sizeof buffer) return {};
  std::transform(text.begin(), text.end(), buffer, lower);
  std::string_view unit(buffer, text.size());

  Unit found;
  if (unit == "m" && text == "M") return {.scale = 1e6, .known = true};
  if (unit == "k") return {.scale = 1e3, .known = true};
  if (one_of(unit, {"b", "g", "t"})) return {.other = true, .known = true};
  if ((found.time = time_unit(unit)) != TimeUnit::unknown) return found.known = true, found;
  if (one_of(unit, {"%",      "gb",      "gib",      "mb",     "mib",    "kb", "kib", "w",  "mw", "c", "x",   "z",
                    "tflops", "tflop/s", "tflops/s", "pflops", "gflops", "th", "st",  "nd", "rd", "j", "mhz", "ghz"}))
    return {.other = true, .known = true};

  const std::size_t slash = unit.find('/');
  if (slash == std::string_view::npos) return found;
  std::string_view above = unit.substr(0, slash);
  const std::string_view below = unit.substr(slash + 1);
  if (const TimeUnit time = time_unit(above); time != TimeUnit::unknown) {
    if (one_of(below, {"it", "iter", "iters", "iteration", "step", "steps", "batch", "ba", "update", "opt"}))
      return {.time = time, .per_step = true, .known = true};
    return {.other = true, .known = true};  // "ms/token" and the like
  }
  const TimeUnit per = time_unit(below == "gpu" || below.empty() ? "s" : below.substr(0, below.find('/')));
  if (per == TimeUnit::unknown || per == TimeUnit::min || per == TimeUnit::h) return found;
  if (above.size() > 2 && above[0] == 'k' && above[1] == 't') found.scale = 1e3, above.remove_prefix(1);
  if (above.size() > 2 && above[0] == 'm' && above[1] == 't') found.scale = 1e6, above.remove_prefix(1);
  if (one_of(above, {"tok", "toks", "token", "tokens", "t", "words", "w"})) found.rate = RateLabel::tokens;
  if (one_of(above, {"sample", "samples", "seq", "seqs", "sequence", "sequences", "example", "examples", "ex", "img",
                     "imgs", "images", "sent", "sents"}))
    found.rate = RateLabel::samples;
  if (one_of(above, {"it", "iter", "iters", "iterations", "step", "steps", "batch", "batches", "ba", "updates"}))
    found.rate = RateLabel::iterations;
  if (found.rate == RateLabel::none) return {};
  if (per == TimeUnit::ms && found.rate == RateLabel::tokens) found.rate = RateLabel::tokens_per_ms;
  found.known = true;
  return found;
}

// --- meanings
// ---------------------------------------------------------------------------------------------------------

bool is_validation(std::string_view word) {
  return one_of(word, {"val", "valid", "validation", "eval", "evaluation", "dev", "test", "heldout", "holdout", "tel"});
}

bool any_validation(const KeyWords& key, int from = 0) {
  for (int i = from; i < key.count; ++i)
    if (is_validation(key.words[i])) return true;
  return false;
}

Meaning step_meaning(const KeyWords& key) {
  const std::string_view last = key.words[0];
  const bool plain = one_of(last, {"step", "iter", "iteration", "itr"});
  const bool counted = one_of(last, {"steps", "iters", "it", "updates", "update"});
  if (!plain && !counted) return {};
  if (key.count > 1 &&
      one_of(key.words[1],
             {"per",  "max",  "total", "warmup", "up",   "skipped", "accum", "accumulation", "every", "log",
              "save", "eval", "val",   "nan",    "each", "of",      "inner", "decay",        "last",  "best",
              "time", "a",    "the",   "ms",     "s",    "seconds", "micro", "gradient",     "grad",  "resume",
              "from", "to",   "start", "for",    "next", "first",   "after", "before",       "all",   "remaining"}))
    return {};
  if (last == "updates" && !key.is(1, "num") && key.count > 1) return {};
  const bool global = key.is(1, "global") || key.is(1, "num") || key.is(1, "trainer");
  return {.field = Field::step, .rank = global ? 0 : plain ? 1 : 3};
}

Meaning loss_meaning(const KeyWords& key) {
  int at = 0;  // of the word that says loss
  if (key.words[0] == "trl") return {.field = Field::loss, .rank = 0};
  if (key.words[0] == "tel" && key.count == 1) return {.field = Field::val_loss, .rank = 0};
  if (key.count > 1 && one_of(key.words[0], {"avg", "mean", "value", "train", "total", "val", "valid", "eval", "test",
                                             "validation", "training", "step", "epoch"}))
    at = 1;
  const std::string_view word = key.words[at];
  const bool loss = word == "loss" || (at == 0 && one_of(word, {"xent", "nll", "crossentropy"})) ||
                    (word == "entropy" && key.is(at + 1, "cross"));
  if (!loss) return {};
  int rank = at;
  for (int i = at + 1; i < key.count; ++i) {
    if (one_of(key.words[i],
               {"aux",  "z",      "lb",       "balance", "balancing", "router",  "moe",     "mtp",  "best",
                "min",  "lowest", "delta",    "diff",    "target",    "reg",     "kl",      "prev", "previous",
                "last", "max",    "smoothed", "ema",     "no",        "initial", "expected"}))
      return {};
    if (i == at + 1 && !one_of(key.words[i], {"train", "training", "lm", "avg", "mean", "global", "batch", "step"}))
      rank += 2;
  }
  return {.field = any_validation(key) ? Field::val_loss : Field::loss, .rank = rank};
}

Meaning time_meaning(const KeyWords& full, TimeUnit given) {
  // A unit at the end of a key is its unit: "dt_ms", "step_time_s", "ms per step".
  KeyWords key = full;
  TimeUnit unit = given;
  const auto drop_last = [&] {
    for (int i = 1; i < key.count; ++i) key.words[i - 1] = key.words[i];
    --key.count;
  };
  if (key.count > 1 && key.words[0] != "m" && key.words[0] != "h" && time_unit(key.words[0]) != TimeUnit::unknown) {
    if (unit == TimeUnit::unknown) unit = time_unit(key.words[0]);
    drop_last();
  }
  for (int i = 0; i < key.count; ++i)
    if (one_of(key.words[i],
               {"data",       "load",      "loading", "loader",    "forward",    "fwd",   "backward", "bwd",
                "opt",        "optimizer", "eta",     "remaining", "left",       "eval",  "val",      "valid",
                "validation", "comm",      "compile", "gen",       "generation", "save",  "start",    "end",
                "stamp",      "timestamp", "date",    "gpu",       "cpu",        "token", "tok",      "sample"}) &&
        !(key.words[i] == "end" && key.has("to")))
      return {};
  const std::string_view last = key.words[0];
  const auto found = [&](Field field, int rank) { return Meaning{.field = field, .rank = rank, .unit = unit}; };

  if (key.has("per") && one_of(last, {"step", "iteration", "iter", "it", "batch", "update"})) {
    for (int i = 1; i < key.count; ++i) {
      if (key.words[i] == "time" || key.words[i] == "seconds") return found(Field::time, 0);
      if (const TimeUnit named = time_unit(key.words[i]); named != TimeUnit::unknown) {
        unit = named;
        return found(Field::time, 0);
      }
    }
    return {};
  }
  const bool mean = key.has("avg") || key.has("average") || key.has("mean");
  if (mean && (last == "time" || last == "dt" || key.has("step"))) {
    return last == "loss" ? Meaning{} : found(Field::mean_time, 0);
  }
  if (last == "wall" && key.is(1, "train")) return {};  // fairseq: seconds since the last line
  if (key.has("elapsed") || key.has("cumulative") || key.has("runtime") || key.has("walltime") || key.has("wall"))
    return key.has("train") && last == "runtime" ? found(Field::summary, 0) : found(Field::elapsed, 1);
  if (one_of(last, {"time", "clock"})) {
    if (key.count == 1) return found(Field::time, 1);
    if (one_of(key.words[1], {"total", "train", "training", "cum", "run", "wall"})) return found(Field::elapsed, 0);
    if (one_of(key.words[1], {"step", "iter", "iteration", "batch", "update", "it"})) return found(Field::time, 0);
    return found(Field::time, 3);
  }
  if (one_of(last, {"dt", "duration", "dur", "latency"})) return found(Field::time, last == "dt" ? 0 : 2);
  if (last == "ms" && key.count == 1) return Meaning{.field = Field::time, .rank = 1, .unit = TimeUnit::ms};
  if (one_of(last, {"step", "iter", "iteration", "it", "batch"}) && key.is(1, "time")) return found(Field::time, 1);
  if (last == "end" && key.is(1, "to")) return found(Field::time, 1);
  if (last == "step" && full.count > 1 && unit != TimeUnit::unknown) return found(Field::time, 2);  // "step_ms"
  return {};
}

Meaning rate_meaning(const KeyWords& key, const Unit& given) {
  Meaning found{.field = Field::throughput, .rank = 0, .rate = given.rate, .scale = given.scale};
  const std::string_view last = key.words[0];
  const bool per_second = (one_of(last, {"s", "sec", "second", "seconds"}) && key.count > 1) ||
                          (last == "gpu" && key.count > 2 && one_of(key.words[1], {"s", "sec", "second"}));
  const bool per_ms = last == "ms" && key.count > 1;
  if (per_second || per_ms) {
    for (int i = 1; i < key.count; ++i) {
      const std::string_view word = key.words[i];
      const bool kilo = one_of(word, {"ktok", "ktoks", "ktokens"});
      if (kilo || one_of(word, {"tok", "toks", "token", "tokens", "words"})) {
        found.rate = per_ms ? RateLabel::tokens_per_ms : RateLabel::tokens;
        if (kilo) found.scale = 1e3;
        return found;
      }
      if (one_of(word, {"samples", "sample", "seq", "seqs", "sequences", "examples", "images", "img"}))
        return found.rate = RateLabel::samples, found;
      if (one_of(word, {"it", "iter", "iters", "iterations", "steps", "step", "batches"}) && per_second &&
          !key.has("time"))
        return found.rank = 1, found.rate = RateLabel::iterations, found;
      if (word != "per" && word != "p") break;
    }
  }
  if (one_of(last, {"tps", "tgs", "wps", "toks"}) || (last == "tokps")) return found.rate = RateLabel::tokens, found;
  if (one_of(last, {"ups"})) return found.rank = 4, found.rate = RateLabel::iterations, found;
  if (one_of(last, {"throughput", "speed"})) {
    if (found.rate == RateLabel::none) found.rate = RateLabel::unlabelled;
    return found.rank = 1, found;
  }
  return {};
}

Meaning other_meaning(const KeyWords& key) {
  const std::string_view last = key.words[0];
  if (last == "epoch" || (last == "ep" && key.count == 1)) return {.field = Field::epoch, .rank = 0};
  if (last == "batch" && !key.is(1, "per")) return {.field = Field::batch, .rank = 2};
  if (last == "lr" || (last == "rate" && key.is(1, "learning"))) return {.field = Field::lr, .rank = key.count > 2};
  if (one_of(last, {"gnorm", "gradnorm", "gn"})) return {.field = Field::grad_norm, .rank = 0};
  if (last == "norm") {
    if (key.has("grad") || key.has("gradient") || key.has("gradients") || key.has("grads"))
      return {.field = Field::grad_norm, .rank = 0};
    return one_of(key.count > 1 ? key.words[1] : "",
                  {"param", "params", "weight", "weights", "layer", "update", "rms", "parameter", "batch"})
               ? Meaning{}
               : Meaning{.field = Field::grad_norm, .rank = 1};
  }
  if (last == "wpb") return {.field = Field::tokens, .rank = 0};  // fairseq: words per batch
  if (last == "tokens" || (last == "seen" && key.is(1, "tokens")))
    return {.field = Field::tokens, .rank = key.count > 1 ? 0 : 1};
  if (last == "size" && key.is(1, "batch") && key.is(2, "global")) return {.field = Field::batch_size, .rank = 0};
  if (last == "runtime" && key.is(1, "train")) return {.field = Field::summary, .rank = 0};
  return {};
}

// --- lines
// ------------------------------------------------------------------------------------------------------------

// Which number of a line has won each field so far.
struct Ranks {
  int of[16];
  Ranks() { std::fill(std::begin(of), std::end(of), 99); }
  bool takes(Field field, int rank) {
    int& best = of[static_cast<int>(field)];
    if (rank >= best) return false;
    best = rank;
    return true;
  }
};

constexpr double largest_count = 9e15;

// Words that a program's step line does not hold, and that prose can hardly do without.
bool is_prose(std::string_view word) {
  return one_of(word,
                {"the",    "was",   "were",   "is",     "are",   "we",    "our",  "that", "this", "which", "because",
                 "when",   "if",    "should", "would",  "could", "you",   "your", "my",   "i",    "it's",  "def",
                 "return", "print", "import", "assert", "than",  "there", "been", "had",  "has",  "gets",  "goes"});
}

bool holds_prose(std::string_view line) {
  std::size_t at = 0;
  while (at < line.size()) {
    while (at < line.size() && !is_alpha(line[at])) ++at;
    const std::size_t start = at;
    while (at < line.size() && (is_alpha(line[at]) || line[at] == '\'')) ++at;
    if (at - start > 7 || at == start) continue;
    // Part of a longer name: "loss_if", "is/loss".
    if ((start > 0 && (line[start - 1] == '_' || line[start - 1] == '/' || line[start - 1] == '-')) ||
        (at < line.size() && (line[at] == '_' || line[at] == '/' || line[at] == '=' || line[at] == ':')))
      continue;
    char buffer[8];
    std::transform(line.begin() + static_cast<std::ptrdiff_t>(start), line.begin() + static_cast<std::ptrdiff_t>(at),
                   buffer, lower);
    if (is_prose({buffer, at - start})) return true;
  }
  return false;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

bool is_table_row(std::string_view line) {
  line = trimmed(line);
  return !line.empty() && ((line.front() == '|' && line.back() == '|') || line.front() == '<' ||
                           line.find("</") != std::string_view::npos);
}

// "250 val 3.2841": the three words that build-nanogpt writes into its log.txt.
bool read_three_words(std::string_view line, StepLine& found) {
  line = trimmed(line);
  if (line.empty() || !is_digit(line.front())) return false;
  std::int64_t step = 0;
  const auto [after, error] = std::from_chars(line.data(), line.data() + line.size(), step);
  if (error != std::errc() || after == line.data() + line.size() || *after != ' ') return false;
  line.remove_prefix(static_cast<std::size_t>(after - line.data()) + 1);
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos) return false;
  const std::string_view kind = line.substr(0, space);
  line.remove_prefix(space + 1);
  double value = 0;
  const auto [end, bad] = std::from_chars(line.data(), line.data() + line.size(), value);
  if (bad != std::errc() || end != line.data() + line.size()) return false;
  if (kind != "train" && kind != "val") return false;
  found.step = step;
  (kind == "train" ? found.loss : found.val_loss) = value;
  return true;
}

// "val", "eval" ... as a word of its own in the text before a number, not part of that number's key.
bool names_validation(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    while (at < text.size() && !is_alpha(text[at])) ++at;
    const std::size_t start = at;
    while (at < text.size() && is_word(text[at])) ++at;
    if (at - start > 12 || at == start) continue;
    if (at < text.size() && (text[at] == '.' || text[at] == '/')) continue;
    char buffer[12];
    std::transform(text.begin() + static_cast<std::ptrdiff_t>(start), text.begin() + static_cast<std::ptrdiff_t>(at),
                   buffer, lower);
    const std::string_view word(buffer, at - start);
    if ((is_validation(word) && word != "tel") || word == "evaluating" || word == "testing") return true;
  }
  return false;
}

}  // namespace

double milliseconds_in(TimeUnit unit) {
  switch (unit) {
    case TimeUnit::us:
      return 1e-3;
    case TimeUnit::s:
      return 1e3;
    case TimeUnit::min:
      return 6e4;
    case TimeUnit::h:
      return 3.6e6;
    case TimeUnit::ms:
    case TimeUnit::unknown:
      return 1;
  }
  return 1;
}

KeyWords::KeyWords(std::string_view key) {
  std::size_t end = key.size();
  while (end > 0 && count < most) {
    while (end > 0 && !is_alpha(key[end - 1]) && !is_digit(key[end - 1])) --end;
    std::size_t start = end;
    while (start > 0 && (is_alpha(key[start - 1]) || is_digit(key[start - 1]))) {
      --start;
      // trainLoss: a capital after a small letter begins a word.
      if (start > 0 && key[start] >= 'A' && key[start] <= 'Z' && key[start - 1] >= 'a' && key[start - 1] <= 'z') break;
    }
    if (start == end) return;
    const std::size_t length = std::min(end - start, sizeof letters[0]);
    std::transform(key.begin() + static_cast<std::ptrdiff_t>(start),
                   key.begin() + static_cast<std::ptrdiff_t>(start + length), letters[count], lower);
    words[count] = {letters[count], length};
    ++count;
    end = start;
  }
}

bool KeyWords::has(std::string_view word) const {
  return std::find(words, words + count, word) != words + count;
}

bool PairScanner::next(Pair& pair) {
  const std::size_t size = line_.size();
  while (at_ < size) {
    const char c = line_[at_];
    if (is_alpha(c) || c == '_') {
      std::size_t end = at_;
      while (end < size && is_word(line_[end])) ++end;
      const std::string_view word = line_.substr(at_, end - at_);
      // nan and inf are numbers where a number may stand, also with a unit behind them: "step_avg:nanms".
      if (word.size() <= 8 && (equal_in_lower(word.substr(0, 3), "nan") || equal_in_lower(word.substr(0, 3), "inf"))) {
        const std::string_view rest =
            equal_in_lower(word, "infinity") ? std::string_view() : word.substr(std::min<std::size_t>(3, word.size()));
        if (rest.empty() || unit_of(rest).known) {
          const bool negative = at_ > 0 && line_[at_ - 1] == '-';
          pair = {};
          take_key(line_.substr(gap_, at_ - gap_ - (negative ? 1 : 0)), pair);
          if (!pair.key.empty()) {
            pair.value = lower(word[0]) == 'n' ? std::numeric_limits<double>::quiet_NaN()
                                               : std::numeric_limits<double>::infinity() * (negative ? -1 : 1);
            pair.text = word;
            pair.unit = rest;
            pair.at = at_;
            pair.end = at_ = gap_ = end;
            return true;
          }
        }
      }
      // "step100": some glue the number to the word.
      std::size_t letters = 0;
      while (letters < word.size() && is_alpha(word[letters])) ++letters;
      const std::string_view stem = word.substr(0, letters);
      if (letters < word.size() && is_digit(word[letters]) &&
          std::all_of(word.begin() + static_cast<std::ptrdiff_t>(letters), word.end(), is_digit) &&
          (equal_in_lower(stem, "step") || equal_in_lower(stem, "iter") || equal_in_lower(stem, "epoch"))) {
        at_ += letters;
        if (number(at_, pair)) return true;
        continue;
      }
      at_ = end;
    } else if (is_digit(c) || ((c == '-' || c == '+' || c == '.') && at_ + 1 < size &&
                               (is_digit(line_[at_ + 1]) ||
                                (c != '.' && line_[at_ + 1] == '.' && at_ + 2 < size && is_digit(line_[at_ + 2]))) &&
                               (at_ == 0 || !is_word(line_[at_ - 1])))) {
      if (number(at_, pair)) return true;
    } else {
      ++at_;
    }
  }
  return false;
}

// Reads the number at `at`; false where it is none (a date, a version), with at_ behind it either way.
bool PairScanner::number(std::size_t at, Pair& pair) {
  const char* const begin = line_.data();
  const char* const end = begin + line_.size();
  const char* from = begin + at + (line_[at] == '+' ? 1 : 0);
  double value = 0;
  const auto [stop, error] = std::from_chars(from, end, value);
  const char* p = stop;
  if (error == std::errc::result_out_of_range) {
    value = std::numeric_limits<double>::quiet_NaN();  // 1e999: not a size that anybody measured
  } else if (error != std::errc()) {
    at_ = at + 1;
    return false;
  }
  const bool digits_only = std::all_of(from, p, is_digit);
  const auto skip = [&](auto part) {
    while (p < end && part(*p)) ++p;
    at_ = static_cast<std::size_t>(p - begin);
    gap_ = at_;
    return false;
  };

  if (p + 1 < end && *p == '.' && is_digit(p[1]))
    return skip([](char c) { return is_word(c) || c == '.' || c == '+'; });
  if (digits_only && p - from == 4 && p + 2 < end && (*p == '-' || *p == '/') && is_digit(p[1]) && is_digit(p[2]) &&
      p + 3 < end && (p[3] == '-' || p[3] == '/'))
    return skip(
        [](char c) { return is_digit(c) || c == '-' || c == '/' || c == ':' || c == 'T' || c == '.' || c == 'Z'; });

  pair = {};
  pair.at = at;
  take_key(line_.substr(gap_, at - gap_), pair);

  // h:mm:ss, or mm:ss.
  if (digits_only && p + 2 < end && *p == ':' && is_digit(p[1]) && is_digit(p[2]) &&
      (p + 3 == end || !is_digit(p[3])) && (p - from <= 2 || (p + 3 < end && p[3] == ':'))) {
    double seconds = value;
    while (p + 2 < end && *p == ':' && is_digit(p[1])) {
      double part = 0;
      const auto parsed = std::from_chars(p + 1, end, part);
      seconds = seconds * 60 + part;
      p = parsed.ptr;
    }
    if (p < end && *p == ',' && p + 1 < end && is_digit(p[1])) skip([](char c) { return is_digit(c) || c == ','; });
    pair.value = seconds;
    pair.clock = true;
  } else {
    // 2,345 and 491_520: a thousand by groups of three.
    std::int64_t whole = -1;
    if (digits_only && value < largest_count) whole = static_cast<std::int64_t>(value);
    const char* group = p;
    while (digits_only && whole >= 0 && (group > p || p - from <= 3) && group + 3 < end + 0 &&
           (*group == ',' || *group == '_') && is_digit(group[1]) && is_digit(group[2]) && is_digit(group[3]) &&
           (group + 4 == end || !is_digit(group[4])) && whole < 9'000'000'000'000) {
      whole = whole * 1000 + (group[1] - '0') * 100 + (group[2] - '0') * 10 + (group[3] - '0');
      group += 4;
    }
    if (group > p) {
      p = group;
      value = static_cast<double>(whole);
      if (p + 1 < end && *p == '.' && is_digit(p[1])) {
        double fraction = 0;
        p = std::from_chars(p, end, fraction).ptr;
        value += fraction;
        whole = -1;
      }
    }
    pair.value = value;
    pair.whole = whole;
  }
  pair.text = line_.substr(at, static_cast<std::size_t>(p - begin) - at);

  // 5/100
  const char* slash = p;
  while (slash < end && is_space(*slash)) ++slash;
  if (pair.whole >= 0 && slash + 1 < end && *slash == '/') {
    ++slash;
    while (slash < end && is_space(*slash)) ++slash;
    std::int64_t total = 0;
    const auto parsed = std::from_chars(slash, end, total);
    if (parsed.ec == std::errc() && total >= 0 &&
        (parsed.ptr == end || (!is_word(*parsed.ptr) && *parsed.ptr != '/'))) {
      pair.total = total;
      p = parsed.ptr;
    }
  }

  // Its unit. What is glued to a number and is no unit makes it a name: "3d", "61a0f".
  const char* unit = p;
  if (unit < end && *unit == ' ') ++unit;
  const char* unit_end = unit;
  const auto is_unit = [](char c) {
    return is_alpha(c) || c == '/' || c == '%' || c == '\xC2' || c == '\xB5' || c == '\xCE' || c == '\xBC';
  };
  while (unit_end < end && is_unit(*unit_end)) ++unit_end;
  if (unit_end > unit && (unit_end == end || !is_word(*unit_end))) {
    std::string_view text(unit, static_cast<std::size_t>(unit_end - unit));
    const bool key_follows = unit > p && unit_end < end && (*unit_end == ':' || *unit_end == '=');
    Unit known = unit_of(text);
    // "437 k tok/s"
    if (known.known && known.scale > 1 && known.rate == RateLabel::none && unit_end < end && *unit_end == ' ') {
      const char* more = unit_end + 1;
      while (more < end && is_unit(*more)) ++more;
      if (unit_of({unit_end + 1, static_cast<std::size_t>(more - unit_end - 1)}).rate != RateLabel::none)
        unit_end = more, text = {unit, static_cast<std::size_t>(unit_end - unit)};
    }
    if (known.known && !key_follows) {
      pair.unit = text;
      p = unit_end;
    } else if (unit == p && is_alpha(*unit) && !pair.clock) {
      return skip([](char c) { return is_word(c); });
    }
  } else if (unit == p && unit < end && is_word(*unit)) {
    return skip([](char c) { return is_word(c); });
  }
  pair.end = at_ = gap_ = static_cast<std::size_t>(p - begin);
  return true;
}

// The key is what stands between the last delimiter and the number.
void PairScanner::take_key(std::string_view gap, Pair& pair) {
  const auto drop = [&](std::string_view characters) {
    while (!gap.empty() && characters.find(gap.back()) != std::string_view::npos) gap.remove_suffix(1);
  };
  // An operand is no value of what stands before the operator: "loss = loss / 4".
  const std::size_t last = gap.find_last_not_of(" \t");
  if (last != std::string_view::npos && (gap[last] == '/' || gap[last] == '+' || gap[last] == '*') && last > 0 &&
      is_space(gap[last - 1]))
    return;
  drop(" \t\"'[~$*`#");
  if (!gap.empty() && (gap.back() == ':' || gap.back() == '=' || gap.back() == '>')) {
    pair.separated = true;
    drop(":=> \t-");
  }
  drop(" \t\"'*`");
  if (!gap.empty() && gap.back() == ')') {
    if (const std::size_t open = gap.rfind('('); open != std::string_view::npos) {
      pair.hint = gap.substr(open + 1, gap.size() - open - 2);
      gap = gap.substr(0, open);
    }
    drop(" \t\"'*`");
  }
  std::size_t start = gap.size();
  while (start > 0) {
    const char c = gap[start - 1];
    if (!is_ascii(c) || std::strchr("|,;[]{}()\"'\t<>=:`*!?", c) || (c == ' ' && start > 1 && gap[start - 2] == ' ') ||
        (c == ' ' && start > 1 && gap[start - 2] == '-'))
      break;
    --start;
  }
  pair.key = trimmed(gap.substr(start));
}

Meaning meaning_of(const Pair& pair) {
  std::string_view unit_text = pair.unit.empty() ? pair.hint : pair.unit;
  const std::size_t space = unit_text.rfind(' ');
  Unit unit = unit_of(unit_text);
  if (space != std::string_view::npos && !unit.known) {
    const Unit prefix = unit_of(unit_text.substr(0, space));
    unit = unit_of(unit_text.substr(space + 1));
    if (prefix.scale > 1) unit.scale = prefix.scale;
  }
  if (pair.clock) unit.time = TimeUnit::s;

  const KeyWords key(pair.key);
  if (key.count > 0) {
    if (unit.rate == RateLabel::none && !unit.other) {
      if (const Meaning found = loss_meaning(key); found.field != Field::none) return found;
      if (unit.time == TimeUnit::unknown && !pair.clock)
        if (const Meaning found = step_meaning(key); found.field != Field::none) return found;
    }
    if (const Meaning found = rate_meaning(key, unit); found.field != Field::none && unit.time == TimeUnit::unknown)
      return found;
    if (const Meaning found = time_meaning(key, unit.time); found.field != Field::none && !unit.other) return found;
    if (!unit.other)
      if (Meaning found = other_meaning(key); found.field != Field::none) {
        found.scale = unit.scale;
        return found;
      }
  }
  // No word that says what it is: then the unit does.
  if (unit.rate != RateLabel::none)
    return {.field = Field::throughput, .rank = 2, .rate = unit.rate, .scale = unit.scale};
  if (unit.per_step) return {.field = Field::time, .rank = 2, .unit = unit.time};
  if (unit.time == TimeUnit::ms && !pair.separated && !pair.clock && key.count <= 1)
    return {.field = Field::time, .rank = 4, .unit = unit.time};
  if (unit.time == TimeUnit::s && !pair.separated && !pair.clock && key.count == 0)
    return {.field = Field::time, .rank = 5, .unit = unit.time};
  return {};
}

bool contains_word(std::string_view text, std::string_view word) {
  return std::search(text.begin(), text.end(), word.begin(), word.end(),
                     [](char a, char b) { return lower(a) == b; }) != text.end();
}

bool looks_like_code(std::string_view line) {
  static constexpr std::string_view marks[] = {
      "print(", "f\"",   "f'", "{step", "{loss", "{iter", "==", "+=",    "-=", "%d", "%f", ":.",
      "def ",   "self.", "<<", "%5",    "():",   "//",    "->", ".item", "&&", "%.", "%4", "#include"};
  for (const std::string_view mark : marks)
    if (line.find(mark) != std::string_view::npos) {
      // Progress bars hold runs of '=': [=====>...]
      if (mark == "==" && (line.find("[=") != std::string_view::npos || line.find("===") != std::string_view::npos))
        continue;
      return true;
    }
  const std::string_view text = trimmed(line);
  return !text.empty() && text.back() == ';' && text.find('(') != std::string_view::npos;
}

ReadLine read_step_line(std::string_view text) {
  ReadLine read;
  StepLine& line = read.line;
  if (text.size() < 5) return read;
  if (read_three_words(text, line)) {
    read.says_step = true;
    return read;
  }

  Ranks ranks;
  PairScanner scanner(text);
  Pair pair;
  std::size_t first_known = std::string_view::npos;
  bool spoken_of_validation = false;
  bool epoch_in_brackets = false;
  std::size_t previous_end = 0;
  while (scanner.next(pair)) {
    const std::string_view gap = text.substr(previous_end, pair.at - previous_end);
    previous_end = pair.end;
    Meaning meaning = meaning_of(pair);
    const char after = pair.end < text.size() ? text[pair.end] : '\0';

    // 10/100 without a word: a bar's count, or the place within an epoch.
    if (meaning.field == Field::none && pair.total > 0 && pair.whole >= 0 && pair.whole <= pair.total) {
      std::size_t next = pair.end;
      while (next < text.size() && is_space(text[next])) ++next;
      const bool bar_follows = next < text.size() && (text[next] == '[' || !is_ascii(text[next]));
      const bool at_start = trimmed(text.substr(0, pair.at)).empty();
      const bool after_percent =
          gap.find('|') != std::string_view::npos && text.substr(0, pair.at).find('%') != std::string_view::npos;
      const bool dash_follows =
          at_start && text.substr(next).starts_with("- ") && text.find("/step") != std::string_view::npos;
      if (dash_follows || (bar_follows && (at_start || after_percent ||
                                           (gap.find(':') != std::string_view::npos && pair.key.empty())))) {
        line.bar = true;
        line.keras = at_start && !after_percent;
        line.batch = pair.whole;
        line.batches = pair.total;
        if (first_known == std::string_view::npos) first_known = pair.at;
        continue;
      }
      if (!gap.empty() && (gap.back() == '[' || trimmed(gap).ends_with("[") || (at_start && after == ']'))) {
        line.batch = pair.whole;
        line.batches = pair.total;
        epoch_in_brackets = true;
        continue;
      }
      if (!is_missing(line.epoch) && trimmed(gap).empty() == false && trimmed(gap).back() == ':' && line.batch < 0) {
        line.batch = pair.whole;  // "epoch 001:  10 / 100"
        line.batches = pair.total;
        continue;
      }
    }
    // llm.c's main.log counts with one letter.
    if (pair.key == "s" && pair.separated && pair.whole >= 0 && trimmed(text.substr(0, pair.at)) == "s:")
      meaning = {.field = Field::step, .rank = 0};

    if (pair.clock && meaning.field == Field::none && text.substr(pair.end).starts_with(" elapsed"))
      meaning = {.field = Field::elapsed, .rank = 0, .unit = TimeUnit::s};

    if (meaning.field == Field::loss && spoken_of_validation) meaning.field = Field::val_loss;
    if (!spoken_of_validation && meaning.field != Field::val_loss) spoken_of_validation = names_validation(gap);
    if (meaning.field == Field::none || !(ranks.takes(meaning.field, meaning.rank))) continue;
    const double value = pair.value * meaning.scale;
    switch (meaning.field) {
      case Field::step:
        if (pair.whole < 0 && pair.value >= 0 && pair.value < largest_count && pair.value == std::floor(pair.value))
          pair.whole = static_cast<std::int64_t>(pair.value);  // 100.0
        if (meaning.scale > 1 || pair.whole < 0) {
          ranks.of[static_cast<int>(Field::step)] = 99;
          continue;
        }
        line.step = pair.whole;
        line.total = pair.total;
        break;
      case Field::batch:
        if (pair.total <= 0) continue;
        line.batch = pair.whole;
        line.batches = pair.total;
        break;
      case Field::epoch:
        line.epoch = pair.value;
        break;
      case Field::loss:
        line.loss = value;
        line.named_loss = contains_word(pair.key, "train") || pair.key == "trl";
        break;
      case Field::val_loss:
        line.val_loss = value;
        break;
      case Field::time:
        line.time = pair.value;
        line.time_unit = meaning.unit;
        break;
      case Field::elapsed:
        line.elapsed = pair.value;
        line.elapsed_unit = meaning.unit;
        break;
      case Field::mean_time:
        line.mean_time = pair.value;
        break;
      case Field::throughput:
        line.throughput = value;
        line.rate = meaning.rate;
        line.rate_text = meaning.rank == 2 && !pair.unit.empty() ? pair.unit : pair.key;
        break;
      case Field::lr:
        line.lr = value;
        break;
      case Field::grad_norm:
        line.grad_norm = value;
        break;
      case Field::tokens:
        line.tokens = value;
        break;
      case Field::batch_size:
        line.batch_size = value;
        break;
      case Field::summary:
        line.summary = true;
        break;
      case Field::none:
        break;
    }
    if (first_known == std::string_view::npos) first_known = pair.at;
  }

  const std::string_view content = trimmed(text);
  line.record = content.find('{') != std::string_view::npos && content.back() == '}';
  const bool counted = line.has_step() || line.batch >= 0 || line.record || !is_missing(line.epoch);
  const bool measured = line.has_loss() || !is_missing(line.elapsed) || !is_missing(line.time) ||
                        (!is_missing(line.throughput) && line.has_step());
  const bool bare_validation = !is_missing(line.val_loss) && is_missing(line.loss) && !line.record;
  (void)epoch_in_brackets;
  if (!(counted && measured) && !bare_validation) return read;
  if (is_table_row(text) || looks_like_code(text)) return read;
  if (!line.record && holds_prose(text)) return read;
  read.says_step = true;
  return read;
}

}  // namespace stepladder
