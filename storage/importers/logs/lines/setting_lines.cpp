// A line is a configuration as a whole or not at all: prose with an "=" in it, or a line with a unit, isn't one.
#include "storage/importers/logs/lines/setting_lines.h"

#include <algorithm>
#include <array>

#include "storage/analysis/recipe_facts.h"
#include "storage/importers/logs/units.h"
#include "storage/importers/text.h"
#include "storage/number_text.h"

namespace stepladder {
namespace {

constexpr std::size_t longest_line = 64 << 10;
constexpr std::size_t longest_name = 60;
constexpr std::size_t longest_value = 120;
constexpr std::size_t most_settings = 500;
constexpr int deepest = 4;
constexpr std::size_t least_dots = 3;  // between a name and its value in a list of arguments

// Words of names that tell a place or a process, whatever the value is.
constexpr std::array<std::string_view, 26> words_of_places = {
    "date",   "pid",     "port",     "host",  "hostname", "path", "dir",     "folder", "file",
    "files",  "user",    "username", "wandb", "url",      "addr", "address", "ckpt",   "checkpoint",
    "resume", "comment", "tag",      "tags",  "uuid",     "gpu",  "warning", "error"};

// Words of names that tell a measurement, if the value is a number.
constexpr std::array<std::string_view, 30> words_of_measurements = {
    "time", "elapsed", "took", "duration", "seconds", "mem",   "memory",   "loss", "throughput", "speed",
    "rate", "uptime",  "eta",  "ppl",      "acc",     "bpb",   "accuracy", "mfu",  "perplexity", "score",
    "free", "used",    "util", "power",    "temp",    "watts", "flops",    "norm", "start",      "started"};

bool is_of_name(char c) {
  return is_word(c) || c == '.' || c == '-' || c == '/';
}

// `may_be_words`: in a list of arguments or a table's row.
bool is_name(std::string_view name, bool may_be_words = false) {
  return !name.empty() && name.size() <= longest_name && (is_alpha(name[0]) || name[0] == '_') &&
         std::ranges::all_of(name, [&](char c) { return is_of_name(c) || (may_be_words && c == ' '); }) &&
         !name.starts_with("http");
}

std::string_view unquoted(std::string_view text, bool& was_quoted) {
  text = trimmed(text);
  was_quoted = text.size() > 1 && (text[0] == '"' || text[0] == '\'') && text.back() == text[0];
  return was_quoted ? text.substr(1, text.size() - 2) : text;
}

std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words(1);
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool begins = i > 0 && name[i] >= 'A' && name[i] <= 'Z' && name[i - 1] >= 'a' && name[i - 1] <= 'z';
    if (begins || !(is_alpha(name[i]) || is_digit(name[i]))) words.emplace_back();
    if (is_alpha(name[i]) || is_digit(name[i])) words.back() += lower(name[i]);
  }
  return words;
}

bool names_no_setting(std::string_view name, bool is_number) {
  const std::vector<std::string> words = words_of(name);
  const auto has_any = [&](const auto& list) {
    return std::ranges::any_of(words,
                               [&](const std::string& word) { return std::ranges::find(list, word) != list.end(); });
  };
  const bool is_learning_rate = words.back() == "rate";  // "learning_rate", "dropout_rate"
  return has_any(words_of_places) || (is_number && !is_learning_rate && has_any(words_of_measurements)) ||
         name == "device" || name == "rank" || name.ends_with("local_rank") || name.ends_with("node_rank");
}

// Names of training and validation data, and of the tokenizer. Their paths are settings: the data may differ.
bool names_data(std::string_view name) {
  const std::vector<std::string> words = words_of(name);
  const auto has = [&](std::initializer_list<std::string_view> list) {
    return std::ranges::any_of(words,
                               [&](const std::string& word) { return std::ranges::find(list, word) != list.end(); });
  };
  return words.back() == "dataset" || words.back() == "tokenizer" || words.back() == "data" ||
         (has({"data", "dataset", "train", "val", "valid", "eval", "input"}) &&
          has({"path", "dir", "file", "files", "bin"}) && !has({"out", "output", "log", "cache", "save"}));
}

bool is_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  return parse_number<double>(text).has_value();
}

bool is_list(std::string_view text) {
  return text.size() > 1 && ((text[0] == '[' && text.back() == ']') || (text[0] == '(' && text.back() == ')'));
}

bool is_constant(std::string_view text) {
  return is_number(text) || is_list(text) || equal_in_lower(text, "true") || equal_in_lower(text, "false") ||
         equal_in_lower(text, "none") || equal_in_lower(text, "null");
}

// A date or a time of day: digits around '-' or ':'.
bool is_moment(std::string_view text) {
  for (std::size_t i = 1; i + 1 < text.size(); ++i)
    if (text[i] == ':' && is_digit(text[i - 1]) && is_digit(text[i + 1])) return true;
  return text.size() > 9 && text[4] == '-' && text[7] == '-' && is_digit(text[0]) && is_digit(text[9]);
}

bool is_path(std::string_view text) {
  return text.find('/') != std::string_view::npos || text.find('\\') != std::string_view::npos;
}

// One word, as a choice is: "adamw", "torch.bfloat16".
bool is_choice(std::string_view text) {
  return !text.empty() && (is_alpha(text[0]) || text[0] == '_') && text.size() <= 40 &&
         std::ranges::all_of(text, [](char c) { return is_word(c) || c == '.' || c == '-'; });
}

// Adds the setting, if it is one. False if the value isn't that of a setting, so that the line may be none.
bool add(std::string_view name, std::string_view value, const std::string& within,
         std::vector<PrintedSetting>& settings, bool may_be_words = false) {
  bool was_quoted = false;
  value = unquoted(value, was_quoted);
  if (!is_name(name, may_be_words) || is_failed_measurement(value)) return false;
  if (!was_quoted && !is_constant(value) && !is_choice(value) && !is_path(value) && !is_moment(value)) return false;
  if (value.empty() || value.size() > longest_value || is_moment(value) || settings.size() >= most_settings)
    return true;
  if (names_data(name) && is_path(value)) {
    settings.push_back({within + std::string(name), data_name(value), true});
    return true;
  }
  if (names_no_setting(name, is_number(value)) || is_path(value)) return true;
  settings.push_back({within + std::string(name), std::string(value), was_quoted || !is_constant(value)});
  return true;
}

// The place of the bracket or quote that ends what begins at `at`; npos if none does.
std::size_t end_of(std::string_view text, std::size_t at) {
  std::string open;
  for (std::size_t i = at; i < text.size(); ++i) {
    const char c = text[i];
    if ((c == '"' || c == '\'') && (i == 0 || !is_word(text[i - 1]))) {
      const std::size_t end = text.find(c, i + 1);
      if (end == std::string_view::npos) return end;
      i = end;
    } else if (c == '(' || c == '[' || c == '{') {
      open += c == '(' ? ')' : c == '[' ? ']' : '}';
    } else if (!open.empty() && c == open.back()) {
      open.pop_back();
      if (open.empty()) return i;
    }
  }
  return std::string_view::npos;
}

// The parts of the inside of a container, between its commas.
std::vector<std::string_view> parts_of(std::string_view inside) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < inside.size(); ++i) {
    const char c = inside[i];
    const bool opens =
        c == '(' || c == '[' || c == '{' || ((c == '"' || c == '\'') && (i == 0 || !is_word(inside[i - 1])));
    if (opens) {
      i = c == '"' || c == '\'' ? inside.find(c, i + 1) : end_of(inside, i);
      if (i == std::string_view::npos) break;
    } else if (c == ',') {
      parts.push_back(inside.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  parts.push_back(inside.substr(begin));
  return parts;
}

// The name of a call or class in front of a bracket: "Namespace", "TrainConfig"; may be empty before "{".
bool read_container(std::string_view text, const std::string& within, int depth,
                    std::vector<PrintedSetting>& settings) {
  text = trimmed(text);
  const std::size_t open = text.find_first_of("({");
  if (open == std::string_view::npos || depth > deepest) return false;
  const std::string_view name = trimmed(text.substr(0, open));
  if (text[open] == '(' ? !is_name(name) : !name.empty() && !is_name(name)) return false;
  const std::size_t end = end_of(text, open);
  if (end == std::string_view::npos || !trimmed(text.substr(end + 1), " \t,;.").empty()) return false;
  const std::string_view inside = trimmed(text.substr(open + 1, end - open - 1));
  if (text[open] == '(' && inside.starts_with('{')) return read_container(inside, within, depth + 1, settings);
  std::vector<PrintedSetting> found;
  for (const std::string_view part : parts_of(inside)) {
    if (trimmed(part).empty()) continue;
    const std::size_t sign = part.find_first_of(text[open] == '(' ? "=" : ":=");
    if (sign == std::string_view::npos) return false;
    bool was_quoted = false;
    const std::string_view key = unquoted(part.substr(0, sign), was_quoted);
    const std::string_view value = trimmed(part.substr(sign + 1));
    if (!is_name(key)) return false;
    if (read_container(value, within + std::string(key) + ".", depth + 1, found)) continue;
    add(key, value, within, found);  // one that is no setting is left out: "fn=<function f at 0x7f>"
  }
  settings.insert(settings.end(), found.begin(), found.end());
  return true;
}

// "lr=0.001 seed=1", "lr: 0.001, seed: 1", "--lr 0.001 --bf16": at least two, or one of an option.
bool read_row(std::string_view text, std::vector<PrintedSetting>& settings) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = text.find_first_not_of(" \t,;|", at);
    if (begin == std::string_view::npos) break;
    at = begin;
    while (at < text.size() && std::string_view(" \t,;|").find(text[at]) == std::string_view::npos) {
      const char c = text[at];
      const bool opens = c == '[' || c == '(' || c == '"' || c == '\'';
      const std::size_t end = !opens ? at : c == '[' || c == '(' ? end_of(text, at) : text.find(c, at + 1);
      if (end == std::string_view::npos) return false;
      at = end + 1;
    }
    words.push_back(text.substr(begin, at - begin));
  }
  const bool is_command =
      !words.empty() && (words[0].starts_with("--") || words[0].ends_with(".py") || words[0].starts_with("python") ||
                         one_of(words[0], {"torchrun", "accelerate", "deepspeed", "srun", "uv", "$", "+"}));
  std::vector<PrintedSetting> found;
  int pairs = 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string_view word = words[i];
    const bool is_option = word.starts_with("--") && word.size() > 2;
    if (is_option) word.remove_prefix(2);
    if (const std::size_t sign = word.find('='); sign != std::string_view::npos) {
      if (!add(word.substr(0, sign), word.substr(sign + 1), {}, found)) return false;
    } else if (is_option) {
      const bool has_value = i + 1 < words.size() && !words[i + 1].starts_with("--");
      if (!add(word, has_value ? words[i + 1] : "True", {}, found)) return false;
      i += has_value;
      ++pairs;
    } else if (word.ends_with(':') && i + 1 < words.size()) {
      if (!add(word.substr(0, word.size() - 1), words[++i], {}, found)) return false;
    } else if (!is_command) {
      return false;
    } else {
      continue;  // "python train.py --lr 0.001"
    }
    ++pairs;
  }
  const bool begins_with_words = !words.empty() && words[0].find('=') == std::string_view::npos &&
                                 !words[0].starts_with("--") && !words[0].ends_with(':');
  if (pairs < 2 || (begins_with_words && !is_command)) return false;
  settings.insert(settings.end(), found.begin(), found.end());
  return true;
}

// "learning rate": a name of several words is that of a setting only if it says so.
bool speaks_of_setting(std::string_view name) {
  static constexpr std::array<std::string_view, 16> known = {
      "learning", "batch", "decay",    "dropout", "optimizer", "warmup", "scheduler", "schedule",
      "clip",     "beta",  "momentum", "layers",  "heads",     "hidden", "optimiser", "accumulation"};
  const std::vector<std::string> words = words_of(name);
  return words.size() < 5 && std::ranges::any_of(words, [](const std::string& word) {
           return std::ranges::find(known, word) != known.end();
         });
}

// "lr: 0.001", "lr = 0.001", "'lr': 0.001,", "| lr | 0.001 |", "  lr ........ 0.001".
bool read_one(std::string_view text, std::vector<PrintedSetting>& settings) {
  text = trimmed(text, " \t,;");
  // The last line of a container: "dropout=0.1)".
  if (text.find_first_of("([{") == std::string_view::npos)
    while (text.ends_with(')') || text.ends_with('}')) text.remove_suffix(1);
  bool may_be_words = false;
  std::size_t sign = text.find_first_of("=:");
  std::size_t behind = sign == std::string_view::npos ? sign : sign + 1;
  if (text.size() > 4 && text.front() == '|' && text.back() == '|' && std::ranges::count(text, '|') == 3) {
    text = trimmed(text.substr(1, text.size() - 2));
    sign = text.find('|');
    behind = sign + 1;
    may_be_words = true;
  } else if (const std::size_t dots = text.find(" ..."); dots != std::string_view::npos) {
    sign = dots;
    behind = text.find_first_not_of('.', dots + 1);
    if (behind == std::string_view::npos || behind - dots <= least_dots) return false;
    may_be_words = true;
  } else if (sign == std::string_view::npos) {
    sign = text.find("   ");  // aligned: "lr        0.001"
    behind = sign;
    if (sign == std::string_view::npos || !is_constant(trimmed(text.substr(behind)))) return false;
  }
  if (sign == std::string_view::npos) return false;
  bool was_quoted = false;
  std::string_view name = unquoted(text.substr(0, sign), was_quoted);
  if (const std::size_t hint = name.find(" ("); may_be_words && name.ends_with(')'))  // "learning rate (LR)"
    name = trimmed(name.substr(0, hint));
  const std::string_view value = trimmed(text.substr(behind));
  if (value.starts_with('=') || value.starts_with('{')) return false;
  // "Baseline: eager" is a title.
  const bool may_be_title = !may_be_words || !speaks_of_setting(name);
  if (may_be_title && is_choice(value) && !is_constant(value) && !name.empty() && name[0] >= 'A' && name[0] <= 'Z')
    return false;
  return add(name, value, {}, settings, may_be_words || speaks_of_setting(name));
}

// A logger's words in front: "[2026-01-01 10:00:00] INFO - ", "2026-01-01 10:00:00,123 | INFO | ".
std::string_view without_logger(std::string_view text) {
  // "I0304 10:00:00.000001 140203 train.py:20] "
  if (const std::size_t end = text.find("] "); end != std::string_view::npos && text.size() > 6 && text[0] == 'I' &&
                                               is_digit(text[1]) && is_digit(text[4]) && text[5] == ' ')
    text.remove_prefix(end + 2);
  for (int words = 0; words < 6; ++words) {
    text = trimmed(text);
    for (const std::string_view level : {"INFO:", "DEBUG:", "WARNING:"})  // "INFO:root:lr: 0.1"
      if (const std::size_t end = text.find(':', level.size());
          text.starts_with(level) && end != std::string_view::npos)
        text.remove_prefix(end + 1);
    if (text.starts_with('[')) {
      const std::size_t end = text.find(']');
      if (end == std::string_view::npos || end + 1 == text.size()) return text;
      text.remove_prefix(end + 1);
      continue;
    }
    const std::size_t end = std::min(text.find_first_of(" |"), text.size());
    const std::string_view word = trimmed(text.substr(0, end), ":");
    const bool is_level = one_of(word, {"INFO", "DEBUG", "WARNING", "NOTICE", "-", "|", ">", "*"});
    const bool is_stamp = !word.empty() && is_digit(word[0]) && is_moment(word);
    if ((!is_level && !is_stamp && !(end == 0 && words > 0)) || end == text.size()) return text;
    text.remove_prefix(std::max<std::size_t>(end, 1));
  }
  return text;
}

// Without "config:", "Training arguments:", "args =" in front of a container or a row.
std::string_view behind_title(std::string_view text) {
  const std::size_t sign = text.find_first_of(":=({[");
  if (sign == std::string_view::npos || (text[sign] != ':' && text[sign] != '=')) return text;
  const std::string_view title = trimmed(text.substr(0, sign));
  const bool is_title = contains_word(title, "config") || contains_word(title, "arg") ||
                        contains_word(title, "param") || contains_word(title, "setting") ||
                        contains_word(title, "option") || contains_word(title, "command") ||
                        contains_word(title, "cfg") || contains_word(title, "overrid");
  return is_title ? trimmed(text.substr(sign + 1)) : text;
}

}  // namespace

bool is_assignment(std::string_view line) {
  const std::string_view text = trimmed(line);
  const std::size_t end = static_cast<std::size_t>(std::ranges::find_if_not(text, is_word) - text.begin());
  const std::string_view rest = trimmed(text.substr(end));
  return end > 0 && !is_digit(text[0]) && rest.size() > 1 && rest[0] == '=' && rest[1] != '=';
}

std::string_view without_comment(std::string_view line) {
  if (line.find(" #") == std::string_view::npos || !is_assignment(line)) return line;
  char quote = '\0';
  for (std::size_t i = 1; i < line.size(); ++i) {
    if (quote != '\0' ? line[i] == quote : line[i] == '\'' || line[i] == '"')
      quote = quote != '\0' ? '\0' : line[i];
    else if (quote == '\0' && line[i] == '#' && is_space(line[i - 1]))
      return line.substr(0, i - 1);
  }
  return line;
}

std::vector<PrintedSetting> read_settings(std::string_view line) {
  std::vector<PrintedSetting> settings;
  if (line.size() > longest_line) return settings;
  const std::string_view text = without_comment(without_logger(line));
  const std::string_view rest = behind_title(text);
  if (read_container(rest, {}, 0, settings) || read_row(rest, settings) || read_one(text, settings)) return settings;
  if (rest.size() < text.size()) read_one(rest, settings);
  return settings;
}

}  // namespace stepladder
