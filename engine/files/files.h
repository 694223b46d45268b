// Files that any thread may read at any offset, and files that get their name only when complete.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "engine/files/data_error.h"

namespace stepladder {

// An open regular file. It is read rather than mapped, so that truncating it meanwhile gives an error and not a SIGBUS.
// Reads may come from several threads at once.
class InputFile {
 public:
  explicit InputFile(const std::filesystem::path& path);  // throws DataError
  ~InputFile();
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&& other) noexcept;

  const std::string& name() const { return name_; }
  std::int64_t size_bytes() const { return size_bytes_; }  // when it was opened
  // Reads exactly that many bytes; throws DataError, also if the file was truncated.
  void read(std::int64_t offset, void* destination, std::int64_t bytes) const;

 private:
  std::string name_;
  int descriptor_ = -1;
  std::int64_t size_bytes_ = 0;
};

inline constexpr unsigned private_file = 0600;

// A file that appears under its name only with commit(): until then it is called NAME.part, and a power cut or a full
// disk leaves the old file intact. Nothing replaces a device or a pipe: one that the user named is written to. Each
// function throws DataError; without commit() the part is removed again.
class OutputFile {
 public:
  // `mode` as for open(2): private_file for what is the user's own.
  enum class Devices { refused, allowed };
  explicit OutputFile(const std::filesystem::path& path, unsigned mode = 0666, Devices devices = Devices::refused);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void commit();  // waits for the disk

 private:
  [[noreturn]] void fail() const;  // with the cause in errno

  std::filesystem::path path_;
  std::filesystem::path part_;  // empty: a device
  int descriptor_ = -1;
};

// Waits until the folder's names are on the disk; does nothing on file systems that cannot do this. Throws DataError.
void sync_folder(const std::filesystem::path& folder);

}  // namespace stepladder
