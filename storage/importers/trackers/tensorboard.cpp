// TensorBoard: one run may be several files in one folder.
#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "storage/importers/trackers/foreign_run.h"
#include "storage/importers/trackers/store_file.h"
#include "storage/importers/trackers/store_folder.h"
#include "storage/importers/trackers/tensorboard/event_reader.h"
#include "storage/json_values.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

constexpr int deepest_folder = 16;

void require_numbers(const ForeignRun& run) {
  if (run.metrics.empty() && run.config.empty()) throw ImportError("holds no training metrics");
}

ForeignRun read_folder_as_run(const fs::path& folder, const std::string& name) {
  ForeignRun run = new_event_run(folder);
  run.run.name = run.run.stage = run.run.title = name;
  EventReader reader(run);
  std::size_t read = 0;
  for (const fs::path& file : event_files_in(folder)) {
    try {
      StoreFile input(file);
      reader.read(input);
      ++read;
    } catch (const ImportError& error) {
      run.notes.push_back(file.filename().string() + " " + error.what());
    }
  }
  reader.finish();
  if (read == 0) throw ImportError("holds no readable event file");
  require_numbers(run);
  return run;
}

// A single file.
class EventFile : public ImportReader {
 public:
  EventFile(const fs::path& path, ImportSink& sink)
      : name_(path.filename().string()), sink_(sink), run_(new_event_run(path)), reader_(run_) {
    if (!path.empty()) run_.run.stage = run_.run.title = fs::absolute(path).parent_path().filename().string();
  }

  void take(std::string_view bytes) override { reader_.take(bytes); }
  void finish() override {
    reader_.finish_file(name_);
    reader_.finish();
    require_numbers(run_);
    pass_on(std::move(run_), sink_);
  }

 private:
  const std::string name_;
  ImportSink& sink_;
  ForeignRun run_;
  EventReader reader_;
};

}  // namespace

Importer importers::tensorboard() {
  return {.id = "tensorboard",
          .title = "TensorBoard event file",
          .recognises = [](std::string_view head, const auto&) { return begins_event_file(head); },
          .reader = [](const fs::path& path, const auto&,
                       ImportSink& sink) { return std::make_unique<EventFile>(path, sink); }};
}

bool is_event_file_name(const fs::path& file) {
  return file.filename().string().find("tfevents") != std::string::npos;
}

std::vector<fs::path> event_files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.is_regular_file(error) && is_event_file_name(entry.path())) files.push_back(entry.path());
  // events.out.tfevents.SECONDS.HOST...: sorting by name sorts by time.
  std::ranges::sort(files);
  return files;
}

void read_event_folder(const fs::path& folder, ImportSink& sink) {
  pass_on(read_folder_as_run(folder, folder.filename().string()), sink);
}

std::vector<fs::path> event_folders_in(const fs::path& folder) {
  std::vector<fs::path> folders;
  std::error_code error;
  for (auto it = fs::recursive_directory_iterator(folder, error); it != fs::recursive_directory_iterator();
       it.increment(error)) {
    if (error || it.depth() > deepest_folder) return {};
    if (!it->is_regular_file(error)) continue;
    if (!is_event_file_name(it->path())) return {};
    if (folders.empty() || folders.back() != it->path().parent_path()) folders.push_back(it->path().parent_path());
  }
  std::ranges::sort(folders);
  folders.erase(std::unique(folders.begin(), folders.end()), folders.end());
  return folders;
}

void read_event_folders(const fs::path& folder, ImportSink& sink) {
  const std::string name = folder.filename().string();
  LadderOfRuns ladder(name, sink);
  bool any = false;
  for (const fs::path& inner : event_folders_in(folder)) {
    const std::string run = inner == folder ? "" : " " + inner.lexically_relative(folder).generic_string();
    try {
      ladder.add(read_folder_as_run(inner, name + run));
      any = true;
    } catch (const ImportError& error) {
      sink.note(0, inner.lexically_relative(folder).generic_string() + " " + error.what());
    }
  }
  if (!any) throw ImportError("holds no readable event file");
  ladder.finish();
}

namespace {

// The event files of one run: all of a folder, or one. A program that was started again writes another file.
class GrowingEvents : public GrowingSource {
 public:
  GrowingEvents(fs::path path, bool is_folder, double since = 0)
      : GrowingSource("tensorboard", std::move(path)), is_folder_(is_folder), since_(since) {}

  std::vector<fs::path> files() const override {
    if (!is_folder_) return {path()};
    std::vector<fs::path> files = event_files_in(path());
    std::erase_if(files, [this](const fs::path& file) { return written_at(file) < since_; });
    return files;
  }
  std::string name() const override { return (is_folder_ ? path() : path().parent_path()).filename().string(); }

  SourcePiece read(const SourcePosition& from, bool impatient) override {
    SourcePiece piece{.news = {}, .end = from};
    piece.news = new_event_run(path());
    piece.news.run.title = piece.news.run.stage = name();
    if (!from.state.is_object()) piece.end.state = Json::object();
    Json& marks = piece.end.state;
    EventReader reader(piece.news);
    for (const fs::path& file : files_to_read()) {
      const std::string key = file.filename().string();
      const Json mark = field_in(marks, key.c_str());
      const auto begin = integer_in(mark, "bytes");
      const RegularFile* const held = hold(file, begin);
      if (!held) continue;
      if (const std::string replaced = replaced_since(*held, mark); !replaced.empty())
        return {.news = {}, .end = {}, .replaced = key + " " + replaced};
      if (held->size() == begin) continue;
      StoreFile input(*held, file, static_cast<std::uint64_t>(begin));
      const auto progress = reader.read_some(input, static_cast<std::uint64_t>(begin), source_piece_bytes, impatient);
      const auto end = static_cast<std::int64_t>(progress.end);
      piece.is_stuck = piece.is_stuck || progress.is_stuck;
      if (end == begin) continue;
      piece.restarts = progress.restarts;
      piece.end.amount += end - begin;
      marks[key] = mark_of(*held, end);
      piece.more = true;  // also of the next file
      break;
    }
    if (!piece.more) let_silent_go();
    return piece;
  }

  void finish_idle(Run& run) const override {
    run.status = RunStatus::finished;
    run.reason = "TensorBoard's files don't say how a run ended";
  }

 private:
  // The files to read, including those that were renamed or removed.
  std::vector<fs::path> files_to_read() const {
    std::vector<fs::path> all = files();
    for (const fs::path& file : held_files()) all.push_back(file);
    std::ranges::sort(all);
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }

  static double written_at(const fs::path& file) {
    std::error_code error;
    const auto time = fs::last_write_time(file, error);
    if (error) return 0;
    return std::chrono::duration<double>(std::chrono::file_clock::to_sys(time).time_since_epoch()).count();
  }

  const bool is_folder_;
  const double since_;
};

}  // namespace

std::unique_ptr<GrowingSource> growing_event_folder(const fs::path& folder, double since) {
  return std::make_unique<GrowingEvents>(folder, true, since);
}

std::unique_ptr<GrowingSource> growing_event_file(const fs::path& file) {
  return std::make_unique<GrowingEvents>(file, false);
}

}  // namespace stepladder
