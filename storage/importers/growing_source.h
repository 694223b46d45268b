// Files and stores of other programs that are read while they grow: piece by piece, each number once, from where an
// earlier reader has got to. The importers' readers do it, so a followed run and an imported one hold the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "storage/importers/trackers/foreign_run.h"
#include "storage/json_values.h"
#include "storage/regular_file.h"

namespace stepladder {

// The position up to which a store has been read; before the first piece 0 and null.
struct SourcePosition {
  std::int64_t amount = 0;  // bytes or rows that were taken
  Json state;               // what the next reader needs to continue

  bool operator==(const SourcePosition&) const = default;
};

// What a log or a table says, in its order.
struct RunBegins {
  Run run;
  bool is_first = false;  // of its file: an earlier piece may have had it
};
struct RunFacts {  // of the run that has begun
  Run run;
};
struct LoggedStep {
  StepRecord record;
  bool is_part = false;  // an earlier piece may have had it, with fewer fields
};
struct LoggedPoints {
  Metric metric;
  std::vector<MetricPoint> points;
};
using SourceEvent = std::variant<RunBegins, RunFacts, LoggedStep, LoggedPoints>;

// About so much of a source is one piece, so memory is bounded by this and the largest record.
inline constexpr std::size_t source_piece_bytes = 512 << 10;
inline constexpr std::int64_t source_piece_rows = 4'000;

struct SourcePiece {
  ForeignRun news;                       // of a store: its numbers in order, and the facts that the piece gives
  std::vector<SourceEvent> events = {};  // of a log or a table
  bool has_ended = false;                // the store says so; news.run.status says how
  bool restarts = false;                 // the writer went back to an earlier step before these numbers
  SourcePosition end;
  bool more = false;      // there is more to read at once
  bool is_stuck = false;  // what follows is damaged or not yet whole; an impatient reader skips it
  std::string replaced;   // "is shorter than before": the store isn't the one of this position. Nothing else is set
};

// A log, a table, or one run of a store. Not thread-safe: one thread.
class GrowingSource {
 public:
  virtual ~GrowingSource() = default;

  virtual const std::string& format() const { return format_; }           // an importer's id
  const std::filesystem::path& path() const { return path_; }             // the file or folder; absolute
  const std::string& source() const { return source_; }                   // names the run: no other has the same
  virtual std::string name() const { return path_.filename().string(); }  // of a run that the store doesn't name

  // The source whose run goes on in this one, as a new attempt; empty: none.
  virtual std::string continues() const { return {}; }

  // Whether the run began at this moment (unix seconds) or later, or the store can't hold an older one.
  virtual bool began_since(double) { return true; }

  // Whether the files differ from those of the last call; true at the first.
  virtual bool has_changed();

  // Reads what follows `from`, as far as it is whole. `impatient`: damaged data will not become whole, so it is
  // skipped. Throws ImportError and, if another process holds a database for long, StorageError: then nothing is lost,
  // and the next call reads it.
  virtual SourcePiece read(const SourcePosition& from, bool impatient) = 0;

  // There will be no more: what `read` held back, and a last line without an end.
  virtual SourcePiece finish(const SourcePosition& from) { return {.news = {}, .end = from}; }

  // The files whose writer is the run's process.
  virtual std::vector<std::filesystem::path> files() const = 0;

  // Sets the end of a run, with the reason, whose writer has exited without recording one.
  virtual void finish_idle(Run& run) const = 0;

 protected:
  GrowingSource(std::string format, std::filesystem::path path, const std::string& run = {});

  // The file, which stays open while it may grow, so that data that was written before the file was renamed or removed
  // is read as well. Once all of its `bytes` are read, it is the one that has the name now. Null if it can't be opened.
  const RegularFile* hold(const std::filesystem::path& file, std::int64_t bytes);
  void let_silent_go();
  void let_go() { held_.clear(); }
  std::vector<std::filesystem::path> held_files() const;

 private:
  std::map<std::filesystem::path, std::unique_ptr<RegularFile>> held_;
  std::string format_;
  std::filesystem::path path_;
  std::string source_;
  std::string stamp_ = "?";
};

// A database of another tracker, which may hold several runs and get more.
class GrowingDatabase {
 public:
  virtual ~GrowingDatabase() = default;
  // The runs that no earlier call has returned. Throws as GrowingSource::read.
  virtual std::vector<std::unique_ptr<GrowingSource>> find_new() = 0;
};

// A database whose runs `News::runs` lists by id; a `GrowingRun` is made of the news and an id.
template <class News, class GrowingRun>
class GrowingRuns : public GrowingDatabase {
 public:
  explicit GrowingRuns(std::shared_ptr<News> news) : news_(std::move(news)) {}

  std::vector<std::unique_ptr<GrowingSource>> find_new() override {
    std::vector<std::unique_ptr<GrowingSource>> found;
    for (const auto& [id, news] : news_->runs())
      if (known_.insert(id).second) found.push_back(std::make_unique<GrowingRun>(news_, id));
    return found;
  }

 private:
  const std::shared_ptr<News> news_;
  std::set<std::string> known_;
};

// The path of the store that has this source().
std::filesystem::path path_of_source(std::string_view source);

// Sizes and times of files, which change whenever one of them is written.
std::string stamp_of(const std::vector<std::filesystem::path>& files);

// The mark of a file's first `bytes` bytes, by which a replaced file is noticed: {"bytes": 1234, "head": ...}.
Json mark_of(const RegularFile& file, std::int64_t bytes);
// The reason why the file isn't the one with this mark; empty if it is, or if the mark is null.
std::string replaced_since(const RegularFile& file, const Json& mark);

// Adds the contents of a piece to the known run: facts, configuration and environment. Returns the tokens of one
// sample; 0 if the configuration doesn't give them.
std::int64_t add_facts(const ForeignRun& news, Run& run);

// The delay with which a writer of this format passes on its values, by its documentation: "TensorBoard writes every
// 120 s unless its buffer fills"; empty if at once.
std::string_view writer_delay(std::string_view format);

}  // namespace stepladder
