// Reads tables that trackers' web pages export: W&B's panels ("Step","run - loss","run - loss__MIN", ...: one metric or
// several of several runs) and TensorBoard's scalars ("Wall time,Step,Value": one metric, named by the file only).
#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "storage/csv.h"
#include "storage/importers/logs/lines/text_lines.h"
#include "storage/importers/trackers/foreign_run.h"
#include "storage/wording.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t longest_header = 1 << 20;
constexpr std::string_view tensorboard_header = "Wall time,Step,Value";

std::string_view first_line(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  text = text.substr(0, text.find('\n'));
  if (text.ends_with('\r')) text.remove_suffix(1);
  return text;
}

// "run - train/loss" -> run, train/loss. Run names may hold " - ", metric names seldom do.
bool split_column(std::string_view column, std::string& run, std::string& metric) {
  const std::size_t at = column.rfind(" - ");
  if (at == std::string_view::npos || at == 0 || at + 3 == column.size()) return false;
  run = column.substr(0, at);
  metric = column.substr(at + 3);
  return true;
}

bool is_step_name(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  return name == "step" || name == "_step" || name == "global_step" || name == "trainer/global_step" ||
         name == "train/global_step";
}

bool is_wandb_header(std::string_view line) {
  CsvFields splitter;
  const std::vector<std::string_view>& fields = splitter.split(line);
  std::string run, metric;
  return fields.size() >= 2 && is_step_name(std::string(fields[0])) && split_column(fields[1], run, metric);
}

bool read_step(std::string_view text, std::int64_t& step) {
  double number = 0;
  if (!read_number(text, number) || !(std::fabs(number) < 1e15)) return false;
  step = static_cast<std::int64_t>(number);
  return true;
}

// Reports each of the first ten by its number, the others together.
class MalformedLines {
 public:
  void add(std::int64_t line) {
    if (++all_ <= 10) first_.push_back(line);
  }
  void report(ImportSink& sink) const {
    for (const std::int64_t line : first_) sink.note(line, "the line has no step or no numbers, and was skipped");
    if (all_ > first_.size())
      sink.note(0, plural(all_ - first_.size(), "more line was", "more lines were") + " skipped for the same reason");
  }

 private:
  std::vector<std::int64_t> first_;
  std::uint64_t all_ = 0;
};

class WandbTable : public TextLines {
 public:
  WandbTable(fs::path path, ImportSink& sink) : TextLines(sink), path_(std::move(path)), sink_(sink) {}

 private:
  struct Target {
    std::size_t run;
    std::string metric;
    bool bound;  // "__MIN", "__MAX": of the steps that W&B put into one row
  };

  void take_line(std::string_view line) override {
    const std::vector<std::string_view>& fields = splitter_.split(line);
    if (number() == 1) return take_header(fields);
    std::int64_t step = 0;
    if (fields.size() != targets_.size() + 1 || !read_step(fields[0], step)) return malformed_.add(number());
    for (std::size_t i = 0; i < targets_.size(); ++i) {
      double value = 0;
      if (!targets_[i].bound && read_number(fields[i + 1], value))
        runs_[targets_[i].run].metrics.add(targets_[i].metric, step, value, missing);
    }
  }

  void take_header(const std::vector<std::string_view>& fields) {
    for (std::size_t i = 1; i < fields.size(); ++i) {
      std::string run, metric;
      const bool bound = fields[i].ends_with("__MIN") || fields[i].ends_with("__MAX");
      if (!split_column(fields[i], run, metric)) {
        targets_.push_back({0, "", true});
        continue;
      }
      if (bound) ++bounds_;
      targets_.push_back({run_named(run), metric, bound});
    }
  }

  std::size_t run_named(const std::string& name) {
    const auto found = std::ranges::find_if(runs_, [&](auto& it) { return it.run.title == name; });
    if (found != runs_.end()) return static_cast<std::size_t>(found - runs_.begin());
    ForeignRun& run = runs_.emplace_back();
    run.run.status = RunStatus::finished;
    run.run.title = run.run.stage = name;
    run.run.name = import_name(path_, name);
    return runs_.size() - 1;
  }

  void end() override {
    if (runs_.empty()) throw ImportError("is not a W&B table: no column is named \"run - metric\"");
    LadderOfRuns ladder(path_.stem().string(), sink_);
    for (ForeignRun& run : runs_) ladder.add(std::move(run));
    ladder.finish();
    malformed_.report(sink_);
    if (bounds_ > 0) sink_.note(1, "columns __MIN and __MAX were skipped: they bound the steps that share a row");
  }

  const fs::path path_;
  ImportSink& sink_;
  CsvFields splitter_;
  std::vector<Target> targets_;  // by column, without the first
  std::vector<ForeignRun> runs_;
  MalformedLines malformed_;
  std::uint64_t bounds_ = 0;
};

// "run-NAME-tag-train_loss.csv" -> train_loss
std::string tag_of(const fs::path& path) {
  const std::string stem = path.stem().string();
  const std::size_t at = stem.rfind("-tag-");
  return at == std::string::npos ? stem : stem.substr(at + std::string_view("-tag-").size());
}

class TensorboardTable : public TextLines {
 public:
  TensorboardTable(const fs::path& path, ImportSink& sink) : TextLines(sink), sink_(sink), tag_(tag_of(path)) {
    run_.run.status = RunStatus::finished;
    run_.run.name = path.stem().string();
    if (meaning_of_metric(tag_).role != MetricRole::none || tag_ != run_.run.name) return;
    sink.note(0, "neither the table nor the file's name names the metric; it was taken for the loss");
    tag_ = "loss";
  }

 private:
  void take_line(std::string_view line) override {
    const std::vector<std::string_view>& fields = splitter_.split(line);
    if (number() == 1) return;
    double at = 0, value = 0;
    std::int64_t step = 0;
    if (fields.size() == 3 && read_number(fields[0], at) && read_step(fields[1], step) && read_number(fields[2], value))
      run_.metrics.add(tag_, step, value, at > 0 ? at : missing);
    else
      malformed_.add(number());
  }

  void end() override {
    if (run_.metrics.empty()) throw ImportError("is a TensorBoard table without numbers");
    pass_on(std::move(run_), sink_);
    malformed_.report(sink_);
  }

  ImportSink& sink_;
  std::string tag_;
  CsvFields splitter_;
  ForeignRun run_;
  MalformedLines malformed_;
};

// Either kind of table, by its first line.
class TrackerTable : public ImportReader {
 public:
  TrackerTable(fs::path path, ImportSink& sink) : path_(std::move(path)), sink_(sink) {}

  void take(std::string_view bytes) override {
    if (!table_ && first_line(bytes) == tensorboard_header) table_ = std::make_unique<TensorboardTable>(path_, sink_);
    if (!table_) table_ = std::make_unique<WandbTable>(path_, sink_);
    table_->take(bytes);
  }
  void finish() override {
    if (!table_) throw ImportError("is empty");
    table_->finish();
  }

 private:
  const fs::path path_;
  ImportSink& sink_;
  std::unique_ptr<ImportReader> table_;
};

}  // namespace

Importer importers::tracker_csv() {
  return {.id = "tracker-csv",
          .title = "CSV of W&B or TensorBoard",
          .recognises =
              [](std::string_view head, const auto&) {
                const std::string_view header = first_line(head);
                return header == tensorboard_header || is_wandb_header(header.substr(0, longest_header));
              },
          .reader = [](const auto& path, const auto&,
                       ImportSink& sink) { return std::make_unique<TrackerTable>(path, sink); }};
}

}  // namespace stepladder
