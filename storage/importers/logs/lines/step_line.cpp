// Reads one line: special formats first, then every pair claims a field by rank, then `finish` settles what depends on
// the whole line.
#include "storage/importers/logs/lines/step_line.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "storage/importers/logs/lines/covered_steps.h"
#include "storage/importers/logs/lines/fixed_forms.h"
#include "storage/importers/logs/lines/line_doubt.h"
#include "storage/importers/text.h"

namespace stepladder {
namespace {

// The number right behind in parentheses, "6.81 (6.79)": the mean so far. Missing if there is no such number.
double mean_behind(std::string_view rest) {
  TextCursor text(rest);
  double value = 0;
  if (!text.take(" (")) return missing;
  text.skip_spaces();
  return text.take(value) && text.take(")") ? value : missing;
}

// Whether a validation loss names the set that it is of: "eval_wiki_loss" does, "val_nll_loss" doesn't.
bool names_set(std::string_view key) {
  const KeyWords words(key);
  return std::any_of(words.words, words.words + words.count, [](std::string_view word) {
    return !is_validation(word) && !is_digit(word.front()) && word.size() > 1 &&
           !one_of(word, {"loss",  "lm",   "avg",   "mean", "value",   "total", "step",    "epoch", "curr",
                          "train", "ce",   "cross", "nll",  "entropy", "xent",  "cost",    "set",   "on",
                          "at",    "the",  "of",    "per",  "token",   "full",  "final",   "batch", "global",
                          "split", "data", "model", "is",   "mlm",     "main",  "metrics", "log",   "reduced"});
  });
}

// "train: [=>      |] data=", as llama.cpp draws the bar of an epoch in front of its count.
bool ends_with_bar(std::string_view text, std::string_view key) {
  const std::size_t end = text.rfind("] "), begin = text.substr(0, std::min(end, text.size())).rfind('[');
  constexpr std::size_t shortest = 4;
  return end != std::string_view::npos && begin != std::string_view::npos && end - begin > shortest &&
         trimmed(text.substr(end + 1), " =:") == key &&
         std::ranges::all_of(text.substr(begin + 1, end - begin - 1), [](char c) {
           return std::string_view(" =>|#-.").find(c) != std::string_view::npos || !is_ascii(c);
         });
}

// Whether the perplexity beside a loss is 2, or e, to its power. Small losses don't tell.
void read_base(double loss, double perplexity, StepLine& line) {
  constexpr double rounding = 0.01, least_loss = 0.5;
  if (!(perplexity > 1) || !std::isfinite(perplexity) || !(loss > least_loss)) return;
  line.in_bits |= std::fabs(std::log2(perplexity) - loss) < rounding;
  line.in_nats |= std::fabs(std::log(perplexity) - loss) < rounding;
}

bool begins_with_validation(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size() && is_alpha(text[end])) ++end;
  const KeyWords word(text.substr(0, end));
  return word.count == 1 && is_validation(word.words[0]);
}

bool is_rounded(const Pair& pair) {
  return pair.whole < 0 && !pair.unit.empty();
}

// Goes through the pairs of one line and gives each to the field that it claims.
class LineReading {
 public:
  // `skips_remarks`: leaves out the numbers of remarks, as in "4.8 was 4.9 | dt 100ms".
  LineReading(std::string_view text, StepLine& line, bool skips_remarks)
      : text_(text), line_(line), skips_remarks_(skips_remarks) {
    std::fill_n(best_, field_count, 99);
  }

  void read() {
    if (read_epoch_and_batch(text_, line_)) {
      takes(Field::step, -9);
      takes(Field::epoch, -9);
    } else if ((of_batches_ = read_epoch_and_batches(text_, line_))) {
      takes(Field::step, -9);
      takes(Field::epoch, -9);
    } else if (read_logged_bar(text_, line_)) {
      takes(Field::step, -9);
    } else if (read_step_and_clock(text_, line_)) {
      takes(Field::step, -9);
      takes(Field::elapsed, -9);
    }
    line_.rank = rank_of_mpirun(text_);
    rates_are_of_one_ =
        text_.find("tflops: ") != std::string_view::npos && text_.find("mfu: ") != std::string_view::npos;
    validates_ = text_.find("Saving dict for") != std::string_view::npos;  // TensorFlow's estimators
    PairScanner scanner(text_);
    Pair pair;
    while (scanner.next(pair)) {
      gap_ = text_.substr(previous_end_, pair.at - previous_end_);
      previous_end_ = pair.end;
      if (!skips_remarks_ || !is_in_remark()) take(pair);
      count_ = pair.unit.empty() && pair.total < 0 && !pair.clock ? pair.whole : -1;
      key_of_count_ = pair.key;
    }
    finish();
  }

  bool is_doubtful() const { return is_doubtful_; }
  bool named_batch() const { return named_batch_; }
  std::size_t first_measured() const { return std::max(step_at_, measured_at_); }  // where it begins; 0: nowhere

 private:
  static bool is_short_val_loss(std::string_view key) {
    return equal_in_lower(key, "val") || equal_in_lower(key, "valid");
  }

  // Whether this number is the best so far for its field.
  bool takes(Field field, int rank) {
    int& best = best_[static_cast<int>(field)];
    if (rank >= best) return false;
    best = rank;
    return true;
  }

  // A remark begins with prose or an arrow in front of a number, and ends at the next separator.
  bool is_in_remark() {
    const std::size_t separator = gap_.find_last_of("|,;");
    const std::string_view part = gap_.substr(separator + 1);  // npos + 1 is 0
    const std::size_t prose = prose_at(part);
    const bool begins = (prose != std::string_view::npos && lower(part[prose]) != 'v') ||  // "vs" compares
                        part.find("->") != std::string_view::npos || part.find("//") != std::string_view::npos;
    return in_remark_ = begins || (in_remark_ && separator == std::string_view::npos);
  }

  std::string_view before(const Pair& pair) const { return trimmed(text_.substr(0, pair.at)); }
  std::string_view behind(const Pair& pair) const { return text_.substr(pair.end); }

  // 10/100 without a word: a bar's count, or the place within an epoch.
  bool take_count(const Pair& pair) {
    if (pair.total <= 0 || pair.whole < 0 || pair.whole > pair.total) return false;
    const std::string_view rest = trimmed(behind(pair));
    const char after = pair.end < text_.size() ? text_[pair.end] : '\0';
    const bool bar_follows = !rest.empty() && (rest.front() == '[' || !is_ascii(rest.front()));
    const bool at_start = before(pair).empty();
    const bool after_percent =
        gap_.find('|') != std::string_view::npos && text_.substr(0, pair.at).find('%') != std::string_view::npos;
    const bool bar_before = pair.separated && ends_with_bar(before(pair), pair.key);
    const bool dash_follows = at_start && rest.starts_with("- ") && text_.find("/step") != std::string_view::npos;
    const std::string_view front = trimmed(gap_);
    const auto place = [&] {
      line_.batch = pair.whole;
      line_.batches = pair.total;
      return true;
    };
    if (bar_before) {
      line_.bar = line_.keras = true;
      return place();
    }
    if (dash_follows || (bar_follows && (at_start || after_percent ||
                                         (gap_.find(':') != std::string_view::npos && pair.key.empty())))) {
      line_.bar = true;
      line_.keras = at_start && !after_percent;
      return place();
    }
    if (front.ends_with('[') || (at_start && after == ']')) {
      line_.samples = rest.starts_with('(') && text_.find("Train Epoch:") != std::string_view::npos;
      has_percent_ = rest.starts_with('(') && rest.substr(0, rest.find(')')).ends_with('%');
      return place();
    }
    if (front.ends_with('(') && after == ')' && !is_missing(line_.epoch)) return place();  // "Epoch [1/3] (100/500)"
    // "100/200 train_loss: 4.5"
    if (at_start && after == ' ' && !line_.has_step() && !rest.empty() &&
        (is_alpha(rest.front()) || rest.starts_with("(epoch"))) {
      line_.step = pair.whole;
      line_.total = pair.total;
      return true;
    }
    // "epoch 001:  10 / 100", "| epoch   1 |   200/ 2983 batches |"
    if (line_.batch >= 0 || is_missing(line_.epoch) || front.empty()) return false;
    const bool behind_bar = front.find("\xE2\x94\x81") != std::string_view::npos;  // rich's, of heavy lines
    line_.bar |= behind_bar;
    return (behind_bar || front.back() == ':' || rest.starts_with("batches")) && place();
  }

  // "micro 1/4", "micro_step 0/8", "accum 2/8"
  bool take_micro_step(const Pair& pair) {
    if (pair.total < 2 || pair.whole < 0 || pair.whole > pair.total) return false;
    const KeyWords key(pair.key);
    const std::string_view first = key.count > 1 ? key.words[1] : key.last();
    if (!first.starts_with("micro") && !first.starts_with("accum")) return false;
    line_.micro = pair.whole;
    return true;
  }

  // "Batch (t): 0.501, 1021.96/s, 127.740/s/gpu": the rate of an unnamed thing, which is settled at the end.
  bool take_bare_rate(const Meaning& meaning, const Pair& pair) {
    const std::string_view rest = behind(pair);
    if (meaning.field != Field::none || !pair.key.empty() || !pair.unit.empty() || !rest.starts_with("/s") ||
        (rest.size() > 2 && (is_word(rest[2]) || rest[2] == '/')))
      return false;
    if (is_missing(bare_rate_)) bare_rate_ = pair.value;
    return true;
  }

  // A place of samples: the rate in time for a step gives no more of them than the place.
  void take_samples() {
    if (is_missing(bare_rate_) || line_.batch < 0 || !has_percent_ || !is_missing(line_.throughput)) return;
    const bool is_in_ms = line_.time_unit == TimeUnit::ms;
    const double samples = bare_rate_ * line_.time / (is_in_ms ? 1000 : 1);
    if (!line_.time_of_step || !(samples > 1.5) || static_cast<double>(line_.batch) < 0.75 * samples) return;
    line_.samples = true;
    line_.throughput = bare_rate_;
    line_.rate = RateLabel::samples;
    line_.rate_text = "/s";
    // The rate may be that of the last step, and the time a mean: the first place of an epoch is exact.
    const auto place = static_cast<double>(line_.batch);
    line_.batch_size = std::fabs(samples / place - 1) < 0.25 ? place : std::round(samples);
  }

  void take(const Pair& pair) {
    Meaning meaning = meaning_of(pair);
    if (of_batches_ && pair.key == "train_time")
      meaning = {.field = Field::time, .unit = TimeUnit::s, .of_step = true};
    else if (of_batches_ && pair.key == "iter_time")  // in which the next batch is loaded
      meaning = {.unit = TimeUnit::s, .is_part = true};
    else if (meaning.field == Field::time && text_.find(": Up. ") != std::string_view::npos)
      meaning.interval = true;  // Marian: of the updates since the last line
    const bool is_part = meaning.is_part;
    if (take_moment(meaning, pair)) return;
    const bool is_short_loss = pair.whole < 0 && !pair.clock && is_short_val_loss(pair.key);
    if (!validates_ && meaning.field != Field::val_loss && meaning.field != Field::val_perplexity && !is_short_loss)
      validates_ = names_validation(gap_);
    else if (validates_ && trimmed(gap_, " |,;").starts_with("train:"))
      validates_ = false;
    if (take_micro_step(pair)) return;
    if (take_bare_rate(meaning, pair)) return;
    if (meaning.field == Field::none && take_count(pair)) return;
    // llm.c's main.log counts with one letter.
    if (pair.key == "s" && pair.separated && pair.whole >= 0 && before(pair) == "s:")
      meaning = {.field = Field::step, .rank = 0};
    if (pair.key == "i" && pair.separated && pair.whole >= 0 && (before(pair) == "i:" || pair.total > 0))
      meaning = {.field = Field::step, .rank = 3};
    if (take_odd_one(pair, meaning)) return;
    if (meaning.field == Field::none) meaning = meaning_behind(pair);
    take_beside(pair, meaning);
    if (pair.key.ends_with("global_step/max_steps")) meaning = {.field = Field::step, .rank = 0};
    // srun and mpirun put the process's number in front: "0: step 10".
    if (meaning.field == Field::none && pair.whole >= 0 && before(pair).empty() && behind(pair).starts_with(": "))
      meaning = {.field = Field::rank, .rank = 1}, leading_rank_ = true;
    if (pair.clock && meaning.field == Field::none && behind(pair).starts_with(" elapsed"))
      meaning = {.field = Field::elapsed, .rank = 0, .unit = TimeUnit::s};
    if (validates_ && meaning.field == Field::loss) {
      if (contains_word(pair.key, "train")) return;  // an evaluation's, of other steps than this one
      meaning.field = Field::val_loss;
    }
    if (validates_ && meaning.field == Field::perplexity) meaning.field = Field::val_perplexity;
    if (continues_duration(pair)) return;
    last_ = Field::none;
    if (const std::int64_t steps = covered_steps(pair, {count_, key_of_count_, gap_}, behind(pair)); steps > 0)
      meaning = {
          .field = Field::time, .unit = time_unit_of(pair), .scale = 1 / static_cast<double>(steps), .of_step = true};
    if (meaning.field == Field::time && pair.key.empty() && gap_ == "/") meaning = {};  // "100/200/350 ms"
    if (is_part) ++parts_;
    if (meaning.field == Field::none) {
      line_.has_unread_times |= is_part || time_unit_of(pair) != TimeUnit::unknown;
      return;
    }
    if (meaning.field == Field::total_time) {
      if (total_at_ == 0) total_ = pair, total_unit_ = meaning.unit, total_at_ = pair.at;
      return;
    }
    if (!can_be(meaning, pair)) {
      line_.fractional_step |= meaning.field == Field::step && pair.value > 0 && std::isfinite(pair.value);
      return;
    }
    if (meaning.field == Field::throughput && meaning.rate == RateLabel::iterations && is_missing(line_.iterations))
      line_.iterations = pair.value * meaning.scale;
    keep_time_of_step(meaning, pair);
    if (!takes(meaning.field, meaning.rank)) return;
    if (meaning.field == Field::step)
      step_at_ = pair.at;
    else if (measured_at_ == 0 && value_of(meaning.field))
      measured_at_ = pair.at;
    assign(meaning, pair);
    last_ = meaning.field;
  }

  // "  0 350.10 ms run, 11.01 loss, 0.0010 LR": the step leads, and names follow their numbers.
  Meaning meaning_behind(const Pair& pair) {
    if (!pair.key.empty() || !pair.unit.empty() || pair.separated || pair.total >= 0) return {};
    constexpr std::size_t longest_name = 100;
    const std::string_view rest = behind(pair).substr(0, longest_name);
    if (!rest.starts_with(' ')) return {};
    const std::string_view name = rest.substr(0, rest.find_first_of(",|;"));
    if (name.find_first_of("0123456789:=([") != std::string_view::npos) {
      if (before(pair).empty()) row_ = pair.whole;
      return {};
    }
    const Meaning meaning = meaning_of({.key = trimmed(name)});
    const bool leads = meaning.field == Field::step && before(pair).empty();  // "10 iterations, loss 5.0"
    if (!leads && meaning.field != Field::loss && meaning.field != Field::val_loss && meaning.field != Field::lr)
      return {};
    names_follow_ = true;
    return meaning;
  }

  // Counts beside that of the step: iterations, of which a step may have several, and the steps that are planned.
  void take_beside(const Pair& pair, Meaning& meaning) {
    if (pair.clock || (meaning.field != Field::step && !pair.key.ends_with("steps"))) return;
    const KeyWords key(pair.key);
    if (meaning.field == Field::step && pair.whole < 0 && line_.has_step() && one_of(key.words[0], {"iter", "it"}))
      meaning = {.field = Field::time, .rank = 3, .unit = TimeUnit::s};  // "step: 10 ... iter: 0.2500"
    if (pair.whole < 0) return;
    if (meaning.field == Field::step && one_of(key.words[0], {"iter", "iteration"})) {
      iteration_ = pair.whole;
      meaning.rank = 2;  // the step's own number comes first
    } else if (key.is(0, "steps") && (key.is(1, "total") || key.is(1, "max"))) {
      planned_ = pair.whole;
    }
  }

  // "340 ms/batch", perhaps beside the time since the last line.
  void keep_time_of_step(const Meaning& meaning, const Pair& pair) {
    const bool is_per_step = meaning.field == Field::time && stepladder::unit_of(pair.unit).per_step;
    const KeyWords key(pair.key);
    if (!is_per_step || !is_missing(per_step_ms_) || key.has("avg") || key.has("average") || key.has("mean")) return;
    per_step_ms_ = pair.value * meaning.scale * milliseconds_in(meaning.unit);
  }

  // A time that is much longer than the one per step covers several steps.
  void take_time_of_step() {
    if (is_missing(per_step_ms_) || line_.time_of_step || is_missing(line_.time)) return;
    constexpr double least_longer = 1.5;
    const TimeUnit unit = line_.time_unit == TimeUnit::unknown ? TimeUnit::s : line_.time_unit;
    if (line_.time * milliseconds_in(unit) < least_longer * per_step_ms_) return;
    line_.time = per_step_ms_;
    line_.time_unit = TimeUnit::ms;
    line_.time_of_step = true;
    line_.interval = false;
  }

  // "33m 10s" is one duration: adds this part to the time before it.
  bool continues_duration(const Pair& pair) {
    const Unit known = stepladder::unit_of(pair.unit);
    const TimeUnit unit = known.per_step ? TimeUnit::unknown : known.time;
    const TimeUnit before = std::exchange(after_, unit);
    const bool goes = before != TimeUnit::unknown && unit != TimeUnit::unknown && !pair.separated && pair.key.empty() &&
                      milliseconds_in(unit) < milliseconds_in(before) && trimmed(gap_).empty();
    if (!goes) return false;
    const double part = pair.value * milliseconds_in(unit);
    if (last_ == Field::time) line_.time += part / milliseconds_in(line_.time_unit);
    if (last_ == Field::elapsed) line_.elapsed += part / milliseconds_in(line_.elapsed_unit);
    return true;
  }

  // A time since 1970 says when the line was printed, whatever it is called: "time_ms": 1696312397440.
  bool take_moment(const Meaning& meaning, const Pair& pair) {
    const std::size_t digits = std::min(pair.text.find_first_not_of("0123456789"), pair.text.size());
    if (digits < 10 || !(pair.value >= 1e9) || pair.total >= 0) return false;
    const bool leads = pair.key.empty() && (before(pair).empty() || before(pair) == "[");
    const bool is_time = meaning.field == Field::time || meaning.field == Field::elapsed ||
                         (meaning.field == Field::none && (leads || contains_word(pair.key, "time")));
    for (const double scale : {1.0, 1e-3, 1e-6, 1e-9}) {
      const double seconds = pair.value * scale;
      if (!is_time || !(seconds >= 1e9 && seconds < 1e10)) continue;
      if (!takes(Field::moment, 0)) return true;
      line_.at = seconds;
      return true;
    }
    return false;
  }

  // Takes numbers whose meaning depends on more than their own words.
  bool take_odd_one(const Pair& pair, const Meaning& meaning) {
    // "Loss after iteration 100: 0.65"
    if (loss_follows_ && pair.key.empty() && pair.separated) {
      loss_follows_ = false;
      line_.loss = pair.value;
      return true;
    }
    if (pair.whole >= 0 && contains_word(pair.key, " after ")) {
      const KeyWords key(pair.key);
      if (!key.is(1, "after") || !(key.is(2, "loss") || key.is(2, "cost"))) return false;
      if (one_of(key.words[0], {"epoch", "epochs"}))
        line_.epoch = pair.value, line_.whole_epoch = true;
      else if (one_of(key.words[0], {"iteration", "iter", "step", "steps", "iterations"}))
        line_.step = pair.whole;
      else
        return false;
      return loss_follows_ = true;
    }
    if (meaning.field != Field::none) return false;
    // "250 | loss 3.1"
    if (pair.whole >= 0 && pair.total < 0 && before(pair).empty() && behind(pair).starts_with(" | ")) {
      leading_ = pair.whole;
      return true;
    }
    // "step 100 | train 3.12 | val 3.23": only next to a step, since data sets are counted this way too.
    if (pair.whole < 0 && !pair.clock && (equal_in_lower(pair.key, "train") || is_short_val_loss(pair.key))) {
      (equal_in_lower(pair.key, "train") ? short_loss_ : short_val_loss_) = pair.value;
      return true;
    }
    // "train.py:48] [100] loss=9.1", "[100] loss=9.1"
    if (pair.whole >= 0 && pair.total < 0 && pair.key.empty() && behind(pair).starts_with("] ")) {
      std::string_view front = before(pair);
      if (!front.ends_with('[')) return false;
      front = trimmed(front.substr(0, front.size() - 1));
      if (!front.empty() && !(front.ends_with(']') && front.find(".py:") != std::string_view::npos)) return false;
      bracketed_ = pair.whole;
      return true;
    }
    return false;
  }

  // Steps, places and ranks are whole numbers.
  static bool can_be(const Meaning& meaning, const Pair& pair) {
    switch (meaning.field) {
      case Field::step:
        return pair.whole >= 0 || (pair.value >= 0 && pair.value < largest_whole &&
                                   pair.value * meaning.scale == std::floor(pair.value * meaning.scale));  // 100.0
      case Field::batch:
        return pair.whole >= 0;
      case Field::rank:
        return pair.whole >= 0 && pair.whole < largest_rank;
      default:
        return true;
    }
  }

  void assign(const Meaning& meaning, const Pair& pair) {
    const double value = pair.value * meaning.scale;
    if (double StepValues::*const into = value_of(meaning.field)) line_.*into = value;
    switch (meaning.field) {
      case Field::step:
        step_end_ = pair.end;
        line_.step = pair.whole >= 0 && meaning.scale == 1 ? pair.whole : std::llround(value);
        line_.total = pair.total;
        line_.rounded_step = meaning.scale > 1 ? meaning.scale : 0;
        line_.counts_iterations = one_of(KeyWords(pair.key).last(), {"iter", "iteration"});
        break;
      case Field::batch:
        if (pair.total > 0) {
          line_.batch = pair.whole;
          line_.batches = pair.total;
        } else {
          bare_batch_ = pair.whole;
        }
        named_batch_ = true;
        break;
      case Field::epoch:
        line_.epoch = pair.value;
        line_.whole_epoch = pair.whole >= 0;
        line_.epoch_leads = line_.whole_epoch && line_.batch < 0;
        break;
      case Field::loss:
        line_.named_loss = contains_word(pair.key, "train") || pair.key == "trl";
        loss_names_set_ = names_set(pair.key);
        break;
      case Field::val_loss:
        if (const double mean = mean_behind(behind(pair)); !is_missing(mean)) line_.val_loss = mean;
        line_.tested = contains_word(pair.key, "test") || before(pair).find("on test set") != std::string_view::npos;
        line_.val_set = names_set(pair.key) ? pair.key : std::string_view();
        break;
      case Field::perplexity:
        perplexity_ = value;
        break;
      case Field::val_perplexity:
        val_perplexity_ = value;
        break;
      case Field::time:
        line_.time_unit = meaning.unit;
        line_.interval =
            (step_end_ > 0 && step_end_ + gap_.size() == pair.at && pair.key.empty() && trimmed(gap_) == "(") ||
            meaning.interval;  // "step = 101 (39.8 sec)"
        line_.time_of_step = meaning.of_step;
        of_epoch_ = contains_word(pair.key, "epoch");
        break;
      case Field::elapsed:
        line_.elapsed_unit = meaning.unit;
        line_.process_clock = pair.key == "_runtime";
        break;
      case Field::throughput:
        line_.rate = meaning.rate;
        line_.per_device =
            meaning.per_device || is_per_device(behind(pair)) || (rates_are_of_one_ && pair.key == "tps");
        line_.rate_text = meaning.rank >= 2 && !pair.unit.empty() ? pair.unit : pair.key;
        break;
      case Field::tokens:
        line_.rounded_tokens = is_rounded(pair);
        break;
      case Field::rank:
        line_.rank = pair.whole;
        break;
      case Field::summary:
        line_.summary = true;
        runtime_ = value;
        break;
      default:
        break;
    }
  }

  // "93,622 tok/s (per GPU)"
  static bool is_per_device(std::string_view rest) {
    rest = rest.substr(0, rest.find_first_of("|,;0123456789"));
    const KeyWords words(rest.substr(0, std::min<std::size_t>(16, rest.size())));
    return words.count > 1 && is_device_word(words.words[words.count - 2]) && words.words[words.count - 1] == "per";
  }

  // The time that is called the total is that of a step beside the times of its parts, else one since the start.
  void take_total() {
    if (total_at_ == 0 || !is_missing(line_.time)) return;
    const Meaning meaning{.field = parts_ > 0 ? Field::time : Field::elapsed, .unit = total_unit_};
    if (!takes(meaning.field, meaning.rank)) return;
    gap_ = {};
    assign(meaning, total_);
    line_.time_of_step = parts_ > 0;
    if (measured_at_ == 0) measured_at_ = total_at_;
  }

  void finish() {
    take_total();
    take_time_of_step();
    take_samples();
    // "Epoch 1, batch 50, loss": the place in an epoch of unknown length.
    if (bare_batch_ >= 0 && !line_.has_step() && line_.batch < 0 && !is_missing(line_.epoch)) line_.step = bare_batch_;
    const bool counts = line_.has_step() || line_.batch >= 0 || !is_missing(line_.epoch);
    if (!counts && leading_rank_ && line_.has_loss()) leading_ = std::exchange(line_.rank, -1);  // "250: loss 3.1"
    if (!counts && leading_ >= 0 && line_.has_loss()) {
      line_.step = leading_;
    } else if (!counts && bracketed_ >= 0) {
      line_.step = bracketed_;
    } else if (!counts && row_ >= 0 && (names_follow_ || line_.has_loss())) {
      line_.step = row_;
      is_doubtful_ = !names_follow_;
    }
    if (line_.has_step() && line_.total < 0 && planned_ > 0) line_.total = planned_;
    if (line_.has_step() && iteration_ > line_.step) {
      line_.iteration = iteration_;
      if (line_.total >= 0 && line_.total < iteration_)  // "step 12/500": the place within an epoch
        line_.step = std::exchange(line_.iteration, -1);
    }
    if (line_.has_step() && is_missing(line_.loss)) line_.loss = short_loss_;
    if (line_.has_step() && is_missing(line_.val_loss)) line_.val_loss = short_val_loss_;
    const auto from = [&](double& loss, double perplexity) {
      if (!is_missing(loss) || !(perplexity > 0)) return;
      loss = std::log(perplexity);
      line_.from_perplexity = true;
    };
    // Steps/s next to tokens/s give the step time.
    if (line_.iterations > 0 && line_.rate != RateLabel::iterations && is_missing(line_.time) &&
        is_missing(line_.elapsed)) {
      line_.time = 1 / line_.iterations;
      line_.time_unit = TimeUnit::s;
    }
    // "| Eval   1 at step 90 | time: 12.34s | valid loss 9.02": the time is the evaluation's.
    const std::size_t word = text_.find_first_not_of(" \t|-=*#[");
    if (is_missing(line_.loss) && !is_missing(line_.val_loss) && word != std::string_view::npos &&
        begins_with_validation(text_.substr(word)))
      line_.time = missing;
    if (of_epoch_ && (line_.has_step() || line_.batch >= 0)) line_.time = missing;  // how long an epoch takes
    // Some print the time so far with every record; only a training's last has its mean loss.
    if (line_.summary && line_.has_loss() && !line_.named_loss) {
      line_.summary = false;
      line_.elapsed = runtime_;
      line_.elapsed_unit = TimeUnit::s;
    }
    line_.named_loss |= loss_names_set_ && !is_missing(line_.val_loss);  // "c4 loss 10.8 | val loss 9.8"
    const bool has_loss = line_.has_loss();
    // "perplexity: 24.5 eval_loss: 3.2": the former is of the evaluation too, if it is that of its loss.
    constexpr double rounding = 0.01;
    if (is_missing(line_.loss) && std::fabs(std::log(perplexity_) - line_.val_loss) < rounding)
      val_perplexity_ = std::exchange(perplexity_, missing);
    read_base(line_.loss, perplexity_, line_);
    read_base(line_.val_loss, val_perplexity_, line_);
    from(line_.loss, perplexity_);
    if (!has_loss) from(line_.val_loss, val_perplexity_);
  }

  const std::string_view text_;
  StepLine& line_;
  int best_[field_count];
  std::string_view gap_;  // the text between the last number and this one
  std::size_t previous_end_ = 0;
  std::int64_t bare_batch_ = -1;
  std::int64_t leading_ = -1;
  bool leading_rank_ = false;
  std::int64_t bracketed_ = -1, row_ = -1, iteration_ = -1, planned_ = -1;
  bool names_follow_ = false;
  bool is_doubtful_ = false;  // a number leads the line, and nothing says that it counts steps
  const bool skips_remarks_;
  bool in_remark_ = false;
  bool of_batches_ = false;  // the line's numbers are means over several batches
  double short_loss_ = missing;
  double short_val_loss_ = missing;
  bool loss_follows_ = false;
  TimeUnit after_ = TimeUnit::unknown;  // of the last number
  int parts_ = 0;                       // times of parts of a step
  Pair total_;
  TimeUnit total_unit_ = TimeUnit::unknown;
  std::size_t total_at_ = 0;
  std::int64_t count_ = -1;  // the number in front, if it is a whole one without a unit
  std::string_view key_of_count_;
  Field last_ = Field::none;  // which it was assigned to
  double runtime_ = missing;
  double bare_rate_ = missing;
  bool has_percent_ = false;      // behind the place within the epoch
  double per_step_ms_ = missing;  // a time that is called one "per step"
  bool of_epoch_ = false;         // the time
  bool loss_names_set_ = false;
  double perplexity_ = missing;
  double val_perplexity_ = missing;
  bool rates_are_of_one_ = false;  // torchtitan's "tps", beside such figures, is one device's
  bool validates_ = false;         // the line has mentioned a validation set
  bool named_batch_ = false;
  std::size_t step_at_ = 0, step_end_ = 0, measured_at_ = 0;
};

}  // namespace

double StepValues::*value_of(Field field) {
  using Value = double StepValues::*;
  constexpr Value none = nullptr;
  return by_enum<Field>(none, none, none, none, &StepValues::loss, &StepValues::val_loss, none, none, &StepValues::time,
                        none, &StepValues::elapsed, &StepValues::mean_time, &StepValues::throughput, &StepValues::lr,
                        &StepValues::grad_norm, &StepValues::tokens, &StepValues::batch_size, none, none, none)[field];
}

static ReadLine read_line(std::string_view text, bool skips_remarks) {
  ReadLine read;
  StepLine& line = read.line;
  if (text.size() < 5 || text.starts_with("[Valid - Epoch")) return read;  // burn counts an evaluation's own batches
  if (read_three_words(text, line)) {
    read.says_step = true;
    return read;
  }
  LineReading reading(text, line, skips_remarks);
  reading.read();
  read.first_measured = reading.first_measured();

  const std::string_view content = trimmed(text, " \t,");
  line.record = !content.empty() && content.find('{') != std::string_view::npos && content.back() == '}';
  const bool counted =
      line.has_step() || line.batch >= 0 || line.record || line.fractional_step || !is_missing(line.epoch);
  const bool measured = line.has_loss() || !is_missing(line.elapsed) || !is_missing(line.time) ||
                        (!is_missing(line.throughput) && line.has_step());
  const bool bare_validation = !is_missing(line.val_loss) && is_missing(line.loss) && !line.record;
  const bool says = (counted && measured) || bare_validation;
  const bool opens = !measured && (line.has_step() || reading.named_batch());
  const bool bare_loss = !counted && !is_missing(line.loss);
  if (!says && !opens && !bare_loss) return read;
  std::size_t mark = std::string_view::npos;
  if (!skips_remarks && is_table_row(text))
    mark = text.find('<') == std::string_view::npos ? 1 : 0;
  else if (!skips_remarks)
    mark = std::min(doubt_at(text, line.record), reading.is_doubtful() ? text.size() : mark);
  if (mark != std::string_view::npos) {
    if (mark == 0 || !says || !(line.has_step() || line.batch >= 0 || line.record)) return read;
    const std::size_t head = read.first_measured;
    // Words behind the numbers don't change them.
    if (ReadLine own = read_line(text, true); own.says_step && own.line.has_loss()) {
      own.line.has_unread_times |= line.has_unread_times || (!is_missing(line.time) && is_missing(own.line.time));
      read = own;
    }
    read.says_step = false;
    read.doubtful = read.first_measured = head;
    read.line.has_others = has_other_pairs(text.substr(0, mark), read.line);
    return read;
  }
  read.says_step = says;
  line.has_others = has_other_pairs(text, line);
  line.epoch_mean = line.has_loss() && (text.find("| train | epoch") != std::string_view::npos ||
                                        text.find("| train | {\"epoch\"") != std::string_view::npos);
  read.opens = opens;
  read.bare_loss = bare_loss && !says;
  return read;
}

ReadLine read_step_line(std::string_view text) {
  return read_line(text, false);
}

}  // namespace stepladder
