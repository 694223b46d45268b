#include "app/far/wire.h"

#include <array>
#include <chrono>
#include <cstring>

#include "storage/importers/journal/journal_line.h"
#include "storage/nested_json.h"

namespace stepladder::far {
namespace {

constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::string quoted(const char* name) {
  return std::string("'") + name + "'";
}

}  // namespace

Refusal refused(const std::string& file, const char* what, int error) {
  return Refusal(file + " " + what + ": " + std::strerror(error) + ".");
}

Json parse_object(std::string_view text) {
  if (nests_deep(text, deepest_journal_json)) throw Refusal("The line nests deeper than 20.");
  Json json = Json::parse(text.begin(), text.end(), nullptr, false);
  if (!json.is_object()) throw Refusal("The line isn't a JSON object.");
  return json;
}

std::string as_text(const Json& json) {
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}

std::string text_field(const Json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_string()) throw Refusal(quoted(name) + " must be a text.");
  return found->get<std::string>();
}

std::string text_field(const Json& object, const char* name, std::string otherwise) {
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? otherwise : text_field(object, name);
}

std::int64_t integer_field(const Json& object, const char* name, std::int64_t least, std::int64_t most) {
  const auto found = object.find(name);
  const bool fits = found != object.end() && found->is_number_integer() &&
                    (!found->is_number_unsigned() || found->get<std::uint64_t>() <= INT64_MAX);
  if (!fits || found->get<std::int64_t>() < least || found->get<std::int64_t>() > most)
    throw Refusal(quoted(name) + " must be an integer from " + std::to_string(least) + " to " + std::to_string(most) +
                  ".");
  return found->get<std::int64_t>();
}

std::int64_t integer_field(const Json& object, const char* name, std::int64_t least, std::int64_t most,
                           std::int64_t otherwise) {
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? otherwise : integer_field(object, name, least, most);
}

std::string to_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k)
      group = group << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k) text += i + k <= bytes.size() ? digits[group >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

std::string from_base64(std::string_view text) {
  static constexpr auto values = [] {
    std::array<std::int8_t, 256> table{};
    table.fill(-1);
    for (std::size_t i = 0; i < digits.size(); ++i)
      table[static_cast<unsigned char>(digits[i])] = static_cast<std::int8_t>(i);
    return table;
  }();
  if (text.size() % 4 != 0) throw Refusal("'data' isn't base64.");
  std::size_t size = text.size();
  for (int padding = 0; padding < 2 && size > 0 && text[size - 1] == '='; ++padding) --size;
  std::string bytes;
  bytes.reserve(size * 3 / 4);
  std::uint32_t group = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const std::int8_t value = values[static_cast<unsigned char>(text[i])];
    if (value < 0) throw Refusal("'data' isn't base64.");
    group = group << 6 | static_cast<std::uint32_t>(value);
    // The second, third and fourth digit of a group complete a byte each.
    if (i % 4 != 0) bytes += static_cast<char>(group >> (6 - 2 * (i % 4)) & 0xff);
  }
  return bytes;
}

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace stepladder::far
