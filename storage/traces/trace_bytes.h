// A file's bytes in order, unpacked if they are gzip. One thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string_view>

namespace stepladder {

// The share of a file that has been read, 0 to 1. Called on the reading thread now and then; an exception from it ends
// the reading.
using TraceProgress = std::function<void(double share)>;

class TraceBytes {
 public:
  static constexpr std::int64_t most_bytes = std::int64_t{8} << 30;  // unpacked

  // Throws TraceError if the file can't be opened.
  explicit TraceBytes(const std::filesystem::path& file, TraceProgress progress = {});
  ~TraceBytes();

  // Valid until the next call; empty at the end. Blocks on the disk. Throws TraceError if the file can't be read, its
  // gzip data is damaged or cut off, or it unpacks to more than most_bytes or to 200 times what has been read of the
  // file (beyond 64 MiB).
  std::string_view next();

 private:
  struct File;
  std::unique_ptr<File> file_;
};

}  // namespace stepladder
