// A user's own marks on a run: tags, a note, a pin, the archive, the bin. Nothing that was measured.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "storage/records.h"

namespace stepladder {

struct Curation {
  std::vector<std::string> tags;  // in the order of adding, none twice
  std::string note;
  bool pinned = false;    // listed before the others
  bool archived = false;  // listed only when asked for
  double deleted_at =
      missing;  // in the bin since then (unix seconds): in no list, and deleted permanently after `bin_days`

  bool deleted() const { return !is_missing(deleted_at); }
};

// One change of a run's marks; everything that it doesn't name stays as it is.
struct CurationChange {
  std::vector<std::string> added_tags = {}, removed_tags = {};
  std::optional<std::string> note = {};
  std::optional<bool> pinned = {}, archived = {};
  std::optional<double> deleted_at = {};

  Curation applied_to(Curation curation) const;
  bool empty() const {
    return added_tags.empty() && removed_tags.empty() && !note && !pinned && !archived && !deleted_at;
  }
  bool deletes() const { return deleted_at && !is_missing(*deleted_at); }
};
CurationChange change_between(const Curation& from, const Curation& to);

inline constexpr double bin_days = 30;

// "fast, a100 fast" -> {"fast", "a100"}: tags are separated by commas or spaces.
std::vector<std::string> tags_from(const std::string& text);
std::string tags_text(const std::vector<std::string>& tags);  // "fast, a100"

class Database;

// A part of RunStore, which has its threads, locks and errors.
class CurationStore {
 public:
  explicit CurationStore(Database& database) : database_(database) {}

  std::map<RunId, Curation> all();  // without runs that have no mark
  Curation of(RunId run);
  void set(RunId run, const Curation& curation);
  // Applies it to what is stored now, in one transaction. Returns what undoes it.
  CurationChange change(RunId run, const CurationChange& change);

 private:
  Database& database_;
};

}  // namespace stepladder
