// One libFuzzer entry point for the importers of stores: STEPLADDER_FUZZ selects one. Any bytes must give runs and
// notes, or one ImportError or StorageError. Most mutations change a record inside right lengths and checksums
// (STEPLADDER_FUZZ_FRAMING), or a database's pages in place; the rest change the bytes as they are.
#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>

#include "storage/errors.h"
#include "storage/importers/importer.h"
#include "tests/fuzz/framing.h"
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

void read(const Importer& importer, ImportInput& input) {
  Counter sink;
  try {
    importer.recognises(input.head(), input.path());
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

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  using namespace stepladder;
  Dice dice(seed + 1);
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (dice() % 8 != 0) {
#if defined(STEPLADDER_FUZZ_DATABASE)
    const std::string changed = mutated_pages(bytes, dice);
#else
    const std::string changed = mutated_records<STEPLADDER_FUZZ_FRAMING>(bytes, dice);
#endif
    if (!changed.empty() && changed.size() <= max_size) {
      std::copy(changed.begin(), changed.end(), data);
      return changed.size();
    }
  }
  return LLVMFuzzerMutate(data, size, max_size);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stepladder;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
#if defined(STEPLADDER_FUZZ_DATABASE)
  read_database(importers::STEPLADDER_FUZZ(), bytes);
#else
  MemoryInput input(bytes);
  read(importers::STEPLADDER_FUZZ(), input);
#endif
  return 0;
}
