// Text that people write or read, in UTF-8: its characters, and the longest that is kept.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace stepladder {

// In bytes. Longer texts are cut when they are stored and when they are read, since a log or somebody else's file may
// hold any text, and every list shows it.
inline constexpr std::size_t longest_name = 500;            // of a run, ladder, stage or device
inline constexpr std::size_t longest_kernel_name = 20'000;  // with its template arguments
inline constexpr std::size_t longest_line = 5'000;          // a change, a reason, a path, all tags
inline constexpr std::size_t longest_note = 100'000;        // notes

// The text if it has at most `most` bytes; else its beginning and an ellipsis. Cuts no character in two.
std::string bounded(std::string text, std::size_t most);

// Bytes of the character at the text's beginning; 0 if the bytes aren't UTF-8 (RFC 3629, table in section 4).
std::size_t utf8_length(std::string_view text);

// Whether a character, as UTF-8, controls a terminal or reorders text instead of being shown: the control characters
// C0, DEL and C1, and Unicode's bidirectional controls.
bool is_control(std::string_view character);

}  // namespace stepladder
