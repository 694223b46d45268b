// Imports a log while it is being printed: its bytes as an importer's input, and its steps posted to the recorder.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "storage/database/recorder.h"
#include "storage/importers/importer.h"

namespace stepladder {

// Fills `piece` with the next bytes and sets their number; false at the end. Blocks.
using MoreBytes = std::function<bool(std::vector<char>& piece, std::size_t& size)>;

inline constexpr std::size_t live_piece_size = 64 * 1024;

class LiveInput : public ImportInput {
 public:
  LiveInput(MoreBytes more, std::filesystem::path path)
      : more_(std::move(more)), path_(std::move(path)), piece_(live_piece_size) {}

  std::string_view head() override;  // the first piece only: it can't wait for later ones
  std::string_view next() override;
  const std::filesystem::path& path() const override { return path_; }

 private:
  MoreBytes more_;
  std::filesystem::path path_;
  std::vector<char> piece_;
  std::string head_;
  bool head_read_ = false;
  bool head_waits_ = false;  // next() hasn't returned it yet
};

// Posts the importer's steps to the writer thread. The first run is `first`, which has a row already; a program that
// begins another run gets another row.
class LiveSink : public ImportSink {
 public:
  LiveSink(RunStore& store, Recorder& recorder, const Run& first)
      : store_(store), recorder_(recorder), template_(first), run_(first.id) {}

  void begin_run(const Run& run) override;
  void step(const StepRecord& record) override;
  void end_run(const Run& run) override;
  void ladder(const Ladder&, std::span<const int>) override {}
  void note(std::int64_t, std::string) override {}

  void end(RunStatus status, const std::string& reason);  // of the last run; earlier ones have finished

 private:
  void start(const Run& run);

  RunStore& store_;
  Recorder& recorder_;
  Run template_;
  RunId run_;
  std::optional<RunId> previous_;
  int begun_ = 0;
};

// `more`, and the first 8 MiB of its bytes are recorded as the run's console output.
MoreBytes with_console(MoreBytes more, Recorder& recorder, RunId run);

}  // namespace stepladder
