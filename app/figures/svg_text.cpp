#include "app/figures/svg_text.h"

#include <algorithm>

namespace stepladder {
namespace {

// Bytes of the UTF-8 character that begins here; 0 if none does, or if XML forbids it.
std::size_t character_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  if (first < 0x80) return first >= 0x20 || first == '\t' || first == '\n' || first == '\r' ? 1 : 0;
  const std::size_t length = first >= 0xF0 && first < 0xF5 ? 4 : first >= 0xE0 ? 3 : first >= 0xC2 ? 2 : 0;
  if (length == 0 || first >= 0xF5 || at + length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) return 0;
  }
  const unsigned char second = byte(at + 1);
  const bool overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool surrogate = first == 0xED && second >= 0xA0;
  const bool beyond = first == 0xF4 && second >= 0x90;
  const bool not_a_character = first == 0xEF && second == 0xBF && byte(at + 2) >= 0xBE;
  return overlong || surrogate || beyond || not_a_character ? 0 : length;
}

}  // namespace

std::string xml_escaped(std::string_view text) {
  std::string escaped;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = character_at(text, i);
    if (length == 0) {
      escaped += "\xEF\xBF\xBD";
      ++i;
      continue;
    }
    switch (text[i]) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += text.substr(i, length);
    }
    i += length;
  }
  return escaped;
}

std::string shortened(std::string_view text, double width, double size_px) {
  constexpr std::string_view ellipsis = "\xE2\x80\xA6";
  std::string cut(text);
  if (text_width(cut, size_px) <= width) return cut;
  while (!cut.empty() && text_width(cut, size_px) + text_width(ellipsis, size_px) > width) {
    while (!cut.empty() && (static_cast<unsigned char>(cut.back()) & 0xC0) == 0x80) cut.pop_back();
    if (!cut.empty()) cut.pop_back();
  }
  return cut.append(ellipsis);
}

double text_width(std::string_view text, double size_px) {
  double em = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xC0) == 0x80) continue;  // the rest of a character
    if (byte >= 0xE3)
      em += 1.0;  // Chinese, Japanese, Korean, pictures
    else if (byte >= 0x80 || (c >= '0' && c <= '9'))
      em += 0.62;
    else if (std::string_view("iljI.,:;'|!()[]").find(c) != std::string_view::npos)
      em += 0.29;
    else if (std::string_view(" frt/-").find(c) != std::string_view::npos)
      em += c == ' ' ? 0.28 : 0.39;
    else if (std::string_view("mwMW@%").find(c) != std::string_view::npos)
      em += 0.88;
    else if (c >= 'A' && c <= 'Z')
      em += 0.68;
    else
      em += 0.575;
  }
  return em * size_px;
}

std::vector<std::string> wrapped(const std::string& text, double width, double size_px) {
  std::vector<std::string> lines;
  std::string line;
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t to = std::min(text.find(' ', from), text.size());
    const std::string word = text.substr(from, to - from);
    const std::string longer = line.empty() ? word : line + " " + word;
    if (!line.empty() && text_width(longer, size_px) > width) {
      lines.push_back(line);
      line = word;
    } else {
      line = longer;
    }
    from = to + 1;
  }
  if (!line.empty()) lines.push_back(line);
  return lines;
}

}  // namespace stepladder
