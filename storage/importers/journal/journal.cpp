// The importer of journals at rest: one file, or a run's folder as one run. It reads with the same JournalReader,
// JournalRun and LoggedSteps as `follow`, so both give the same run. Journals of Stepladder's own runs are refused,
// since only `follow` can store all of them.
#include "storage/importers/journal/journal.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <string>
#include <utility>

#include "storage/importers/constant_values.h"
#include "storage/importers/journal/journal_run.h"
#include "storage/importers/journal/run_events.h"
#include "storage/importers/trackers/foreign_run.h"
#include "storage/importers/trackers/store_file.h"
#include "storage/wording.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

// Passes one run on, journal after journal: `begin_file`, `take` its bytes, `end_file`; after the last one `finish`.
class JournalImport : public ImportReader {
 public:
  JournalImport(fs::path path, ImportSink& sink) : path_(std::move(path)), sink_(sink) {}

  void begin_file() {
    reader_ = JournalReader();
    header_.reset();
    steps_ = LoggedSteps(RepeatedLoss::is_kept);
  }

  void take(std::string_view bytes) override {
    reader_.take(bytes);
    for (JournalEvent event; next(event);) take(event);
  }

  void end_file() {
    cut_off_ = cut_off_ || reader_.has_rest();
    skipped_ += reader_.skipped_bytes();
    malformed_ += reader_.malformed_lines();
    if (!header_) throw ImportError("is not a journal: its first line is missing or damaged");
    pass_on(*header_, steps_);
  }

  void finish() override {
    if (!begun_) end_file();
    end_run();
  }

  bool has_begun() const { return begun_; }

 private:
  bool next(JournalEvent& event) {
    while (!reader_.next(event)) {
      if (!reader_.is_stuck()) return false;
      reader_.skip();
    }
    return true;
  }

  void take(const JournalEvent& event) {
    if (!header_) header_ = journal_header(event);
    if (event.kind == "run" && PlannedRun::of(event.fields))
      throw ImportError("is the journal of a run that Stepladder trained; `stepladder follow` takes all of it in");
    if (header_) run_.take(event, *header_, steps_);
  }

  void end_run() {
    Run run = run_.run();
    if (!run_.has_ended()) {
      run.status = RunStatus::interrupted;
      run.reason = "the journal has no line of the run's end";
    }
    if (is_missing(run.ended_at)) run.ended_at = last_at_;
    if (Json recipe = object_in(run.recipe); recipe.is_object()) {
      const std::size_t known = recipe.size();
      add_constant(recipe, "lr", lr_, steps_read_);
      if (recipe.size() > known) run.recipe = json_text(recipe);
    }
    if (run.tokens_per_step == 0 && same_tokens_) run.tokens_per_step = tokens_;
    run.name = name_of(run);
    Json environment = object_in(run.environment);
    environment["journal_uid"] = uid_;
    run.environment = json_text(environment);
    sink_.end_run(run);
    for (std::string& note : run_.notes()) sink_.note(0, std::move(note));
    if (skipped_ > 0) sink_.note(0, "left out " + plural(skipped_, "damaged byte"));
    if (malformed_ > 0) sink_.note(0, "left out " + plural(malformed_, "line that is", "lines that are") + " no event");
    if (bad_steps_ > 0)
      sink_.note(0, plural(bad_steps_, "value was", "values were") + " left out: the step is negative or too large");
    if (cut_off_) sink_.note(0, "a journal ends in the middle of a line; the rest was read");
    if (texts_ > 0) sink_.note(0, "left out " + plural(texts_, "text") + "; `stepladder follow` keeps them");
  }

  void pass_on(const JournalHeader& header, LoggedSteps& steps) {
    LoggedBatch batch = steps.take(run_.tokens_per_sample());
    run_.describe(batch);
    texts_ += run_.take_texts().size();
    bad_steps_ += steps.bad_steps();
    if (uid_.empty()) uid_ = header.uid;
    if (!std::exchange(begun_, true)) {
      Run run = run_.run();
      run.name = name_of(run);
      sink_.begin_run(run);
    }
    if (header.rank == 0) {
      for (const StepRecord& record : batch.repeated) sink_.step(record);
      for (const StepRecord& record : batch.steps) {
        sink_.step(record);
        lr_.add(record.lr);
        ++steps_read_;
        if (is_missing(last_at_) || record.at > last_at_) last_at_ = record.at;
        if (record.tokens > 0) same_tokens_ = same_tokens_ && (tokens_ == 0 || tokens_ == record.tokens);
        if (record.tokens > 0) tokens_ = record.tokens;
      }
    }
    for (const auto& [metric, points] : batch.metrics)
      if (header.rank == 0 || metric.field.empty()) sink_.metric(metric, points);
  }

  // As `follow` names it: a journal's folder is called by the run's id.
  std::string name_of(const Run& run) const { return run.title.empty() ? path_.stem().string() : run.title; }

  const fs::path path_;
  ImportSink& sink_;
  JournalReader reader_;  // of the file that is being read
  std::optional<JournalHeader> header_;
  LoggedSteps steps_{RepeatedLoss::is_kept};
  JournalRun run_;
  ConstantNumber lr_;  // what all steps have in common
  std::int64_t steps_read_ = 0;
  std::string uid_;
  bool begun_ = false;
  bool cut_off_ = false;
  bool same_tokens_ = true;
  std::int64_t tokens_ = 0;
  double last_at_ = missing;
  std::uint64_t skipped_ = 0;
  std::uint64_t malformed_ = 0;
  std::uint64_t bad_steps_ = 0;
  std::size_t texts_ = 0;
};

std::optional<std::int64_t> number_at(std::string_view& text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

}  // namespace

Importer importers::journal() {
  return {.id = "journal",
          .title = "Journal of stepladder.py",
          .recognises = [](std::string_view head, const auto&) { return head.starts_with("{\"e\":\"run\",\"v\":"); },
          .reader =
              [](const fs::path& path, const auto&, ImportSink& sink) {
                return std::make_unique<JournalImport>(journal_place(path) ? path.parent_path() : path, sink);
              }};
}

std::optional<JournalPlace> journal_place(const fs::path& file) {
  const std::string name = file.filename().string();
  std::string_view rest = name;
  if (!rest.starts_with("rank-")) return std::nullopt;
  rest.remove_prefix(5);
  const auto rank = number_at(rest);
  if (!rank || !rest.starts_with('.')) return std::nullopt;
  rest.remove_prefix(1);
  const auto attempt = number_at(rest);
  if (!attempt || rest != ".jsonl") return std::nullopt;
  return JournalPlace{*rank, *attempt};
}

std::vector<fs::path> journals_in(const fs::path& folder) {
  std::vector<std::pair<JournalPlace, fs::path>> found;
  std::error_code error, unknown;
  for (auto it = fs::directory_iterator(folder, error); !error && it != fs::directory_iterator(); it.increment(error))
    if (const auto place = journal_place(it->path()); place && it->is_regular_file(unknown))
      found.emplace_back(*place, it->path());
  std::ranges::sort(found);
  std::vector<fs::path> files;
  for (auto& [place, path] : found) files.push_back(std::move(path));
  return files;
}

void read_journal_folder(const fs::path& folder, ImportSink& sink) {
  JournalImport import(fs::absolute(folder).lexically_normal(), sink);
  std::string first_refusal;
  for (const fs::path& file : journals_in(folder)) {
    try {
      StoreFile input(file);
      import.begin_file();
      push_all(input, import);
      import.end_file();
    } catch (const ImportError& error) {
      const std::string refusal = file.filename().string() + " " + error.what();
      if (first_refusal.empty()) first_refusal = refusal;
      sink.note(0, refusal);
    }
  }
  if (!import.has_begun()) throw ImportError("holds no readable journal: " + first_refusal);
  import.finish();
}

}  // namespace stepladder
