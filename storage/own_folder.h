// Files in folders of our own, reached by descriptors: each part of a path is opened on its own and no symbolic link is
// followed, since names come from databases and other machines, and a folder may have been packed by somebody else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepladder {

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

// None of these throws; `errno` says why.

// A folder of the user, links followed. Empty if there is none.
Descriptor open_folder(const std::string& path);

// The folder beside a project that holds files of our own, such as FILE.checkpoints: it has to be this user's and no
// link. Links above it are followed. Empty if it isn't, with ELOOP or EPERM, or if there is none.
Descriptor open_own_folder(const std::filesystem::path& path);
Descriptor make_own_folder(const std::filesystem::path& path);  // for the user alone, if there is none

// Makes a folder of the user, links followed, and those above it that are missing: all for the user alone, as the XDG
// base directory specification demands of its folders. False, with errno, if there is none afterwards.
bool make_private_folders(const std::filesystem::path& path);

// `parts` are below the folder; `flags` are those of open(2).
Descriptor open_below(int folder, const std::vector<std::string>& parts, int flags, bool make_folders = false);
Descriptor folder_below(int folder, const std::string& name);
Descriptor make_folder_below(int folder, const std::string& name);

// A file below a folder of ours. With O_CREAT it makes both, and the folders between. As own_regular has it, or empty.
Descriptor open_own_file(const std::filesystem::path& folder, const std::filesystem::path& name, int flags);
// The file, if it is a regular one of this user's that has no other name; else empty, with EPERM.
Descriptor own_regular(Descriptor file);

// Reads at an offset; fewer bytes than asked for at the file's end or on an error.
std::string read_at(int file, std::uint64_t offset, std::size_t size);
bool write_at(int file, std::uint64_t offset, std::string_view bytes);  // all of them, or false

// Names of entries, without `.` and `..`, sorted; at most `most`.
std::vector<std::string> names_in(int folder, std::size_t most);

// Removes a file, or a folder with all that is in it; links are removed, not followed. False if something is left.
// `name` is one part of a path, without a slash.
bool remove_tree(int folder, const std::string& name);

// Gives a file its name once the disk has all of it. Inside storage/ only. Both set errno where they return false.

bool sync_to_disk(const std::filesystem::path& file_or_folder);

// Names the file `part` as `name`, without replacing a file: EEXIST if there is one. A file system without links gets
// the name by renaming. Sync the folder afterwards.
bool name_new_file(const std::filesystem::path& part, const std::filesystem::path& name);

}  // namespace stepladder
