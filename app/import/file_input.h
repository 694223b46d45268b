// A file or standard input as an importer's input.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "storage/importers/importer.h"
#include "storage/own_folder.h"
#include "storage/traces/trace_file.h"

namespace stepladder {

// Thrown when the user interrupts the reading of an input.
struct InputInterrupted {};

// Reads in pieces of 256 KiB. One thread.
class FileInput : public ImportInput {
 public:
  // A path that the user named, so it may also be a pipe or a terminal: then `next` and `head` block until it has more
  // bytes, and throw InputInterrupted once `interrupted` returns true. Throws ImportError if it can't be opened.
  FileInput(const std::filesystem::path& path, std::function<bool()> interrupted);
  // The same for a descriptor, which stays open.
  FileInput(int descriptor, std::function<bool()> interrupted);

  std::string_view head() override;
  std::string_view next() override;
  const std::filesystem::path& path() const override { return path_; }

 private:
  std::string_view read_piece(std::size_t least);
  void wait_for_more() const;

  std::filesystem::path path_;
  Descriptor owned_;
  int descriptor_ = -1;
  std::function<bool()> interrupted_;
  std::vector<char> buffer_;
  std::size_t filled_ = 0;
  std::string head_;
  bool head_read_ = false;
  bool first_piece_waits_ = false;  // buffer_ holds the piece with the head; next() hasn't returned it yet
};

// A regular file that is packed with gzip, unpacked piece by piece. One thread.
class PackedInput : public ImportInput {
 public:
  explicit PackedInput(std::filesystem::path path) : path_(std::move(path)) {}

  std::string_view head() override;
  std::string_view next() override;  // throws ImportError also where TraceBytes refuses what it unpacks to
  const std::filesystem::path& path() const override { return path_; }

 private:
  std::filesystem::path path_;
  std::optional<TraceBytes> bytes_;
  std::string_view first_;
  bool first_piece_waits_ = false;
};

bool is_packed(std::string_view head);

}  // namespace stepladder
