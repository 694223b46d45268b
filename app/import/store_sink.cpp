#include "app/import/store_sink.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace stepladder {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t steps_at_once = 4096;

void add_to_environment(Run& run, const char* name, const std::string& value) {
  Json environment = Json::parse(run.environment, nullptr, false);
  if (!environment.is_object()) environment = Json::object();
  environment[name] = value;
  run.environment = environment.dump();
}

}  // namespace

void StoreSink::begin_run(const Run& run) {
  if (!store_) {
    store_ = &open_store_();
    transaction_.emplace(*store_);
  }
  Run& row = runs_.emplace_back(run);
  complete(row);
  row.id = store_->create_run(row);
}

void StoreSink::step(const StepRecord& record) {
  steps_.push_back(record);
  if (options_.tokens_per_step > 0) steps_.back().tokens = options_.tokens_per_step;
  if (steps_.size() >= steps_at_once) write_steps();
}

void StoreSink::end_run(const Run& run) {
  write_steps();
  Run& row = runs_.back();
  const RunId id = row.id;
  row = run;
  row.id = id;
  complete(row);
  store_->update_run(row);
}

void StoreSink::ladder(const Ladder& ladder, std::span<const int> rungs) {
  if (!store_) return;
  Ladder row = ladder;
  if (row.name.empty()) row.name = stem();
  row.source = "import";
  row.source_path = path_.string();
  const LadderId id = store_->create_ladder(row);
  const auto first = runs_.end() - static_cast<std::ptrdiff_t>(std::min(rungs.size(), runs_.size()));
  for (auto it = first; it != runs_.end(); ++it) {
    it->ladder = id;
    it->rung = rungs[static_cast<std::size_t>(it - first)];
    it->repeat = 0;
    store_->update_run(*it);
  }
  std::stable_sort(first, runs_.end(), [](const Run& a, const Run& b) { return a.rung < b.rung; });
}

void StoreSink::note(std::int64_t line, std::string text) {
  notes_.push_back({shown_, line, std::move(text)});
}

void StoreSink::commit(ImportOutcome& outcome, const std::string& source_hash) {
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    Run& run = runs_[i];
    // Several runs of one file need distinct names.
    const bool needs_name = runs_.size() > 1 && run.name == stem();
    if (needs_name) run.name += " " + (run.stage.empty() ? std::to_string(i + 1) : run.stage);
    if (!source_hash.empty()) add_to_environment(run, "source_hash", source_hash);
    if (needs_name || !source_hash.empty()) store_->update_run(run);
  }
  if (transaction_) transaction_->commit();
  for (Run& run : runs_) outcome.runs.push_back(std::move(run));
  std::stable_sort(notes_.begin(), notes_.end(),
                   [](const ImportNote& a, const ImportNote& b) { return a.line < b.line; });
  for (ImportNote& note : notes_) outcome.notes.push_back(std::move(note));
}

std::string StoreSink::stem() const {
  if (!path_.empty()) return path_.stem().string();
  return shown_ == "standard input" ? "stdin" : shown_;
}

void StoreSink::complete(Run& run) const {
  if (run.name.empty()) run.name = stem();
  if (is_missing(run.created_at)) run.created_at = imported_at_;
  run.source = "import";
  run.source_path = path_.empty() ? "" : fs::absolute(path_).lexically_normal().string();
  if (!is_over(run.status)) run.status = RunStatus::finished;
  if (!options_.hardware.empty()) run.hardware = options_.hardware;
  if (options_.params > 0) run.params = options_.params;
  if (options_.tokens_per_step > 0) run.tokens_per_step = options_.tokens_per_step;
  if (run.params > 0) run.model_flops_per_token = 6.0 * static_cast<double>(run.params);
  // The text of a heading is the change; the stage's name is its short title.
  if (run.changed == run.title && !run.stage.empty()) run.title = run.stage;
}

void StoreSink::write_steps() {
  if (steps_.empty()) return;
  store_->append_steps(runs_.back().id, steps_);
  steps_.clear();
}

}  // namespace stepladder
