// Cuts bytes into lines, as a terminal would show them: without colour codes, redrawn bars one after the other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "storage/importers/importer.h"

namespace stepladder {

// Converts an input to UTF-8, piece by piece, if its start shows UTF-16. Passes other text on unchanged.
// Whether these first bytes are text (UTF-8, UTF-16, any one-byte encoding) rather than binary.
bool looks_like_text(std::string_view head);

class TextDecoder {
 public:
  // `head` is the start of the input.
  explicit TextDecoder(std::string_view head);

  // The text of the next piece, valid until the next call. A character may be cut between two pieces.
  std::string_view decode(std::string_view bytes);

 private:
  void convert_utf16(std::string_view bytes);

  bool is_utf16_, is_big_endian_;
  bool started_ = false;
  std::string converted_;
  std::string odd_;         // bytes of a character that the next piece completes
  std::uint32_t high_ = 0;  // first half of a surrogate pair
};

class LineReader {
 public:
  // Notes what it skips.
  explicit LineReader(ImportSink& sink) : skipped_(sink, "lines were skipped, too long or with NUL bytes") {}

  // The next bytes, which stay valid until `next` has returned false. Throws ImportError if the first piece is binary.
  void give(std::string_view bytes);

  // There are no more bytes, so that the last line needs no end. Throws ImportError if there were none.
  void finish();

  // The next line, valid until the next call; false if it needs more bytes. Ends are LF, CR and backspace (a bar that
  // is redrawn); of these only LF counts as a line. Lines over a MiB are skipped with a note.
  bool next(std::string_view& line);

  std::int64_t number() const { return number_; }      // of the line just given, from 1
  bool has_given_rest() const { return rest_given_; }  // the line just given is the last one, and has no end

 private:
  void skipped(const char* why);
  bool cut(std::string_view& line);
  bool cut_last(std::string_view& line);

  static constexpr std::size_t longest = 1 << 20;

  std::optional<TextDecoder> decoder_;  // from the first piece on
  std::string_view rest_;               // of the piece that is being cut
  std::string carried_;                 // the start of a line whose end is in the next piece
  std::string given_;                   // the line just given, if it spans pieces
  std::string plain_;                   // ... without its colour codes
  std::int64_t number_ = 1;
  std::int64_t ended_ = 0;  // lines ended so far
  bool skipping_ = false;   // until the end of an overlong line
  bool in_hole_ = false;    // of NUL bytes
  bool finished_ = false;
  bool ends_noted_ = false;
  bool rest_given_ = false;
  CappedNotes skipped_;
};

}  // namespace stepladder
