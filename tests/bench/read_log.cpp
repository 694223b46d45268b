// Measures the speed and memory of reading a log without a database: read_log FILE...
#include <sys/resource.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "storage/importers/importer.h"

namespace {

class File : public stepladder::ImportInput {
 public:
  explicit File(const std::filesystem::path& path) : path_(path), stream_(path, std::ios::binary) { fill(); }
  std::string_view head() override { return std::string_view(piece_).substr(0, 65536); }
  std::string_view next() override {
    if (!std::exchange(first_, false)) fill();
    return piece_;
  }
  const std::filesystem::path& path() const override { return path_; }

 private:
  void fill() {
    piece_.resize(256 * 1024);
    stream_.read(piece_.data(), static_cast<std::streamsize>(piece_.size()));
    piece_.resize(static_cast<std::size_t>(stream_.gcount()));
  }
  std::filesystem::path path_;
  std::ifstream stream_;
  std::string piece_;
  bool first_ = true;
};

struct Counter : stepladder::ImportSink {
  long steps = 0, notes = 0;
  void begin_run(const stepladder::Run&) override {}
  void step(const stepladder::StepRecord&) override { ++steps; }
  void end_run(const stepladder::Run&) override {}
  void ladder(const stepladder::Ladder&, std::span<const int>) override {}
  void note(std::int64_t, std::string) override { ++notes; }
};

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace

int main(int count, char** arguments) {
  for (int i = 1; i < count; ++i) {
    File file(arguments[i]);
    Counter counter;
    const double start = cpu_seconds();
    stepladder::importer_for(file, {}).read(file, {}, counter);
    const double seconds = cpu_seconds() - start;
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const double megabytes = static_cast<double>(std::filesystem::file_size(arguments[i])) / 1e6;
    std::printf(
        "{\"file\": \"%s\", \"mb\": %.1f, \"steps\": %ld, \"notes\": %ld, \"cpu_seconds\": %.3f, \"mb_per_cpu_s\": "
        "%.1f, "
        "\"peak_memory_mb\": %.1f}\n",
        arguments[i], megabytes, counter.steps, counter.notes, seconds, megabytes / seconds,
        static_cast<double>(usage.ru_maxrss) / 1024);
  }
}
