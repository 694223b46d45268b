// Follows journals (docs/journal.md) while they grow: each value is stored exactly once, whoever is restarted.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/import/contents.h"
#include "app/import/follow_request.h"
#include "app/import/journal_origin.h"
#include "storage/database/process.h"
#include "storage/database/run_store.h"
#include "storage/folder_watch.h"
#include "storage/importers/journal/journal.h"
#include "storage/importers/journal/journal_run.h"
#include "storage/importers/journal/run_events.h"
#include "storage/intake/intake.h"
#include "storage/json_values.h"
#include "storage/regular_file.h"

namespace stepladder {

// Used by one thread, as its store.
class JournalFollower {
 public:
  // `report` gets a sentence for a person: a run begins, ends, or a file can't be read.
  JournalFollower(RunStore& store, FollowRequest request, std::function<void(const std::string&)> report);

  // Looks for new journals. Costs a walk through the folders.
  void scan();

  // Adds a journal that the caller has found. With `joined`, the journals of its folder complete that run, which has a
  // name, an owner and an end of its own.
  void add(const std::filesystem::path& path, std::optional<RunId> joined = std::nullopt);

  // The journal that has joined a run under an earlier process, by its source in the table `followed`.
  static std::optional<std::filesystem::path> joined_journal(RunStore& store, const std::string& source);

  // Stores what is new in the journals since the last call, a piece of each. Returns whether more is ready. Throws
  // StorageError; then nothing of the piece is stored, and the next call tries it again.
  bool poll();

  // Runs whose process has exited without ending them become interrupted. `poll` does so as well, after a while.
  // `at_end`: this process reads no more, so it also ends those that no process is known to log.
  void finish_idle_runs(bool at_end = false);

  // For far journals: no process will add to them, so their runs end once everything in them is stored.
  void writers_are_gone(const std::string& why);

  std::vector<FollowedRun> runs() const;

  // Whether a journal was left out, since it was imported before.
  bool has_imported() const { return has_imported_; }

  // Whether a joined journal has had values of this metric since this process began to follow it.
  bool has_joined(const std::string& metric) const { return joined_metrics_.contains(metric); }
  bool has_joined_times() const { return has_joined_times_; }  // and step times that the script took itself

 private:
  using Clock = std::chrono::steady_clock;

  struct File {
    std::filesystem::path path;
    std::optional<JournalHeader> header;
    std::optional<PlannedRun> planned;     // the journal is of one of Stepladder's own runs
    bool is_left_out = false;              // the run of its uid was created by something else: nothing is imported
    RunStatus status = RunStatus::queued;  // of such a run, by what is stored of its journal
    std::string source;                    // in the table `followed`
    FollowedSource stored;                 // as this process knows it
    LoggedSteps steps;
    bool position_known = false;
    bool completes_existing = false;    // the file lost the position: what is stored already is completed
    std::unique_ptr<RegularFile> open;  // while it may grow: also when its name is gone
    std::uint64_t header_end = 0;       // lines before it belong to nothing
    bool ended = false;                 // its last line is stored
    Clock::time_point next_look{};
    std::uint64_t size = 0;  // when it was last read
    bool drained = false;    // then: to its last whole line
    Clock::time_point grown;
    std::optional<Clock::time_point> stuck_since;
    std::uint64_t skipped = 0;  // bytes of damage
    std::uint64_t skipped_reported = 0;
  };
  struct Group {  // the journals of one run, by rank and attempt
    std::filesystem::path folder;
    std::map<JournalPlace, File> files;
    RunId run = 0;
    std::optional<RunId> joined;
    JournalOrigin origin;
    std::set<RunId> refused;  // runs that its journals name or are, which was reported
    Json descriptions;
    std::int64_t values_read = 0;
    Clock::time_point next_look{};
    bool settled = false;  // it is over, as far as its files show
  };
  struct Piece {
    std::vector<JournalEvent> events;
    std::uint64_t end = 0;  // of them, in the file
    std::uint64_t skipped = 0;
    bool more = false;
    bool held_back = false;  // the last event waits for the one after it
  };

  bool poll(Group& group);
  bool poll(Group& group, File& file);
  void look_again_later(File& file);
  void report_skipped(File& file);
  bool read_header(File& file);
  std::optional<JournalHeader> find_header(File& file);
  Piece read_piece(File& file);
  void store(Group& group, File& file, const Piece& piece);
  void load_position(Group& group, File& file);
  RunId run_of(const Group& group, const File& file, const std::optional<FollowedSource>& stored);
  bool leaves_out(Group& group, File& file, RunId run, const std::optional<FollowedSource>& stored);
  bool was_imported(Group& group, const File& file);
  void store_script(Group& group, File& file, const Piece& piece, LoggedSteps& steps);
  void store_own(Group& group, File& file, const Piece& piece);
  void queue_own(Group& group, const File& file);
  void place_own(Group& group, const PlannedRun& planned, Run& run);
  std::string state_of(const Group& group, const File& file, const LoggedSteps& steps) const;
  void create_run(Group& group, const File& file);
  void update_run(RunId id, const File& file, const JournalRun& journal, const LoggedSteps& steps);
  void update_joined_run(RunId id, const JournalRun& journal, const LoggedSteps& steps);
  void store_batch(const Group& group, File& file, LoggedBatch& batch);
  void finish_if_idle(Group& group);
  std::string why_over(const File& newest) const;
  void own(const Group& group, const File& file, bool is_new);
  bool may_grow(const File& file) const;
  bool is_abandoned(const File& file) const;

  RunStore& store_;
  const FollowRequest request_;
  Intake intake_;
  std::map<std::filesystem::path, Group> groups_;  // by folder
  std::set<std::string> joined_metrics_;
  bool has_joined_times_ = false;
  FolderWatch folders_;
  bool at_end_ = false;
  std::optional<ImportedContents> contents_;  // once they are needed
  bool has_imported_ = false;
  std::string gone_;  // why the writers of far journals are gone; empty: they may not be
};

// The process that writes the journal, and whether it is alive on this machine.
ProcessIdentity writer_of(const JournalHeader& header);
bool is_alive_here(const JournalHeader& header);

}  // namespace stepladder
