// Collects what an importer reads and writes it in slices, so that others can write in between. Order matters: runs,
// then steps, then metrics, which share the steps' times, then changed facts. All runs stay hidden until the caller
// shows them.
#include "app/import/store_sink.h"

#include <algorithm>
#include <optional>

#include "app/runs/saved_view.h"
#include "app/text/format.h"
#include "storage/bounded_text.h"
#include "storage/importers/name_settings.h"
#include "storage/json_values.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t steps_in_memory = 16'384;
constexpr std::size_t points_in_memory = 65'536;
constexpr std::size_t runs_in_memory = 256;
constexpr std::ptrdiff_t steps_in_a_piece = 1024;

void add_to_environment(Run& run, const char* name, const std::string& value) {
  Json environment = object_in(run.environment);
  environment[name] = value;
  run.environment = environment.dump();
}

}  // namespace

StoreSink::~StoreSink() {
  if (finished_ || created_ == 0) return;
  std::vector<RunId> hidden;
  for (const Run& run : std::span(runs_).first(created_)) hidden.push_back(run.id);
  try {
    store_->hidden_runs().remove(hidden);
  } catch (const StorageError&) {  // a later opening deletes them
  }
}

void StoreSink::begin_run(const Run& run) {
  if (!store_) {
    store_ = &open_store_();
    std::error_code error;
    if (!path_.empty() && fs::equivalent(path_, store_->file(), error))
      throw ImportError("is the file that its runs would go to");
  }
  if (runs_.size() == most_runs_of_input)
    throw ImportError("holds more than " + grouped(static_cast<std::int64_t>(most_runs_of_input)) +
                      " runs; split it, and import the parts");
  if (run.id != 0) places_[run.id] = runs_.size();
  complete(runs_.emplace_back(run));
  runs_.back().id = 0;
}

void StoreSink::step(const StepRecord& record) {
  steps_.push_back(record);
  steps_.back().run = std::ssize(runs_) - 1;
  if (options_.tokens_per_step > 0) steps_.back().tokens = options_.tokens_per_step;
  if (steps_.size() >= steps_in_memory) write();
}

void StoreSink::metric(const Metric& metric, std::span<const MetricPoint> points) {
  LoggedMetric& logged = metrics_[{runs_.size() - 1, metric.name}];
  logged.metric = metric;
  logged.points.insert(logged.points.end(), points.begin(), points.end());
  points_in_memory_ += points.size();
  if (points_in_memory_ >= points_in_memory) write();
}

void StoreSink::machine(const SystemMetrics& sample) {
  machine_.push_back(sample);
  machine_.back().run = std::ssize(runs_) - 1;
  if (machine_.size() >= steps_in_memory) write();
}

void StoreSink::end_run(const Run& run) {
  Run& row = runs_.back();
  const RunId id = row.id;
  row = run;
  row.id = id;
  note_overruled(row);
  complete(row);
  keep_texts_short(row);
  if (created_ == runs_.size()) changed_.push_back(runs_.size() - 1);
  if (runs_.size() - created_ >= runs_in_memory) write();
}

void StoreSink::keep_texts_short(Run& run) {
  for (const auto& [what, text] : {std::pair{"name", &run.name}, {"stage", &run.stage}, {"title", &run.title}}) {
    if (text->size() <= longest_name) continue;
    note(0, "a run's " + std::string(what) + " has " + grouped(std::ssize(*text)) + " bytes, of which the first " +
                grouped(longest_name) + " are kept");
    *text = bounded(std::move(*text), longest_name);
  }
}

void StoreSink::ladder(const Ladder& ladder, std::span<const int> rungs) {
  if (runs_.empty() || rungs.empty()) return;
  write();
  Ladder row = ladder;
  if (row.name.empty()) row.name = stem();
  row.source = "import";
  row.source_path = path_.string();
  const auto first = runs_.end() - static_cast<std::ptrdiff_t>(std::min(rungs.size(), runs_.size()));
  std::optional<LadderId> id;
  std::map<int, int> repeats;  // of each rung, so far
  store_->in_slices([&, it = first]() mutable {
    if (!id) id = store_->create_ladder(row);  // together with its first run, so that it is never without one
    it->ladder = id;
    it->rung = rungs[static_cast<std::size_t>(it - first)];
    it->repeat = repeats[it->rung]++;
    store_->update_run(*it);
    return ++it != runs_.end();
  });
  std::stable_sort(first, runs_.end(), [](const Run& a, const Run& b) {
    return std::pair(a.rung, a.repeat) < std::pair(b.rung, b.repeat);
  });
}

// It is history: no command of this program takes another's series, nor one of a checkout here, for its own.
void StoreSink::tries(StoredTries&& tries) {
  TrySeries& series = tries_.emplace_back(std::move(tries)).series;
  series.ladder = *runs_.back().ladder;
  series.checkout = path_.filename().string() + ":" + series.checkout;
  if (series.is_open()) series.ended_at = imported_at_;
}

void StoreSink::note(std::int64_t line, std::string text) {
  notes_.push_back({shown_, line, std::move(text)});
}

void StoreSink::passes(const StoredPasses& passes) {
  passes_.push_back(passes);
  passes_.back().name = stem() + ", " + passes.model;
}

void StoreSink::finish(ImportOutcome& outcome, const std::string& source_hash, const std::string& content_hash) {
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    Run& run = runs_[i];
    // Several runs of one file need distinct names.
    const bool needs_name = runs_.size() > 1 && run.name == stem();
    if (needs_name) run.name += " " + (run.stage.empty() ? std::to_string(i + 1) : run.stage);
    if (!source_hash.empty()) add_to_environment(run, "source_hash", source_hash);
    if (!content_hash.empty()) add_to_environment(run, "content_hash", content_hash);
    if (i < created_ && (needs_name || !source_hash.empty() || !content_hash.empty())) changed_.push_back(i);
  }
  add_settings_in_name();
  if (store_) write();
  finished_ = true;
  add_tries(outcome);
  add_views(outcome);
  outcome.published += published_;
  outcome.has_published = outcome.has_published || !published_.empty();
  std::move(passes_.begin(), passes_.end(), std::back_inserter(outcome.passes));
  for (Run& run : runs_) outcome.runs.push_back(std::move(run));
  std::ranges::stable_sort(notes_, {}, &ImportNote::line);
  for (ImportNote& note : notes_) outcome.notes.push_back(std::move(note));
}

// Of a log or a table with one run: what it doesn't say, its name may.
void StoreSink::add_settings_in_name() {
  if (runs_.size() != 1 || path_.empty()) return;
  Json recipe = object_in(runs_.front().recipe);
  if (!recipe.contains("log_family")) return;
  const std::string added = stepladder::add_settings_in_name(recipe, path_.stem().string());
  if (added.empty()) return;
  runs_.front().recipe = json_text(recipe);
  add_to_environment(runs_.front(), "settings_in_name", added);
  if (created_ > 0) changed_.push_back(0);
  note(0, "its name was read as " + added + "; the file itself doesn't say so");
}

const Run* StoreSink::run_numbered(RunId number) const {
  const auto place = places_.find(number);
  return place == places_.end() ? nullptr : &runs_[place->second];
}

// Adds the series; their runs have other numbers here.
void StoreSink::add_tries(ImportOutcome& outcome) {
  for (StoredTries& each : tries_) {
    for (TryRun& it : each.runs) {
      const Run* run = run_numbered(it.run);
      it.run = run && run->ladder == each.series.ladder ? run->id : 0;
    }
    outcome.tries.push_back(std::move(each));
  }
}

// The same for views.
void StoreSink::add_views(ImportOutcome& outcome) {
  for (const auto& [name, content] : views_) {
    try {
      SavedView view = saved_view_from(content);
      renumber(view, [&](ViewRun& run) -> std::optional<RunId> {
        run.uid.clear();  // it was the run's in the other project
        const Run* there = run_numbered(run.id);
        return there ? std::optional(there->id) : std::nullopt;
      });
      std::string text = text_of(view);
      if (name.find_first_not_of(' ') == std::string::npos || text.size() > longest_view)
        throw ViewError("its name or its content isn't one that Stepladder saves");
      outcome.views.emplace_back(name, std::move(text));
    } catch (const ViewError& error) {
      notes_.push_back({shown_, 0, "the saved view " + name + " is left out: " + error.what()});
    }
  }
}

std::string StoreSink::stem() const {
  if (!path_.empty()) return path_.stem().string();
  return shown_ == "standard input" ? "stdin" : shown_;
}

// What the user says counts, and a reader of the notes knows that the file says otherwise. Once for all of its runs.
void StoreSink::note_overruled(const Run& read) {
  const auto note_once = [&](const std::string& text) {
    if (std::ranges::find(notes_, text, &ImportNote::text) == notes_.end()) note(0, text);
  };
  if (!options_.hardware.empty() && !read.hardware.empty() && read.hardware != options_.hardware)
    note_once("names " + read.hardware + ", and " + options_.hardware + " was asked for, so its limits count");
  if (options_.params > 0 && read.params > 0 && read.params != options_.params)
    note_once("names " + grouped(read.params) + " parameters, and " + grouped(options_.params) +
              " were asked for, so these count");
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
  // A heading's text describes the change; the stage's name is its short title.
  if (run.changed == run.title && !run.stage.empty()) run.title = run.stage;
}

bool StoreSink::write_next() {
  if (created_ < runs_.size()) {
    Run& run = runs_[created_];
    run.id = store_->hidden_runs().create(run);
    ++created_;
  } else if (written_steps_ < steps_.size()) {
    const auto rest = std::span(steps_).subspan(written_steps_);
    const auto of_another = [&](const StepRecord& step) { return step.run != rest.front().run; };
    const auto end =
        std::find_if(rest.begin(), rest.begin() + std::min(std::ssize(rest), steps_in_a_piece), of_another);
    const auto piece = rest.first(static_cast<std::size_t>(end - rest.begin()));
    store_->append_steps(runs_[static_cast<std::size_t>(rest.front().run)].id, piece);
    written_steps_ += piece.size();
  } else if (written_machine_ < machine_.size()) {
    const auto piece = std::span(machine_).subspan(
        written_machine_, std::min(machine_.size() - written_machine_, std::size_t{steps_in_a_piece}));
    for (SystemMetrics& sample : piece) sample.run = runs_[static_cast<std::size_t>(sample.run)].id;
    store_->recordings().keep_system_metrics(piece);
    written_machine_ += piece.size();
  } else if (!metrics_.empty()) {  // after the steps, whose times they share
    write_next_points();
  } else if (!changed_.empty()) {
    store_->update_run(runs_[changed_.back()]);
    changed_.pop_back();
  } else {
    return false;
  }
  return true;
}

void StoreSink::write_next_points() {
  auto& [of, logged] = *metrics_.begin();
  const RunId run = runs_[of.first].id;
  if (logged.written == 0) store_->metrics().describe(run, logged.metric);
  const auto rest = std::span(logged.points).subspan(logged.written);
  const auto piece = rest.first(static_cast<std::size_t>(std::min(std::ssize(rest), steps_in_a_piece)));
  store_->metrics().append(run, logged.metric.name, piece);
  logged.written += piece.size();
  if (piece.size() == rest.size()) metrics_.erase(metrics_.begin());
}

void StoreSink::write() {
  store_->in_slices([this] { return write_next(); });
  steps_.clear();
  machine_.clear();
  written_steps_ = written_machine_ = 0;
  points_in_memory_ = 0;
}

}  // namespace stepladder
