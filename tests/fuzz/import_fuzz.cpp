// libFuzzer: for any bytes, the importer that recognises them must end without leaks and report its runs in order.
#include <cstdint>
#include <cstdlib>

#include "storage/importers/importer.h"

namespace {

class Checked : public stepladder::ImportSink {
 public:
  void begin_run(const stepladder::Run&) override { require(!std::exchange(open_, true)); }
  void step(const stepladder::StepRecord& record) override { require(open_ && record.step >= 0); }
  void end_run(const stepladder::Run&) override { require(std::exchange(open_, false)), ++runs_; }
  void ladder(const stepladder::Ladder&, std::span<const int> rungs) override { require(rungs.size() == runs_); }
  void note(std::int64_t line, std::string text) override { require(line >= 0 && !text.empty()); }

 private:
  static void require(bool holds) {
    if (!holds) std::abort();
  }
  bool open_ = false;
  std::size_t runs_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const char* format : {"", "log", "csv"}) {
    stepladder::MemoryInput input(bytes);
    Checked sink;
    stepladder::ImportOptions options;
    options.format = format;
    options.live = size % 2 == 1;
    try {
      stepladder::importer_for(input, options).read(input, options, sink);
    } catch (const stepladder::ImportError&) {
      // a refusal is fine
    }
  }
  return 0;
}
