// Reads tables of steps with a header line: wide (a column for each metric) and long (a column that names the metric),
// with commas, semicolons or tabs.
#include <algorithm>
#include <cmath>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "storage/analysis/known_stage.h"
#include "storage/importers/importer.h"
#include "storage/importers/logs/early_end.h"
#include "storage/importers/logs/lines/line_end.h"
#include "storage/importers/logs/lines/line_prefix.h"
#include "storage/importers/logs/lines/text_lines.h"
#include "storage/importers/logs/run_assembler.h"
#include "storage/importers/table_header.h"
#include "storage/importers/text.h"
#include "storage/json_values.h"
#include "storage/name_pattern.h"

namespace stepladder {
namespace {

constexpr double least_unix_time = 1e9;  // seconds; a smaller number isn't a date of this century

bool is_split(std::string_view text) {
  return text.empty() || one_of(text, {"train", "training"}) || is_validation(text);
}

void assign(PrintedStep& step, Field field, double value) {
  if (field == Field::time && value > least_unix_time) field = Field::elapsed;
  if (double StepValues::*const into = value_of(field)) step.*into = value;
}

// Whether a header and a row with a number are among the first lines. Skips comments ("# ...") before them, unless the
// header is one, and rows of texts.
bool is_table(std::string_view bytes, const std::filesystem::path&) {
  TextDecoder decoder(bytes);
  std::string_view head = decoder.decode(bytes);
  TableHeader header;
  TrimmedFields splitter;
  bool has_rows = false;
  for (int lines = 0; lines < 20 && !head.empty();) {
    const std::size_t end = std::min(head.find_first_of("\r\n"), head.size());
    const std::string_view line = head.substr(0, end);
    head.remove_prefix(std::min(end + 1, head.size()));
    if (bare_cell(line).empty()) continue;
    ++lines;
    if (precedes_rows(line, header) || (header.useful && line.front() == '#')) continue;
    if (!header.useful) return false;
    const std::vector<std::string_view>& fields = splitter.split(line, header.separator);
    if (fields.size() != header.columns.size()) return false;
    NumberStyle style(header.separator);
    bool is_counted = true, has_numbers = false;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const int column = static_cast<int>(i);
      if (header.columns[i] == Field::none && column != header.value) continue;
      const bool counts = column == header.step || (header.step < 0 && column == header.epoch);
      const bool is_number = header.readers[i].read(fields[i], style).is_number;
      if (counts) is_counted = is_number;
      has_numbers |= !counts && is_number && !fields[i].empty();
    }
    if (is_counted && has_numbers) return true;
    has_rows = true;
  }
  return header.useful && head.empty() && !has_rows;
}

// Numbers the rows of a run. A column that counts in fractions, as one of epochs does, has no step numbers: then each
// of its values is a step. The first two values decide.
class StepNumbers {
 public:
  enum class Answer { step, renumbers_first, is_fraction };

  // `step` is the row's number. `renumbers_first`: the steps so far, which are one, have number 1.
  Answer number(double value, std::int64_t& step) {
    const bool is_whole = value == std::floor(value);
    Answer answer = Answer::step;
    if (numbers_.empty() && is_whole && (values_ == 0 || value == last_)) {
      values_ = 1;
    } else if (numbers_.empty() && is_whole) {
      values_ = 2;
    } else if (numbers_.empty()) {
      if (values_ > 1) return Answer::is_fraction;
      if (values_ == 1) answer = Answer::renumbers_first, numbers_[last_] = 1;
    }
    last_ = value;
    step = static_cast<std::int64_t>(value);
    if (is_whole && numbers_.empty()) return answer;
    step = numbers_.try_emplace(value, std::ssize(numbers_) + 1).first->second;
    return answer;
  }
  bool are_counted() const { return !numbers_.empty(); }

  // The number of a step that begins again with each epoch: those of the epochs before are added.
  std::int64_t add_epochs(std::int64_t step, double epoch) {
    constexpr std::int64_t most = 9'000'000'000'000'000;
    if (epoch > epoch_ && step < in_epoch_ && before_ < most - in_epoch_ - gap_) before_ += in_epoch_ + gap_ - step;
    if (in_epoch_ >= 0 && step > in_epoch_) gap_ = step - in_epoch_;
    in_epoch_ = step;
    epoch_ = epoch;
    return before_ + step;
  }

 private:
  double epoch_ = missing;
  std::int64_t in_epoch_ = -1, gap_ = 1, before_ = 0;
  int values_ = 0;  // different ones so far: 0, 1, or more
  double last_ = missing;
  std::map<double, std::int64_t> numbers_;  // of fractions; empty: the values are the numbers
};

class Table : public TextLines {
 public:
  // `checks_last`: a last row without an end that may be cut is left out with a note.
  Table(const ImportOptions& options, ImportSink& sink, bool checks_last)
      : TextLines(sink),
        options_(options),
        sink_(sink),
        checks_last_(checks_last),
        run_(options, sink),
        malformed_(sink, "lines are malformed and were skipped"),
        cells_(sink, "cells can't be read and were left out") {}

  void pass_held(ImportSink& sink) const override { run_.end_elsewhere(sink); }

 private:
  struct Gathered {
    std::string name, stage, rung;
    double last = missing;  // step as printed
    std::int64_t rows = 0;
    StepNumbers numbers;
    std::vector<PrintedStep> steps;
    std::map<std::int64_t, std::size_t> place;  // of a step, in a long table
    std::map<std::string, std::vector<MetricPoint>> others;
    StepLine labels;
    ConstantTexts texts;
  };

  void take_line(std::string_view line) override {
    if (!begun_ && precedes_rows(line, header_)) {
      header_line_ = number();
    } else if (!header_.useful) {
      return;
    } else if (checks_last_ && is_unended() && !known_rows_.empty() && !known_rows_.have_alike(line)) {
      sink_.note(number(), "the last line has no end and was left out: it may be cut");
    } else {
      take_row(line);
    }
  }

  void end() override {
    if (!header_.useful) throw ImportError("has no header that names a step and a loss or time");
    for (Gathered& each : gathered_) pass_on(each);
    if (lr_names_runs_ && lr_restarts_ > 0 && rows_with_lr_ > 2 * lr_restarts_ && !options_.live)
      throw ImportError(
          "begins its steps again wherever its learning rate changes, so it holds several runs; name them "
          "in a column called run");
    if (early_end_.found() && run_.progress().open) {
      run_.end_early(early_end_.status(), early_end_.reason());
      sink_.note(early_end_.line(), "behind the rows the file says \"" + early_end_.reason() + "\", so the run is " +
                                        std::string(to_string(early_end_.status())));
    }
    run_.end();
    report_ladder();
    malformed_.finish();
    cells_.finish();
    if (runs_ == 0)
      throw ImportError("has a header but no row with a step and a number" +
                        (first_fault_.empty() ? std::string() : ": " + first_fault_));
  }

  void take_row(std::string_view line) {
    if (bare_cell(line).empty() || line.front() == '#') return;
    fields_ = splitter_.split(line, header_.separator);
    if (fields_.size() == header_.columns.size() && !std::exchange(begun_, true)) begin_rows();
    if (fields_.size() != header_.columns.size()) {
      early_end_.read(line, number());
      note("has " + std::to_string(fields_.size()) + " fields instead of " + std::to_string(header_.columns.size()));
      return;
    }
    for (std::size_t i = 0; i < fields_.size(); ++i)
      if (header_.columns[i] != Field::none || static_cast<int>(i) == header_.value) style_.learn(fields_[i]);
    PrintedStep step;
    step.line = number();
    const std::string split =
        header_.split >= 0 && !header_.is_export ? lower_case(field(header_.split)) : std::string();
    validates_ = is_validation(split);
    step.tested = split == "test";
    const bool names_runs = header_.run >= 0 || !header_.parts.empty();
    Gathered* const gathered = !options_.live && (header_.is_long() || names_runs) ? &gathered_of_row() : nullptr;
    if (options_.live && names_runs) follow_run_of_row();
    if (!read_step_number(step, gathered)) return;
    early_end_.forget();
    if (checks_last_) known_rows_.keep(line);
    if (header_.is_long()) {
      take_metric(gathered, step);
      return;
    }
    bool measured = false;
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      if (header_.columns[i] == Field::none || static_cast<int>(i) == header_.step) continue;
      const CellNumber read = header_.readers[i].read(fields_[i], style_);
      if (!read.why.empty()) note_cell(static_cast<int>(i), header_.names[i], read.why);
      if (is_missing(read.value)) continue;
      const Field into = field_in_row(header_.columns[i]);
      if (into == Field::rank) take_rank(step, read.value);
      measured |= into != Field::epoch && into != Field::rank && into != Field::none;
      assign(step, into, read.value);
    }
    const bool logs = step.rank <= lowest_rank_ && has_others();
    if (!measured && !logs) return;
    if (gathered) {
      gathered->steps.push_back(step);
      for_texts([&](std::size_t i) { gathered->texts.add(header_.names[i], fields_[i]); });
      for_others([&](std::size_t i, const CellNumber& read) {
        if (!is_missing(read.value))
          gathered->others[name_in_row(header_.names[i])].push_back({step.step, read.value, step.at});
      });
    } else {
      if (!run_.progress().open) begin(followed_, labels(), numbers_.are_counted());
      check_lr(step);
      for_texts([&](std::size_t i) { run_.log_text(header_.names[i], fields_[i]); });
      run_.add(step);
      for_others([&](std::size_t i, const CellNumber& read) {
        if (!is_missing(read.value))
          run_.log(name_in_row(header_.names[i]), header_.readers[i].unit(), {step.step, read.value, step.at});
      });
    }
  }

  // Steps that begin again wherever the learning rate changes, and else have one rate, are those of a sweep.
  void check_lr(const PrintedStep& step) {
    if (is_missing(step.lr)) return;
    const bool begins = step.step <= last_step_;
    lr_restarts_ += begins;
    lr_names_runs_ &= rows_with_lr_ == 0 || begins == (step.lr != lr_);
    ++rows_with_lr_;
    lr_ = step.lr;
    last_step_ = step.step;
  }

  // A column of stages may name the data of each row instead.
  void begin_rows() {
    note_header();
    style_ = NumberStyle(header_.separator);
    // "2026-05-01T10:00:02" in a column that is called a time.
    for (std::size_t i = 0; i < fields_.size() && header_.at < 0; ++i) {
      Field& column = header_.columns[i];
      if ((column != Field::time && column != Field::elapsed) || is_missing(stamp_.read(fields_[i]))) continue;
      header_.at = static_cast<int>(i);
      column = Field::none;
      header_.readers[i].forget_meaning();
    }
    const bool has_splits = header_.stage >= 0 && is_split(lower_case(field(header_.stage)));
    if (header_.split == header_.stage && !has_splits) header_.split = -1;
    std::erase_if(header_.parts, [&](int part) {
      return header_.is_export || (header_.is_long() && part == header_.metric) ||
             (part == header_.stage && has_splits);
    });
  }

  struct RunOfRow {
    std::string run, key;  // by its column; by all that names it
    double step = missing;
  };
  RunOfRow run_of_row() const {
    RunOfRow row{.run = std::string(header_.run >= 0 ? field(header_.run) : std::string_view())};
    row.key = row.run + '\0';
    for (const int part : header_.parts) row.key += std::string(field(part)) + '\0';
    const int column = header_.step >= 0 ? header_.step : header_.epoch;
    if (column >= 0) row.step = read_cell(field(column), style_, Counts::whole).value;
    return row;
  }

  // A table that grows has its runs one behind another: what has been passed on can't be gathered.
  void follow_run_of_row() {
    const RunOfRow row = run_of_row();
    const bool is_other = row.key != followed_key_;
    const auto [place, is_new] = places_.try_emplace(row.key, 0);
    const bool begins = is_other && (places_.size() == 1 || !(row.step > followed_step_) || row.run != followed_run_);
    followed_step_ = row.step;
    followed_key_ = row.key;
    followed_run_ = row.run;
    if (!begins) return;
    if (!is_new) throw ImportError("holds the rows of several runs in turn; import it once it is whole");
    if (places_.size() > most_runs_of_input) throw_too_many();
    run_.end();
    numbers_ = {};
    rows_ = 0;
    Gathered named;
    if (header_.run >= 0 || places_.size() > 1) name_run(named, row.run);
    followed_.name = named.name;
    followed_.stage = named.stage;
  }

  [[noreturn]] void throw_too_many() const {
    throw ImportError("names more than 50,000 runs in its column '" + name_of_change() +
                      "'; is that a column of values?");
  }

  // The run that the row names. Where its steps only go on, the row is of the run above it.
  Gathered& gathered_of_row() {
    auto [run, key, step] = run_of_row();
    const auto [place, is_new] = places_.try_emplace(std::move(key), gathered_.size());
    if (is_new) {
      const auto [last, is_first] = last_places_.try_emplace(run, gathered_.size());
      if (Gathered* above = is_first ? nullptr : &gathered_[last->second]; above && step > above->last) {
        place->second = last->second;
        above->name = above->stage = above->rung = {};
        if (!std::exchange(phases_noted_, true))
          sink_.note(number(),
                     "the column " + name_of_change() + " changes while the steps go on, so it names no run here");
      } else {
        last->second = place->second;
        name_run(gathered_.emplace_back(), run);
      }
      if (gathered_.size() > most_runs_of_input) throw_too_many();
    }
    Gathered& gathered = gathered_[place->second];
    if (!(step <= gathered.last)) gathered.last = step;
    return gathered;
  }

  std::string name_of_change() const {
    return header_.names[static_cast<std::size_t>(header_.run >= 0 ? header_.run : header_.parts.front())];
  }

  void name_run(Gathered& gathered, const std::string& run) const {
    if (header_.name >= 0 && !(header_.is_long() && header_.name == header_.metric))
      gathered.name = splitter_.text(header_.name);
    if (header_.stage >= 0 && header_.split != header_.stage) gathered.stage = splitter_.text(header_.stage);
    if (header_.rung >= 0) gathered.rung = field(header_.rung);
    if (header_.run >= 0) {
      if (gathered.name.empty() && gathered.stage.empty()) gathered.stage = run;
      return;
    }
    std::string name;
    for (const int part : header_.parts) {
      if (part == header_.rung && header_.parts.size() > 1) continue;
      const bool is_number = read_cell(field(part), style_, Counts::whole).is_number;
      name += (name.empty() ? "" : ", ") + (is_number ? header_.names[static_cast<std::size_t>(part)] + " " : "") +
              splitter_.text(part);
    }
    if (gathered.stage.empty()) gathered.stage = name;
    if (gathered.stage != name) gathered.name = name;
  }

  // A row of a validation split has no values of a training step.
  Field field_in_row(Field field) const {
    if (!validates_ || field == Field::rank) return field;
    return field == Field::loss || field == Field::val_loss ? Field::val_loss : Field::none;
  }
  std::string name_in_row(const std::string& name) const { return validates_ ? "val_" + name : name; }

  // Of several processes that write the same step, the row of the lowest rank counts.
  void take_rank(PrintedStep& step, double value) {
    if (!(value >= 0) || value > 1e5 || value != std::floor(value)) return;
    step.rank = static_cast<std::int64_t>(value);
    if (lowest_rank_ >= 0 && step.rank != lowest_rank_ && !std::exchange(ranks_noted_, true))
      sink_.note(number(), "the table names several ranks; of the rows of one step, the lowest rank's counts");
    lowest_rank_ = lowest_rank_ < 0 ? step.rank : std::min(lowest_rank_, step.rank);
  }

  void note_header() {
    if (!header_.twice.empty())
      sink_.note(header_line_, "two columns are named " + header_.twice + "; only the first is read");
    if (header_.step < 0 && header_.batch >= 0 && header_.epoch >= 0)
      sink_.note(header_line_, "the column " + header_.names[static_cast<std::size_t>(header_.batch)] +
                                   " counts within epochs of unknown length, so each row is a step here");
    else if (step_column() < 0)
      sink_.note(header_line_, "no column counts steps, so each row is a step here");
  }

  // The numbers of the line in columns that no step has a field for. A column is skipped from its first text on.
  template <class Use>
  void for_others(Use use) {
    is_text_.resize(fields_.size());
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      if (is_text_[i] || header_.columns[i] != Field::none || header_.names[i].empty() || header_.counts(i)) continue;
      const CellNumber read = header_.readers[i].read(fields_[i], style_);
      is_text_[i] = !read.is_number;
      if (read.is_number) use(i, read);
    }
  }
  // The texts of the line, in columns that for_others has found to hold such.
  template <class Use>
  void for_texts(Use use) const {
    for (std::size_t i = 0; i < fields_.size(); ++i)
      if (is_text_[i] && !fields_[i].empty()) use(i);
  }
  bool has_others() {
    bool any = false;
    for_others([&](std::size_t i, const CellNumber& read) {
      any |= !is_missing(read.value);
      if (!read.why.empty()) note_cell(static_cast<int>(i), header_.names[i], read.why);
    });
    return any;
  }

  StepNumbers& numbers_of(Gathered* gathered) { return gathered ? gathered->numbers : numbers_; }

  // `gathered`: of the row's run; null: there is one run, which isn't gathered.
  bool number_step(double value, Gathered* gathered, PrintedStep& step) {
    StepNumbers& numbers = numbers_of(gathered);
    const bool were_counted = numbers.are_counted();
    switch (numbers.number(value, step.step)) {
      case StepNumbers::Answer::is_fraction:
        note("has the step " + std::string(field(step_column())) + ", a fraction, after whole steps");
        return false;
      case StepNumbers::Answer::renumbers_first:
        if (gathered)
          renumber_first(*gathered);
        else if (run_.progress().open)
          run_.count_parts_of_epochs(), run_.renumber_first(1);
        break;
      case StepNumbers::Answer::step:
        break;
    }
    if (numbers.are_counted() && !were_counted && !std::exchange(counting_noted_, true))
      sink_.note(number(), "the column " + header_.names[static_cast<std::size_t>(step_column())] +
                               " counts in fractions (" + std::string(field(step_column())) +
                               "), so its values were numbered: each is a step here");
    return true;
  }
  static void renumber_first(Gathered& gathered) {
    for (PrintedStep& step : gathered.steps) step.step = 1;
    for (auto& [name, points] : gathered.others)
      for (MetricPoint& point : points) point.step = 1;
    if (!gathered.place.empty()) gathered.place = {{1, 0}};
  }

  int step_column() const {
    const bool within_epochs = header_.batch >= 0 && header_.epoch >= 0;  // then the rows count
    return header_.step >= 0 || within_epochs ? header_.step : header_.epoch;
  }

  bool read_step_number(PrintedStep& step, Gathered* gathered) {
    const int column = step_column();
    if (column < 0) {
      step.step = ++(gathered ? gathered->rows : rows_);
      return true;
    }
    const auto place = static_cast<std::size_t>(column);
    const CellNumber read = header_.readers[place].read(field(column), style_);
    if (is_missing(read.value) || !(read.value >= 0) || read.value > 9e15) {
      note("has no step number" + (field(column).empty()
                                       ? std::string()
                                       : ", but " + quoted(column) + " in the column " + header_.names[place]));
      return false;
    }
    if (!number_step(read.value, gathered, step)) return false;
    if (header_.step >= 0 && header_.epoch >= 0 && !numbers_of(gathered).are_counted()) {
      const std::int64_t printed = step.step;
      step.step =
          numbers_of(gathered).add_epochs(printed, read_cell(field(header_.epoch), style_, Counts::other).value);
      if (step.step != printed && !std::exchange(epochs_noted_, true))
        sink_.note(number(), "the column " + header_.names[place] +
                                 " begins again with each epoch, so the steps of the epochs before are added");
    }
    if (header_.at >= 0) {
      const CellNumber at = read_cell(field(header_.at), style_, Counts::other);
      if (!at.why.empty() || !at.unit.empty() || at.is_clock)
        step.at = stamp_.read(field(header_.at));
      else if (at.value > least_unix_time)
        step.at = at.value > 1e11 ? at.value / 1000 : at.value;
    }
    return true;
  }

  void take_metric(Gathered* gathered, const PrintedStep& at) {
    const std::string_view name = field(header_.metric);
    auto known = metrics_.find(name);
    if (known == metrics_.end()) {
      if (metrics_.size() >= most_logged_metrics) metrics_.clear();  // other runs have other names
      known = metrics_.emplace(name, TableColumn(name)).first;
    }
    if (known->second.meaning().field == Field::step) return;
    const CellNumber read = known->second.read(field(header_.value), style_);
    if (!read.why.empty()) return note_cell(header_.value, name, read.why);
    const Meaning& meaning = known->second.meaning();
    if (!gathered) return follow_metric(at, meaning, name, read.value);
    if (meaning.field == Field::none && gathered->others.size() >= most_logged_metrics &&
        !gathered->others.contains(std::string(name)))
      throw ImportError("names more than 10,000 metrics in its column '" +
                        header_.names[static_cast<std::size_t>(header_.metric)] + "'; is that a column of values?");
    if (meaning.field == Field::none) {
      if (!is_missing(read.value))
        gathered->others[name_in_row(std::string(name))].push_back({at.step, read.value, at.at});
      return;
    }
    const Field into = field_in_row(meaning.field);
    if (into == Field::none) return;
    const auto [place, is_new] = gathered->place.try_emplace(at.step, gathered->steps.size());
    if (is_new) gathered->steps.push_back(at);
    PrintedStep& step = gathered->steps[place->second];
    if (at.tested && !is_missing(step.val_loss)) return;
    assign(step, into, read.value);
    label(gathered->labels, meaning, name, read.value);
  }

  // The rows of a step are one behind another in a table that grows.
  void follow_metric(PrintedStep step, const Meaning& meaning, std::string_view name, double value) {
    if (is_missing(value)) return;
    if (!run_.progress().open) begin(followed_, {}, numbers_.are_counted());
    if (meaning.field == Field::none) return run_.log(name_in_row(std::string(name)), {}, {step.step, value, step.at});
    const Field into = field_in_row(meaning.field);
    if (into == Field::none) return;
    assign(step, into, value);
    StepLine labels;
    label(labels, meaning, name, value);
    run_.label(labels);
    run_.add(step);
  }

  static void label(StepLine& labels, const Meaning& meaning, std::string_view name, double value) {
    if (meaning.field == Field::time) labels.time = value, labels.time_unit = meaning.unit;
    if (meaning.field == Field::elapsed) labels.elapsed = value, labels.elapsed_unit = meaning.unit;
    if (meaning.field == Field::throughput) {
      labels.throughput = value;
      labels.rate = meaning.rate;
      labels.per_device = meaning.per_device;
      labels.rate_text = name;
    }
  }

  StepLine labels() const {
    StepLine labels;
    for (std::size_t i = 0; i < header_.columns.size(); ++i)
      if (header_.columns[i] != Field::none) label(labels, header_.readers[i].meaning(), header_.names[i], 0);
    return labels;
  }

  // `run` has a name, a stage, both or neither.
  void begin(Run run, const StepLine& labels, bool are_counted) {
    if (run.stage.empty()) run.stage = run.name;
    run.title = run.stage;
    run_.begin({.run = std::move(run),
                .facts = {},
                .family = "csv",
                .step_is_epoch = !are_counted && header_.step < 0 && header_.epoch >= 0 && header_.batch < 0});
    run_.label(labels);
    ++runs_;
  }

  void pass_on(Gathered& gathered) {
    if (gathered.steps.empty() && gathered.others.empty()) return;
    Run run;
    if (header_.run >= 0 || gathered_.size() > 1) {
      run.name = gathered.name;
      run.stage = gathered.stage;
      rungs_.push_back(header_.rung >= 0 ? gathered.rung : gathered.stage);
    }
    begin(std::move(run), header_.is_long() ? gathered.labels : labels(), gathered.numbers.are_counted());
    if (!gathered.place.empty()) std::ranges::stable_sort(gathered.steps, {}, &PrintedStep::step);
    for (const PrintedStep& step : gathered.steps) run_.add(step);
    for (const auto& [name, points] : gathered.others)
      for (const MetricPoint& point : points) run_.log(name, {}, point);
    gathered.texts.for_each([&](const std::string& name, const std::string& text) { run_.log_text(name, text); });
    if (header_.is_export) run_.end_early(RunStatus::finished, "from an export: its clock and machine are unknown");
    gathered = {};
  }

  // Runs whose rungs the table numbers, or whose names are those of stages, are a ladder.
  void report_ladder() {
    const auto is_known = [&](const std::string& stage) {
      Run run;
      run.stage = run.title = stage;
      return options_.known_stages && !known_stage(run, *options_.known_stages).empty();
    };
    if (header_.run >= 0 || rungs_.size() < 2) return;
    if (header_.rung < 0 && (header_.stage < 0 || !std::ranges::all_of(rungs_, is_known))) return;
    std::vector<std::string> order;
    for (const std::string& rung : rungs_)
      if (std::ranges::find(order, rung) == order.end()) order.push_back(rung);
    if (header_.rung >= 0) std::ranges::sort(order, value_before);
    std::vector<int> rungs;
    for (const std::string& rung : rungs_)
      rungs.push_back(static_cast<int>(std::ranges::find(order, rung) - order.begin()));
    sink_.ladder({}, rungs);
  }

  std::string_view field(int column) const { return fields_[static_cast<std::size_t>(column)]; }
  std::string quoted(int column) const { return "'" + std::string(field(column).substr(0, 40)) + "'"; }

  void note(const std::string& what) {
    if (first_fault_.empty()) first_fault_ = "line " + std::to_string(number()) + " " + what;
    malformed_.note(number(), "skipped: the line " + what);
  }
  void note_cell(int cell, std::string_view column, const std::string& why) {
    const std::string what = quoted(cell) + " in the column " + std::string(column) + " " + why;
    if (first_fault_.empty()) first_fault_ = "line " + std::to_string(number()) + ": " + what;
    cells_.note(number(), "left out: " + what);
  }

  const ImportOptions& options_;
  ImportSink& sink_;
  const bool checks_last_;
  KnownEnds known_rows_{32};
  EarlyEnd early_end_;
  StepNumbers numbers_;  // unless the runs are gathered
  bool counting_noted_ = false;
  RunAssembler run_;
  CappedNotes malformed_, cells_;
  std::string first_fault_;  // a line or cell that can't be read
  NumberStyle style_;
  TableHeader header_;
  TimeStamp stamp_;
  TrimmedFields splitter_;
  std::span<const std::string_view> fields_;  // of the line
  Run followed_;                              // names of the newest run of a table that grows
  std::string followed_key_, followed_run_;
  double followed_step_ = missing;
  std::int64_t last_step_ = -1, lr_restarts_ = 0, rows_with_lr_ = 0;
  double lr_ = missing;
  bool lr_names_runs_ = true;
  std::deque<Gathered> gathered_;                   // runs, if a column names them
  std::map<std::string, std::size_t> places_;       // in it, by what names a run
  std::map<std::string, std::size_t> last_places_;  // of the newest, by the column `run`
  std::vector<std::string> rungs_;                  // of the runs passed on
  std::map<std::string, TableColumn, std::less<>> metrics_;
  std::vector<bool> is_text_;  // by column
  std::int64_t rows_ = 0, header_line_ = 0;
  bool begun_ = false, phases_noted_ = false, epochs_noted_ = false;
  bool validates_ = false;  // the row's split
  std::int64_t lowest_rank_ = -1;
  bool ranks_noted_ = false;
  int runs_ = 0;
};

}  // namespace

Importer importers::csv() {
  return {.id = "csv",
          .title = "A table of steps with a header line",
          .recognises = is_table,
          .reader = [](const auto& path, const ImportOptions& options, ImportSink& sink) {
            return std::make_unique<Table>(options, sink, !path.empty() && !options.live);
          }};
}

}  // namespace stepladder
