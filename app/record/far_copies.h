// The copies of a checkout's states on another machine, and the commands that run in them, for a series of tries that
// is measured there (docs/try.md). There the copies are FOLDER/tries/UID/a and b, FOLDER being the far program's. What
// a command printed and how it ended arrive in the files of its MeasuredCommand, so the rest is as for commands here.
//   NAME.json.far   the uid of a command's request, written before it is made: a killed program follows that request.
//                   A second line says that it was asked to end
//   a.there, b.there   the state that a copy there holds; missing: not known
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/machines/far_runs.h"
#include "app/record/measured_command.h"
#include "app/record/try_trees.h"
#include "storage/database/run_store.h"

namespace stepladder {

// Not thread-safe: one thread, that of its store. Every verb blocks until the machine has done it or `stop` is true,
// also while the machine can't be reached, which is reported. Each throws StorageError if it never will be, UsageError
// if it is no longer one of the project's machines, and std::runtime_error if files can't be packed.
class FarCopies {
 public:
  using Report = std::function<void(const std::string&)>;

  // `folder`: of the series, FILE.tries/UID. `ignored`: the machine's folder with the files that git ignores.
  FarCopies(RunStore& store, std::string machine, std::filesystem::path folder, std::string ignored, Report report,
            std::function<bool()> stop);
  ~FarCopies();

  // Gives a copy there the state of the copy `here`, which has the same name: sends what has changed, or all of it,
  // undoes what runs did to these files, and links the ignored ones. Returns its folder there; nothing if it was
  // stopped.
  std::optional<std::string> hold(const TryTrees& trees, const std::filesystem::path& here, const std::string& tree,
                                  const std::vector<std::string>& links);

  // Whether the machine has been asked to run it, and its end isn't stored here.
  bool is_begun(const MeasuredCommand& command) const;

  // Runs the command to its end, or follows the request that was made before. Nothing if it was stopped: then it
  // continues there.
  std::optional<CommandEnd> run(const MeasuredCommand& command);

  // Ends a command that nobody waits for any more. The end of one that had ended by itself. Nothing happens if the
  // machine isn't the project's any more.
  std::optional<CommandEnd> end(const MeasuredCommand& command);

  // Waits for commands that a killed program left there. False if it was stopped.
  bool wait_for_left();

  // Removes the copies there; hold() makes them anew. A machine that isn't reached soon does it when it is reached
  // again, and that is reported. Doesn't throw.
  void remove();

 private:
  Machine machine() const;
  bool is_machine_known() const;
  FarRuns& runs();
  std::optional<Uid> begun(const std::filesystem::path& order) const;
  bool is_given_up(const std::filesystem::path& order) const;  // asked to end, so its end says nothing
  Uid start(const std::filesystem::path& order, FarCommand command);
  std::optional<FarRun> over(const Uid& uid) const;
  void poll();
  std::optional<FarRun> wait(const Uid& uid);
  std::optional<CommandEnd> take(const MeasuredCommand& command, const FarRun& run);
  std::string output_of_run(const Uid& uid) const;  // its last MiB
  void copy_output(const Uid& uid, const std::filesystem::path& log, const std::string& last_line) const;
  void drop(const std::filesystem::path& order);
  std::filesystem::path state(const std::string& name) const { return folder_ / ".state" / name; }

  RunStore& store_;
  const std::string alias_;
  const std::filesystem::path folder_;
  const std::string ignored_;
  const Report report_;
  const std::function<bool()> stop_;
  std::unique_ptr<FarRuns> runs_;  // once the machine is needed
};

}  // namespace stepladder
