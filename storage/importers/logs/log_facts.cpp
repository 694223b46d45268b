// Recognises facts in lines around steps: hardware, device, precision, batch, sequence length, parameters. The first
// hardware named wins. Of numbers the one with the plainest name wins ("seq_len" over "rope_max_seq_len"), then the
// last; those of evaluations, teachers, kernels ... are no facts of the training. tokens_per_step says how it was
// calculated, which UnitInference reports to the user.
#include "storage/importers/logs/log_facts.h"

#include <array>
#include <cmath>
#include <span>

#include "storage/importers/logs/lines/pair_meaning.h"
#include "storage/importers/logs/lines/setting_lines.h"
#include "storage/importers/text.h"
#include "storage/number_text.h"

namespace stepladder {
namespace {

// Whether the word at `at` has no letter or digit on either side.
bool stands_alone(std::string_view line, std::size_t at, std::size_t size) {
  return (at == 0 || !is_word(line[at - 1]) || is_digit(line[at - 1]) || line[at - 1] == 'x') &&
         (at + size >= line.size() || !is_word(line[at + size]));
}

std::string_view precision_of(std::string_view dtype) {
  if (contains_word(dtype, "bfloat16") || contains_word(dtype, "bf16")) return "bf16";
  if (contains_word(dtype, "tensorfloat32") || contains_word(dtype, "tf32")) return "tf32";
  if (contains_word(dtype, "float16") || contains_word(dtype, "fp16") || contains_word(dtype, "half")) return "fp16";
  if (contains_word(dtype, "float32") || contains_word(dtype, "fp32")) return "fp32";
  return "";
}

// The word behind "dtype", "precision" and a separator.
std::string_view word_after(std::string_view line, std::string_view key) {
  const std::size_t found = line.find(key);
  if (found == std::string_view::npos) return {};
  std::size_t at = found + key.size();
  while (at < line.size() && (line[at] == ' ' || line[at] == '=' || line[at] == ':' || line[at] == '\'' ||
                              line[at] == '"' || line[at] == '|'))
    ++at;
  if (at == found + key.size()) return {};
  const std::size_t start = at;
  while (at < line.size() && (is_word(line[at]) || line[at] == '.' || line[at] == '-')) ++at;
  return line.substr(start, at - start);
}

bool is_device(std::string_view word) {
  return word.starts_with("cuda") || word == "cpu" || word == "mps" || word == "gpu" || word.starts_with("xpu");
}

// Batches, sequences and tokens beyond this are not a training's; products of two of them still fit.
constexpr std::int64_t largest_fact = 1'000'000'000;
constexpr double largest_tokens_per_step = 1e12;

// As a line may print them.
constexpr std::string_view nvidia_cards[] = {"H100",  "H200", "H800", "H20",  "GH200", "B200", "B100",
                                             "GB200", "A100", "A800", "A40",  "A30",   "A10G", "A10",
                                             "L40S",  "L40",  "L4",   "V100", "P100"};
constexpr std::string_view rtx_cards[] = {"A6000"};
constexpr std::string_view amd_cards[] = {"MI300X", "MI250X", "MI250", "MI210", "MI100", "MI325X"};

std::size_t find_no_case(std::string_view line, std::string_view word) {
  const auto alike = [](char a, char b) { return lower(a) == lower(b); };
  const auto found = std::search(line.begin(), line.end(), word.begin(), word.end(), alike);
  return found == line.end() ? std::string_view::npos : static_cast<std::size_t>(found - line.begin());
}

constexpr std::string_view narrow_types[] = {"nvfp4", "mxfp4", "fp4", "mxfp8", "fp8", "float8"};

// "fp8: True", "--fp8", "enable_float8_linear = True", "Float8 training active": products in a type narrower than that
// of the other values. Not "fp8_margin: 0", "fp8: False" or a cache's.
std::string_view narrow_precision_in(std::string_view line) {
  for (const std::string_view narrow : narrow_types) {
    const std::size_t at = find_no_case(line, narrow);
    if (at == std::string_view::npos || (at > 0 && std::isalnum(static_cast<unsigned char>(line[at - 1])))) continue;
    for (const char* denial : {"cache", "kernel", "not ", "no ", "support", "without"})
      if (contains_word(line, denial)) return {};
    std::string_view rest = line.substr(at + narrow.size());
    bool is_used = trimmed(rest, " ,)'\"").empty();
    while (!is_used && !rest.empty()) {
      rest.remove_prefix(std::min(rest.find_first_not_of(" =:._-'\"|"), rest.size()));
      const std::string_view word = rest.substr(0, rest.find_first_of(" =:._-'\"|,)}"));
      const auto is = [&](std::initializer_list<std::string_view> words) {
        return std::ranges::any_of(words, [&](std::string_view each) { return equal_in_lower(word, each); });
      };
      is_used = is({"true", "1", "yes", "on", "hybrid", "e4m3", "active", "enabled"});
      if (word.empty() || !is({"linear", "training", "tensorwise", "rowwise", "scaled"})) break;
      rest.remove_prefix(word.size());
    }
    if (is_used) return narrow == "float8" ? "fp8" : narrow;
  }
  return {};
}

// "NVIDIA H100 80GB HBM3", as nvidia-smi and torch call it: the whole name, to the end of its column.
std::string full_name(std::string_view line) {
  for (const std::string_view maker : {"NVIDIA ", "Tesla ", "Quadro ", "GeForce "}) {
    const std::size_t at = line.find(maker);
    if (at == std::string_view::npos || line.substr(at).starts_with("NVIDIA-SMI")) continue;
    std::size_t end = at;
    bool digit = false;
    while (end < line.size() && (is_word(line[end]) || line[end] == '-' ||
                                 (line[end] == ' ' && end + 1 < line.size() && is_word(line[end + 1])))) {
      digit |= is_digit(line[end]);
      ++end;
    }
    std::string name(line.substr(at, end - at));
    // The next column or word, which isn't part of the name.
    for (const std::string_view tail : {" On", " Off", " GPU", " with", " has", " using", " and", " detected"}) {
      if (const std::size_t cut = name.find(tail); cut != std::string::npos) name.resize(cut);
    }
    if (digit && name.size() > maker.size() && name.size() < 48) return maker == "NVIDIA " ? name : "NVIDIA " + name;
  }
  return {};
}

// The first accelerator that a line names, under its maker's name; empty if it names none.
std::string first_accelerator_in(std::string_view line) {
  if (std::string name = full_name(line); !name.empty()) return name;
  std::size_t first = std::string_view::npos;
  std::string named;
  const auto offer = [&](std::size_t at, std::string name) {
    if (at >= first) return;
    first = at;
    named = std::move(name);
  };
  const auto offer_cards = [&](const char* maker, std::span<const std::string_view> cards) {
    for (const std::string_view card : cards)
      if (const std::size_t at = line.find(card); at != std::string_view::npos && stands_alone(line, at, card.size()))
        offer(at, std::string(maker) + std::string(card));
  };
  offer_cards("NVIDIA ", nvidia_cards);
  offer_cards("NVIDIA RTX ", rtx_cards);
  offer_cards("AMD ", amd_cards);
  // RTX 3080, RTX3080 Ti, GTX 1080.
  for (const std::string_view series : {"RTX", "GTX"}) {
    const std::size_t at = find_no_case(line, series);
    if (at == std::string_view::npos) continue;
    std::size_t digits = at + series.size();
    while (digits < line.size() && (line[digits] == ' ' || line[digits] == '-' || line[digits] == '_')) ++digits;
    std::size_t end = digits;
    while (end < line.size() && is_digit(line[end])) ++end;
    if (end - digits < 3 || end - digits > 4) continue;
    std::string name = "NVIDIA GeForce " + std::string(series) + " " + std::string(line.substr(digits, end - digits));
    const std::string_view rest = line.substr(end);
    for (const std::string_view suffix : {" Ti", "Ti", " SUPER", " Super"})
      if (rest.starts_with(suffix)) name += suffix.front() == ' ' ? std::string(suffix) : " " + std::string(suffix);
    offer(at, name);
  }
  // Apple M2, M1 Pro: only with the maker's name, since "M1" alone is anything.
  for (const std::string_view maker : {"Apple M", "MacBook M", "Mac M"}) {
    const std::size_t at = line.find(maker);
    if (at == std::string_view::npos || at + maker.size() >= line.size() || !is_digit(line[at + maker.size()]))
      continue;
    std::string name = "Apple M" + std::string(1, line[at + maker.size()]);
    const std::string_view rest = line.substr(at + maker.size() + 1);
    for (const std::string_view suffix : {" Pro", " Max", " Ultra"})
      if (rest.starts_with(suffix)) name += suffix;
    offer(at, name);
  }
  return named;
}

// The same; empty also if the line compares with it: "MFU is relative to A100".
std::string hardware_named_in(std::string_view line) {
  std::string named = first_accelerator_in(line);
  if (named.empty()) return named;
  for (const std::string_view word : {"relative to", "compar", "equivalent"})
    if (find_no_case(line, word) != std::string_view::npos) return {};
  return named;
}

// "AMD Radeon RX 7900 XTX" of "gpu: AMD Radeon RX 7900 XTX", "TPU v4" of "device_kind: TPU v4": a name that a setting
// gives, whether anybody knows it or not. Empty for "cuda:0", "8" and the like.
std::string_view hardware_set_in(std::string_view line) {
  const std::size_t end = line.find_first_of(":=");
  if (end == std::string_view::npos) return {};
  const KeyWords key(line.substr(0, end));
  const bool is_device_setting = key.is(0, "device");
  const bool is_named = one_of(key.last(), {"gpu", "accelerator"}) ||
                        (one_of(key.last(), {"name", "kind", "type", "model"}) &&
                         (key.count == 2 && one_of(key.words[1], {"gpu", "device", "accelerator", "instance"})));
  if (!is_device_setting && !is_named) return {};
  const std::string_view value = trimmed(line.substr(end + 1), " '\"|,");
  const std::string_view first = value.substr(0, value.find_first_of(" :"));
  const bool is_name = value.size() >= 3 && value.size() < 48 && is_alpha(value[0]) &&
                       value.find_first_of(":=%,;()") == std::string_view::npos &&
                       std::ranges::any_of(value, is_digit) && (!is_device_setting || first != value);
  return is_name && !one_of(first, {"cuda", "gpu", "rank", "step", "epoch"}) ? value : std::string_view();
}

// N of "8x H100", "8 x NVIDIA A100", "8X A100"; 0 if the line has no such count.
std::int64_t cards_in(std::string_view line) {
  for (std::size_t at = line.find_first_of("xX"); at != std::string_view::npos; at = line.find_first_of("xX", at + 1)) {
    std::size_t end = at;
    if (end > 0 && line[end - 1] == ' ') --end;
    std::size_t begin = end;
    while (begin > 0 && is_digit(line[begin - 1])) --begin;
    std::string_view behind = line.substr(at + 1, 24);
    if (behind.starts_with(' ')) behind.remove_prefix(1);
    const bool is_count = begin < end && end - begin <= 6 && (begin == 0 || !is_word(line[begin - 1]));
    const bool may_be_speed = line[at] == 'X' && !behind.empty() && lower(behind.front()) == behind.front();
    if (is_count && !behind.empty() && !is_digit(behind.front()) && !may_be_speed && !hardware_named_in(behind).empty())
      return std::stoll(std::string(line.substr(begin, end - begin)));
  }
  return 0;
}

// torchtitan's "Building 2-D device mesh with ['pp', 'dp_shard'], [2, 8]": 16; 0 for other lines.
std::int64_t devices_of_mesh(std::string_view line) {
  const std::size_t mesh = line.find("device mesh with ");
  const std::size_t sizes = mesh == std::string_view::npos ? mesh : line.find("], [", mesh);
  if (sizes == std::string_view::npos) return 0;
  std::int64_t devices = 1;
  PairScanner scanner(line.substr(sizes + 3));
  for (Pair pair; scanner.next(pair);) {
    if (pair.whole <= 0 || pair.whole > 1'000'000 || devices > 1'000'000) return 0;
    devices *= pair.whole;
  }
  return devices;
}

// llm.c prints its settings as a table, "| total batch size | 524288 |": the same as "total batch size: 524288". Empty
// for any other line.
std::string setting_in_row(std::string_view line) {
  const std::string_view text = trimmed(line);
  if (text.size() < 5 || text.front() != '|' || std::ranges::count(text, '|') != 3) return {};
  const std::size_t bar = text.find('|', 1);
  return std::string(trimmed(text.substr(1, bar - 1))) + ": " +
         std::string(trimmed(text.substr(bar + 1, text.size() - bar - 2)));
}

// Whether a number with this behind it is a factor of the value, as in "= 5 * 8".
bool is_factor(std::string_view behind) {
  behind = trimmed(behind);
  const std::string_view next = behind.starts_with('*') ? trimmed(behind.substr(1)) : std::string_view();
  return !next.empty() && is_word(next.front());
}

// The value as JSON.
Json json_of(const PrintedSetting& setting) {
  if (setting.is_text) return setting.value;
  if (equal_in_lower(setting.value, "none") || equal_in_lower(setting.value, "null")) return {};
  if (equal_in_lower(setting.value, "true") || equal_in_lower(setting.value, "false"))
    return equal_in_lower(setting.value, "true");
  const std::string_view digits = std::string_view(setting.value).substr(setting.value.starts_with('+') ? 1 : 0);
  const double number = parse_number<double>(digits).value_or(missing);
  if (!std::isfinite(number)) return setting.value;
  if (number == std::floor(number) && std::fabs(number) < 1e15) return static_cast<std::int64_t>(number);
  return number;
}

// Whether a number with this name is about something other than the training.
bool is_of_others(const KeyWords& key) {
  for (int i = 0; i < key.count; ++i) {
    const std::string_view word = key.words[i];
    if (is_validation(word) || one_of(word, {"rope", "attn", "kernel", "tokenizer", "teacher", "draft", "generation"}))
      return true;
  }
  return false;
}

// How many words of a name say more than which fact of the training it is: 0 for "train_batch_size", 1 for
// "buffer_batch_size".
int other_words_in(const KeyWords& key) {
  int count = 0;
  for (int i = 0; i < key.count; ++i)
    count += !one_of(key.words[i],
                     {"batch", "size",   "bs",    "batchsize", "seq",  "sequence", "length", "len",    "seqlen",
                      "block", "ctx",    "b",     "t",         "m",    "k",        "train",  "data",   "model",
                      "micro", "mini",   "per",   "device",    "gpu",  "local",    "global", "total",  "desired",
                      "of",    "number", "num",   "count",     "n",    "all",      "param",  "params", "parameters",
                      "args",  "config", "using", "training",  "rank", "context",  "has",    "the",    "overriding"});
  return count;
}

}  // namespace

// A number of a line with its surroundings.
struct LogFacts::Number {
  const Pair& pair;
  KeyWords key;
  std::string_view before;  // since the last number
  std::string_view behind;  // a few characters
  std::string_view line;
};

bool LogFacts::read(std::string_view line) {
  if (line.size() > 400 || is_in_section_of_others(line)) return false;
  line = without_comment(line);
  const std::string row = setting_in_row(line);
  if (!row.empty()) line = row;
  bool said = read_hardware(line);
  said |= read_device(line);
  said |= read_precision(line);
  said |= read_numbers(line);
  said |= name_devices(cards_in(line));
  said |= add_devices(devices_of_mesh(line));
  said |= read_part_of_one(line);
  return said;
}

// "Tokens / micro-batch / rank: 32 x 2048 = 65,536" beside "Tokens / micro-batch: 524,288": 8 devices. Other batches
// may be accumulated.
bool LogFacts::read_part_of_one(std::string_view line) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || !contains_word(line.substr(0, colon), "micro")) return false;
  std::string_view name = trimmed(line.substr(0, colon));
  const KeyWords words(name);
  const bool is_of_one = is_device_word(words.last());
  if (is_of_one) name = trimmed(name.substr(0, name.size() - words.last().size()), " /");
  if (is_of_one && name.ends_with(" per")) name.remove_suffix(4);
  PairScanner scanner(line.substr(colon));
  std::int64_t count = 0;
  for (Pair pair; scanner.next(pair);) count = pair.whole;
  if (count <= 0) return false;
  if (is_of_one) {
    part_name_ = name;
    part_of_one_ = count;
    return true;
  }
  return part_of_one_ > 0 && name == part_name_ && count % part_of_one_ == 0 && add_devices(count / part_of_one_);
}

// Whether the line is deeper than a heading "val:" before it, as YAML nests settings.
bool LogFacts::is_in_section_of_others(std::string_view line) {
  const std::size_t indent = line.find_first_not_of(" \t");
  if (indent == std::string_view::npos) return false;
  if (indent_of_others_ && indent > *indent_of_others_) return true;
  const std::string_view text = trimmed(line);
  indent_of_others_ = {};
  if (text.ends_with(':') && is_validation(text.substr(0, text.size() - 1))) indent_of_others_ = indent;
  return false;
}

bool LogFacts::read_configuration(std::string_view line) {
  if (is_in_section_of_others(line)) return false;
  const std::vector<PrintedSetting> found = read_settings(line);
  for (const PrintedSetting& setting : found) {
    settings[setting.name] = json_of(setting);
    read(setting.name + ": " + setting.value);
  }
  return !found.empty();
}

bool LogFacts::read_hardware(std::string_view line) {
  std::string named = hardware_named_in(line);
  if (named.empty()) named = hardware_set_in(line);
  if (named.empty()) return false;
  const bool is_first = hardware.empty();
  const auto is_part = [](const std::string& a, const std::string& b) { return a.find(b) != std::string::npos; };
  const KeyWords before(line.substr(0, std::min(line.find(named), line.find_first_of(":="))));
  if (!is_first && !is_part(named, hardware) && !is_part(hardware, named) && one_of(before.last(), {"gpu", "device"}))
    other_hardware = named;
  if (is_first) hardware = std::move(named);
  // "on an RTX 3080, then on two RTX 4090".
  for (std::string_view rest = line; !names_several && !rest.empty();) {
    const std::string other = hardware_named_in(rest);
    names_several =
        !other.empty() && other.find(hardware) == std::string::npos && hardware.find(other) == std::string::npos;
    const std::size_t space = rest.find(' ');
    rest.remove_prefix(space == std::string_view::npos ? rest.size() : space + 1);
  }
  return is_first;
}

bool LogFacts::read_device(std::string_view line) {
  bool said = false;
  if (const std::string_view whole = trimmed(line); is_device(whole) && whole.size() < 8) {
    device = whole.substr(0, whole.find(':'));
    said = true;
  }
  for (const std::string_view key : {"device", "Device"}) {
    const std::string_view word = word_after(line, key);
    if (!is_device(word) || word == "gpu") continue;
    device = word.substr(0, word.find(':'));
    said = true;
  }
  return said;
}

bool LogFacts::read_precision(std::string_view line) {
  bool said = false;
  for (const std::string_view key : {"dtype", "precision"}) {
    std::string_view word = word_after(line, key);
    if (word.starts_with("torch.")) word.remove_prefix(6);
    const std::string_view named = precision_of(word);
    if (named.empty()) continue;
    dtype = word;
    precision = named;
    said = true;
  }
  if (line.find("set_float32_matmul_precision('high')") != std::string_view::npos) precision = "tf32", said = true;
  if (const std::string_view narrow = narrow_precision_in(line); !narrow.empty()) narrow_ = precision = narrow;
  if (!narrow_.empty()) precision = narrow_;
  return said;
}

// Calls use(number) for each number of the line.
template <class Use>
void LogFacts::for_numbers(std::string_view line, const Use& use) {
  PairScanner scanner(line);
  Pair pair;
  std::size_t previous = 0;
  while (scanner.next(pair)) {
    const std::string_view before = line.substr(previous, pair.at - previous);
    const std::string_view behind = line.substr(pair.end, std::min<std::size_t>(24, line.size() - pair.end));
    previous = pair.end;
    use(Number{pair, KeyWords(pair.key), before, behind, line});
  }
}

bool LogFacts::read_numbers(std::string_view line) {
  const bool speaks_of_params = contains_word(line, "param") && !contains_word(line, "tensors");
  bool said = false;
  for_numbers(line, [&](const Number& number) {
    const Pair& pair = number.pair;
    if ((pair.separated && is_factor(number.behind)) || is_of_others(number.key)) return;
    Fact fact = shape_fact(number);
    if (!fact) fact = batch_fact(number);
    if (!fact) fact = data_fact(number);
    if (!fact && read_devices(number)) {
      said = true;
    } else if (fact) {
      if (pair.whole <= 0 || pair.whole > largest_fact) return;
      if (set(fact, pair.whole, number) && fact == &LogFacts::batch)
        batch_is_of_one_ = number.key.has("per") || trimmed(number.behind, " (").starts_with("per ");
      said = true;
    } else if (speaks_of_params) {
      said |= read_params(number);
    }
  });
  return add_devices(per_node_ * std::max<std::int64_t>(nodes, 1)) || said;
}

void LogFacts::read_step(std::string_view line) {
  for_numbers(line, [&](const Number& number) {
    const Pair& pair = number.pair;
    const KeyWords& key = number.key;
    // "B", "T" and "batch" may be anything beside a step.
    if ((key.count == 1 && (pair.key.size() == 1 || key.is(0, "batch"))) || is_of_others(key)) return;
    Fact fact = shape_fact(number);
    if (!fact) fact = batch_fact(number);
    if (!fact && key.has("world")) fact = data_fact(number);
    if (!fact)
      read_devices(number);
    else if (pair.whole > 0 && pair.whole <= largest_fact)
      set(fact, pair.whole, number);
  });
}

// Sets the fact, unless a plainer name has given it.
bool LogFacts::set(Fact fact, std::int64_t value, const Number& number) {
  const int others = other_words_in(number.key);
  const auto known = std::ranges::find(other_words_, fact, &std::pair<Fact, int>::first);
  if (known == other_words_.end()) {
    other_words_.emplace_back(fact, others);
  } else {
    if (others > known->second) return false;
    known->second = others;
  }
  this->*fact = value;
  return true;
}

// "8 GPUs", "num_gpus: 8", "8x H100": not those of one of several nodes, and none of a list.
bool LogFacts::read_devices(const Number& number) {
  const Pair& pair = number.pair;
  const KeyWords& key = number.key;
  const auto is_devices = [](std::string_view word) {
    return one_of(word, {"gpus", "devices", "ngpus", "ngpu", "accelerators", "tpus", "npus", "chips", "ranks"});
  };
  if (key.is(0, "nodes") || key.is(0, "nnodes") || (key.is(0, "num") && key.is(1, "nodes"))) {
    if (pair.whole > 0) nodes = pair.whole;
    return pair.whole > 0;
  }
  const KeyWords behind(number.behind.substr(0, number.behind.find_first_of(",;:|.()[]=")));
  const bool is_named =
      is_devices(key.last()) || (one_of(key.last(), {"gpu", "device", "count"}) &&
                                 (key.is(1, "num") || key.is(1, "n") || key.is(1, "gpu") || key.is(1, "device")));
  bool is_counted = false;
  for (int back = 1; back <= std::min(behind.count, 3); ++back)
    is_counted |= is_devices(behind.words[behind.count - back]);
  if ((!is_named && !is_counted) || pair.whole <= 0 || pair.whole > 1'000'000 || pair.total >= 0 || pair.clock ||
      !pair.unit.empty())  // cards_in counts "8x H100"
    return false;
  const bool in_list = number.behind.size() > 1 && number.behind[0] == ',' &&
                       number.behind.find_first_not_of(", ") < number.behind.size() &&
                       is_digit(number.behind[number.behind.find_first_not_of(", ")]);
  if (in_list || key.has("per") || behind.has("per") || contains_word(number.line, "node") || behind.has("of") ||
      key.is(0, "of"))
    return false;
  // What is there need not be used, but another number beside it makes the count unsure.
  for (const char* word : {"available", "detected", "visible", "found"}) {
    if (!contains_word(number.line, word)) continue;
    available_ = pair.whole;
    if (named_devices > 0 && named_devices != available_) named_devices = -1;
    return false;
  }
  return name_devices(pair.whole);
}

bool LogFacts::name_devices(std::int64_t count) {
  if (count <= 0) return false;
  const bool agrees = (named_devices == 0 || named_devices == count) && (available_ == 0 || available_ == count);
  named_devices = agrees ? count : -1;
  return true;
}

std::int64_t LogFacts::batch_devices() const {
  return devices == 0 && batch_is_of_one_ && named_devices != 0 ? std::max<std::int64_t>(named_devices, 0)
                                                                : std::max<std::int64_t>(devices, 1);
}

LogFacts::Sequences LogFacts::sequences_per_step() const {
  if (global_batch > 0) return {global_batch, true};
  const double count = static_cast<double>(batch) * static_cast<double>(std::max<std::int64_t>(grad_accum, 1)) *
                       static_cast<double>(batch_devices());
  return {count < 1e9 ? std::llround(count) : 0, false};
}

// The length of a sequence, and B, the sequences of a batch.
LogFacts::Fact LogFacts::shape_fact(const Number& number) const {
  const KeyWords& key = number.key;
  const std::string_view last = key.last();
  const bool set = number.pair.separated;
  if (set && key.count == 1 && number.pair.key == "B") return &LogFacts::batch;
  if (set && key.count == 1 && number.pair.key == "T") return &LogFacts::seq;
  if (last == "length" && (key.is(1, "sequence") || key.is(1, "seq") || key.is(1, "context"))) return &LogFacts::seq;
  if ((last == "len" && key.is(1, "seq")) || (last == "t" && key.is(1, "length"))) return &LogFacts::seq;
  // "FlexAttention BLOCK_SIZE: 128"
  if (last == "size" && key.is(1, "block") &&
      std::ranges::any_of(std::array{"kernel", "triton", "attention"},
                          [&](const char* of) { return find_no_case(number.line, of) != std::string_view::npos; }))
    return nullptr;
  if (set && (last == "seqlen" || (last == "size" && (key.is(1, "block") || key.is(1, "ctx"))))) return &LogFacts::seq;
  return nullptr;
}

// The fact that a number called "batch" gives: a count of sequences or, if it is large, of tokens.
LogFacts::Fact LogFacts::batch_fact(const Number& number) const {
  const KeyWords& key = number.key;
  const std::string_view last = key.last();
  const std::int64_t count = number.pair.whole;
  constexpr std::int64_t most_sequences = 65536;
  if (last == "size" && key.is(1, "batch")) {
    if (key.is(2, "global") || (key.is(2, "train") && key.is(3, "total")))
      return count > most_sequences ? &LogFacts::tokens_printed : &LogFacts::global_batch;
    if (key.is(2, "total") || key.is(2, "desired")) {
      const bool whole_batches = batch * seq > 0 && count % (batch * seq) == 0;
      return key.has("desired") || count >= 4096 || whole_batches ? &LogFacts::tokens_printed : &LogFacts::global_batch;
    }
    return count > most_sequences ? &LogFacts::tokens_printed : &LogFacts::batch;
  }
  if ((number.pair.separated && number.pair.total < 0 && one_of(last, {"batch", "bs", "batchsize"}) &&
       !key.has("per")) ||
      (last == "b" && key.is(1, "size")))
    return count > most_sequences ? &LogFacts::tokens_printed : &LogFacts::batch;
  if ((last == "steps" && (key.is(1, "accumulation") || key.is(1, "accum"))) ||
      (last == "replica" && key.is(1, "per") && key.is(2, "accumulation")) || (last == "accum" && key.is(1, "grad")) ||
      (last == "accumulation" && key.is(1, "gradient")))
    return &LogFacts::grad_accum;
  return nullptr;
}

// Tokens of a step, devices, and how the data is cut into batches.
LogFacts::Fact LogFacts::data_fact(const Number& number) const {
  const KeyWords& key = number.key;
  const std::string_view last = key.last();
  const bool set = number.pair.separated;
  if (key.has("per") && key.has("tokens") && (key.has("iteration") || key.has("step") || key.has("batch")) &&
      !is_device_word(last) && last != "replica" && (set || key.is(0, "step") || key.is(0, "batch")))
    return &LogFacts::tokens_printed;
  if ((last == "size" && (key.is(1, "world") || (set && key.is(1, "parallel") && key.is(2, "data")))) ||
      (set && last == "dp"))
    return &LogFacts::devices;
  if (set && (last == "world" || (last == "processes" && key.is(1, "num")))) return &LogFacts::devices;
  if (last == "node" && key.is(1, "per") && key.count > 2 &&
      one_of(key.words[2], {"nproc", "gpus", "processes", "procs", "ranks"}))
    return &LogFacts::per_node_;
  if ((last == "loaded" && number.behind.starts_with(" tokens")) || (last == "len" && key.is(1, "loaded")))
    return &LogFacts::tokens_loaded;
  // "338025//2048": the script's divisor
  if (number.before.find("//") != std::string_view::npos && tokens_loaded > 0 && number.pair.whole > 0)
    return &LogFacts::tokens_printed;
  if (number.behind.starts_with(" batches") && contains_word(number.line, "epoch")) return &LogFacts::batches_per_epoch;
  return nullptr;
}

bool LogFacts::add_devices(std::int64_t count) {
  constexpr std::int64_t most = 1'000'000;
  if (count <= 0 || count > most) return false;
  devices = std::max(devices, count);
  return true;
}

// "number of parameters: 124.44M", "124M params"
bool LogFacts::read_params(const Number& number) {
  const Pair& pair = number.pair;
  if (number.key.has("decayed") || contains_word(number.line, "decayed") || !(pair.value > 0)) return false;
  for (const char* part : {"embedding", "trainable"})
    if (number.key.is(1, part) && number.key.is(2, "non") != (part[0] == 'e')) return false;
  for (const char* part : {"lora", "adapter", "frozen"})
    if (number.key.has(part)) return false;
  const std::string_view last = number.key.last();
  const bool named_before =
      last.starts_with("param") ||
      (contains_word(pair.key, "param") && one_of(last, {"count", "number", "num", "total", "m", "b", "k"})) ||
      last == "size";
  if (!named_before && !contains_word(number.behind, "param")) return false;
  double count = pair.value;
  if (pair.unit == "M" || pair.unit == "m") count *= 1e6;
  if (pair.unit == "B" || pair.unit == "b") count *= 1e9;
  if (pair.unit == "K" || pair.unit == "k") count *= 1e3;
  const std::string_view word = trimmed(number.behind);
  if (equal_in_lower(word.substr(0, 7), "million")) count *= 1e6;
  if (equal_in_lower(word.substr(0, 7), "billion")) count *= 1e9;
  if (!(count >= 1000 && count < 1e14)) return false;
  // "Trainable parameters = 41,943,040 of 8,072,204,288", "41,943,040/8,072,204,288"
  Pair all;
  if (number.behind.starts_with(" of ") && PairScanner(number.behind).number_at(4, all) && all.value > count)
    count = all.value;
  count = std::max(count, static_cast<double>(pair.total));
  return set(&LogFacts::params, static_cast<std::int64_t>(std::llround(count)), number);
}

LogFacts::Tokens LogFacts::tokens_per_step() const {
  const auto n = [](std::int64_t value) { return std::to_string(value); };
  if (tokens_printed > 0) return {tokens_printed, true, "printed in the log"};
  if (global_batch > 0 && seq > 0 && global_batch < largest_fact / 1000 && seq < largest_fact / 1000)
    return {global_batch * seq, true, n(global_batch) + " sequences x " + n(seq) + " tokens"};
  const std::int64_t each = batch_devices();
  if (batch > 0 && seq > 0 && each > 0 &&
      static_cast<double>(batch) * static_cast<double>(seq) *
              static_cast<double>(std::max<std::int64_t>(grad_accum, 1)) * static_cast<double>(each) <
          largest_tokens_per_step) {
    Tokens tokens{batch * seq, false, "B " + n(batch) + " x T " + n(seq)};
    if (grad_accum > 1) tokens.count *= grad_accum, tokens.how += " x " + n(grad_accum) + " accumulated batches";
    if (each > 1) tokens.count *= each, tokens.how += " x " + n(each) + " devices";
    return tokens;
  }
  // N batches of the loaded tokens: the roundest number of tokens per batch that gives N.
  if (tokens_loaded > 0 && batches_per_epoch > 0 && batches_per_epoch < tokens_loaded) {
    const std::int64_t most = tokens_loaded / batches_per_epoch;
    const std::int64_t least = tokens_loaded / (batches_per_epoch + 1) + 1;
    for (std::int64_t power = std::int64_t{1} << 24; power >= 1; power /= 2) {
      const std::int64_t round = most / power * power;
      if (round < least || round == 0) continue;
      return {round, false,
              n(tokens_loaded) + " tokens in " + n(batches_per_epoch) + " batches are " + n(least) + " to " + n(most) +
                  " a batch; " + n(round) + " is the roundest"};
    }
  }
  return {};
}

Json LogFacts::recipe(std::string_view family) const {
  Json recipe = {{"log_family", family}};
  const auto add = [&](const char* name, const auto& value) {
    if (value != std::decay_t<decltype(value)>()) recipe[name] = value;
  };
  add("batch", batch);
  add("seq", seq);
  add("grad_accum", grad_accum);
  add("devices", device_count());
  add("global_batch", global_batch);
  add("tokens_loaded", tokens_loaded);
  add("batches_per_epoch", batches_per_epoch);
  add("other_hardware", other_hardware);
  add("dtype", dtype);
  add("device", device);
  for (const auto& [name, value] : settings)
    if (!recipe.contains(name)) recipe[name] = value;
  return recipe;
}

}  // namespace stepladder
