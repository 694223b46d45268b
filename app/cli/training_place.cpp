#include "app/cli/training_place.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <thread>
#include <utility>

#include "app/cli/progress.h"
#include "app/exit_status.h"
#include "app/import/follow_request.h"
#include "app/import/journal_follower.h"
#include "storage/database/process.h"
#include "storage/errors.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

// A folder that only this user may read.
fs::path new_temporary_folder() {
  std::error_code error;
  const fs::path parent = fs::temp_directory_path(error);  // TMPDIR, else /tmp
  std::string name = ((error ? fs::path("/tmp") : parent) / "stepladder-XXXXXX").string();
  if (!::mkdtemp(name.data()))
    throw StorageError("the temporary database cannot be created in " + fs::path(name).parent_path().string() + ": " +
                       std::strerror(errno));
  return name;
}

}  // namespace

TrainingPlace::TrainingPlace(const CommonOptions& common) : database_(common.database) {
  if (common.journals.empty()) return;
  folders_.journals = fs::absolute(common.journals);
  if (common.database_is_named) return;
  folders_.checkpoints = folders_.journals / "checkpoints";
  temporary_ = new_temporary_folder();
  database_ = temporary_ / "stepladder.db";
}

void TrainingPlace::ingest_journals() {
  if (temporary_.empty()) return;
  RunStore store = RunStore::open(database_);
  JournalFollower follower(store, {.paths = {folders_.journals}}, [](const std::string&) {});
  follower.scan();
  const auto since = std::chrono::steady_clock::now();
  for (bool said = false; !interrupted();) {
    if (follower.poll()) continue;
    follower.finish_idle_runs();
    const std::vector<Run> going_on = store.processes().runs_under_way();
    if (going_on.empty()) break;
    const std::vector<RunId> own = store.processes().runs_owned_by(this_process());
    const bool is_here =
        std::ranges::any_of(going_on, [&](const Run& run) { return std::ranges::find(own, run.id) == own.end(); });
    if (is_here || std::chrono::steady_clock::now() - since > give_up_after + std::chrono::seconds(5))
      throw UsageError("a process still trains run '" + going_on.front().name + "' of " + folders_.journals.string() +
                       "; stop it first");
    if (!std::exchange(said, true))
      say_note("stepladder: waiting up to a minute to see whether another machine still trains these runs");
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  if (store.runs().empty()) throw UsageError("there are no journals of runs in " + folders_.journals.string());
  store.following().adopt_all();  // as runs of this database; the order book knows which of them this user launched
}

TrainingPlace::~TrainingPlace() {
  if (temporary_.empty()) return;
  if (begun_ && !done_) {
    std::cerr << "stepladder: the runs are kept in " << database_.string() << ", since " << folders_.journals.string()
              << " may lack their last lines\n";
    return;
  }
  std::error_code ignored;
  fs::remove_all(temporary_, ignored);
}

void add_journal(CLI::App& command, CommonOptions& common) {
  command.add_option("--journal", common.journals,
                     "Also write each run as a journal into this folder, which another machine can follow; without "
                     "--db it replaces the database");
}

}  // namespace stepladder
