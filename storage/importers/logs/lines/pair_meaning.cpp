// Maps the words of a key to a field, from the last word backwards, in one function for each kind of quantity. `rank`
// settles which of two numbers gets a field: lower is plainer. A unit decides only if no word does.
#include "storage/importers/logs/lines/pair_meaning.h"

#include <algorithm>
#include <array>
#include <functional>
#include <string>

#include "storage/importers/text.h"

namespace stepladder {
namespace {

bool any_validation(const KeyWords& key, int from = 0) {
  for (int i = from; i < key.count; ++i)
    if (is_validation(key.words[i])) return true;
  return false;
}

Meaning step_meaning(const KeyWords& key) {
  const std::string_view last = key.words[0];
  if (one_of(last, {"num", "number", "idx", "index", "i"}) && key.count > 1 &&
      one_of(key.words[1], {"step", "iter", "iteration"}))
    return {.field = Field::step, .rank = 1};
  const bool plain = one_of(last, {"step", "iter", "iteration", "itr"});
  const bool counted = one_of(last, {"steps", "iters", "iterations", "it", "updates", "update"}) ||
                       (key.count == 1 && last == "up");  // Marian: "Up. 1000"
  if (!plain && !counted) return {};
  if (key.count > 1 &&
      one_of(key.words[1],
             {"per",   "max",      "total",  "warmup", "up",       "skipped", "accum", "accumulation", "every",
              "log",   "save",     "eval",   "val",    "nan",      "each",    "of",    "inner",        "decay",
              "last",  "best",     "time",   "a",      "the",      "ms",      "s",     "sec",          "seconds",
              "micro", "gradient", "grad",   "resume", "from",     "to",      "start", "for",          "next",
              "first", "after",    "before", "all",    "remaining"}))
    return {};
  if (last == "updates" && !key.is(1, "num") && key.count > 1) return {};
  const bool global = key.is(1, "global") || key.is(1, "num") || key.is(1, "trainer");
  return {.field = Field::step, .rank = global ? 0 : plain ? 1 : 3};
}

// A word beside "loss" that makes it another loss than the step's: a part of it, a mean over steps, an older one.
bool is_of_other_loss(std::string_view word) {
  return one_of(word,
                {"aux",  "z",      "lb",       "balance", "balancing", "router",  "moe",      "mtp",    "best",
                 "min",  "lowest", "delta",    "diff",    "target",    "reg",     "kl",       "prev",   "previous",
                 "last", "max",    "smoothed", "ema",     "no",        "initial", "expected", "weight", "packet"});
}

// "val loss (ema) 3.2"
bool hints_at_other_loss(std::string_view hint) {
  const KeyWords words(hint);
  return std::any_of(words.words, words.words + words.count, is_of_other_loss);
}

Meaning loss_meaning(const KeyWords& key) {
  int at = 0;  // of the word that says loss
  if (key.words[0] == "trl") return {.field = Field::loss, .rank = 0};
  if (key.words[0] == "tel" && key.count == 1) return {.field = Field::val_loss, .rank = 0};
  if (key.words[0] == "tloss" && key.count == 1) return {.field = Field::loss, .rank = 0};
  while (at + 1 < key.count && one_of(key.words[at], {"avg", "mean", "value", "train", "total", "val", "valid", "eval",
                                                      "test", "validation", "training", "step", "epoch", "curr"}))
    ++at;
  const std::string_view word = key.words[at];
  // "eval_train_loss": an evaluation's, of other steps
  if (at + 1 < key.count && one_of(key.words[at + 1], {"train", "training"}) && any_validation(key, at + 2)) return {};
  const bool loss = word == "loss" || (at == 0 && one_of(word, {"xent", "nll", "crossentropy"})) ||
                    (at == 0 && key.count == 1 && word == "cost") || (word == "entropy" && key.is(at + 1, "cross"));
  if (!loss) return {};
  int rank = word == "loss" ? std::min(at, 1) : 2;
  if (key.words[0] == "epoch") rank += 1;  // Lightning: the mean beside train_loss_step
  if (key.has("reduced")) rank = -1;       // NeMo: the other one is a running mean
  for (int i = at + 1; i < key.count; ++i) {
    if (is_of_other_loss(key.words[i])) return {};
    if (i == at + 1 &&
        !one_of(key.words[i], {"train", "training", "lm", "avg", "mean", "global", "batch", "step", "entropy"}))
      rank += 2;
    if (i == at + 1 && one_of(key.words[i], {"avg", "mean"})) rank += 1;  // beside the loss itself
    if (key.words[i] == "entropy" && !key.is(i + 1, "cross")) return {};  // of a policy
  }
  if (key.has("test")) rank += 1;  // a validation loss is preferred to a test loss
  return {.field = any_validation(key) ? Field::val_loss : Field::loss, .rank = rank};
}

Meaning perplexity_meaning(const KeyWords& key) {
  if (!one_of(key.words[0], {"ppl", "perplexity"})) return {};
  return {.field = any_validation(key) ? Field::val_perplexity : Field::perplexity, .rank = key.count > 1};
}

bool is_step_word(std::string_view word) {
  return one_of(word, {"step", "iter", "iteration", "it", "batch", "update"});
}

// A part of a step, or what is done beside it.
bool is_part(std::string_view word) {
  for (const std::string_view start : {"data",  "load", "fetch",  "forward", "backward", "fwd",  "bwd",    "optim",
                                       "comm",  "copy", "prefet", "preproc", "allred",   "sync", "attn",   "attention",
                                       "check", "ckpt", "compil", "eval",    "valid",    "gen",  "comput", "reduce"})
    if (word.starts_with(start)) return true;
  return one_of(word, {"opt",  "micro", "fw",       "bw",    "fp",       "bp",       "val",     "save",
                       "h2d",  "d2h",   "clip",     "zero",  "mlp",      "log",      "logging", "rollout",
                       "wait", "idle",  "overhead", "other", "transfer", "sampling", "gpu",     "cpu"});
}

// "time since the last log", "elapsed since start". A missing field: it isn't such a time.
Meaning since_meaning(const KeyWords& key, TimeUnit unit) {
  if (!key.has("since")) return {};
  if (key.has("start") || key.has("begin") || key.has("beginning") || key.has("launch"))
    return {.field = Field::elapsed, .rank = 1, .unit = unit};
  if (!key.has("last") && !key.has("previous") && !key.has("prev")) return {};
  bool of_line = false;
  for (int i = 0; i < key.count; ++i)
    of_line |= one_of(key.words[i], {"log", "logged", "logging", "print", "printed", "report", "reported", "line",
                                     "message", "record", "output", "entry", "display"});
  const bool of_step = !of_line && is_step_word(key.words[0]) && key.words[0] != "update";
  if (!of_line && !of_step) return {.unit = unit, .is_part = true};  // the last checkpoint, the last update of what?
  return {.field = Field::time, .rank = 1, .unit = unit, .interval = !of_step, .of_step = of_step};
}

// Of a number that is a setting, a limit, or beside what is measured: "max_grad_norm", "base_lr", "peak 51200 tok/s".
bool is_bound(const KeyWords& key) {
  const bool per_minute = key.is(0, "min") && (key.is(1, "per") || key.is(1, "tokens"));
  return std::any_of(key.words + per_minute, key.words + key.count, [](std::string_view word) {
    return one_of(word, {"max", "min", "base", "baseline", "init", "initial", "peak", "target", "clip"});
  });
}

// Whether a rate is that of something else than the training.
bool is_rate_beside(const KeyWords& key) {
  return any_validation(key) || is_bound(key) ||
         std::any_of(key.words, key.words + key.count, [](std::string_view word) {
           return one_of(word, {"gen", "generation", "generate", "decode", "prefill", "pipeline", "dataloader"});
         });
}

// A word of a time that isn't one of a step, nor of what is done since the start.
bool is_time_beside(std::string_view word) {
  return one_of(word,
                {"eta", "remaining", "left", "start", "end", "stamp", "timestamp", "date", "token", "tok", "sample"});
}

Meaning time_meaning(const KeyWords& full, TimeUnit given) {
  // A unit at the end of a key is its unit: "dt_ms", "step_time_s", "ms per step".
  KeyWords key = full;
  TimeUnit unit = given;
  if (key.count > 1 && key.words[0] != "m" && key.words[0] != "h" && time_unit(key.words[0]) != TimeUnit::unknown) {
    if (unit == TimeUnit::unknown) unit = time_unit(key.words[0]);
    key.drop_last();
    if (key.count > 1 && key.words[0] == "in") key.drop_last();
  }
  if (const Meaning since = since_meaning(key, unit); since.field != Field::none || since.is_part) return since;
  const bool to_end = key.has("end") && key.has("to");
  for (int i = 0; i < key.count; ++i)
    if (is_time_beside(key.words[i]) && !(key.words[i] == "end" && to_end)) return {};
  if (is_bound(key)) return {};
  for (int i = 0; i < key.count; ++i)
    if (is_part(key.words[i]) && !key.has("interval")) return {.unit = unit, .is_part = true};
  const std::string_view last = key.words[0];
  const auto found = [&](Field field, int rank) { return Meaning{.field = field, .rank = rank, .unit = unit}; };
  const auto of_step = [&](int rank) {
    return Meaning{.field = Field::time, .rank = rank, .unit = unit, .of_step = true};
  };

  if (key.has("per") && is_step_word(last)) {
    for (int i = 1; i < key.count; ++i) {
      if (key.words[i] == "time" || key.words[i] == "seconds") return of_step(0);
      if (const TimeUnit named = time_unit(key.words[i]); named != TimeUnit::unknown) {
        unit = named;
        return of_step(0);
      }
    }
    return {};
  }
  // "ms/batch 107.0", "timing_s/step 61.5"
  const bool is_timing = key.count == 3 && key.is(2, "timing");
  if ((key.count == 2 || is_timing) && is_step_word(last) && (key.words[1].size() < 3 || key.words[1] == "sec") &&
      time_unit(key.words[1]) != TimeUnit::unknown) {
    unit = time_unit(key.words[1]);
    return of_step(is_timing ? -1 : 0);
  }
  const bool mean = key.has("avg") || key.has("average") || key.has("mean");
  if (mean && (last == "time" || last == "dt" || key.has("step"))) {
    return last == "loss" ? Meaning{} : found(Field::mean_time, 0);
  }
  if (last == "wall" && key.is(1, "train")) return {};  // fairseq: seconds since the last line
  if (key.has("interval")) return Meaning{.field = Field::time, .rank = 1, .unit = unit, .interval = true};
  if (key.has("runtime") && unit == TimeUnit::unknown) unit = TimeUnit::s;
  if (key.has("elapsed") || key.has("cumulative") || key.has("runtime") || key.has("walltime") || key.has("wall"))
    return key.has("train") && last == "runtime" ? found(Field::summary, 0) : found(Field::elapsed, 1);
  if (one_of(last, {"time", "clock"})) {
    if (key.count == 1) return found(Field::time, 1);
    if (key.count == 2 && key.words[1] == "total" && (given == TimeUnit::ms || given == TimeUnit::us))
      return found(Field::total_time, 1);
    if (one_of(key.words[1], {"total", "train", "training", "cum", "run", "wall"})) return found(Field::elapsed, 0);
    return is_step_word(key.words[1]) ? of_step(0) : found(Field::time, 3);
  }
  if (last == "dt") return of_step(0);
  if (one_of(last, {"duration", "dur", "latency", "timing"})) return found(Field::time, 2);
  if (last == "cost" && key.count > 1 && one_of(key.words[1], {"batch", "step", "iter"})) return of_step(0);
  if (last == "took" && key.count > 1 && is_step_word(key.words[1])) return of_step(2);
  if (last == "took" && key.count == 1) return found(Field::time, 2);
  if (key.count == 1 && one_of(last, {"seconds", "secs"}))
    return Meaning{.field = Field::time, .rank = 2, .unit = TimeUnit::s};
  if (last == "ms" && key.count == 1) return Meaning{.field = Field::time, .rank = 1, .unit = TimeUnit::ms};
  if (is_step_word(last) && last != "update" && key.is(1, "time")) return of_step(1);
  if (last == "end" && key.is(1, "to")) return found(Field::time, 1);
  if (one_of(last, {"step", "iter", "iteration"}) && full.count > 1 && unit != TimeUnit::unknown) return of_step(2);
  // "step 350ms", "batch: 0.350 s", "total 350 ms"
  const bool is_total = one_of(last, {"total", "all", "overall", "sum", "e2e"});
  const bool is_duration = given == TimeUnit::us || given == TimeUnit::ms || given == TimeUnit::s;
  if (is_duration && key.count == 1 && is_step_word(last) && last != "update") return of_step(1);
  if (is_duration && key.count == 2 &&
      ((is_total && is_step_word(key.words[1])) ||
       (is_step_word(last) && one_of(key.words[1], {"total", "full", "whole"}))))
    return of_step(1);
  if (unit != TimeUnit::unknown && key.count == 1 && is_total) return found(Field::total_time, 1);
  return {};
}

// Whether "per GPU", "/device" or "each GPU" is part of the key.
bool names_one_device(const KeyWords& key) {
  for (int i = 0; i < key.count; ++i)
    if (is_device_word(key.words[i]) && (key.is(i + 1, "per") || key.is(i + 1, "each") || key.is(i + 1, "one")))
      return true;
  return false;
}

// A total is plainer than one device's rate, tokens than samples, samples than steps.
enum RateRank { named_tokens, named_speed, tokens_by_unit, unnamed_speed = 4, samples_rank, steps_rank };

int rank_of(RateLabel rate, int of_tokens) {
  return rate == RateLabel::iterations ? steps_rank : rate == RateLabel::samples ? samples_rank : of_tokens;
}

Meaning rate_meaning(const KeyWords& full, const Unit& given) {
  Meaning found{.field = Field::throughput,
                .rank = named_tokens,
                .rate = given.rate,
                .scale = given.scale,
                .per_device = given.per_device || names_one_device(full)};
  if (is_rate_beside(full)) return {};
  KeyWords key = full;
  // "tokens/s/gpu", "tokens_per_sec_per_device": one device's rate is used if no other is printed.
  while (key.count > 1 && is_device_word(key.words[0])) {
    key.drop_last();
    found.per_device = true;
    if (key.count > 1 && key.words[0] == "per") key.drop_last();
  }
  found.per_device |= full.has("device");
  const std::string_view last = key.words[0];
  double seconds = 0;
  if (key.count > 1)
    seconds = one_of(last, {"s", "sec", "second", "seconds"}) ? 1
              : one_of(last, {"min", "minute"})               ? 60
              : one_of(last, {"h", "hr", "hour"})             ? 3600
              : last == "day"                                 ? 86400
                                                              : 0;
  const bool per_second = seconds > 0;
  if (found.per_device) found.rank = 1;
  if (key.has("running")) found.rank = 3;  // DeepSpeed: a mean since the start
  const bool per_ms = last == "ms" && key.count > 1;
  if (per_second || per_ms) {
    for (int i = 1; i < key.count; ++i) {
      const std::string_view word = key.words[i];
      const bool kilo = one_of(word, {"ktok", "ktoks", "ktokens"});
      if (kilo || one_of(word, {"tok", "toks", "token", "tokens", "words"})) {
        found.rate = per_ms ? RateLabel::tokens_per_ms : RateLabel::tokens;
        if (kilo) found.scale = 1e3;
        if (seconds > 1) found.scale /= seconds;
        return found;
      }
      if (one_of(word, {"samples", "sample", "seq", "seqs", "sequences", "examples", "images", "img"}))
        return found.rank = samples_rank, found.rate = RateLabel::samples, found.scale /= std::max(seconds, 1.0), found;
      if (one_of(word, {"it", "iter", "iters", "iterations", "steps", "step", "batches"}) && per_second &&
          !key.has("time"))
        return found.rank = steps_rank, found.rate = RateLabel::iterations, found.scale /= seconds, found;
      if (word != "per" && word != "p") break;
    }
  }
  if (last == "tgs") found.per_device = true;  // tokens per GPU and second
  if (one_of(last, {"tps", "tgs", "wps", "toks", "tokps"})) return found.rate = RateLabel::tokens, found;
  if (last == "ups") return found.rank = steps_rank, found.rate = RateLabel::iterations, found;
  if (one_of(last, {"throughput", "speed"})) {
    found.rank = found.rate == RateLabel::none ? int{unnamed_speed} : rank_of(found.rate, found.rank + named_speed);
    if (found.rate == RateLabel::none) found.rate = RateLabel::unlabelled;
    return found;
  }
  return {};
}

Meaning other_meaning(const KeyWords& key) {
  const std::string_view last = key.words[0];
  if ((last == "lr" || last == "norm" || (last == "rate" && key.is(1, "learning"))) && is_bound(key)) return {};
  if (last == "epoch" && (key.is(1, "in") || key.is(1, "per") || key.has("time"))) return {};
  if (last == "epoch" || (one_of(last, {"ep", "epochs"}) && key.count == 1)) return {.field = Field::epoch, .rank = 0};
  if (last == "batch" && !key.is(1, "per")) return {.field = Field::batch, .rank = 2};
  // "lr-AdamW/group0", "lr-AdamW"
  if (key.has("lr") && last.starts_with("group")) return {.field = Field::lr, .rank = 1};
  if (key.count > 1 && key.is(key.count - 1, "lr") &&
      one_of(key.words[key.count - 2], {"adam", "sgd", "muon", "lion", "adafactor", "decoupled"}))
    return {.field = Field::lr, .rank = 1};
  if (last == "lr" || (last == "rate" && key.is(1, "learning"))) return {.field = Field::lr, .rank = key.count > 2};
  if (one_of(last, {"gnorm", "gradnorm", "gn"})) return {.field = Field::grad_norm, .rank = 0};
  if (last == "norm") {
    if (key.has("grad") || key.has("gradient") || key.has("gradients") || key.has("grads"))
      return {.field = Field::grad_norm, .rank = 0};
    return one_of(key.count > 1 ? key.words[1] : "",
                  {"param", "params", "weight", "weights", "layer", "update", "rms", "parameter", "batch", "acc"})
               ? Meaning{}
               : Meaning{.field = Field::grad_norm, .rank = 1};
  }
  if (one_of(last, {"rank", "worker"}) && key.count == 1) return {.field = Field::rank, .rank = 0};
  if (last == "rank" && key.count == 2 && key.is(1, "local")) return {.field = Field::rank, .rank = 1};
  if (last == "wpb") return {.field = Field::tokens, .rank = 0};                            // fairseq: words per batch
  if (last == "weights" && key.is(1, "total")) return {.field = Field::tokens, .rank = 1};  // MaxText
  if (last == "tokens" || (last == "seen" && key.is(1, "tokens")))
    return {.field = Field::tokens, .rank = key.count > 1 ? 0 : 1};
  if (last == "size" && key.is(1, "batch") && key.is(2, "global")) return {.field = Field::batch_size, .rank = 0};
  if (last == "runtime" && key.is(1, "train")) return {.field = Field::summary, .rank = 0};
  return {};
}

}  // namespace

bool is_validation(std::string_view word) {
  return one_of(
      word, {"val", "valid", "vali", "validation", "eval", "evaluation", "dev", "test", "heldout", "holdout", "tel"});
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

void KeyWords::drop_last() {
  for (int i = 1; i < count; ++i) words[i - 1] = words[i];
  --count;
}

bool KeyWords::has(std::string_view word) const {
  return std::find(words, words + count, word) != words + count;
}

// "step_seconds" are seconds of a step, "steps_seconds" and "step/s" may count steps.
static bool counts_time(const KeyWords& key, std::string_view text) {
  if (key.count < 2 || !one_of(key.words[1], {"step", "iter", "iteration"})) return false;
  const std::size_t size = key.last().size();
  return one_of(key.last(), {"s", "sec", "secs", "second", "seconds"}) && text.size() > size &&
         text[text.size() - size - 1] != '/';
}

static Meaning meaning_of_words(const Pair& pair) {
  Unit unit = printed_unit(pair.unit.empty() ? pair.hint : pair.unit);
  if (pair.clock) unit.time = TimeUnit::s;

  const KeyWords key(pair.key);
  if (pair.hint == "t" && key.count > 0) {  // "Data (t): 0.012 Batch (t): 0.501"
    if (is_step_word(key.last())) return {.field = Field::time, .rank = 0, .unit = unit.time, .of_step = true};
    if (is_part(key.last())) return {.unit = unit.time, .is_part = true};
  }
  if (key.count > 0) {
    if (unit.rate == RateLabel::none && !unit.other && !hints_at_other_loss(pair.hint)) {
      if (const Meaning found = loss_meaning(key); found.field != Field::none) return found;
      if (const Meaning found = perplexity_meaning(key); found.field != Field::none) return found;
      if (unit.time == TimeUnit::unknown && !pair.clock) {
        Meaning found = step_meaning(key);
        if (pair.key.ends_with("/step") && any_validation(key)) found = {.field = Field::step, .rank = 4};
        if (pair.key == "_step") found.rank = 5;  // W&B's count of calls
        if (found.field != Field::none) return found.scale = unit.scale, found;
      }
    }
    const bool has_time = counts_time(key, pair.key);
    // "step_sec": seconds of a step or steps a second
    if (has_time && key.last() == "sec" && pair.unit.empty() && !key.has("per") && !key.has("time")) return {};
    if (const Meaning found = rate_meaning(key, unit);
        found.field != Field::none && unit.time == TimeUnit::unknown && !unit.other && !has_time)
      return found;
    // "time/batch: 7": Composer's way to count batches.
    const bool count =
        pair.whole >= 0 && unit.time == TimeUnit::unknown && pair.key.find("time/") != std::string_view::npos;
    Meaning timed = time_meaning(key, unit.time);
    if (timed.field != Field::none && !unit.other && !count) {
      timed.scale = unit.scale;
      return timed;
    }
    if (timed.is_part && (timed.unit != TimeUnit::unknown || key.has("time")) && !unit.per_step) return timed;
    if (Meaning found = other_meaning(key);
        found.field != Field::none && (!unit.other || (found.field == Field::tokens && unit.scale > 1))) {
      found.scale = unit.scale;
      return found;
    }
  }
  // If no word gives the meaning, the unit does.
  if (unit.rate != RateLabel::none && !is_rate_beside(key))
    return {.field = Field::throughput,
            .rank = rank_of(unit.rate, tokens_by_unit + (unit.per_device ? 1 : 0)),
            .rate = unit.rate,
            .scale = unit.scale,
            .per_device = unit.per_device || names_one_device(key)};
  if (unit.per_step) return {.field = Field::time, .rank = 2, .unit = unit.time, .of_step = true};
  if (pair.total >= 0) return {};  // "forward/backward: 100/200 ms"
  if (unit.time == TimeUnit::ms && !pair.separated && !pair.clock && key.count == 0)
    return {.field = Field::time, .rank = 4, .unit = unit.time};
  if (unit.time == TimeUnit::s && !pair.separated && !pair.clock && key.count == 0)
    return {.field = Field::time, .rank = 5, .unit = unit.time};
  return {};
}

// A log repeats its words with other numbers, so the last meanings are kept.
Meaning meaning_of(const Pair& pair) {
  struct Known {
    std::string key, hint, unit;
    unsigned form = 16;  // none has it
    Meaning meaning;
  };
  constexpr std::size_t longest_key = 100;
  if (pair.key.size() + pair.hint.size() > longest_key) return meaning_of_words(pair);
  thread_local std::array<Known, 64> known;
  const unsigned form =
      (pair.separated ? 1u : 0u) + (pair.clock ? 2u : 0u) + (pair.whole >= 0 ? 4u : 0u) + (pair.total >= 0 ? 8u : 0u);
  const std::hash<std::string_view> hash;
  Known& it = known[(hash(pair.key) + 3 * hash(pair.unit) + form) % known.size()];
  if (it.form != form || it.key != pair.key || it.hint != pair.hint || it.unit != pair.unit)
    it = {std::string(pair.key), std::string(pair.hint), std::string(pair.unit), form, meaning_of_words(pair)};
  return it.meaning;
}

}  // namespace stepladder
