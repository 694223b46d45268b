// Reads a journal (docs/journal.md): bytes in, events out. Pure and incremental, so that a file can be read while it
// grows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "storage/importers/journal/journal_line.h"
#include "storage/json_values.h"

namespace stepladder {

struct JournalEvent {
  std::string kind;  // "e"
  Json fields;       // the whole object, nested at most 20 deep
};

// Memory is bounded by the longest line and the largest piece that is taken.
class JournalReader {
 public:
  static constexpr std::size_t longest_line = longest_journal_line;

  // `offset`: where the bytes begin in the file, and the byte before them.
  explicit JournalReader(std::uint64_t offset = 0, char before = '\n')
      : good_(offset), in_damage_(!ends_damage(before)) {}

  // The bytes after those it has.
  void take(std::string_view bytes) { bytes_.append(bytes); }

  // The next event; false if it needs more bytes or meets a bad line (is_stuck). Skips whole lines that are no events.
  bool next(JournalEvent& event);

  // Every byte before this one has been read. A later reader continues here.
  std::uint64_t good() const { return good_; }

  // A line is complete but bad: zeros that NFS shows for a while, damage. It may be good later: then read again from
  // `good()`. `skip` gives up the line, to its end or to the last zero before that. The next calls of `next` skip the
  // part that hasn't arrived yet, so it doesn't matter how the bytes are cut.
  bool is_stuck() const { return stuck_; }
  void skip();

  bool has_rest() const { return begin_ < bytes_.size(); }  // bytes that aren't a whole line
  std::uint64_t skipped_bytes() const { return skipped_; }
  // Lines with a right checksum that aren't an event.
  std::uint64_t malformed_lines() const { return malformed_; }

 private:
  static bool ends_damage(char byte) { return byte == '\n' || byte == '\0'; }
  void skip_damage();
  void drop(std::size_t size);

  std::string bytes_;      // from `good_` - `begin_` on
  std::size_t begin_ = 0;  // of what isn't read yet, in `bytes_`
  std::uint64_t good_;
  std::uint64_t skipped_ = 0;
  std::uint64_t malformed_ = 0;
  bool stuck_ = false;
  bool in_damage_;  // the bytes belong to damage that was given up
};

// The number in a field; `missing` if there is none.
double number_in(const Json& object, const char* name);

// A number or "NaN", "Infinity", "-Infinity"; false for anything else.
bool number_of(const Json& value, double& number);

}  // namespace stepladder
