// Run events to bytes and back, for spill files. visit_fields lists every field once for both directions; files outlive
// versions, so fields are only appended (`has_more`), never reordered or removed. The reader accepts any bytes and
// fails without allocating much.
#include "storage/database/events/event_bytes.h"

#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "storage/checksum.h"
#include "storage/record_fields.h"

namespace stepladder {
namespace {

// The fields of each event in the order of their bytes, for writing and for reading. Kinds are numbered by their place
// in RunEvent. Fields are only ever added at the end of a kind, and are unknown in a file that an earlier version wrote
// (`has_more`).
template <class Visit, class Event>
void visit_fields(Visit& visit, Event& event) {
  using T = std::remove_const_t<Event>;
  visit(event.run);
  if constexpr (std::is_same_v<T, RunStarted>) {
    visit(event.at);
    for_each_field(started_fields, [&](const auto& field) { visit(event.*field.member); });
    visit(event.torch_version);
  } else if constexpr (std::is_same_v<T, StepRecord>) {
    visit(event.step), visit(event.loss), visit(event.val_loss), visit(event.dt_ms), visit(event.tokens);
    visit(event.lr), visit(event.grad_norm), visit(event.at), visit(event.parts.data_ms), visit(event.parts.forward_ms);
    visit(event.parts.backward_ms), visit(event.parts.optimizer_ms), visit(event.parts.communication_ms);
  } else if constexpr (std::is_same_v<T, RunEnded>) {
    visit(event.at), visit(event.status), visit(event.reason), visit(event.peak_memory_bytes);
  } else if constexpr (std::is_same_v<T, SystemMetrics>) {
    visit(event.step), visit(event.at), visit(event.cpu_load), visit(event.process_cores), visit(event.resident_bytes);
    visit(event.gpu_load), visit(event.gpu_clock_mhz), visit(event.gpu_power_w), visit(event.gpu_temperature_c);
    visit(event.gpu_memory_bytes), visit(event.throttle_reason);
    if (!visit.has_more()) return;
    visit(event.contention.other_cores), visit(event.contention.other_gpu_load);
    visit(event.contention.cores), visit(event.contention.needed_cores);
    if (!visit.has_more()) return;
    visit(event.contention.program_cores);
  } else if constexpr (std::is_same_v<T, CheckpointSaved>) {
    visit(event.step), visit(event.at), visit(event.folder), visit(event.bytes), visit(event.error);
  } else if constexpr (std::is_same_v<T, TextSample>) {
    visit(event.step), visit(event.at), visit(event.text);
  } else if constexpr (std::is_same_v<T, ConsoleText>) {
    visit(event.at), visit(event.text);
  } else if constexpr (std::is_same_v<T, StepProfile>) {
    visit(event.at), visit(event.steps), visit(event.operators);
  } else {
    static_assert(std::is_same_v<T, MetricValues>);
    visit(event.step), visit(event.at), visit(event.values);
  }
}

using NamedValues = std::vector<std::pair<std::string, double>>;

template <class Visit, class Operator>
void visit_operator(Visit& visit, Operator& each) {
  visit(each.part), visit(each.name), visit(each.shapes), visit(each.calls), visit(each.self_ms), visit(each.flops);
}

class EventWriter : public ByteWriter {
 public:
  using ByteWriter::ByteWriter;
  using ByteWriter::operator();
  bool has_more() const { return true; }
  void operator()(RunStatus status) { (*this)(static_cast<int>(status)); }
  void operator()(Sync sync) { (*this)(static_cast<int>(sync)); }
  void operator()(const std::vector<OperatorTime>& operators) {
    (*this)(static_cast<std::int64_t>(operators.size()));
    for (const OperatorTime& each : operators) visit_operator(*this, each);
  }
  void operator()(const NamedValues& values) {
    (*this)(static_cast<std::int64_t>(values.size()));
    for (const auto& [name, value] : values) (*this)(name), (*this)(value);
  }
};

class EventReader : public ByteReader {
 public:
  using ByteReader::ByteReader;
  using ByteReader::operator();
  bool has_more() const { return left() > 0; }
  void operator()(RunStatus& status) { take_enum(status, RunStatus::reported); }
  void operator()(Sync& sync) { take_enum(sync, Sync::unknown); }
  void operator()(std::vector<OperatorTime>& operators) {
    constexpr std::int64_t fewest_bytes = 48;  // of an operator: three lengths and three numbers
    for (std::int64_t left = take_count(fewest_bytes); left > 0 && !failed(); --left)
      visit_operator(*this, operators.emplace_back());
  }
  void operator()(NamedValues& values) {
    constexpr std::int64_t fewest_bytes = 16;  // a length and a number
    for (std::int64_t left = take_count(fewest_bytes); left > 0 && !failed(); --left) {
      auto& [name, value] = values.emplace_back();
      (*this)(name), (*this)(value);
    }
  }

 private:
  // The number of items that have at least `fewest_bytes` each; 0 if there can't be so many.
  std::int64_t take_count(std::int64_t fewest_bytes) {
    std::int64_t count = 0;
    (*this)(count);
    if (count >= 0 && count <= static_cast<std::int64_t>(left()) / fewest_bytes) return count;
    fail();
    return 0;
  }

  template <class Enum>
  void take_enum(Enum& value, Enum last) {
    int number = 0;
    (*this)(number);
    if (number < 0 || number > static_cast<int>(last)) return fail();
    value = static_cast<Enum>(number);
  }
};

template <std::size_t kind = 0>
bool read_kind(EventReader& reader, std::size_t wanted, RunEvent& event) {
  if constexpr (kind < std::variant_size_v<RunEvent>) {
    if (kind != wanted) return read_kind<kind + 1>(reader, wanted, event);
    visit_fields(reader, event.emplace<kind>());
    return true;
  } else {
    return false;
  }
}

struct RecordHead {
  std::uint32_t size;
  std::uint32_t crc;
};

}  // namespace

void ByteReader::take(void* data, std::size_t size) {
  if (failed_ || bytes_.size() < size) return fail();
  std::memcpy(data, bytes_.data(), size);
  bytes_.remove_prefix(size);
}

void ByteReader::operator()(int& value) {
  std::int64_t wide = 0;
  (*this)(wide);
  if (wide < std::numeric_limits<int>::min() || wide > std::numeric_limits<int>::max()) return fail();
  value = static_cast<int>(wide);
}

void ByteReader::operator()(std::string& text) {
  std::int64_t size = 0;
  (*this)(size);
  if (failed_ || size < 0 || static_cast<std::uint64_t>(size) > bytes_.size()) return fail();
  text.assign(bytes_.data(), static_cast<std::size_t>(size));
  bytes_.remove_prefix(static_cast<std::size_t>(size));
}

void append_event(std::string& bytes, const RunEvent& event) {
  EventWriter writer(bytes);
  writer(static_cast<std::int64_t>(event.index()));
  std::visit([&](const auto& each) { visit_fields(writer, each); }, event);
}

std::optional<RunEvent> event_from(std::string_view bytes) {
  EventReader reader(bytes);
  std::int64_t kind = 0;
  reader(kind);
  RunEvent event;
  if (reader.failed() || kind < 0 || !read_kind(reader, static_cast<std::size_t>(kind), event) || !reader.at_end())
    return std::nullopt;
  return event;
}

void append_record(std::string& bytes, std::string_view payload) {
  const RecordHead head{static_cast<std::uint32_t>(payload.size()), crc32(payload)};
  bytes.append(reinterpret_cast<const char*>(&head), sizeof head);
  bytes += payload;
}

std::optional<std::string_view> read_record(std::string_view bytes, std::size_t& used) {
  RecordHead head{};
  if (bytes.size() < sizeof head) return std::nullopt;
  std::memcpy(&head, bytes.data(), sizeof head);
  if (head.size > longest_record || head.size > bytes.size() - sizeof head) return std::nullopt;
  const std::string_view payload = bytes.substr(sizeof head, head.size);
  if (crc32(payload) != head.crc) return std::nullopt;
  used = sizeof head + payload.size();
  return payload;
}

EventRecords read_records(std::string_view bytes, std::size_t most) {
  EventRecords read;
  while (read.events.size() < most) {
    const std::string_view rest = bytes.substr(read.used);
    RecordHead head{};
    if (rest.size() < sizeof head) break;
    std::memcpy(&head, rest.data(), sizeof head);
    if (head.size > longest_record) {
      ++read.damaged;
      read.used = bytes.size();
      break;
    }
    if (head.size > rest.size() - sizeof head) break;
    std::size_t ignored = 0;
    const auto payload = read_record(rest, ignored);
    std::optional<RunEvent> event = payload ? event_from(*payload) : std::nullopt;
    if (event)
      read.events.push_back(std::move(*event));
    else
      ++read.damaged;
    read.used += sizeof head + head.size;
  }
  return read;
}

}  // namespace stepladder
