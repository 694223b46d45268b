// Escapes, measures and wraps text for SVG and HTML. Widths are Inter's, within a few per cent, since exports have no
// font at hand. Characters that XML forbids or that reorder text become U+FFFD.
#include "app/figures/svg_text.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "storage/bounded_text.h"

namespace stepladder {
namespace {

constexpr std::pair<char, std::string_view> entities[] = {
    {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}};

// Bytes of the UTF-8 character that begins here; 0 if none does, if XML forbids it, or if it would reorder the text.
std::size_t character_at(std::string_view text) {
  const std::size_t length = utf8_length(text);
  const std::string_view character = text.substr(0, length);
  if (character == "\t" || character == "\n" || character == "\r") return length;
  const bool not_a_character = character == "\xEF\xBF\xBE" || character == "\xEF\xBF\xBF";
  return is_control(character) || not_a_character ? 0 : length;
}

}  // namespace

std::string xml_escaped(std::string_view text) {
  std::string escaped;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = character_at(text.substr(i));
    if (length == 0) {
      escaped += "\xEF\xBF\xBD";
      i += std::max<std::size_t>(utf8_length(text.substr(i)), 1);
      continue;
    }
    const auto known = std::ranges::find(entities, text[i], &std::pair<char, std::string_view>::first);
    escaped += known != std::end(entities) ? known->second : text.substr(i, length);
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
