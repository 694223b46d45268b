// Stores of other trackers that are read while they grow: piece by piece, each number once, from where an earlier
// reader has got to. The importers' readers do it, so a followed run and an imported one hold the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "storage/folder_watch.h"
#include "storage/importers/trackers/foreign_run.h"
#include "storage/regular_file.h"

namespace stepladder {

// Where a reader has got to; before the first piece 0 and null.
struct StorePosition {
  std::int64_t amount = 0;       // bytes or rows that were taken
  nlohmann::ordered_json state;  // what the next reader needs to go on
};

// About so much of a store is one piece, so memory is bounded by this and the largest record.
inline constexpr std::size_t store_piece_bytes = 512 << 10;
inline constexpr std::int64_t store_piece_rows = 4'000;

struct StorePiece {
  ForeignRun news;         // numbers in the order of the store; of the facts those that the piece gives, else empty
  bool has_ended = false;  // the store says so; news.run.status says how
  bool restarts = false;   // the writer went back to an earlier step before these numbers
  StorePosition end;
  bool more = false;      // there is more to read at once
  bool is_stuck = false;  // what follows is damaged or not yet whole; an impatient reader skips it
  std::string replaced;   // "is shorter than before": the store isn't the one of this position. Nothing else is set
};

// One run of a store. One thread.
class GrowingStore {
 public:
  virtual ~GrowingStore() = default;

  const std::string& format() const { return format_; }                   // an importer's id
  const std::filesystem::path& path() const { return path_; }             // the file or folder; absolute
  const std::string& source() const { return source_; }                   // names the run: no other has the same
  virtual std::string name() const { return path_.filename().string(); }  // of a run that the store doesn't name

  // Whether the run began at this moment (unix seconds) or later, or the store can't hold an older one.
  virtual bool began_since(double) { return true; }

  // Whether the files differ from those of the last call; true at the first.
  virtual bool has_changed();

  // What follows `from`, as far as it is whole. `impatient`: what is damaged will not become whole, so it is skipped.
  // Throws ImportError and, if another process holds a database for long, StorageError: then nothing is lost, and the
  // next call reads it.
  virtual StorePiece read(const StorePosition& from, bool impatient) = 0;

  // The files whose writer is the run's process.
  virtual std::vector<std::filesystem::path> files() const = 0;

  // How a run has ended whose writer is gone without a word of it; with the reason.
  virtual void settle(Run& run) const = 0;

 protected:
  GrowingStore(std::string format, std::filesystem::path path, const std::string& run = {});

  // The file, which stays open while it may grow, so that what was written before it got another name or was removed is
  // read as well; after these bytes, if they are all, the one that has its name now. Null if it can't be opened.
  const RegularFile* hold(const std::filesystem::path& file, std::int64_t bytes);
  void let_silent_go();
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
  // The runs that no earlier call has returned. Throws as GrowingStore::read.
  virtual std::vector<std::unique_ptr<GrowingStore>> find_new() = 0;
};

// Of the runs that `News::runs` tells by id; a `GrowingRun` is made of the news and an id.
template <class News, class GrowingRun>
class GrowingRuns : public GrowingDatabase {
 public:
  explicit GrowingRuns(std::shared_ptr<News> news) : news_(std::move(news)) {}

  std::vector<std::unique_ptr<GrowingStore>> find_new() override {
    std::vector<std::unique_ptr<GrowingStore>> found;
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

// Finds the stores at a path again and again.
class StoreSearch {
 public:
  // The runs that no earlier call has returned: of a store or database, or of those in a folder and up to four levels
  // below it. A file that can't be read yet is tried again by the next call; `unread` gets why.
  std::vector<std::unique_ptr<GrowingStore>> find_new(const std::filesystem::path& path, std::string& unread);

 private:
  bool look_into(const std::filesystem::path& folder);
  void add_file(const std::filesystem::path& file);
  void add(std::unique_ptr<GrowingStore> store);

  FolderWatch folders_{4};
  // By path; null: a file that isn't a database of a tracker yet.
  std::map<std::filesystem::path, std::shared_ptr<GrowingDatabase>> databases_;
  std::set<std::string> known_;  // sources
  std::vector<std::unique_ptr<GrowingStore>> found_;
  std::string* unread_ = nullptr;
};

// Sizes and times of files, which change whenever one of them is written.
std::string stamp_of(const std::vector<std::filesystem::path>& files);

// What a file's first `bytes` bytes were, so that one that was replaced is noticed: {"bytes": 1234, "head": ...}.
nlohmann::ordered_json mark_of(const RegularFile& file, std::int64_t bytes);
// Why the file isn't the one with this mark; empty if it is, or if the mark is null.
std::string replaced_since(const RegularFile& file, const nlohmann::ordered_json& mark);

// Adds what a piece says to what is known of its run: facts, configuration and environment. Returns the tokens of one
// sample; 0 if the configuration doesn't give them.
std::int64_t add_facts(const ForeignRun& news, Run& run);

// How often a writer of this format passes on what it has, as its documentation has it: "TensorBoard writes every 120 s
// unless its buffer fills"; empty if at once.
std::string_view writer_delay(std::string_view format);

}  // namespace stepladder
