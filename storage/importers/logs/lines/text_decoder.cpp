#include "storage/importers/logs/lines/text_decoder.h"

namespace stepladder {
namespace {

constexpr std::string_view utf8_mark = "\xEF\xBB\xBF";
constexpr std::string_view utf16_le_mark = "\xFF\xFE";
constexpr std::string_view utf16_be_mark = "\xFE\xFF";

enum class Encoding { utf8, utf16_le, utf16_be };

// By its mark; or without one, as every other byte of most languages' programs is NUL.
Encoding encoding_of(std::string_view head) {
  if (head.starts_with(utf16_le_mark)) return Encoding::utf16_le;
  if (head.starts_with(utf16_be_mark)) return Encoding::utf16_be;
  std::size_t nuls[2] = {0, 0};
  for (std::size_t i = 0; i < head.size(); ++i) nuls[i % 2] += head[i] == '\0';
  const auto most = [&](int odd) { return nuls[odd] * 5 > head.size() * 2 && nuls[1 - odd] == 0; };
  return most(1) ? Encoding::utf16_le : most(0) ? Encoding::utf16_be : Encoding::utf8;
}

void append_utf8(std::string& text, std::uint32_t code) {
  const auto put = [&](std::uint32_t byte) { text += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6), put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12), put(0x80 | (code >> 6 & 0x3F)), put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18), put(0x80 | (code >> 12 & 0x3F)), put(0x80 | (code >> 6 & 0x3F)), put(0x80 | (code & 0x3F));
  }
}

}  // namespace

bool looks_like_text(std::string_view head) {
  if (encoding_of(head) != Encoding::utf8) return true;
  std::size_t odd = 0;
  for (const char c : head) {
    const auto byte = static_cast<unsigned char>(c);
    odd += byte < 7 || (byte > 13 && byte < 27) || (byte > 27 && byte < 32) || byte == 127;
  }
  return odd * 100 <= head.size();
}

TextDecoder::TextDecoder(std::string_view head)
    : is_utf16_(encoding_of(head) != Encoding::utf8), is_big_endian_(encoding_of(head) == Encoding::utf16_be) {}

std::string_view TextDecoder::decode(std::string_view bytes) {
  if (!started_ && bytes.starts_with(utf8_mark)) bytes.remove_prefix(utf8_mark.size());
  started_ = true;
  if (!is_utf16_) return bytes;
  convert_utf16(bytes);
  return converted_;
}

void TextDecoder::convert_utf16(std::string_view bytes) {
  converted_.clear();
  odd_.append(bytes);
  for (std::size_t i = 0; i + 1 < odd_.size(); i += 2) {
    const auto a = static_cast<unsigned char>(odd_[i]), b = static_cast<unsigned char>(odd_[i + 1]);
    const std::uint32_t code = is_big_endian_ ? b | a << 8 : a | b << 8;
    if (code == 0xFEFF) continue;
    if (code >= 0xD800 && code < 0xDC00) {
      high_ = code;
    } else if (code >= 0xDC00 && code < 0xE000) {
      if (high_) append_utf8(converted_, 0x10000 + ((high_ - 0xD800) << 10) + (code - 0xDC00));
      high_ = 0;
    } else {
      append_utf8(converted_, code);
    }
  }
  odd_.erase(0, odd_.size() / 2 * 2);
}

}  // namespace stepladder
