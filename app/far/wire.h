// Lines of JSON between the far program and the side that talks to it (docs/far.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>

namespace stepladder::far {

using Json = nlohmann::ordered_json;

constexpr std::size_t longest_line = 1 << 20;

// A request that can't be done. what() is a sentence for the user.
struct Refusal : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// "/a/b cannot be written: No space left on device." `error` is an errno.
Refusal refused(const std::string& file, const char* what, int error);

// Throws Refusal if the text isn't one JSON object in UTF-8, or nests deeper than 20.
Json parse_object(std::string_view text);

// ASCII, without a line feed. Bytes that aren't UTF-8 become U+FFFD.
std::string as_text(const Json& json);

// The fields of an object. Throw Refusal, which names the field, if it is missing or of another type.
std::string text_field(const Json& object, const char* name);
std::string text_field(const Json& object, const char* name, std::string otherwise);  // also if it is null
std::int64_t integer_field(const Json& object, const char* name, std::int64_t least, std::int64_t most);
std::int64_t integer_field(const Json& object, const char* name, std::int64_t least, std::int64_t most,
                           std::int64_t otherwise);

std::string bytes_field(const Json& object, const char* name);  // in base64; empty if it is missing

double now();  // unix seconds

}  // namespace stepladder::far
