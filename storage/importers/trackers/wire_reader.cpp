#include "storage/importers/trackers/wire_reader.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace stepladder {

void ByteStream::give(std::string_view bytes) {
  bytes_.erase(0, std::exchange(begin_, 0));
  bytes_.append(bytes);
  skip(std::exchange(to_skip_, 0));
}

std::string_view ByteStream::peek(std::size_t size) const {
  return available() < size ? std::string_view() : std::string_view(bytes_).substr(begin_, size);
}

std::string_view ByteStream::take(std::size_t size) {
  const std::string_view taken = peek(size);
  begin_ += taken.size();
  offset_ += taken.size();
  return taken;
}

void ByteStream::skip(std::uint64_t size) {
  const auto there = static_cast<std::size_t>(std::min<std::uint64_t>(size, available()));
  begin_ += there;
  offset_ += there;
  const std::uint64_t rest = size - there;
  to_skip_ = rest > std::numeric_limits<std::uint64_t>::max() - to_skip_ ? std::numeric_limits<std::uint64_t>::max()
                                                                         : to_skip_ + rest;
}

}  // namespace stepladder
