// JSON that somebody else may have written: its fields may be missing or of any type, and its texts not UTF-8. Copying
// and writing a value recurse (nlohmann::json's do), so a few kilobytes of brackets would end the program.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace stepladder {

using Json = nlohmann::ordered_json;

inline constexpr int deepest_json = 100;  // of configurations and of what a project holds

inline bool nests_deep(std::string_view json, int deepest = deepest_json) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    if (json[i] == '"') quoted = !quoted;
    if (quoted && json[i] == '\\') ++i;
    if (quoted) continue;
    if (json[i] == '[' || json[i] == '{') ++depth;
    if (json[i] == ']' || json[i] == '}') --depth;
    if (depth > deepest) return true;
  }
  return false;
}

// An empty object for any other text.
inline Json object_in(std::string_view text) {
  Json json = nests_deep(text) ? Json() : Json::parse(text, nullptr, false);
  return json.is_object() ? json : Json::object();
}

// Bytes that aren't UTF-8 become U+FFFD.
template <class Value>
std::string json_text(const Value& json) {
  return json.dump(-1, ' ', false, Value::error_handler_t::replace);
}

// The field of an object; null if there is none.
template <class Object>
Object field_in(const Object& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() ? *found : Object();
}

template <class Object>
std::string text_in(const Object& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->template get<std::string>() : "";
}

template <class Object>
std::int64_t integer_in(const Object& object, const char* name, std::int64_t otherwise = 0) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number_integer()) return otherwise;
  const bool is_too_large =
      found->is_number_unsigned() && found->template get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max();
  return is_too_large ? otherwise : found->template get<std::int64_t>();
}

template <class Object>
bool flag_in(const Object& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_boolean() && found->template get<bool>();
}

}  // namespace stepladder
