// Reads one log: the script at its top, facts about machine and seed, then the steps of each attempt. The last finished
// attempt counts. Nothing throws for a log's content: it becomes `problem`, a sentence that excludes the log from its
// pool.
#include "storage/speedrun/speedrun_log.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "storage/content_hash.h"
#include "storage/importers/logs/lines/line_end.h"
#include "storage/importers/source_code.h"
#include "storage/importers/text.h"
#include "storage/number_text.h"
#include "storage/speedrun/log_line.h"
#include "storage/wording.h"

namespace stepladder {
namespace {

constexpr std::uintmax_t largest_log = 64 << 20;
constexpr std::size_t longest_fact = 120;
constexpr std::size_t most_gpus = 1'024;
constexpr std::size_t shortest_rule = 40;  // of "=", as SourceCodeHash has it

// Calls `use(line)` for each line without its end, until it returns false.
template <typename Use>
void for_each_line(std::string_view text, Use use) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    // A progress bar overwrites its line; what counts is the last state.
    if (const std::size_t back = line.rfind('\r'); back != std::string_view::npos) line.remove_prefix(back + 1);
    if (!use(line)) return;
  }
}

bool is_rule(std::string_view line) {
  return line.size() >= shortest_rule && line.find_first_not_of('=') == std::string_view::npos;
}

// The size of the Python script that the text begins with, and of the rule that ends it; 0 if there is none.
std::size_t script_size(std::string_view text) {
  bool imports = false;
  bool defines = false;
  std::size_t size = 0;
  for_each_line(text, [&](std::string_view line) {
    if (line.starts_with("import ") || line.starts_with("from ")) imports = true;
    if (line.starts_with("def ") || line.starts_with("class ")) defines = true;
    if (step_mark(line) && clock_in(line)) return false;  // training
    if (!is_rule(line)) return true;
    size = static_cast<std::size_t>(line.data() - text.data()) + line.size();
    return false;
  });
  return imports && defines ? size : 0;
}

std::string bounded_fact(std::string_view text) {
  return std::string(text.substr(0, longest_fact));
}

// "PyTorch 2.9.0+cu126 compiled for CUDA 12.6" of "Running PyTorch 2.9.0+cu126 ...": the word after the key.
void take_word(std::string_view line, std::string_view key, std::string& fact) {
  if (!fact.empty()) return;
  const auto found =
      std::search(line.begin(), line.end(), key.begin(), key.end(), [](char a, char b) { return lower(a) == b; });
  if (found == line.end()) return;
  std::string_view rest = trimmed(line.substr(static_cast<std::size_t>(found - line.begin()) + key.size()));
  rest = rest.substr(0, rest.find_first_of(" \t|"));
  if (!rest.empty() && is_digit(rest.front())) fact = bounded_fact(rest);
}

// A row of nvidia-smi's table: "|   0  NVIDIA H100 80GB HBM3   On  |   00000000:19:00.0 Off | ...".
void take_gpu(std::string_view line, SpeedrunLog& log) {
  if (!line.starts_with('|') || log.gpus.size() >= most_gpus) return;
  line.remove_prefix(1);
  const std::size_t end = line.find('|');
  if (end == std::string_view::npos) return;
  std::string_view name = trimmed(line.substr(0, end));
  std::string_view bus = trimmed(line.substr(end + 1));
  bus = bus.substr(0, bus.find_first_of(" \t|"));
  if (std::ranges::count(bus, ':') != 2 || bus.find('.') == std::string_view::npos) return;
  const std::size_t digits = std::min(name.find_first_not_of("0123456789"), name.size());
  if (digits == 0) return;
  name = trimmed(name.substr(digits));
  for (const std::string_view mode : {"On", "Off", "N/A", "Enabled", "Disabled"})
    if (name.ends_with(mode)) name = trimmed(name.substr(0, name.size() - mode.size()));
  log.gpus.push_back(bounded_fact(name));
  log.bus_ids.push_back(bounded_fact(bus));
}

// The whole number after "seed" in a line, such as "seed: 1337" or "manual_seed(1337)".
std::string seed_in(std::string_view line, std::string_view key, std::string_view between) {
  for (std::size_t at = 0; at + key.size() < line.size(); ++at) {
    if (!equal_in_lower(line.substr(at, key.size()), key)) continue;
    std::size_t digits = at + key.size();
    const std::size_t first = line.find_first_not_of(between, digits);
    if (first == std::string_view::npos || first == digits) continue;
    digits = first;
    while (digits < line.size() && is_digit(line[digits])) ++digits;
    const bool ends = digits == line.size() || (!is_word(line[digits]) && line[digits] != '.');
    if (digits > first && ends) return bounded_fact(line.substr(first, digits - first));
  }
  return {};
}

// "val_tokens = 10_485_760", "val_tokens: int = 10485760", "val_tokens=8*1024", "val_tokens = 4096 // 8"; 0: none, or
// another expression.
std::int64_t val_tokens_in(std::string_view line) {
  const std::size_t key = line.find("val_tokens");
  if (key == line.npos || (key > 0 && (is_word(line[key - 1]) || line[key - 1] == '.'))) return 0;
  std::size_t at = key + 10;
  for (const std::string_view between : {" \t", ":", " \t", "int", " \t", "=", " \t"})
    while (at < line.size() && between.find(line[at]) != between.npos) ++at;
  double tokens = 1;
  for (std::string_view sign = "*"; !sign.empty();) {
    std::string digits;
    for (; at < line.size() && (is_digit(line[at]) || line[at] == '_'); ++at)
      if (line[at] != '_') digits += line[at];
    const auto factor = static_cast<double>(parse_number<std::int64_t>(digits).value_or(0));
    if (!(factor > 0)) return 0;
    tokens = sign == "*" ? tokens * factor : std::floor(tokens / factor);
    const std::size_t next = std::min(line.find_first_not_of(" \t", at), line.size());
    sign = line.substr(next, line.substr(next).starts_with("//") ? 2 : line.substr(next).starts_with("*") ? 1 : 0);
    if (sign.empty()) break;
    at = std::min(line.find_first_not_of(" \t", next + sign.size()), line.size());
  }
  const std::string_view rest = trimmed(line.substr(at));
  const bool ends = rest.empty() || std::string_view(",;)}]#").find(rest.front()) != std::string_view::npos ||
                    (at < line.size() && is_space(line[at]) && is_word(rest.front()));
  return ends && tokens < 1e15 ? static_cast<std::int64_t>(tokens) : 0;
}

void take_fact(std::string_view line, SpeedrunLog& log) {
  if (line.size() > 1'000) return;
  take_word(line, "running pytorch", log.torch);
  take_word(line, "driver version:", log.driver);
  take_gpu(line, log);
  if (!log.started_at_s) log.started_at_s = printed_date(line);
  if (log.seed.empty()) log.seed = seed_in(line, "seed", ":= ");
  if (log.val_tokens == 0) log.val_tokens = val_tokens_in(line);
}

std::string literal_seed(std::string_view script) {
  std::string seed;
  for_each_line(script, [&](std::string_view line) {
    line = line.substr(0, std::min(line.find('#'), std::size_t{1'000}));
    seed = seed_in(line, "manual_seed", "(");
    return seed.empty();
  });
  return seed;
}

// Steps from one start of the training; a log may hold several.
struct Attempt {
  std::vector<PrintedEvaluation> evaluations;
  std::vector<ClockReading> clock;
  std::string start;             // of the first evaluation's line, before its step
  bool is_usual = true;          // so does that of the last one
  double other_final = missing;  // of the last one's step
  std::int64_t scheduled = 0;
  std::int64_t last_step = -1;
  bool stopped_early = false;
  bool final_line = false;
};

bool is_finished(const Attempt& attempt, const LogQuestion& question) {
  if (attempt.evaluations.empty()) return false;
  if (!question.final_line.empty()) return attempt.final_line;
  const std::int64_t end = attempt.scheduled > 0 && !(question.may_stop_early && attempt.stopped_early)
                               ? attempt.scheduled
                               : attempt.last_step;
  return attempt.evaluations.back().step >= end && end > 0;
}

class StepReader {
 public:
  explicit StepReader(const LogQuestion& question) : question_(question) {}

  // Reads the line; returns whether it belongs to a step.
  bool take(std::string_view line) {
    if (line.size() > 4'000) return false;
    if (!question_.final_line.empty() && line.starts_with(question_.final_line)) return take_final(line);
    if (line.starts_with("stopping_early")) return attempt_.stopped_early = true;
    const auto mark = step_mark(line);
    if (!mark) return false;
    const std::string_view rest = line.substr(mark->end);
    const auto value = metric_in(rest, question_.metric);
    const auto time = clock_in(rest);
    if (!value && !time && !is_training(rest)) return false;
    enter(*mark);
    Attempt& attempt = attempt_;
    if (time) attempt.clock.push_back({mark->step, *time, step_average_in(rest).value_or(missing)});
    if (value) evaluate({mark->step, *value, time ? *time : now(attempt)}, start_of(line, *mark));
    return true;
  }

  // The last finished attempt, else the last one.
  Attempt finish(std::size_t& finished) && {
    note_finished();
    finished = finished_;
    return finished_ > 0 ? std::move(last_finished_) : std::move(attempt_);
  }

 private:
  // "[rank0]: " or a date, without its digits.
  static std::string start_of(std::string_view line, const StepMark& mark) {
    std::string start;
    for (const char letter : line.substr(0, mark.begin))
      if (!is_digit(letter)) start += letter;
    return start;
  }

  // One value counts for a step: of a line that begins as the first evaluation's did, else the first.
  void evaluate(const PrintedEvaluation& it, const std::string& start) {
    Attempt& attempt = attempt_;
    if (attempt.evaluations.empty()) attempt.start = start;
    const bool is_usual = start == attempt.start;
    if (attempt.evaluations.empty() || attempt.evaluations.back().step != it.step) {
      attempt.other_final = missing;
      attempt.is_usual = is_usual;
      return attempt.evaluations.push_back(it);
    }
    PrintedEvaluation& known = attempt.evaluations.back();
    if (known.value == it.value) return;
    attempt.other_final = it.value;
    if (!is_usual || attempt.is_usual) return;
    attempt.other_final = known.value;
    attempt.is_usual = true;
    known = it;
  }

  static bool is_training(std::string_view rest) {
    return contains_word(rest, "loss") || number_after(rest, "trl:") || number_after(rest, "tel:");
  }

  static double now(const Attempt& attempt) { return attempt.clock.empty() ? missing : attempt.clock.back().time_ms; }

  bool take_final(std::string_view line) {
    const auto value = metric_in(line, question_.metric);
    Attempt& attempt = attempt_;
    if (!value || attempt.last_step < 0) return false;
    attempt.evaluations.push_back({attempt.last_step, *value, now(attempt)});
    return attempt.final_line = true;
  }

  void note_finished() {
    if (!is_finished(attempt_, question_)) return;
    ++finished_;
    last_finished_ = attempt_;
  }

  // Handles a step before the last one: training began again, or continued from a checkpoint.
  void enter(const StepMark& mark) {
    if (mark.step < attempt_.last_step && mark.step <= 1) {
      note_finished();
      attempt_ = {};
    }
    // Both are in the order of steps.
    while (mark.step < attempt_.last_step && !attempt_.evaluations.empty() &&
           attempt_.evaluations.back().step >= mark.step)
      attempt_.evaluations.pop_back();
    while (mark.step < attempt_.last_step && !attempt_.clock.empty() && attempt_.clock.back().step >= mark.step)
      attempt_.clock.pop_back();
    attempt_.last_step = mark.step;
    if (mark.of > 0) attempt_.scheduled = mark.of;
  }

  const LogQuestion& question_;
  Attempt attempt_;
  Attempt last_finished_;
  std::size_t finished_ = 0;
};

// The reason why the attempt isn't a finished run.
std::string unfinished_text(const Attempt& attempt, const LogQuestion& question) {
  if (attempt.last_step < 0) return "holds no training steps";
  const std::string at = fmt::format("step {}{}", attempt.last_step,
                                     attempt.scheduled > 0 ? fmt::format(" of {}", attempt.scheduled) : "");
  if (attempt.evaluations.empty()) return "ends at " + at + " and never printed " + question.metric;
  if (!question.final_line.empty()) return "ends at " + at + " without a line that begins with " + question.final_line;
  return fmt::format("ends at {}; its last {} is that of step {}", at, question.metric,
                     attempt.evaluations.back().step);
}

void take_attempt(Attempt attempt, std::size_t finished, const LogQuestion& question, SpeedrunLog& log) {
  if (finished > 1) {
    log.problem = fmt::format("holds {} finished runs; give each a file of its own", finished);
  } else if (finished == 0) {
    log.problem = unfinished_text(attempt, question);
    // A run to its last step that was never validated is no cut one.
    const bool is_at_end = attempt.scheduled > 0 && attempt.last_step + 1 >= attempt.scheduled;
    log.unfinished = attempt.last_step >= 0 && !(is_at_end && attempt.evaluations.empty());
  } else {
    log.final = attempt.evaluations.back();
    log.other_final = attempt.other_final;
  }
  log.evaluations = std::move(attempt.evaluations);
  log.clock = std::move(attempt.clock);
  log.scheduled_steps = attempt.scheduled;
  log.last_step = std::max<std::int64_t>(attempt.last_step, 0);
  log.has_steps = attempt.last_step >= 0;
}

}  // namespace

std::optional<std::int64_t> printed_date(std::string_view line) {
  constexpr std::array<std::string_view, 12> months{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                    "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  constexpr std::string_view days = "MonTueWedThuFriSatSun";
  line = trimmed(line.substr(0, 80));
  if (line.size() < 24 || days.find(line.substr(0, 3)) % 3 != 0) return {};
  const auto month = std::ranges::find(months, line.substr(4, 3));
  if (month == months.end()) return {};
  const auto number = [&](std::size_t at, std::size_t size) {
    return parse_number<int>(trimmed(line.substr(at, size))).value_or(-1);
  };
  const int day = number(8, 2), hour = number(11, 2), minute = number(14, 2), second = number(17, 2);
  const int year = number(20, 4);
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month - months.begin()) + 1),
                                         std::chrono::day(static_cast<unsigned>(std::max(day, 0)))};
  if (year < 1970 || !date.ok() || hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60)
    return {};
  const auto midnight = std::chrono::sys_days(date).time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(midnight).count() + hour * 3'600 + minute * 60 + second;
}

SpeedrunLog read_speedrun_log(std::string_view text, const LogQuestion& question) {
  SpeedrunLog log;
  if (text.empty()) {
    log.problem = "is empty";
    log.is_empty = true;
    return log;
  }
  const std::size_t size = script_size(text);
  if (size > 0) {
    SourceCodeHash hash;
    hash.take(text.substr(0, size));
    hash.take("\n");
    log.script_hash = hash.text();
    const std::string_view script = text.substr(0, size);
    log.script = script.substr(0, script.find_last_not_of("=\r") + 1);
  }
  StepReader steps(question);
  bool training = false, is_cut = false;
  KnownEnds evaluations(8), others(8);  // of steps with the metric and without
  const bool has_end = text.ends_with('\n');
  for_each_line(text.substr(size), [&](std::string_view line) {
    const bool is_last = !has_end && line.data() + line.size() == text.data() + text.size();
    if (is_last && step_mark(line) && !(evaluations.empty() && others.empty()))
      is_cut = !evaluations.have_alike(line) && !others.have_alike(line);
    if (is_cut) return false;
    if (steps.take(line))
      (line.find("val") == line.npos ? others : evaluations).keep(line), training = true;
    else if (!training)
      take_fact(line, log);
    return true;
  });
  if (log.seed.empty()) log.seed = literal_seed(log.script);
  for_each_line(log.script, [&](std::string_view line) {
    if (log.val_tokens == 0 && line.size() < 1'000) log.val_tokens = val_tokens_in(line.substr(0, line.find('#')));
    return log.val_tokens == 0;
  });
  std::size_t finished = 0;
  Attempt attempt = std::move(steps).finish(finished);
  take_attempt(std::move(attempt), finished, question, log);
  if (is_cut && !log.problem.empty()) log.problem += "; its last line has no end and was left out: it may be cut";
  return log;
}

SpeedrunLog load_speedrun_log(const std::filesystem::path& file, const LogQuestion& question, Links links) {
  SpeedrunLog log;
  RegularFile in(file, links);
  const auto size = static_cast<std::uintmax_t>(in.size());
  if (!in) {
    log.problem = in.why();
  } else if (size > largest_log) {
    log.problem = "is larger than 64 MiB";
  } else {
    std::string text(size, '\0');
    in.read(text.data(), static_cast<std::streamsize>(size));
    text.resize(static_cast<std::size_t>(std::max<std::streamsize>(in.gcount(), 0)));
    log = read_speedrun_log(text, question);
    ContentHash hash;
    hash.take(text);
    log.content_hash = hash.text();
  }
  log.file = file.string();
  return log;
}

}  // namespace stepladder
