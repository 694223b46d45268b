#include "storage/bounded_text.h"

namespace stepladder {

std::string bounded(std::string text, std::size_t most) {
  constexpr std::string_view ellipsis = "\xE2\x80\xA6";
  if (text.size() <= most) return text;
  std::size_t end = most - ellipsis.size();
  for (int back = 0; back < 3 && end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80; ++back) --end;
  text.resize(end);
  text.shrink_to_fit();
  return text.append(ellipsis);
}

std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(i < text.size() ? text[i] : 0); };
  const auto continues = [&](std::size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const unsigned char first = byte(0);
  if (first < 0x80) return text.empty() ? 0 : 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  if (first < 0xE0) return continues(1) ? 2 : 0;
  if (first < 0xF0) {
    const bool overlong = first == 0xE0 && byte(1) < 0xA0;
    const bool surrogate = first == 0xED && byte(1) > 0x9F;
    return continues(1) && continues(2) && !overlong && !surrogate ? 3 : 0;
  }
  const bool overlong = first == 0xF0 && byte(1) < 0x90;
  const bool too_large = first == 0xF4 && byte(1) > 0x8F;
  return continues(1) && continues(2) && continues(3) && !overlong && !too_large ? 4 : 0;
}

bool is_control(std::string_view character) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(character[i]); };
  switch (character.size()) {
    case 1:
      return byte(0) < 0x20 || byte(0) == 0x7F;
    case 2:  // U+0080 to U+009F; U+061C
      return (byte(0) == 0xC2 && byte(1) < 0xA0) || character == "\xD8\x9C";
    case 3:  // U+200E, U+200F, U+202A to U+202E; U+2066 to U+2069
      return byte(0) == 0xE2 &&
             ((byte(1) == 0x80 && (byte(2) == 0x8E || byte(2) == 0x8F || (byte(2) >= 0xAA && byte(2) <= 0xAE))) ||
              (byte(1) == 0x81 && byte(2) >= 0xA6 && byte(2) <= 0xA9));
    default:
      return false;
  }
}

}  // namespace stepladder
