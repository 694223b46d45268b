// Event files to which a running program still writes.
#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "storage/importers/trackers/store_file.h"
#include "storage/importers/trackers/tensorboard.h"
#include "storage/importers/trackers/tensorboard/event_reader.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::ordered_json;

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
      const Json mark = marks.value(key, Json());
      const auto begin = mark.is_object() ? mark.value("bytes", std::int64_t{0}) : 0;
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

  void settle(Run& run) const override {
    run.status = RunStatus::finished;
    run.reason = "TensorBoard's files don't say how a run ended";
  }

 private:
  // The files to read, including those that were renamed or removed.
  std::vector<fs::path> files_to_read() const {
    std::vector<fs::path> all = files();
    for (const fs::path& file : held_files()) all.push_back(file);
    std::sort(all.begin(), all.end());
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
