// Files below the far folder, beside those of storage/own_folder.h. Names come from another machine.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "storage/own_folder.h"

namespace stepladder::far {

// "a/b" as its parts. Throws Refusal if the name is empty, absolute, too long or has an empty part, `.` or `..`.
std::vector<std::string> parts_of(const std::string& name);

// Creates it and the folders above it, for this user alone. Throws Refusal.
Descriptor make_folder(const std::string& path);

// Doesn't throw; `errno` says why. Empty if it can't be read or has more than `most` bytes.
std::optional<std::string> read_below(int folder, const std::string& name, std::size_t most);

// Creates a file with these bytes, whole or not at all, durably. False if there is one already. Of several processes,
// on several machines of a shared folder too, one succeeds. Throws Refusal.
bool create_once(int folder, const std::string& name, std::string_view bytes);

// Replaces a file, whole or not at all, durably. Throws Refusal.
void replace(int folder, const std::string& name, std::string_view bytes);

}  // namespace stepladder::far
