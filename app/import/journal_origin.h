// The place that a journal is from. A run accepts only journals from the place that created it, since everybody who has
// seen a journal knows its uid.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "storage/database/run_store.h"
#include "storage/json_values.h"

namespace stepladder {

struct JournalOrigin {
  struct Place {
    std::string name;      // a folder's path without links; "far UID"
    std::string identity;  // of a folder that may be moved: device, inode and when it was made; empty: not known

    bool is(const Place& other) const {
      return (!name.empty() && name == other.name) || (!identity.empty() && identity == other.identity);
    }
  };
  Place folder;
  Place above;  // contains the journals of one ladder

  static JournalOrigin of_folder(const std::filesystem::path& folder);
  static JournalOrigin far(const std::string& name) { return {{name, ""}, {name, ""}}; }

  // As a part of the state in the table `followed`; empty if it isn't there, as in rows of earlier versions.
  Json json() const;
  static std::optional<JournalOrigin> in(const std::string& state);
};

// Whether a journal of this origin may add to the run with its uid.
enum class MayAdd {
  yes,
  as_first,  // an earlier version has followed it and didn't store from where: this is the place from now on
  no,
};
MayAdd may_add(RunStore& store, const Run& run, const std::string& uid, const JournalOrigin& origin);

// Whether the run is from the folder that contains this origin's folder.
bool is_beside(RunStore& store, const Run& run, const JournalOrigin& origin);

// "was launched here", "is followed from /data/journals/demo": for a run that a journal may not add to.
std::string maker_of(RunStore& store, const Run& run, const std::string& uid);

}  // namespace stepladder
