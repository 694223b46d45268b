// One of Stepladder's own runs as lines of a journal (docs/journal.md): written where it is trained, and read back as
// the same events. Both directions are here, so that they agree.
#pragma once

#include <optional>
#include <string>

#include "storage/importers/journal/journal_reader.h"
#include "storage/json_values.h"
#include "storage/records.h"

namespace stepladder {

// A line of a journal: the object in ASCII, a tab, its checksum, a line feed.
std::string journal_line(const Json& fields);

// A run when it was queued, with what belongs to it. Numbers that only one database knows (`id`, `parent`, `ladder`)
// aren't part of it.
struct PlannedRun {
  Run run;
  std::optional<Ladder> ladder;
  std::string parent_uid;  // of the run that it was forked from

  // The value of the field `stepladder` of a `run` line.
  Json fields() const;
  // Empty if the `run` line is somebody else's. Whatever the line says, the run is `queued` and `launched`.
  static std::optional<PlannedRun> of(const Json& run_line);
};

// An event as a line. A line has at most JournalReader::longest_line bytes: a longer text is cut, and the cheapest
// operators of a profile are added up.
std::string line_of(const RunEvent& event);

// The event in such a line, for that run; empty for other lines.
std::optional<RunEvent> run_event_of(const JournalEvent& event, RunId run);

// How a run ended by the fields of its journal's `end` line. It is finished only if the line says so, or has the exit
// code 0; without a word of success it is interrupted. Another exit code, or a status that this version doesn't know,
// is a failure. The reason is the line's, else what the line shows.
struct JournalEnd {
  RunStatus status = RunStatus::interrupted;
  std::string reason;
};
JournalEnd journal_end(const nlohmann::ordered_json& fields);

// Bytes as text whose characters are U+0000 to U+00FF, and back; other characters become '?'.
std::string text_of_bytes(std::string_view bytes);
std::string bytes_of_text(std::string_view text);

}  // namespace stepladder
