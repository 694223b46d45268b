// The positions up to which journals and other trackers' stores have been stored (docs/database.md, `followed`). A part
// of RunStore, which has its threads, locks and errors.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "storage/database/process.h"
#include "storage/records.h"

namespace stepladder {

// The ways in which parts of steps are merged into the stored records of these steps.
enum class Completion {
  replace,        // what a part knows replaces what the file has; no earlier attempt is kept
  keep_repeated,  // the same, but a step whose loss or validation loss is known already is kept as an earlier attempt
  fill,           // a part only adds what the file doesn't know
  withdraw_loss,  // the loss of a part is none of the run's: the file forgets it where it has the same
};

class Database;
class Derived;

struct FollowedSource {
  RunId run = 0;
  std::int64_t bytes = 0;  // of the source, whose content is stored
  std::string state;       // what its reader needs to go on
  bool operator==(const FollowedSource&) const = default;
};

class FollowStore {
 public:
  FollowStore(Database& database, Derived& derived) : database_(database), derived_(derived) {}

  // Write the new position in the same transaction as what was read: then everything is stored exactly once.
  std::optional<FollowedSource> position(std::string_view source);
  void set_position(std::string_view source, const FollowedSource& position);

  std::vector<FollowedSource> journals(std::string_view uid);  // of this uid, whatever run has taken them in

  bool is_followed(RunId run);
  std::vector<std::string> sources_of(RunId run);
  std::optional<RunId> run_with_uid(std::string_view uid);  // also one in the bin
  std::optional<LadderId> ladder_with_uid(std::string_view uid);
  std::optional<RunId> first_run_of(LadderId ladder);
  void own(RunId run, const ProcessIdentity& owner);
  void disown(RunId run);  // it trains on another machine, whatever becomes of this one's processes

  // As RunStore::apply, for a caller's transaction: leaves what is derived from a run's steps to RunStore::summary.
  void apply(std::span<const RunEvent> events);

  // Makes the file's runs those of this process: nobody follows their journals here any more.
  void adopt_all();

  // Parts of steps. A step that isn't there is added.
  void complete_steps(RunId run, std::span<const StepRecord> steps, Completion how = Completion::replace);

 private:
  Database& database_;
  Derived& derived_;
};

}  // namespace stepladder
