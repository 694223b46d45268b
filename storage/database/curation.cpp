#include "storage/database/curation.h"

#include <fmt/format.h>

#include <algorithm>

#include "storage/bounded_text.h"
#include "storage/database/column_values.h"
#include "storage/database/database.h"

namespace stepladder {
namespace {

constexpr const char* columns = "tags, note, pinned, archived, deleted_at";

Curation curation_of(Statement& row) {  // of `columns`
  return {.tags = tags_from(bounded(row.text(0), longest_line)),
          .note = bounded(row.text(1), longest_note),
          .pinned = row.integer(2) != 0,
          .archived = row.integer(3) != 0,
          .deleted_at = row.real(4)};
}

}  // namespace

std::vector<std::string> tags_from(const std::string& text) {
  std::vector<std::string> tags;
  std::string tag;
  const auto take = [&] {
    if (!tag.empty() && std::ranges::find(tags, tag) == tags.end()) tags.push_back(tag);
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

Curation CurationChange::applied_to(Curation curation) const {
  for (const std::string& tag : removed_tags) std::erase(curation.tags, tag);
  for (const std::string& tag : added_tags)
    if (std::ranges::find(curation.tags, tag) == curation.tags.end()) curation.tags.push_back(tag);
  if (note) curation.note = *note;
  if (pinned) curation.pinned = *pinned;
  if (archived) curation.archived = *archived;
  if (deleted_at) curation.deleted_at = *deleted_at;
  return curation;
}

CurationChange change_between(const Curation& from, const Curation& to) {
  const auto only_in = [](const std::vector<std::string>& tags, const std::vector<std::string>& others) {
    std::vector<std::string> only;
    for (const std::string& tag : tags)
      if (std::ranges::find(others, tag) == others.end()) only.push_back(tag);
    return only;
  };
  CurationChange change{.added_tags = only_in(to.tags, from.tags), .removed_tags = only_in(from.tags, to.tags)};
  if (to.note != from.note) change.note = to.note;
  if (to.pinned != from.pinned) change.pinned = to.pinned;
  if (to.archived != from.archived) change.archived = to.archived;
  if (to.deleted() != from.deleted() || (to.deleted() && to.deleted_at != from.deleted_at))
    change.deleted_at = to.deleted_at;
  return change;
}

std::map<RunId, Curation> CurationStore::all() {
  Statement rows(database_, std::string("SELECT ") + columns + ", run_id FROM curation");
  std::map<RunId, Curation> curations;
  while (rows.step()) curations[rows.integer(5)] = curation_of(rows);
  return curations;
}

Curation CurationStore::of(RunId run) {
  Statement row(database_, std::string("SELECT ") + columns + " FROM curation WHERE run_id = ?");
  row.bind(run);
  return row.step() ? curation_of(row) : Curation{};
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

CurationChange CurationStore::change(RunId run, const CurationChange& change) {
  Transaction transaction(database_);
  const Curation before = of(run), after = change.applied_to(before);
  set(run, after);
  transaction.commit();
  return change_between(after, before);
}

}  // namespace stepladder
