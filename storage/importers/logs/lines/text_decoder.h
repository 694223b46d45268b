// Converts an input to UTF-8, piece by piece, if its start shows UTF-16. Passes other text on unchanged.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stepladder {

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

}  // namespace stepladder
