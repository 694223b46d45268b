#include "app/far/wire.h"

#include <chrono>
#include <cstring>

#include "storage/base64.h"
#include "storage/importers/journal/journal_line.h"
#include "storage/json_values.h"

namespace stepladder::far {
namespace {

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

std::string bytes_field(const Json& object, const char* name) {
  const auto bytes = from_base64(text_field(object, name, ""));
  if (!bytes) throw Refusal(quoted(name) + " isn't base64.");
  return *bytes;
}

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace stepladder::far
