#include "app/cli/import_command.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iostream>
#include <map>
#include <optional>

#include "app/cli/cli.h"
#include "app/cli/subcommand.h"
#include "app/format.h"
#include "engine/stage.h"
#include "storage/importers/trackers/store_folder.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t piece_size = 256 * 1024;
constexpr std::size_t head_size = 64 * 1024;
constexpr std::size_t steps_at_once = 4096;
constexpr std::size_t most_notes_shown = 40;  // on a terminal; JSON has them all

struct Interrupted {};

using Note = ImportNote;

// Where a file stands among those of its folder.
struct Place {
  std::optional<LadderId> ladder;
  int rung = 0;
  int repeat = 0;
  std::string stage;  // the folder's name
};

// Writes what an importer says of one file. Lives within one transaction of its store.
class StoreSink : public ImportSink {
 public:
  StoreSink(RunStore& store, const ImportOptions& options, std::string file, fs::path path, Place place)
      : store_(store), options_(options), file_(std::move(file)), path_(std::move(path)), place_(std::move(place)) {}

  void begin_run(const Run& run) override {
    Run& row = runs_.emplace_back(ImportedRun{run, ""}).run;
    complete(row);
    row.id = store_.create_run(row);
    last_ = row.id;
  }

  void step(const StepRecord& record) override {
    steps_.push_back(record);
    if (options_.tokens_per_step > 0) steps_.back().tokens = options_.tokens_per_step;
    if (steps_.size() >= steps_at_once) write_steps();
  }

  void end_run(const Run& run) override {
    write_steps();
    ImportedRun& told = runs_.back();
    told.unit = run.printed.unit;
    const RunId id = told.run.id;
    told.run = run;
    told.run.id = id;
    complete(told.run);
    store_.update_run(told.run);
  }

  void ladder(const Ladder& ladder, std::span<const int> rungs) override {
    Ladder row = ladder;
    if (row.name.empty()) row.name = stem();
    row.source = "import";
    row.source_path = path_.string();
    const LadderId id = store_.create_ladder(row);
    const auto first = runs_.end() - static_cast<std::ptrdiff_t>(std::min(rungs.size(), runs_.size()));
    for (auto it = first; it != runs_.end(); ++it) {
      it->run.ladder = id;
      it->run.rung = rungs[static_cast<std::size_t>(it - first)];
      it->run.repeat = 0;
      store_.update_run(it->run);
    }
    std::stable_sort(first, runs_.end(),
                     [](const ImportedRun& a, const ImportedRun& b) { return a.run.rung < b.run.rung; });
  }

  void note(std::int64_t line, std::string text) override { notes_.push_back({file_, line, std::move(text)}); }

  // Several runs of one file get names of their own.
  void finish() {
    if (runs_.size() < 2) return;
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      Run& run = runs_[i].run;
      if (run.name != stem()) continue;
      run.name += " " + (run.stage.empty() ? std::to_string(i + 1) : run.stage);
      store_.update_run(run);
    }
  }

  std::vector<ImportedRun>& runs() { return runs_; }
  std::vector<Note>& notes() { return notes_; }

 private:
  std::string stem() const {
    if (!path_.empty()) return path_.stem().string();
    return file_ == "standard input" ? "stdin" : file_;
  }

  void complete(Run& run) const {
    if (run.name.empty()) run.name = stem();
    if (is_missing(run.created_at)) run.created_at = imported_at_;
    run.source = "import";
    run.source_path = path_.empty() ? "" : fs::absolute(path_).lexically_normal().string();
    if (!is_over(run.status)) run.status = RunStatus::finished;
    if (!options_.hardware.empty()) run.hardware = options_.hardware;
    if (options_.params > 0) run.params = options_.params;
    if (options_.tokens_per_step > 0) run.tokens_per_step = options_.tokens_per_step;
    if (run.params > 0) run.model_flops_per_token = 6.0 * static_cast<double>(run.params);
    if (place_.ladder) {
      run.ladder = place_.ladder;
      run.rung = place_.rung;
      run.repeat = place_.repeat;
    }
    if (run.stage.empty()) run.stage = place_.stage;  // a block of a file has a name of its own
    // What the log says of a stage is what it changed; its name is the shorter one.
    if (run.changed == run.title && !run.stage.empty()) run.title = run.stage;
  }

  void write_steps() {
    if (steps_.empty()) return;
    store_.append_steps(last_, steps_);
    steps_.clear();
  }

  RunStore& store_;
  const ImportOptions& options_;
  std::string file_;
  fs::path path_;
  Place place_;
  const double imported_at_ = unix_now();
  std::vector<ImportedRun> runs_;
  std::vector<StepRecord> steps_;
  std::vector<Note> notes_;
  RunId last_ = 0;
};

// Passes pieces on until somebody presses Ctrl-C.
class WatchfulInput : public ImportInput {
 public:
  WatchfulInput(ImportInput& input, const std::function<bool()>& interrupted)
      : input_(input), interrupted_(interrupted) {}
  std::string_view head() override { return input_.head(); }
  std::string_view next() override {
    if (interrupted_()) throw Interrupted();
    return input_.next();
  }
  const fs::path& path() const override { return input_.path(); }

 private:
  ImportInput& input_;
  const std::function<bool()>& interrupted_;
};

class Import {
 public:
  Import(const std::function<RunStore&()>& store, const ImportRequest& request) : request_(request), store_(store) {}

  ImportOutcome run() {
    try {
      take_all();
    } catch (const Interrupted&) {
      outcome_.interrupted = true;
    }
    return std::move(outcome_);
  }

 private:
  void take_all() {
    if (request_.paths.empty()) {
      try {
        MemoryInput input(request_.text);
        take(input, "pasted text", {}, {});
      } catch (const ImportError& error) {
        failed(std::string("pasted text: ") + error.what());
      }
    }
    for (const std::string& path : request_.paths) {
      try {
        if (path == "-") {
          FileInput input(STDIN_FILENO);
          take(input, "standard input", {}, {});
        } else if (fs::is_directory(path)) {
          take_folder(path);
        } else {
          FileInput input{fs::path(path)};
          take(input, path, path, {});
        }
      } catch (const ImportError& error) {
        failed((path == "-" ? "standard input" : path) + ": " + error.what());
      } catch (const fs::filesystem_error& error) {
        failed(path + ": " + error.code().message());
      }
    }
  }

  void failed(std::string sentence) { outcome_.failures.push_back(std::move(sentence)); }

  // One file, in one transaction.
  void take(ImportInput& input, const std::string& shown, const fs::path& path, const Place& place) {
    if (request_.begins) request_.begins(shown);
    if (request_.interrupted()) throw Interrupted();
    const Importer& importer = importer_for(input, request_.options);
    WatchfulInput watchful(input, request_.interrupted);
    // Tables without steps say only notes: those need no database.
    DeferredSink sink(*this, shown, path, place);
    ImportOptions options = request_.options;
    options.known_stages = &known_stages();
    importer.read(watchful, options, sink);
    sink.commit();
    read_by(importer.id);
  }

  // Begins the transaction when the first run comes.
  class DeferredSink : public ImportSink {
   public:
    DeferredSink(Import& owner, std::string shown, fs::path path, Place place)
        : owner_(owner), shown_(std::move(shown)), path_(std::move(path)), place_(std::move(place)) {}

    void begin_run(const Run& run) override {
      if (!sink_) {
        RunStore& store = owner_.store_();
        transaction_.emplace(store);
        sink_.emplace(store, owner_.request_.options, shown_, path_, place_);
      }
      sink_->begin_run(run);
    }
    void step(const StepRecord& record) override { sink_->step(record); }
    void end_run(const Run& run) override { sink_->end_run(run); }
    void ladder(const Ladder& ladder, std::span<const int> rungs) override {
      if (sink_) sink_->ladder(ladder, rungs);
    }
    void note(std::int64_t line, std::string text) override { notes_.push_back({shown_, line, std::move(text)}); }

    void commit() {
      if (sink_) {
        sink_->finish();
        transaction_->commit();
        for (ImportedRun& run : sink_->runs()) owner_.outcome_.runs.push_back(std::move(run));
      }
      std::stable_sort(notes_.begin(), notes_.end(), [](const Note& a, const Note& b) { return a.line < b.line; });
      for (Note& note : notes_) owner_.outcome_.notes.push_back(std::move(note));
    }

   private:
    Import& owner_;
    std::string shown_;
    fs::path path_;
    Place place_;
    std::optional<RunStore::Batch> transaction_;  // before sink_: undone after it is gone
    std::optional<StoreSink> sink_;
    std::vector<Note> notes_;
  };

  // A folder that is another tracker's store, in one transaction.
  void take_store(const fs::path& folder) {
    if (request_.begins) request_.begins(folder.string());
    DeferredSink sink(*this, folder.string(), folder, {});
    read_store_folder(folder, sink);
    sink.commit();
    read_by(store_format(folder));
  }
  void read_by(std::string_view format) {
    std::vector<std::string>& formats = outcome_.formats;
    if (std::find(formats.begin(), formats.end(), format) == formats.end()) formats.emplace_back(format);
  }
  void take_folder(const fs::path& folder);

  const ImportRequest& request_;
  const std::function<RunStore&()>& store_;
  ImportOutcome outcome_;
};

// Each folder is a stage and its files are repeats of it, or each file a rung of its own with --flat.
void Import::take_folder(const fs::path& folder) {
  if (is_store_folder(folder)) return take_store(folder);
  const std::size_t first = outcome_.runs.size();
  std::map<fs::path, std::vector<fs::path>> files;
  for (auto it = fs::recursive_directory_iterator(folder, fs::directory_options::skip_permission_denied);
       it != fs::recursive_directory_iterator(); ++it) {
    const std::string name = it->path().filename().string();
    if (name.starts_with(".") || name == "__pycache__") {
      if (it->is_directory()) it.disable_recursion_pending();
      continue;
    }
    if (it->is_directory() && is_store_folder(it->path())) {
      it.disable_recursion_pending();
      take_store(it->path());
    }
    if (it->is_regular_file()) files[it->path().parent_path()].push_back(it->path());
  }

  const fs::path named = fs::absolute(folder).lexically_normal();
  const std::string folder_name =
      named.has_filename() ? named.filename().string() : named.parent_path().filename().string();
  int rung = 0;
  for (auto& [parent, paths] : files) {
    std::sort(paths.begin(), paths.end());
    int repeat = 0;
    for (const fs::path& path : paths) {
      Place place;
      if (!request_.options.flat)
        place.stage = parent == folder ? folder_name : parent.lexically_relative(folder).string();
      const std::size_t before = outcome_.runs.size();
      try {
        FileInput input(path);
        take(input, path.string(), path, place);
      } catch (const ImportError& error) {
        outcome_.notes.push_back({path.string(), 0, std::string("skipped: ") + error.what()});
        continue;
      }
      // A file that is a ladder of its own keeps it.
      if (outcome_.runs.size() != before + 1 || outcome_.runs.back().run.ladder) continue;
      outcome_.runs.back().run.rung = rung;
      outcome_.runs.back().run.repeat = repeat;
      if (request_.options.flat)
        ++rung;
      else
        ++repeat;
    }
    if (repeat > 0) ++rung;
  }
  if (outcome_.runs.size() == first) {
    failed(folder.string() + ": holds no file that can be imported");
    return;
  }
  RunStore& store = store_();
  store.in_one_transaction([&] {
    const LadderId ladder =
        store.create_ladder({.name = folder_name, .source = "import", .source_path = named.string()});
    for (std::size_t i = first; i < outcome_.runs.size(); ++i) {
      if (outcome_.runs[i].run.ladder) continue;
      outcome_.runs[i].run.ladder = ladder;
      store.update_run(outcome_.runs[i].run);
    }
  });
}

void report(RunStore* store, const ImportRequest& request, const ImportOutcome& outcome) {
  std::vector<RunAndSummary> rows;
  for (const ImportedRun& it : outcome.runs) rows.push_back({it.run, store->summary(it.run)});
  if (request.json) {
    const PlausibilityContext judge = load_plausibility_context(store);
    Json runs = Json::array(), notes = Json::array();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      Json run = run_json(rows[i].run, rows[i].summary, judge);
      run["unit"] = outcome.runs[i].unit.empty() ? Json() : Json(outcome.runs[i].unit);
      runs.push_back(std::move(run));
    }
    for (const Note& note : outcome.notes)
      notes.push_back({{"file", note.file}, {"line", note.line > 0 ? Json(note.line) : Json()}, {"text", note.text}});
    print({{"runs", runs}, {"notes", notes}});
    return;
  }
  if (!rows.empty()) std::cout << runs_table(rows);
  for (std::size_t i = 0; i < std::min(outcome.notes.size(), most_notes_shown); ++i) {
    const Note& note = outcome.notes[i];
    std::cerr << harmless(note.file + (note.line > 0 ? ":" + std::to_string(note.line) : "") + ": " + note.text)
              << "\n";
  }
  if (outcome.notes.size() > most_notes_shown)
    std::cerr << "and " << outcome.notes.size() - most_notes_shown << " more notes; --json shows all\n";
}

}  // namespace

FileInput::FileInput(const fs::path& path) : path_(path), owned_(true), buffer_(piece_size) {
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0) throw ImportError(std::string("cannot be opened: ") + std::strerror(errno));
}

FileInput::FileInput(int descriptor) : descriptor_(descriptor), owned_(false), buffer_(piece_size) {}

FileInput::~FileInput() {
  if (owned_) ::close(descriptor_);
}

// Reads until `least` bytes have come, or there are no more.
std::string_view FileInput::read_piece(std::size_t least) {
  filled_ = 0;
  while (filled_ < least) {
    const ssize_t count = ::read(descriptor_, buffer_.data() + filled_, buffer_.size() - filled_);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw ImportError(std::string("cannot be read: ") + std::strerror(errno));
    if (count == 0) break;
    filled_ += static_cast<std::size_t>(count);
  }
  return {buffer_.data(), filled_};
}

std::string_view FileInput::head() {
  if (!head_read_) {
    head_ = read_piece(head_size).substr(0, head_size);
    head_read_ = first_piece_waits_ = true;
  }
  return head_;
}

std::string_view FileInput::next() {
  if (std::exchange(first_piece_waits_, false)) return {buffer_.data(), filled_};
  return read_piece(1);
}

ImportOutcome import_into(const std::function<RunStore&()>& store, const ImportRequest& request) {
  return Import(store, request).run();
}

int import_paths(const ImportRequest& request) {
  std::optional<RunStore> store;
  const ImportOutcome outcome = import_into(
      [&]() -> RunStore& {
        if (!store) store.emplace(RunStore::open(request.database));
        return *store;
      },
      request);
  for (const std::string& sentence : outcome.failures) std::cerr << "stepladder: " << sentence << "\n";
  report(store ? &*store : nullptr, request, outcome);
  if (outcome.interrupted) {
    std::cerr << "stepladder: interrupted; the file that was being read was not imported\n";
    return exit_interrupted;
  }
  return outcome.failures.empty() ? exit_done : exit_failed;
}

}  // namespace stepladder
