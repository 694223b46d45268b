// Reads tables of steps with a header line: wide (a column for each metric) and long (a column that names the metric),
// with commas, semicolons or tabs.
#include "storage/csv.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "storage/importers/importer.h"
#include "storage/importers/logs/lines/line_prefix.h"
#include "storage/importers/logs/lines/pair_meaning.h"
#include "storage/importers/logs/lines/text_lines.h"
#include "storage/importers/logs/run_assembler.h"
#include "storage/json_values.h"

namespace stepladder {
namespace {

constexpr double least_unix_time = 1e9;  // seconds; a smaller number isn't a date of this century

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\"'#");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\"'") - first + 1);
}

// The fields of a line, without blanks, quotes and comment marks around them.
class TrimmedFields {
 public:
  const std::vector<std::string_view>& split(std::string_view line, char separator) {
    fields_.clear();
    untrimmed_ = &splitter_.split(line, separator);
    for (const std::string_view field : *untrimmed_) fields_.push_back(trimmed(field));
    return fields_;
  }

  // A field of the last line as its writer meant it, for names.
  std::string text(int column) const {
    return std::string(unguard_formula((*untrimmed_)[static_cast<std::size_t>(column)]));
  }

 private:
  const std::vector<std::string_view>* untrimmed_ = nullptr;
  CsvFields splitter_;
  std::vector<std::string_view> fields_;
};

// Missing for an empty field, nothing for one that isn't a number.
std::optional<double> number_in(std::string_view field, bool decimal_comma) {
  if (field.empty() || field == "None" || field == "null" || field == "NA" || field == "-") return missing;
  std::array<char, 64> buffer;
  if (field.size() >= buffer.size()) return std::nullopt;
  std::copy(field.begin(), field.end(), buffer.begin());
  if (decimal_comma) std::replace(buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(field.size()), ',', '.');
  const char* const end = buffer.data() + field.size();
  double value = 0;
  const auto [stop, error] = std::from_chars(buffer.data() + (field.front() == '+' ? 1 : 0), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

struct Header {
  char separator = ',';
  std::vector<Field> columns;  // `none` for a column that isn't used
  std::vector<Meaning> meanings;
  std::vector<std::string> names;
  int step = -1, epoch = -1, batch = -1, run = -1, name = -1, stage = -1, metric = -1, value = -1, at = -1;
  bool useful = false;

  // Whether a column names what a row belongs to, instead of measuring something.
  bool counts(std::size_t i) const {
    const int column = static_cast<int>(i);
    return column == step || column == epoch || column == batch || column == run || column == name || column == stage ||
           column == metric || column == value || column == at;
  }
};

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, name) != words.end();
}

// The meaning of a column's name; the scanner of log lines reads it as "name = 0".
Meaning meaning_of_name(std::string_view name) {
  const std::string assigned = std::string(name) + " = 0";
  PairScanner scanner(assigned);
  Pair pair, last;
  while (scanner.next(pair)) last = pair;
  return meaning_of(last);
}

Header read_header(std::string_view line) {
  Header header;
  if (line.size() > 16384) return header;
  std::size_t most = 0;
  for (const char separator : {',', ';', '\t'}) {
    const auto count = static_cast<std::size_t>(std::ranges::count(line, separator));
    if (count <= most) continue;
    most = count;
    header.separator = separator;
  }
  if (most == 0) return header;
  TrimmedFields splitter;
  const std::vector<std::string_view>& fields = splitter.split(line, header.separator);
  std::array<int, field_count> best;
  best.fill(99);
  std::array<int, field_count> holder;
  holder.fill(-1);
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::string_view name = fields[i];
    const int column = static_cast<int>(i);
    if (name.size() > 80 || name.find_first_of("=:{}") != std::string_view::npos ||
        number_in(name, false).value_or(missing) == 0)
      return {};
    if (!name.empty() && number_in(name, false).has_value()) return {};
    header.columns.push_back(Field::none);
    header.meanings.emplace_back();
    header.names.emplace_back(name);
    std::string lower(name);
    for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    if (lower == "name") header.name = column;
    if (lower == "stage") header.stage = column;
    if (is_one_of(lower, {"run", "run_id", "run_name", "experiment", "run_uuid"})) {
      header.run = column;
    } else if (is_one_of(lower, {"metric", "key", "tag", "metric_name", "variable", "name"})) {
      header.metric = column;
    } else if (lower == "value") {
      header.value = column;
    } else if (is_one_of(lower, {"timestamp", "_timestamp", "wall_time", "wall time", "at", "date", "datetime",
                                 "at_unix_s"})) {
      header.at = column;
    } else if (is_one_of(lower, {"ladder_id", "rung", "repeat"})) {  // of a table that `export` wrote
      header.names.back().clear();
    } else {
      const Meaning meaning = meaning_of_name(name);
      const auto field = static_cast<std::size_t>(meaning.field);
      if (meaning.field == Field::none || meaning.rank >= best[field]) continue;
      if (holder[field] >= 0) header.columns[static_cast<std::size_t>(holder[field])] = Field::none;
      best[field] = meaning.rank;
      holder[field] = column;
      header.columns.back() = meaning.field;
      header.meanings.back() = meaning;
    }
  }
  header.step = holder[static_cast<std::size_t>(Field::step)];
  header.epoch = holder[static_cast<std::size_t>(Field::epoch)];
  header.batch = holder[static_cast<std::size_t>(Field::batch)];
  const auto has = [&](Field field) { return holder[static_cast<std::size_t>(field)] >= 0; };
  const bool is_long = header.metric >= 0 && header.value >= 0;
  const bool counted = header.step >= 0 || header.epoch >= 0;
  const bool measured = has(Field::loss) || has(Field::val_loss) || has(Field::time) || has(Field::elapsed) ||
                        (has(Field::throughput) && counted);
  header.useful = is_long ? counted : measured && (counted || fields.size() > 1);
  return header;
}

void assign(PrintedStep& step, Field field, double value, double scale) {
  if (field == Field::time && value > least_unix_time) field = Field::elapsed;
  if (field == Field::throughput || field == Field::tokens) value *= scale;
  if (double StepValues::*const into = value_of(field)) step.*into = value;
}

// Whether the first two lines are a header and a row. Skips comments ("# ...") before them, unless the header is one.
bool is_table(std::string_view head, const std::filesystem::path&) {
  if (head.starts_with("\xEF\xBB\xBF")) head.remove_prefix(3);
  Header header;
  TrimmedFields splitter;
  for (int lines = 0; lines < 20 && !head.empty();) {
    const std::size_t end = std::min(head.find_first_of("\r\n"), head.size());
    const std::string_view line = head.substr(0, end);
    head.remove_prefix(std::min(end + 1, head.size()));
    if (trimmed(line).empty()) continue;
    ++lines;
    if (!header.useful) {
      header = read_header(line);
      if (!header.useful && line.front() != '#') return false;
      continue;
    }
    const std::vector<std::string_view>& fields = splitter.split(line, header.separator);
    if (fields.size() != header.columns.size()) return false;
    bool numbers = false;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (header.columns[i] == Field::none && static_cast<int>(i) != header.value) continue;
      const auto value = number_in(fields[i], header.separator == ';');
      if (!value) return false;
      numbers |= !is_missing(*value);
    }
    return numbers;
  }
  return header.useful && head.empty();
}

// Columns that aren't read as steps and have one value in all rows: they describe the run.
class ConstantColumns {
 public:
  void take(const Header& header, std::span<const std::string_view> fields) {
    if (++rows_ == 1) values_.assign(fields.size(), {});
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (fields[i].empty() || varies(i) || !may_describe(header, i)) continue;
      if (fields[i].size() > longest_value || (!values_[i].empty() && values_[i] != fields[i])) {
        values_[i] = " ";
      } else if (values_[i].empty()) {
        values_[i] = fields[i];
      }
    }
  }
  // One row shows nothing to be constant.
  void describe(const Header& header, RunAssembler& run) const {
    for (std::size_t i = 0; rows_ > 1 && i < values_.size(); ++i) {
      if (values_[i].empty() || varies(i)) continue;
      const auto number = number_in(values_[i], header.separator == ';');
      if (number && is_missing(*number)) continue;
      const nlohmann::json json = !number ? nlohmann::json(values_[i])
                                  : *number == std::floor(*number) && std::fabs(*number) < 1e15
                                      ? nlohmann::json(static_cast<std::int64_t>(*number))
                                      : nlohmann::json(*number);
      run.remember(header.names[i], json_text(json));
    }
  }

 private:
  static constexpr std::size_t longest_value = 120;

  bool varies(std::size_t i) const { return values_[i] == " "; }  // no field has blanks around it
  static bool may_describe(const Header& header, std::size_t i) {
    if (header.counts(i)) return false;
    const Field field = header.columns[i];
    return !header.names[i].empty() && (field == Field::none || field == Field::lr || field == Field::batch_size);
  }

  std::int64_t rows_ = 0;
  std::vector<std::string> values_;
};

class Table : public TextLines {
 public:
  Table(const ImportOptions& options, ImportSink& sink)
      : TextLines(sink), run_(options, sink), malformed_(sink, "lines are malformed and were skipped") {}

  void pass_held(ImportSink& sink) const override { run_.end_elsewhere(sink); }

 private:
  struct Gathered {
    std::string name, stage;
    std::vector<PrintedStep> steps;
    std::map<std::int64_t, std::size_t> place;  // of a step, in a long table
    std::map<std::string, std::vector<MetricPoint>> others;
    StepLine labels;
    ConstantColumns constants;
  };

  void take_line(std::string_view line) override {
    if (header_.useful)
      take_row(line);
    else
      header_ = read_header(line);
  }

  void end() override {
    if (!header_.useful) throw ImportError("has no header that names a step and a loss or time");
    for (auto& [name, steps] : gathered_) pass_on(name, steps);
    if (gathered_.empty() && run_.progress().open) constants_.describe(header_, run_);
    run_.end();
    malformed_.finish();
    if (runs_ == 0) throw ImportError("has a header but no row with a step");
  }

  void take_row(std::string_view line) {
    if (trimmed(line).empty() || line.front() == '#') return;
    fields_ = splitter_.split(line, header_.separator);
    if (fields_.size() != header_.columns.size()) {
      note("has " + std::to_string(fields_.size()) + " fields instead of " + std::to_string(header_.columns.size()));
      return;
    }
    PrintedStep step;
    step.line = number();
    if (!read_step_number(step)) return;
    const bool is_long = header_.metric >= 0 && header_.value >= 0;
    const std::string run(header_.run >= 0 ? field(header_.run) : std::string_view());
    if (is_long) {
      take_metric(run, step);
      return;
    }
    bool measured = false;
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      if (header_.columns[i] == Field::none || static_cast<int>(i) == header_.step) continue;
      const auto value = number_of(static_cast<int>(i));
      if (!value) {
        note("'" + std::string(fields_[i].substr(0, 40)) + "' is not a number");
        return;
      }
      if (is_missing(*value)) continue;
      measured |= header_.columns[i] != Field::epoch;
      assign(step, header_.columns[i], *value, header_.meanings[i].scale);
    }
    const bool logs = has_others();
    if (!measured && !logs) return;
    if (header_.run >= 0) {
      Gathered& gathered = gathered_[run];
      if (gathered.steps.empty() && header_.name >= 0) gathered.name = splitter_.text(header_.name);
      if (gathered.steps.empty() && header_.stage >= 0) gathered.stage = splitter_.text(header_.stage);
      gathered.steps.push_back(step);
      gathered.constants.take(header_, fields_);
      for_others([&](std::size_t i, double value) {
        gathered.others[header_.names[i]].push_back({step.step, value, step.at});
      });
    } else {
      if (!run_.progress().open) begin({}, labels());
      constants_.take(header_, fields_);
      run_.add(step);
      for_others([&](std::size_t i, double value) { run_.log(header_.names[i], {}, {step.step, value, step.at}); });
    }
  }

  // The numbers of the line in columns that no step has a field for. A column is skipped from its first text on.
  template <class Use>
  void for_others(Use use) {
    is_text_.resize(fields_.size());
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      if (is_text_[i] || header_.columns[i] != Field::none || header_.names[i].empty() || header_.counts(i)) continue;
      const auto value = number_of(static_cast<int>(i));
      is_text_[i] = !value;
      if (value && !is_missing(*value)) use(i, *value);
    }
  }
  bool has_others() {
    bool any = false;
    for_others([&](auto...) { any = true; });
    return any;
  }

  bool read_step_number(PrintedStep& step) {
    const bool within_epochs = header_.batch >= 0 && header_.epoch >= 0;  // then the rows count
    const int column = header_.step >= 0 || within_epochs ? header_.step : header_.epoch;
    if (column < 0) {
      step.step = ++rows_;
      return true;
    }
    const auto value = number_of(column);
    if (!value || is_missing(*value) || !(*value >= 0) || *value > 9e15) {
      note("has no step number");
      return false;
    }
    step.step = static_cast<std::int64_t>(*value);
    if (header_.at >= 0) {
      if (const auto at = number_of(header_.at); !at)
        step.at = stamp_.read(field(header_.at));
      else if (*at > least_unix_time)
        step.at = *at > 1e11 ? *at / 1000 : *at;
    }
    return true;
  }

  void take_metric(const std::string& run, const PrintedStep& at) {
    const std::string_view name = field(header_.metric);
    auto known = metrics_.find(name);
    if (known == metrics_.end()) known = metrics_.emplace(name, meaning_of_name(name)).first;
    const Meaning& meaning = known->second;
    if (meaning.field == Field::step) return;
    const auto value = number_of(header_.value);
    if (!value) {
      note("'" + std::string(field(header_.value).substr(0, 40)) + "' is not a number");
      return;
    }
    Gathered& gathered = gathered_[run];
    if (meaning.field == Field::none) {
      if (!is_missing(*value)) gathered.others[std::string(name)].push_back({at.step, *value, at.at});
      return;
    }
    const auto [place, is_new] = gathered.place.try_emplace(at.step, gathered.steps.size());
    if (is_new) gathered.steps.push_back(at);
    assign(gathered.steps[place->second], meaning.field, *value, meaning.scale);
    label(gathered.labels, meaning, name, *value);
  }

  static void label(StepLine& labels, const Meaning& meaning, std::string_view name, double value) {
    if (meaning.field == Field::time) labels.time = value, labels.time_unit = meaning.unit;
    if (meaning.field == Field::elapsed) labels.elapsed = value, labels.elapsed_unit = meaning.unit;
    if (meaning.field == Field::throughput) {
      labels.throughput = value;
      labels.rate = meaning.rate;
      labels.rate_text = name;
    }
  }

  StepLine labels() const {
    StepLine labels;
    for (std::size_t i = 0; i < header_.columns.size(); ++i)
      if (header_.columns[i] != Field::none) label(labels, header_.meanings[i], header_.names[i], 0);
    return labels;
  }

  // `run` has a name, a stage, both or neither.
  void begin(Run run, const StepLine& labels) {
    if (run.stage.empty()) run.stage = run.name;
    run.title = run.stage;
    run_.begin({.run = std::move(run),
                .facts = {},
                .family = "csv",
                .step_is_epoch = header_.step < 0 && header_.epoch >= 0 && header_.batch < 0});
    run_.label(labels);
    ++runs_;
  }

  // `key` is the field that distinguishes the runs: in Stepladder's own tables a number, beside a name.
  void pass_on(const std::string& key, Gathered& gathered) {
    const bool has_own_name = !gathered.name.empty() || !gathered.stage.empty();
    Run run;
    run.name = gathered.name;
    run.stage = has_own_name ? gathered.stage : key;
    begin(std::move(run), header_.metric >= 0 && header_.value >= 0 ? gathered.labels : labels());
    if (!gathered.place.empty()) std::ranges::stable_sort(gathered.steps, {}, &PrintedStep::step);
    for (const PrintedStep& step : gathered.steps) run_.add(step);
    for (const auto& [name, points] : gathered.others)
      for (const MetricPoint& point : points) run_.log(name, {}, point);
    gathered.constants.describe(header_, run_);
    gathered = {};
  }

  std::string_view field(int column) const { return fields_[static_cast<std::size_t>(column)]; }
  std::optional<double> number_of(int column) const { return number_in(field(column), header_.separator == ';'); }

  void note(const std::string& what) { malformed_.note(number(), "skipped: the line " + what); }

  RunAssembler run_;
  CappedNotes malformed_;
  Header header_;
  TimeStamp stamp_;
  TrimmedFields splitter_;
  std::span<const std::string_view> fields_;  // of the line
  ConstantColumns constants_;
  std::map<std::string, Gathered> gathered_;  // by run, if a column names it
  std::map<std::string, Meaning, std::less<>> metrics_;
  std::vector<bool> is_text_;  // by column
  std::int64_t rows_ = 0;
  int runs_ = 0;
};

}  // namespace

Importer importers::csv() {
  return {.id = "csv",
          .title = "A table of steps with a header line",
          .recognises = is_table,
          .reader = [](const auto&, const ImportOptions& options, ImportSink& sink) {
            return std::make_unique<Table>(options, sink);
          }};
}

}  // namespace stepladder
