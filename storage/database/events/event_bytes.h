// Run events as bytes: for spill files, and for whoever reads them after a crash. Inside storage/ only.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "storage/records.h"

namespace stepladder {

void append_event(std::string& bytes, const RunEvent& event);

// Nullopt if `bytes` isn't exactly one event. Any bytes may be passed; never allocates more than a few times their
// size.
std::optional<RunEvent> event_from(std::string_view bytes);

// Each event follows its length and its CRC-32, so that the end of a write that was cut short is recognised.
void append_record(std::string& bytes, std::string_view payload);

struct EventRecords {
  std::vector<RunEvent> events;
  std::size_t used = 0;     // bytes of whole records
  std::size_t damaged = 0;  // whole records that aren't events
};
// Reads at most `most` of the whole records that `bytes` begins with; the rest may be cut anywhere. A length that no
// record has ends the reading: `used` is then all bytes, and one more record is damaged.
EventRecords read_records(std::string_view bytes, std::size_t most);

constexpr std::size_t longest_record = 64 << 20;

// The payload of the first record; nullopt if `bytes` doesn't begin with a whole one. Sets `used` to its end.
std::optional<std::string_view> read_record(std::string_view bytes, std::size_t& used);

// Numbers and texts to bytes, and back.
class ByteWriter {
 public:
  explicit ByteWriter(std::string& bytes) : bytes_(bytes) {}
  void operator()(std::int64_t value) { put(&value, sizeof value); }
  void operator()(double value) { put(&value, sizeof value); }
  void operator()(int value) { (*this)(std::int64_t{value}); }
  void operator()(std::string_view text) {
    (*this)(static_cast<std::int64_t>(text.size()));
    put(text.data(), text.size());
  }
  void operator()(const std::string& text) { (*this)(std::string_view(text)); }

 private:
  void put(const void* data, std::size_t size) { bytes_.append(static_cast<const char*>(data), size); }
  std::string& bytes_;
};

class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}
  void operator()(std::int64_t& value) { take(&value, sizeof value); }
  void operator()(double& value) { take(&value, sizeof value); }
  void operator()(int& value);
  void operator()(std::string& text);

  bool failed() const { return failed_; }
  bool at_end() const { return !failed_ && bytes_.empty(); }  // everything was read, and nothing is left
  std::size_t left() const { return bytes_.size(); }
  void fail() { failed_ = true; }

 private:
  void take(void* data, std::size_t size);
  std::string_view bytes_;
  bool failed_ = false;
};

}  // namespace stepladder
