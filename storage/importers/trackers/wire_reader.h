// Reads Protocol Buffers' wire format field by field, without a schema:
// https://protobuf.dev/programming-guides/encoding. Returns views into its bytes, which must outlive it; never reads
// beyond them.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace stepladder {

static_assert(std::endian::native == std::endian::little, "the wire is little-endian, and so is what we read it with");

class WireReader {
 public:
  explicit WireReader(std::string_view message) : rest_(message) {}

  // Moves to the next field; false at the end, and from then on if the bytes aren't a message (see malformed()).
  bool next() {
    bytes_ = {};
    if (rest_.empty() || malformed_) return false;
    const std::uint64_t tag = varint();
    number_ = tag >> 3;
    switch (tag & 7) {
      case 0:
        bits_ = varint();
        break;
      case 1:
        bits_ = fixed<std::uint64_t>();
        break;
      case 2:
        bytes_ = take(varint());
        break;
      case 5:
        bits_ = fixed<std::uint32_t>();
        break;
      default:  // no format that we read uses groups
        malformed_ = true;
    }
    kind_ = static_cast<int>(tag & 7);
    if (number_ == 0) malformed_ = true;
    return !malformed_;
  }

  std::uint64_t number() const { return number_; }
  bool malformed() const { return malformed_; }

  // The field's value; 0 or empty if the field is of another kind.
  std::string_view bytes() const { return kind_ == 2 ? bytes_ : std::string_view(); }
  std::int64_t integer() const { return kind_ == 0 ? static_cast<std::int64_t>(bits_) : 0; }
  std::int64_t zigzag() const {
    return kind_ == 0 ? static_cast<std::int64_t>(bits_ >> 1) ^ -static_cast<std::int64_t>(bits_ & 1) : 0;
  }
  double real() const { return kind_ == 1 ? std::bit_cast<double>(bits_) : 0; }
  double real32() const { return kind_ == 5 ? std::bit_cast<float>(static_cast<std::uint32_t>(bits_)) : 0; }
  bool is_real32() const { return kind_ == 5; }

  // Reads one of the values inside a packed field.
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) break;
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) return value;
    }
    malformed_ = true;
    return 0;
  }

 private:
  std::string_view take(std::uint64_t size) {
    if (malformed_ || size > rest_.size()) {
      malformed_ = true;
      return {};
    }
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  template <class T>
  T fixed() {
    T value = 0;
    if (const std::string_view raw = take(sizeof value); raw.size() == sizeof value)
      std::memcpy(&value, raw.data(), sizeof value);
    return value;
  }

  std::string_view rest_;
  std::string_view bytes_;
  std::uint64_t bits_ = 0;
  std::uint64_t number_ = 0;
  int kind_ = 0;
  bool malformed_ = false;
};

// Takes bytes in pieces and gives them out in the sizes that a binary format needs.

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
