#include "storage/database/curation.h"

#include <fmt/format.h>

#include <algorithm>

#include "storage/bounded_text.h"
#include "storage/database/column_values.h"
#include "storage/database/database.h"

namespace stepladder {

std::vector<std::string> tags_from(const std::string& text) {
  std::vector<std::string> tags;
  std::string tag;
  const auto take = [&] {
    if (!tag.empty() && std::find(tags.begin(), tags.end(), tag) == tags.end()) tags.push_back(tag);
    tag.clear();
  };
  for (const char c : text) {
    if (c == ',' || c == ' ' || c == '\t' || c == '\n') {
      take();
    } else {
      tag += c;
    }
  }
  take();
  return tags;
}

std::string tags_text(const std::vector<std::string>& tags) {
  return fmt::format("{}", fmt::join(tags, ", "));
}

std::map<RunId, Curation> CurationStore::all() {
  Statement rows(database_, "SELECT run_id, tags, note, pinned, archived, deleted_at FROM curation");
  std::map<RunId, Curation> curations;
  while (rows.step()) {
    curations[rows.integer(0)] = {.tags = tags_from(bounded(rows.text(1), longest_line)),
                                  .note = bounded(rows.text(2), longest_note),
                                  .pinned = rows.integer(3) != 0,
                                  .archived = rows.integer(4) != 0,
                                  .deleted_at = rows.real(5)};
  }
  return curations;
}

void CurationStore::set(RunId run, const Curation& curation) {
  Statement write(database_,
                  "INSERT INTO curation (run_id, tags, note, pinned, archived, deleted_at) VALUES (?, ?, ?, ?, ?, ?) "
                  "ON CONFLICT (run_id) DO UPDATE SET tags = excluded.tags, note = excluded.note, "
                  "pinned = excluded.pinned, archived = excluded.archived, deleted_at = excluded.deleted_at");
  const std::string tags = bounded(tags_text(curation.tags), longest_line);
  const std::string note = bounded(curation.note, longest_note);
  write.bind(run).bind(known(tags)).bind(known(note));
  write.bind(curation.pinned ? 1 : 0).bind(curation.archived ? 1 : 0).bind(curation.deleted_at).run();
}

}  // namespace stepladder
