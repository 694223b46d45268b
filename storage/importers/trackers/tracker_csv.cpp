// Reads tables that trackers' web pages export: W&B's panels ("Step","run - loss","run - loss__MIN", ...: one metric or
// several of several runs) and TensorBoard's scalars ("Wall time,Step,Value": one metric, named by the file only).
#include <algorithm>
#include <cctype>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "storage/csv.h"
#include "storage/importers/logs/lines/line_reader.h"
#include "storage/importers/trackers/byte_stream.h"
#include "storage/importers/trackers/foreign_run.h"

namespace stepladder {
namespace {

constexpr std::size_t longest_line = 1 << 20;
constexpr std::string_view tensorboard_header = "Wall time,Step,Value";

std::string_view first_line(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  text = text.substr(0, text.find('\n'));
  if (text.ends_with('\r')) text.remove_suffix(1);
  return text;
}

// Calls visit(line number, fields) for each line that isn't empty.
template <class Visit>
void for_each_row(ImportInput& input, ImportSink& sink, const Visit& visit) {
  LineReader reader(input, sink);
  CsvFields splitter;
  for (std::string_view line; reader.next(line);)
    if (!line.empty()) visit(reader.number(), splitter.split(line));
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
  void tell(ImportSink& sink) const {
    for (const std::int64_t line : first_) sink.note(line, "the line has no step or no numbers, and was skipped");
    if (all_ > first_.size())
      sink.note(0, times(all_ - first_.size(), "more line was", "more lines were") + " skipped for the same reason");
  }

 private:
  std::vector<std::int64_t> first_;
  std::uint64_t all_ = 0;
};

void read_wandb_table(ImportInput& input, ImportSink& sink) {
  struct Target {
    std::size_t run;
    std::string metric;
    bool bound;  // "__MIN", "__MAX": of the steps that W&B put into one row
  };
  std::vector<Target> targets;
  std::vector<ForeignRun> runs;
  MalformedLines malformed;
  std::uint64_t bounds = 0;
  const auto run_named = [&](const std::string& name) {
    const auto found = std::find_if(runs.begin(), runs.end(), [&](auto& it) { return it.run.title == name; });
    if (found != runs.end()) return static_cast<std::size_t>(found - runs.begin());
    ForeignRun& run = runs.emplace_back();
    run.run.status = RunStatus::finished;
    run.run.title = run.run.stage = name;
    run.run.name = import_name(input.path(), name);
    return runs.size() - 1;
  };
  for_each_row(input, sink, [&](std::int64_t number, const std::vector<std::string_view>& fields) {
    if (number == 1) {
      for (std::size_t i = 1; i < fields.size(); ++i) {
        std::string run, metric;
        const bool bound = fields[i].ends_with("__MIN") || fields[i].ends_with("__MAX");
        if (!split_column(fields[i], run, metric)) {
          targets.push_back({0, "", true});
          continue;
        }
        if (bound) ++bounds;
        targets.push_back({run_named(run), metric, bound});
      }
      return;
    }
    std::int64_t step = 0;
    if (fields.size() != targets.size() + 1 || !read_step(fields[0], step)) {
      malformed.add(number);
      return;
    }
    for (std::size_t i = 0; i < targets.size(); ++i) {
      double value = 0;
      if (!targets[i].bound && read_number(fields[i + 1], value))
        runs[targets[i].run].metrics.add(targets[i].metric, step, value, missing);
    }
  });
  if (runs.empty()) throw ImportError("is not a W&B table: no column is named \"run - metric\"");
  LadderOfRuns ladder(input.path().stem().string(), sink);
  for (ForeignRun& run : runs) ladder.tell(std::move(run));
  ladder.finish();
  malformed.tell(sink);
  if (bounds > 0) sink.note(1, "columns __MIN and __MAX were skipped: they bound the steps that share a row");
}

// "run-NAME-tag-train_loss.csv" -> train_loss
std::string tag_of(const std::filesystem::path& path) {
  const std::string stem = path.stem().string();
  const std::size_t at = stem.rfind("-tag-");
  return at == std::string::npos ? stem : stem.substr(at + std::string_view("-tag-").size());
}

void read_tensorboard_table(ImportInput& input, ImportSink& sink) {
  ForeignRun run;
  run.run.status = RunStatus::finished;
  run.run.name = input.path().stem().string();
  std::string tag = tag_of(input.path());
  if (meaning_of_metric(tag).role == MetricRole::none) {
    sink.note(0, "neither the table nor the file's name names the metric; it was taken for the loss");
    tag = "loss";
  }
  MalformedLines malformed;
  for_each_row(input, sink, [&](std::int64_t number, const std::vector<std::string_view>& fields) {
    if (number == 1) return;
    double at = 0, value = 0;
    std::int64_t step = 0;
    if (fields.size() == 3 && read_number(fields[0], at) && read_step(fields[1], step) && read_number(fields[2], value))
      run.metrics.add(tag, step, value, at > 0 ? at : missing);
    else
      malformed.add(number);
  });
  if (run.metrics.empty()) throw ImportError("is a TensorBoard table without numbers");
  tell(std::move(run), sink);
  malformed.tell(sink);
}

}  // namespace

Importer importers::tracker_csv() {
  return {.id = "tracker-csv",
          .title = "CSV of W&B or TensorBoard",
          .recognises =
              [](ImportInput& input) {
                const std::string_view header = first_line(input.head());
                return header == tensorboard_header || is_wandb_header(header.substr(0, longest_line));
              },
          .read =
              [](ImportInput& input, const ImportOptions&, ImportSink& sink) {
                if (first_line(input.head()) == tensorboard_header)
                  read_tensorboard_table(input, sink);
                else
                  read_wandb_table(input, sink);
              }};
}

}  // namespace stepladder
