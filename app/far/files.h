// Files below the far folder. Names come from another machine, so each part of a path is opened on its own and no
// symbolic link is followed.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepladder::far {

// Owns a file descriptor.
class Descriptor {
 public:
  explicit Descriptor(int value = -1) : value_(value) {}
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor() { reset(); }

  int get() const { return value_; }
  explicit operator bool() const { return value_ >= 0; }
  int release() { return std::exchange(value_, -1); }
  void reset();

 private:
  int value_;
};

bool is_uuid(std::string_view text);  // 32 lower-case hexadecimal digits

// "a/b" as its parts. Throws Refusal if the name is empty, absolute, too long or has an empty part, `.` or `..`.
std::vector<std::string> parts_of(const std::string& name);

// A folder of the user, links followed. Empty if there is none.
Descriptor open_folder(const std::string& path);
// Makes it and the folders above it, for the user alone. Throws Refusal.
Descriptor make_folder(const std::string& path);

// These don't throw; `errno` says why. `parts` are below the folder; `flags` are those of open(2).
Descriptor open_below(int folder, const std::vector<std::string>& parts, int flags, bool make_folders = false);
Descriptor folder_below(int folder, const std::string& name);
Descriptor make_folder_below(int folder, const std::string& name);
// Empty if it can't be read or has more than `most` bytes.
std::optional<std::string> read_below(int folder, const std::string& name, std::size_t most);
// Names of entries, without `.` and `..`, sorted; at most `most`.
std::vector<std::string> names_in(int folder, std::size_t most);

// Reads at an offset; fewer bytes than asked for at the file's end or on an error.
std::string read_at(int file, std::size_t offset, std::size_t size);

// Creates a file with these bytes, whole or not at all, durably. False if there is one already. Of several processes,
// on several machines of a shared folder too, one succeeds. Throws Refusal.
bool create_once(int folder, const std::string& name, std::string_view bytes);

// Replaces a file, whole or not at all, durably. Throws Refusal.
void replace(int folder, const std::string& name, std::string_view bytes);

// Removes a file, or a folder with all that is in it; links are removed, not followed. False if something is left.
bool remove_tree(int folder, const std::string& name);

}  // namespace stepladder::far
