// libFuzzer: whatever bytes of a project file or of its log were changed, a rescue must end with a sound file or with a
// StorageError. The input is a list of changes: first those to the file, then, after half of its bytes, to the log.
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "storage/database/rescue/rescue.h"
#include "storage/database/run_store.h"
#include "storage/errors.h"
#include "tests/fuzz/changes.h"
#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

std::string contents_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write_contents(const std::filesystem::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary | std::ios::trunc)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

struct Sound {
  std::string file, log;

  explicit Sound(const TemporaryFolder& folder) {
    RunStore store = RunStore::open(folder / "sound.db");
    const LadderId ladder = store.create_ladder({.name = "a ladder"});
    for (int run = 0; run < 3; ++run) {
      std::vector<StepRecord> steps;
      for (int step = 1; step <= 300; ++step) steps.push_back({.step = step, .loss = 2.5, .dt_ms = 10});
      store.insert_finished({.name = "a run", .ladder = ladder, .recipe = std::string(6'000, 'x')}, steps);
      if (run == 1) file = contents_of(folder / "sound.db");
    }
    log = contents_of(folder / "sound.db-wal");
  }
};

}  // namespace
}  // namespace stepladder

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stepladder;
  static const TemporaryFolder folder;
  static const Sound sound(folder);
  const std::string_view changes(reinterpret_cast<const char*>(data), size);
  write_contents(folder / "changed.db", changed(sound.file, changes.substr(0, size / 2)));
  write_contents(folder / "changed.db-wal", changed(sound.log, changes.substr(size / 2)));
  try {
    rescue(folder / "changed.db", folder / "saved.db");
    if (RunStore::open(folder / "saved.db").upkeep().integrity_check() != "ok") __builtin_trap();
  } catch (const StorageError& error) {
    const std::string_view said = error.what();
    if (said.empty() || said.find("not written as it should") != said.npos) __builtin_trap();
  }
  for (const char* file : {"saved.db", "saved.db-wal", "saved.db-shm"}) std::filesystem::remove(folder / file);
  return 0;
}
