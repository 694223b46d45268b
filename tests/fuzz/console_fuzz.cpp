// libFuzzer: what a watched program prints, in pieces of any size, as `watch` reads it. The first byte seeds the sizes.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>

#include "app/import/live_import.h"

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
  const MoreBytes more = [&](std::vector<char>& piece, std::size_t& taken) {
    taken = std::min({size - at, piece.size(), std::size_t{1} + dice() % (dice() % 2 ? 8 : 4096)});
    std::memcpy(piece.data(), data + at, taken);
    at += taken;
    return taken > 0;
  };
  LiveInput input(more, {});
  Checked sink;
  ImportOptions options;
  options.live = true;
  options.format = "log";
  try {
    importer_for(input, options).read(input, options, sink);
  } catch (const ImportError&) {
    // a refusal is fine
  }
  return 0;
}
