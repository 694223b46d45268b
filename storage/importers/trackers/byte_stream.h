// Takes bytes in pieces and gives them out in the sizes that a binary format needs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stepladder {

class ByteStream {
 public:
  // `offset`: of the first byte in its file.
  explicit ByteStream(std::uint64_t offset = 0) : offset_(offset) {}

  // The next bytes. What was taken before is no longer valid.
  void give(std::string_view bytes);

  // The next `size` bytes, or nothing if there are fewer yet. Valid until the next call of `give`.
  std::string_view take(std::size_t size);

  // The same, and leaves them.
  std::string_view peek(std::size_t size) const;

  // Skips `size` bytes, also those that aren't there yet.
  void skip(std::uint64_t size);

  std::size_t available() const { return bytes_.size() - begin_; }
  bool is_skipping() const { return to_skip_ > 0; }  // beyond what is there
  std::uint64_t offset() const { return offset_; }   // of the next byte; bytes that aren't there yet aren't skipped

 private:
  std::string bytes_;
  std::size_t begin_ = 0;  // of what wasn't taken, in `bytes_`
  std::uint64_t to_skip_ = 0;
  std::uint64_t offset_;
};

}  // namespace stepladder
