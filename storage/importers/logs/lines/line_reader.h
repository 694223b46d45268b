// Cuts an input into lines, as a terminal would show them: colour codes gone, redrawn bars one after the other.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "storage/importers/importer.h"

namespace stepladder {

// Whether these first bytes are text (UTF-8, UTF-16 with its mark, any one-byte encoding) rather than binary.
bool looks_like_text(std::string_view head);

class LineReader {
 public:
  // Notes what it skips. Throws ImportError for input that is empty or binary.
  LineReader(ImportInput& input, ImportSink& sink);

  // The next line, valid until the next call; false at the end. Ends are LF, CR and backspace (a bar that is redrawn);
  // of these only LF counts as a line. Lines over a MiB are skipped with a note.
  bool next(std::string_view& line);

  std::int64_t number() const { return number_; }  // of the line just given, from 1
  bool redrawn() const { return redrawn_; }        // the line just given ended with CR: the next one overwrites it

 private:
  void skipped(const char* why);
  bool cut(std::string_view& line);
  bool refill();
  void convert_utf16(std::string_view bytes);

  static constexpr std::size_t longest = 1 << 20;

  enum class Encoding { utf8, utf16_le, utf16_be };

  ImportInput& input_;
  ImportSink& sink_;
  Encoding encoding_ = Encoding::utf8;
  std::string_view rest_;   // of the piece that is being cut
  std::string carried_;     // the start of a line whose end is in the next piece
  std::string given_;       // the line just given, where it lies in no piece
  std::string plain_;       // ... without its colour codes
  std::string converted_;   // the piece, where it was UTF-16
  std::string odd_;         // bytes of a character that the next piece completes
  std::uint32_t high_ = 0;  // first half of a surrogate pair
  std::int64_t number_ = 1;
  std::int64_t ended_ = 0;  // lines ended so far
  int skipped_ = 0;         // lines
  bool skipping_ = false;
  bool redrawn_ = false;
  bool started_ = false;
  bool finished_ = false;
};

}  // namespace stepladder
