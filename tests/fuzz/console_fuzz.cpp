// libFuzzer: what a watched program prints, in pieces of any size, as `watch` reads it. The first byte seeds the sizes.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <utility>

#include "storage/importers/importer.h"

namespace {

class Checked : public stepladder::ImportSink {
 public:
  void begin_run(const stepladder::Run&) override { require(!std::exchange(open_, true)); }
  void step(const stepladder::StepRecord& record) override { require(open_ && record.step >= 0); }
  void end_run(const stepladder::Run&) override { require(std::exchange(open_, false)); }
  void ladder(const stepladder::Ladder&, std::span<const int>) override {}
  void note(std::int64_t line, std::string text) override {
    require(line >= 0 && !text.empty() && text.size() < 100'000);
  }

 private:
  static void require(bool holds) {
    if (!holds) std::abort();
  }
  bool open_ = false;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stepladder;
  if (size < 2) return 0;
  std::minstd_rand dice(data[0] + 1U);
  std::size_t at = 1;
  Checked sink;
  ImportOptions options;
  options.live = true;
  try {
    const auto reader = importers::step_log().reader({}, options, sink);
    while (at < size) {
      const std::size_t taken = std::min(size - at, std::size_t{1} + dice() % (dice() % 2 ? 8 : 4096));
      reader->take({reinterpret_cast<const char*>(data) + at, taken});
      at += taken;
    }
    reader->finish();
  } catch (const ImportError&) {
    // a refusal is fine
  }
  return 0;
}
