// One libFuzzer entry point for the importers of stores: STEPLADDER_FUZZ selects one. Any bytes must give runs and
// notes, or one ImportError or StorageError. Checksums are corrected first, since no mutation would pass them.
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>

#include "storage/checksum.h"
#include "storage/errors.h"
#include "storage/importers/importer.h"
#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

struct Counter : ImportSink {
  std::size_t runs = 0;
  bool inside = false;
  void begin_run(const Run&) override {
    if (inside) __builtin_trap();
    inside = true;
    ++runs;
  }
  void step(const StepRecord& record) override {
    if (!inside || record.step < 0) __builtin_trap();
  }
  void end_run(const Run& run) override {
    if (!inside || !is_over(run.status)) __builtin_trap();
    inside = false;
  }
  void ladder(const Ladder&, std::span<const int> rungs) override {
    if (inside || rungs.size() > runs) __builtin_trap();
  }
  void note(std::int64_t, std::string text) override {
    if (text.empty() || text.size() > 100'000) __builtin_trap();
  }
};

void put_u32(std::string& bytes, std::size_t at, std::uint32_t value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

// Half of the inputs (by their last byte) keep their own checksums.
[[maybe_unused]] void mend_event_file(std::string& bytes) {
  std::size_t at = 0;
  while (bytes.size() >= at + 12) {
    std::uint64_t length = 0;
    std::memcpy(&length, bytes.data() + at, sizeof length);
    put_u32(bytes, at + 8, masked(crc32c(std::string_view(bytes).substr(at, 8))));
    at += 12;
    if (length > bytes.size() - at || bytes.size() - at - length < 4) return;
    put_u32(bytes, at + length, masked(crc32c(std::string_view(bytes).substr(at, length))));
    at += length + 4;
  }
}

[[maybe_unused]] void mend_wandb_file(std::string& bytes) {
  std::size_t at = 7;
  while (bytes.size() >= at + 7) {
    const std::size_t left = 32768 - at % 32768;
    if (left < 7) {
      at += left;
      continue;
    }
    const std::size_t length = static_cast<unsigned char>(bytes[at + 4]) |
                               static_cast<std::size_t>(static_cast<unsigned char>(bytes[at + 5])) << 8;
    if (length > bytes.size() - at - 7) return;
    put_u32(bytes, at, crc32(std::string_view(bytes).substr(at + 6, length + 1)));
    at += 7 + length;
  }
}

void read(const Importer& importer, ImportInput& input) {
  Counter sink;
  try {
    importer.recognises(input);
    importer.read(input, {}, sink);
  } catch (const ImportError&) {
  } catch (const StorageError&) {
  }
}

[[maybe_unused]] void read_database(const Importer& importer, std::string_view bytes) {
  static const TemporaryFolder folder;
  const auto file = folder.path() / "fuzz.db";
  std::ofstream(file, std::ios::binary | std::ios::trunc)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  MemoryInput input(bytes, file);
  read(importer, input);
}

}  // namespace
}  // namespace stepladder

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stepladder;
  std::string bytes(reinterpret_cast<const char*>(data), size);
  [[maybe_unused]] const bool mend = size > 0 && data[size - 1] % 2 == 0;
#if defined(STEPLADDER_FUZZ_DATABASE)
  read_database(importers::STEPLADDER_FUZZ(), bytes);
#else
  if (mend) STEPLADDER_FUZZ_MEND(bytes);
  MemoryInput input(bytes);
  read(importers::STEPLADDER_FUZZ(), input);
#endif
  return 0;
}
