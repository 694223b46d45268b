// Frames, events and summaries of TensorBoard's files, decoded field by field (wire_reader.h). A damaged payload skips
// one event; a damaged length loses the rest of the file, since the framing is gone. A SessionLog START marks a restart
// at that event's step.
#include "storage/importers/trackers/tensorboard/event_reader.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "storage/checksum.h"
#include "storage/json_values.h"
#include "storage/wording.h"

namespace stepladder {
namespace {

constexpr std::size_t header_size = 12;  // length and its checksum
constexpr std::size_t footer_size = 4;
constexpr std::uint64_t largest_event = 64 << 20;  // scalars are tiny; a larger event is an image, a graph or an attack
constexpr std::size_t longest_text = 65536;

std::uint32_t u32_at(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::uint64_t u64_at(std::string_view bytes, std::size_t at) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

bool length_holds(std::string_view header) {
  return u32_at(header, 8) == masked(crc32c(header.substr(0, 8)));
}

// The kinds of google.protobuf.Value that hyper-parameters use.
Json value_message(std::string_view message) {
  Json value;
  WireReader field(message);
  while (field.next()) {
    if (field.number() == 2) value = field.real();
    if (field.number() == 3) value = std::string(field.bytes());
    if (field.number() == 4) value = field.integer() != 0;
  }
  if (value.is_number_float() && !std::isfinite(value.get<double>())) value = std::to_string(value.get<double>());
  return value;
}

}  // namespace

bool begins_event_file(std::string_view head) {
  return head.size() >= header_size && length_holds(head);
}

ForeignRun new_event_run(const std::filesystem::path& folder_or_file) {
  ForeignRun run;
  run.run.status = RunStatus::finished;
  run.config = Json::object();
  run.run.name = folder_or_file.filename().string();
  return run;
}

void EventReader::take(std::string_view bytes) {
  if (is_lost_) return;
  stream_.give(bytes);
  for (std::string_view event; !is_lost_;) {
    switch (next_frame(stream_, event)) {
      case Frame::event:
        read_event(event);
        break;
      case Frame::bad:
        ++bad_checksums_;
        break;
      case Frame::too_large:
        ++too_large_;
        break;
      case Frame::not_yet:
        return;
      case Frame::lost:
        if (stream_.offset() == 0) throw ImportError("is not an event file: its first record has a wrong checksum");
        is_lost_ = true;
    }
  }
}

void EventReader::finish_file(const std::string& name) {
  const ByteStream stream = std::exchange(stream_, ByteStream());
  const std::string damaged_at = std::to_string(stream.offset());
  if (std::exchange(is_lost_, false))
    return note(name, "is damaged at byte " + damaged_at + "; the rest could not be read");
  if (stream.offset() == 0 && stream.available() > 0 && stream.available() < header_size)
    throw ImportError("is not an event file: it is shorter than one record");
  if (stream.available() > 0 || stream.is_skipping()) note(name, "ends in the middle of a record; the rest was read");
}

void EventReader::read(ImportInput& input) {
  push_all(input, *this);
  finish_file(input.path().filename().string());
}

EventReader::Progress EventReader::read_some(ImportInput& input, std::uint64_t begin, std::uint64_t most,
                                             bool impatient) {
  ByteStream stream(begin);
  Progress progress{.end = begin};
  std::string_view event;
  for (bool is_first = true; progress.end - begin < most;) {
    const Frame frame = next_frame(stream, event);
    if (frame == Frame::not_yet) {
      const bool was_skipping = stream.is_skipping();
      const std::string_view piece = input.next();
      if (piece.empty()) return progress;
      stream.give(piece);
      if (was_skipping && !stream.is_skipping()) progress.end = stream.offset();
      continue;
    }
    progress.is_stuck = frame == Frame::lost || (frame == Frame::bad && !impatient);
    if (progress.is_stuck) return progress;
    if (frame == Frame::event && starts_session(event)) {
      if (!is_first) break;
      progress.restarts = true;
    }
    if (frame == Frame::event) read_event(event);
    if (!stream.is_skipping()) progress.end = stream.offset();
    is_first = false;
  }
  progress.more = true;
  return progress;
}

void EventReader::finish() {
  if (bad_checksums_ > 0)
    run_.notes.push_back("left out " + plural(bad_checksums_, "record") + " with a wrong checksum");
  if (malformed_ > 0) run_.notes.push_back("left out " + plural(malformed_, "malformed event"));
  if (too_large_ > 0) run_.notes.push_back("left out " + plural(too_large_, "record") + " larger than 64 MiB");
  if (not_scalar_ > 0)
    run_.notes.push_back("left out " + plural(not_scalar_, "summary", "summaries") +
                         " without a single number (histogram, image, text)");
}

// Leaves the stream as it was if the record isn't all there.
EventReader::Frame EventReader::next_frame(ByteStream& stream, std::string_view& event) {
  if (stream.is_skipping()) return Frame::not_yet;
  const std::string_view header = stream.peek(header_size);
  if (header.empty()) return Frame::not_yet;
  if (!length_holds(header)) return Frame::lost;
  const std::uint64_t length = u64_at(header, 0);
  if (length > largest_event) {
    stream.skip(header_size);
    stream.skip(length);
    stream.skip(footer_size);
    return Frame::too_large;
  }
  const std::string_view record = stream.take(header_size + static_cast<std::size_t>(length) + footer_size);
  if (record.empty()) return Frame::not_yet;
  event = record.substr(header_size, static_cast<std::size_t>(length));
  return u32_at(record, record.size() - footer_size) == masked(crc32c(event)) ? Frame::event : Frame::bad;
}

bool EventReader::starts_session(std::string_view message) {
  bool starts = false;
  WireReader field(message);
  while (field.next()) {
    if (field.number() != 7) continue;
    WireReader session(field.bytes());
    while (session.next()) starts = starts || (session.number() == 1 && session.integer() == 1);
  }
  return starts && !field.malformed();
}

void EventReader::note(const std::string& name, const std::string& text) {
  run_.notes.push_back((name.empty() ? "the file " : name + " ") + text);
}

void EventReader::read_event(std::string_view message) {
  double at = missing;
  std::int64_t step = 0;
  std::vector<std::string_view> summaries;
  WireReader field(message);
  while (field.next()) {
    if (field.number() == 1) at = field.real();
    if (field.number() == 2) step = field.integer();
    if (field.number() == 5) summaries.push_back(field.bytes());
  }
  if (field.malformed()) {
    ++malformed_;
    return;
  }
  for (const std::string_view summary : summaries) {
    WireReader values(summary);
    while (values.next())
      if (values.number() == 1) read_summary_value(values.bytes(), step, at);
    if (values.malformed()) ++malformed_;
  }
}

void EventReader::read_summary_value(std::string_view message, std::int64_t step, double at) {
  std::string_view tag;
  std::string_view metadata;
  std::string_view tensor_message;
  std::optional<double> value;
  WireReader field(message);
  while (field.next()) {
    if (field.number() == 1) tag = field.bytes();
    if (field.number() == 2) value = field.real32();
    if (field.number() == 8) tensor_message = field.bytes();
    if (field.number() == 9) metadata = field.bytes();
  }
  if (field.malformed()) {
    ++malformed_;
    return;
  }
  if (!metadata.empty() && read_plugin(metadata)) return;
  EventTensor tensor;
  if (!tensor_message.empty()) {
    tensor = read_event_tensor(tensor_message);
    value = tensor.value;
  }
  if (value) {
    run_.metrics.add(tag, step, *value, at);
  } else if (tensor.is_text && tensor.text.size() <= longest_text && !tensor.text.empty()) {
    read_text(tag, tensor.text);
  } else {
    ++not_scalar_;
  }
}

void EventReader::read_text(std::string_view tag, std::string_view text) {
  if (tag.ends_with("/text_summary")) tag.remove_suffix(std::strlen("/text_summary"));
  if (run_.config.size() < 100) run_.config[std::string(tag)] = json_or_text(text);
}

bool EventReader::read_plugin(std::string_view metadata) {
  std::string_view plugin;
  std::string_view content;
  WireReader field(metadata);
  while (field.next()) {
    if (field.number() != 1) continue;
    WireReader data(field.bytes());
    while (data.next()) {
      if (data.number() == 1) plugin = data.bytes();
      if (data.number() == 2) content = data.bytes();
    }
  }
  if (plugin != "hparams") return false;
  WireReader data(content);
  while (data.next()) {
    if (data.number() == 3) read_session_start(data.bytes());
    if (data.number() == 4) read_session_end(data.bytes());
  }
  return true;
}

void EventReader::read_session_start(std::string_view message) {
  WireReader field(message);
  while (field.next()) {
    if (field.number() == 5 && field.real() > 0) run_.run.started_at = field.real();
    if (field.number() != 1) continue;
    std::string_view key;
    std::string_view value;
    WireReader entry(field.bytes());
    while (entry.next()) {
      if (entry.number() == 1) key = entry.bytes();
      if (entry.number() == 2) value = entry.bytes();
    }
    if (!key.empty()) run_.config[std::string(key)] = value_message(value);
  }
}

void EventReader::read_session_end(std::string_view message) {
  WireReader field(message);
  while (field.next()) {
    if (field.number() == 2 && field.real() > 0) run_.run.ended_at = field.real();
    if (field.number() == 1 && field.integer() == 2) {
      run_.run.status = RunStatus::failed;
      run_.run.reason = "the store says that the run failed";
    }
  }
}

namespace {

double half(std::uint16_t bits) {
  const double sign = bits & 0x8000 ? -1 : 1;
  const int exponent = (bits >> 10) & 0x1f;
  const double mantissa = bits & 0x3ff;
  if (exponent == 0x1f) return mantissa != 0 ? std::nan("") : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(mantissa + 1024, exponent - 25);
}

double bfloat16(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

enum DataType {
  dt_float = 1,
  dt_double = 2,
  dt_int32 = 3,
  dt_string = 7,
  dt_int64 = 9,
  dt_bfloat16 = 14,
  dt_half = 19
};

double of_16_bits(std::int64_t type, std::uint16_t bits) {
  return type == dt_bfloat16 ? bfloat16(bits) : half(bits);
}

template <class T>
std::optional<double> raw(std::string_view bytes) {
  if (bytes.size() != sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return static_cast<double>(value);
}

struct Tensor {
  std::int64_t type = 0;
  bool scalar = true;        // one element
  std::string_view content;  // its bytes, if stored as tensor_content
  std::optional<double> value;
  std::string_view text;
  int values = 0;
};

bool holds_one_element(std::string_view shape) {
  WireReader dimensions(shape);
  while (dimensions.next()) {
    if (dimensions.number() != 2) continue;
    std::int64_t size = 0;
    WireReader dimension(dimensions.bytes());
    while (dimension.next())
      if (dimension.number() == 1) size = dimension.integer();
    if (size != 1) return false;
  }
  return true;
}

// float_val and the like: one value, or several packed into one field; a scalar has only the first.
void read_value_field(const WireReader& field, Tensor& tensor) {
  ++tensor.values;
  const std::string_view packed = field.bytes();
  const auto first_varint = [&] {
    if (packed.empty()) return static_cast<std::uint64_t>(field.integer());
    return WireReader(packed).varint();
  };
  const std::uint64_t number = field.number();
  std::optional<double> value;
  if (number == 5) value = field.is_real32() ? field.real32() : raw<float>(packed.substr(0, 4));
  if (number == 6) value = packed.empty() ? field.real() : raw<double>(packed.substr(0, 8));
  if (number == 7 || number == 10) value = static_cast<double>(static_cast<std::int64_t>(first_varint()));
  if (number == 13) value = of_16_bits(tensor.type, static_cast<std::uint16_t>(first_varint()));
  if (value) tensor.value = value;
}

std::optional<double> value_of_content(std::int64_t type, std::string_view content) {
  if (type == dt_float) return raw<float>(content);
  if (type == dt_double) return raw<double>(content);
  if (type == dt_int32) return raw<std::int32_t>(content);
  if (type == dt_int64) return raw<std::int64_t>(content);
  if ((type != dt_half && type != dt_bfloat16) || content.size() != sizeof(std::uint16_t)) return std::nullopt;
  std::uint16_t bits = 0;
  std::memcpy(&bits, content.data(), sizeof bits);
  return of_16_bits(type, bits);
}

Tensor read_tensor(std::string_view message) {
  Tensor tensor;
  WireReader field(message);
  while (field.next()) {
    const std::uint64_t number = field.number();
    if (number == 1)
      tensor.type = field.integer();
    else if (number == 2)
      tensor.scalar = holds_one_element(field.bytes());
    else if (number == 4)
      tensor.content = field.bytes();
    else if (number != 8)
      read_value_field(field, tensor);
    else if (tensor.text.empty())
      tensor.text = field.bytes();
  }
  if (!tensor.content.empty()) tensor.value = value_of_content(tensor.type, tensor.content);
  // Writers omit a value that is zero.
  if (tensor.values == 0 && tensor.content.empty() && tensor.type != dt_string) tensor.value = 0;
  if (!tensor.scalar || field.malformed()) tensor.value.reset();
  return tensor;
}

}  // namespace

EventTensor read_event_tensor(std::string_view message) {
  const Tensor tensor = read_tensor(message);
  return {.value = tensor.value, .is_text = tensor.type == dt_string, .text = tensor.text};
}

}  // namespace stepladder
