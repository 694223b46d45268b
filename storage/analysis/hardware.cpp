// Reads and writes the hardware table, and finds a device by words of its name. Every word of an alias must occur in
// the name; the alias with the most words wins, and a later row wins among equals, so the user's file overrides the
// shipped one.
#include "storage/analysis/hardware.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <utility>

#include "storage/csv.h"
#include "storage/name_pattern.h"
#include "storage/user_folders.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view hardware_columns = "name,aliases,fp32,tf32,bf16,fp16,fp8,bandwidth_gb_s,memory_gb,source";

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const auto end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Lower case, in words; digits next to letters are a word of their own: "RTX3080Ti" is rtx, 3080, ti.
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words;
  std::string word;
  const auto finish = [&] {
    if (!word.empty()) words.push_back(std::exchange(word, {}));
  };
  for (const char c : name) {
    const char lower = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (!std::isalnum(static_cast<unsigned char>(c))) {
      finish();
      continue;
    }
    const bool number = !word.empty() && std::ranges::all_of(word, is_digit);
    if (is_digit(lower) && (word == "rtx" || word == "gtx" || word == "rx")) finish();
    if (!is_digit(lower) && number && word.size() == 4) finish();  // 3080ti
    if (number && word.size() < 4 && lower == 'x') {               // 8xA100: a count
      word.clear();
      continue;
    }
    word += lower;
  }
  finish();
  return words;
}

// The number of words of the alias, if the name has them all; 0 if one is absent.
std::size_t fit(const std::vector<std::string>& name, const std::vector<std::string>& alias) {
  const bool all =
      std::ranges::all_of(alias, [&](const std::string& word) { return std::ranges::find(name, word) != name.end(); });
  return all ? alias.size() : 0;
}

bool is_laptop(const std::vector<std::string>& words) {
  return std::ranges::any_of(
             words, [](const std::string& word) { return word == "laptop" || word == "mobile" || word == "max"; }) &&
         std::ranges::none_of(words, [](const std::string& word) {
           return word.size() == 2 && word[0] == 'm' && is_digit(word[1]);  // Apple's M1 Max
         });
}

// The words without the names of makers and families, which don't identify a model.
std::vector<std::string> model_words(std::string_view name) {
  std::vector<std::string> words = words_of(name);
  std::erase_if(words, [](const std::string& word) {
    return word == "nvidia" || word == "geforce" || word == "tesla" || word == "amd" || word == "instinct" ||
           word == "apple" || word == "rtx" || word == "gtx" || word == "rx" || word == "gpu";
  });
  return words;
}

// "8x NVIDIA H100", "2 x Intel Xeon".
std::optional<int> leading_count(std::string_view hardware) {
  std::size_t at = 0;
  while (at < hardware.size() && hardware[at] == ' ') ++at;
  int count = 0;
  const auto [end, error] = std::from_chars(hardware.data() + at, hardware.data() + hardware.size(), count);
  if (error != std::errc() || count < 1 || count > 1'000'000) return std::nullopt;
  std::string_view rest = hardware.substr(static_cast<std::size_t>(end - hardware.data()));
  while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  const bool times = !rest.empty() && (rest.front() == 'x' || rest.front() == 'X' || rest.front() == '*');
  return times || rest.substr(0, 2) == "\xC3\x97" ? std::optional(count) : std::nullopt;
}

// Four digits, which is more than a measurement has.
std::string csv_number(double value) {
  if (is_missing(value)) return "";
  std::array<char, 32> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::general, 4);
  return error == std::errc() ? std::string(text.data(), end) : "";
}

std::string csv_line(const Hardware& row) {
  std::string aliases;
  for (const std::string& alias : row.aliases) aliases += (aliases.empty() ? "" : "|") + alias;
  for (const std::string& text : {row.name, aliases, row.source}) {
    if (text.find_first_of(",\r\n") != std::string::npos || text.starts_with('#'))
      throw StorageError(
          "'" + text + "' cannot be written to a hardware table: it contains a comma or a new line, or starts with #");
  }
  std::string line = row.name + "," + aliases;
  for (const double tflops : row.peak_tflops) line += "," + csv_number(tflops);
  return line + "," + csv_number(row.bandwidth_gb_s) + "," + csv_number(row.memory_gb) + "," + row.source;
}

// The number in a field; `missing` if it is empty.
double number_or_missing(const CsvFile& table, std::size_t column) {
  if (table.text(column).empty()) return missing;
  const auto value = table.number<double>(column);
  if (!(value > 0)) table.refuse("has '" + std::string(table.text(column)) + "' instead of a positive number");
  return value;
}

Hardware read_row(const CsvFile& table) {
  if (table.text(0).empty()) table.refuse("names no device");
  Hardware hardware{.name = std::string(table.text(0))};
  if (!table.text(1).empty()) hardware.aliases = split(table.text(1), '|');
  for (std::size_t i = 0; i < hardware.peak_tflops.size(); ++i)
    hardware.peak_tflops[i] = number_or_missing(table, 2 + i);
  hardware.bandwidth_gb_s = number_or_missing(table, 7);
  hardware.memory_gb = number_or_missing(table, 8);
  hardware.source = table.text(9);
  return hardware;
}

// Without `problems`, throws at the first mistake; else adds a sentence for each and skips its row.
std::vector<Hardware> read_rows(const fs::path& file, std::vector<std::string>* problems) {
  std::vector<Hardware> rows;
  CsvFile table(file, hardware_columns);
  for (bool more = true; more;) {
    try {
      more = table.next();
      if (more) rows.push_back(read_row(table));
    } catch (const StorageError& error) {
      if (!problems) throw;
      problems->push_back(std::string(error.what()) + "; this line is ignored");
    }
  }
  return rows;
}

}  // namespace

std::string_view to_string(Precision precision) {
  return by_enum<Precision>("fp32", "tf32", "bf16", "fp16", "fp8", "unknown")[precision];
}

Precision precision_from(std::string_view text) {
  const std::string lower = lower_case(text);
  const auto has = [&](std::string_view word) { return lower.find(word) != std::string::npos; };
  if (has("fp8") || has("float8") || has("e4m3")) return Precision::fp8;
  if (has("bf16") || has("bfloat16")) return Precision::bf16;
  if (has("tf32") || has("tensorfloat")) return Precision::tf32;
  if (has("fp16") || has("float16") || has("half")) return Precision::fp16;
  if (has("fp32") || has("float32") || lower == "float") return Precision::fp32;
  return Precision::unknown;
}

HardwareTable HardwareTable::read(const fs::path& file) {
  HardwareTable table;
  table.add(file);
  return table;
}

void HardwareTable::add(const fs::path& file) {
  add(read_rows(file, nullptr));
}

void HardwareTable::add_user_file() {
  const fs::path file = user_file();
  try {
    if (std::error_code ignored; fs::exists(file, ignored)) add(read_rows(file, &problems_));
  } catch (const StorageError& error) {
    problems_.push_back(std::string(error.what()) + "; the file is ignored");
  }
}

void HardwareTable::add(std::vector<Hardware> rows) {
  for (Hardware& row : rows) {
    const auto known = std::ranges::find(rows_, row.name, &Hardware::name);
    if (known == rows_.end()) {
      rows_.push_back(std::move(row));
    } else {
      *known = std::move(row);
    }
  }
  // Computed now, since a list of a thousand runs looks up a thousand names.
  spellings_.clear();
  for (const Hardware& row : rows_) {
    std::vector<std::vector<std::string>>& spellings = spellings_.emplace_back();
    spellings.push_back(model_words(row.name));
    for (const std::string& alias : row.aliases) spellings.push_back(words_of(alias));
  }
}

fs::path HardwareTable::user_file() {
  return user_folder("XDG_CONFIG_HOME", ".config") / "stepladder" / "hardware.csv";
}

HardwareTable HardwareTable::load(const fs::path& assets_folder) {
  HardwareTable table = read(assets_folder / "hardware.csv");
  table.spreads = SpreadTable::read(assets_folder / "spread.csv");
  table.add_user_file();
  return table;
}

const Hardware* HardwareTable::find(std::string_view name) const {
  const std::vector<std::string> words = words_of(name);
  const Hardware* found = nullptr;
  std::size_t best = 0;
  const auto consider = [&](const Hardware& hardware, const std::vector<std::string>& alias) {
    const std::size_t fitting = alias.empty() ? 0 : fit(words, alias);
    // Among equals the later one counts, which is the user's own row.
    if (fitting == 0 || fitting < best || is_laptop(words) != is_laptop(alias)) return;
    best = fitting;
    found = &hardware;
  };
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    if (leading_count(rows_[i].name)) {
      if (rows_[i].name == name) return &rows_[i];
      continue;
    }
    for (const std::vector<std::string>& spelling : spellings_[i]) consider(rows_[i], spelling);
  }
  return found;
}

bool HardwareTable::differ(std::string_view one, std::string_view other) const {
  const std::vector<std::string> a = words_of(one), b = words_of(other);
  if (a.empty() || b.empty() || fit(a, b) > 0 || fit(b, a) > 0) return false;
  const Hardware* const found = find(one);
  return !found || found != find(other);
}

namespace {

// The fastest training precision of a device.
void take_fastest(const Hardware& hardware, Peak& peak) {
  for (const Precision candidate : {Precision::bf16, Precision::fp16, Precision::tf32, Precision::fp32}) {
    const double tflops = hardware.peak_tflops[static_cast<std::size_t>(candidate)];
    if (is_missing(tflops) || (peak.known() && tflops <= peak.tflops)) continue;
    peak.tflops = tflops;
    peak.precision = candidate;
  }
  const double fp8 = hardware.peak_tflops[static_cast<std::size_t>(Precision::fp8)];
  peak.most_tflops = is_missing(fp8) ? peak.tflops : std::max(fp8, peak.tflops);
}

}  // namespace

Peak HardwareTable::peak(std::string_view hardware, std::string_view precision) const {
  Peak peak{.hardware = find(hardware), .devices = device_count(hardware)};
  if (!peak.hardware) return peak;
  if (leading_count(peak.hardware->name)) peak.devices = 1;
  const auto& peaks = peak.hardware->peak_tflops;
  peak.precision = precision_from(precision);
  if (peak.precision != Precision::unknown) peak.tflops = peaks[static_cast<std::size_t>(peak.precision)];
  peak.most_tflops = peak.tflops;
  const bool is_fp4 = lower_case(precision).find("fp4") != std::string::npos;
  if (peak.known() || (is_fp4 && !is_missing(peaks[static_cast<std::size_t>(Precision::fp8)]))) return peak;
  peak.assumed = true;
  take_fastest(*peak.hardware, peak);
  return peak;
}

Peak HardwareTable::fastest() const {
  Peak fastest{.assumed = true};
  for (const Hardware& each : rows_) {
    Peak peak{.hardware = &each};
    take_fastest(each, peak);
    if (peak.known() && !(peak.tflops <= fastest.tflops)) {
      fastest.tflops = peak.tflops;
      fastest.most_tflops = std::max(peak.most_tflops, is_missing(fastest.most_tflops) ? 0 : fastest.most_tflops);
      fastest.precision = peak.precision;
      fastest.hardware = &each;
    }
  }
  return fastest;
}

std::string with_row(std::string_view csv, const Hardware& row) {
  const std::string line = csv_line(row);
  std::vector<std::string> lines = split(csv, '\n');
  if (lines.back().empty()) lines.pop_back();
  std::erase_if(lines, [&](const std::string& old) { return old.starts_with(row.name + ","); });
  if (std::ranges::none_of(lines, [](const std::string& old) { return old.starts_with(hardware_columns); }))
    lines.emplace_back(hardware_columns);
  lines.push_back(line);
  std::string all;
  for (const std::string& each : lines) all += each + "\n";
  return all;
}

int device_count(std::string_view hardware) {
  return leading_count(hardware).value_or(1);
}

}  // namespace stepladder
