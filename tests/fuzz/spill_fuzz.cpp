// libFuzzer: what processes that were killed leave: spill files and rings. Any bytes must be read or passed over, an
// event that is read must have the bytes that it came from, and a database takes it or refuses it with a StorageError.
//
// The last byte selects: 0, a spill file as it is; 1, one event's bytes after another (each behind its length as u32),
// which are put into records with right checksums; 2, a list of changes to a sound ring.
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "storage/database/events/event_bytes.h"
#include "storage/database/events/event_ring.h"
#include "storage/database/events/spill_file.h"
#include "storage/database/run_store.h"
#include "storage/errors.h"
#include "tests/fuzz/changes.h"
#include "tests/fuzz/wire_mutator.h"
#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

constexpr std::size_t most_events = 1000;

StepRecord a_step(std::int64_t number) {
  StepRecord step;
  step.run = 1;
  step.step = number;
  step.loss = 3;
  step.dt_ms = 10;
  step.tokens = 1024;
  return step;
}

std::vector<RunEvent> sound_events() {
  return {RunStarted{.run = 1, .recipe = "{}"},
          a_step(1),
          a_step(2),
          ConsoleText{.run = 1, .text = "step 2"},
          TextSample{.run = 1, .step = 2, .text = "once"},
          CheckpointSaved{.run = 1, .step = 2, .folder = "step-2"},
          RunEnded{.run = 1, .status = RunStatus::finished, .reason = "done"}};
}

std::vector<std::string> split(std::string_view bytes) {
  std::vector<std::string> payloads;
  for (std::uint32_t size = 0; bytes.size() > sizeof size;) {
    std::memcpy(&size, bytes.data(), sizeof size);
    bytes.remove_prefix(sizeof size);
    payloads.emplace_back(bytes.substr(0, size));
    bytes.remove_prefix(payloads.back().size());
  }
  return payloads;
}

std::string join(const std::vector<std::string>& payloads) {
  std::string bytes;
  for (const std::string& payload : payloads) {
    const auto size = static_cast<std::uint32_t>(payload.size());
    bytes.append(reinterpret_cast<const char*>(&size), sizeof size);
    bytes += payload;
  }
  return bytes;
}

void store(std::span<const RunEvent> events) {
  static RunStore store = [] {
    RunStore made = RunStore::in_memory();
    made.create_run({});
    return made;
  }();
  try {
    store.apply(events);
  } catch (const StorageError&) {
    // a refusal is fine
  }
}

void read_file(std::string_view bytes) {
  std::size_t used = 0;
  if (spill_header(bytes, used)) bytes.remove_prefix(used);
  while (!bytes.empty()) {
    const EventRecords records = read_records(bytes, most_events);
    store(records.events);
    if (records.used == 0) break;
    bytes.remove_prefix(records.used);
  }
}

void read_events(const std::vector<std::string>& payloads) {
  std::string bytes;
  for (const std::string& payload : payloads) append_record(bytes, payload);
  const EventRecords records = read_records(bytes, payloads.size());
  if (records.used != bytes.size() || records.events.size() + records.damaged != payloads.size()) __builtin_trap();
  std::size_t next = 0;
  for (const RunEvent& event : records.events) {
    std::string again;
    append_event(again, event);
    while (next < payloads.size() && payloads[next] != again) ++next;
    if (next == payloads.size()) __builtin_trap();
  }
  store(records.events);
}

std::string sound_ring() {
  const TemporaryFolder folder;
  EventRing ring(origin_of_this_process(folder / "runs.db"), folder.path());
  for (std::int64_t step = 1; step <= 100; ++step) ring.post(a_step(step));
  std::ifstream in(ring.file(), std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void read_ring(std::string_view changes) {
  static const std::string sound = sound_ring();
  const auto content = EventRing::content_of(changed(sound, changes));
  if (!content) return;
  store(std::vector<RunEvent>(content->steps.begin(), content->steps.end()));
}

}  // namespace
}  // namespace stepladder

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  using namespace stepladder;
  Dice dice(seed + 1);
  std::string result;
  if (size < 2 || dice() % 100 == 0) {
    std::vector<std::string> payloads;
    std::string file("SLSPILL\1", 8);
    append_record(file, to_bytes(EventOrigin{.database = "/runs.db"}));
    for (const RunEvent& event : sound_events()) {
      append_event(payloads.emplace_back(), event);
      append_record(file, payloads.back());
    }
    result = dice() % 2 ? join(payloads) + '\1' : file + '\0';
  } else if (data[size - 1] == 1 && dice() % 8 != 0) {
    std::vector<std::string> payloads = split({reinterpret_cast<const char*>(data), size - 1});
    if (!payloads.empty()) {
      std::string& payload = payloads[dice() % payloads.size()];
      payload = mutated_bytes(payload);
    }
    result = join(payloads) + '\1';
  }
  if (result.empty() || result.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::copy(result.begin(), result.end(), data);
  return result.size();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stepladder;
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size - 1);
  switch (data[size - 1] % 3) {
    case 0:
      read_file(bytes);
      break;
    case 1:
      read_events(split(bytes));
      break;
    case 2:
      read_ring(bytes);
  }
  return 0;
}
