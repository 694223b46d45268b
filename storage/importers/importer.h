// An importer turns another program's log, table or store into runs and notes: bytes in, runs out. It writes no file
// and prints nothing, and recognises its format by content. Each is one file in storage/importers/ and one line in
// importers.def.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "storage/analysis/file_grouping.h"
#include "storage/records.h"

namespace stepladder {

struct KnownStage;
struct StoredTries;   // storage/try_records.h
struct StoredPasses;  // storage/analysis/pass_times.h

// This input cannot be imported. One sentence that begins in lower case and doesn't name the file: the caller adds the
// name ("run.log: " + what()).
struct ImportError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Throws if a run of a store has too many metrics to take a further one.
void refuse_more_metrics(std::size_t metrics);

// The most of both that one input may have: beyond that it is no training's log, and its names fill the memory.
inline constexpr std::size_t most_runs_of_input = 50'000;   // of an input
inline constexpr std::size_t most_logged_metrics = 10'000;  // of a run in a text
inline constexpr std::size_t most_stored_metrics = 50'000;  // of a run in a store or journal

// Facts that the user gives because the file may lack them. Each overrides the file.
struct ImportOptions {
  std::int64_t tokens_per_step = 0;  // 0: not given
  std::int64_t params = 0;           // 0: not given
  std::string hardware;
  std::string format;    // an importer's id; empty: detect it by content
  std::string step_key;  // the logged number that is the step, in stores of W&B and Trackio; empty: by name
  FilesAre files = FilesAre::detect;  // of a folder: repeats of one rung, or one rung per file
  bool live = false;  // the input is still growing: pass each step on soon rather than after reading many
  // Stages whose names are headings in a log ("Flash attention" on a line of its own); null: none. The user doesn't set
  // it.
  const std::vector<KnownStage>* known_stages = nullptr;

  bool operator==(const ImportOptions&) const = default;
};

// The beginning of a note that ImportOptions::tokens_per_step would make needless. Each front end adds how to give it.
inline constexpr std::string_view unknown_tokens_note = "tokens per step are unknown";

// Receives what an importer reads, so that a 10 GB log doesn't need 10 GB of memory. The calls follow this order:
// (begin_run step* end_run)* with note anywhere, and optionally ladder after each group of runs.
class ImportSink {
 public:
  virtual ~ImportSink() = default;

  // The steps that follow belong to it. `id` is its number in the file, if tries and views there name runs by such
  // numbers; else 0. The sink fills in `id`, `ladder`, `source` and `source_path`, and `name` if it is empty.
  virtual void begin_run(const Run& run) = 0;

  // A step, in the order of the file; a repeated step number is a newer attempt. `run` is ignored.
  virtual void step(const StepRecord& record) = 0;

  // The same, with the line of the file (from 1) that prints it. Only importers of text call it; the default drops the
  // line.
  virtual void step_on_line(const StepRecord& record, [[maybe_unused]] std::int64_t line) { step(record); }

  // Values of a metric of this run, in the order of the file; if a step is there twice, the later one is the newer
  // attempt. There may be several calls. The metric's unit and the like need to be given only once. The default drops
  // them.
  virtual void metric(const Metric&, std::span<const MetricPoint>) {}

  // What the machine did meanwhile, in the order of time; `run` is ignored. The default drops it.
  virtual void machine(const SystemMetrics&) {}

  // The same run with the facts read since (title, hardware, tokens per step, printed units).
  virtual void end_run(const Run& run) = 0;

  // The last rungs.size() runs were measured together: rungs[i] is the rung of the i-th of them. A store with several
  // experiments has several ladders. Not called for unrelated runs. The default drops it.
  virtual void ladder(const Ladder& /*ladder*/, std::span<const int> /*rungs*/) {}

  // A view of the window that a Stepladder project saved. The default drops it.
  virtual void view(const std::string& /*name*/, const std::string& /*content*/) {}

  // The ladder that was passed on last is a series of tries. The default drops it.
  virtual void tries(StoredTries&&) {}

  // Timings of a model's passes, which are no run. The default drops them.
  virtual void passes(const StoredPasses&) {}

  // Tables of published utilisation in Markdown (storage/analysis/mfu.h). The default drops them.
  virtual void published(std::string_view) {}

  // Reports something that was skipped, assumed or inferred. `line` counts from 1; 0 means the whole file.
  virtual void note(std::int64_t line, std::string text) = 0;
};

// Reads one input: its caller pushes the bytes, the reader passes runs on to its sink. Not thread-safe: one thread.
class ImportReader {
 public:
  virtual ~ImportReader() = default;

  // The next bytes. The first piece begins with what `recognises` saw. What the sink has got after a call depends on
  // all bytes so far, not on how they were cut into pieces. Throws ImportError for an input that cannot be imported.
  virtual void take(std::string_view bytes) = 0;

  // There are no more bytes. Throws ImportError if the input holds nothing to import.
  virtual void finish() = 0;

  // A reader may hold back some of what it has read, since the next lines may complete it. Passes that on to another
  // sink as if the input ended here, and changes nothing.
  virtual void pass_held(ImportSink&) const {}
};

// A source of bytes, for callers that have a file, a pipe or memory. Used by one thread.
class ImportInput {
 public:
  virtual ~ImportInput() = default;

  // The first bytes (up to 64 KiB, fewer only if the input is shorter), the same at every call.
  virtual std::string_view head() = 0;

  // The next piece, the head included; valid until the next call. Blocks if the input is a pipe; empty at the end.
  // Throws ImportError if it cannot be read.
  virtual std::string_view next() = 0;

  // The file; empty for standard input. For stores that only their own library can open (SQLite), and for names.
  virtual const std::filesystem::path& path() const = 0;
};

// Pushes all pieces of an input into a reader.
template <class Reader>
void push_all(ImportInput& input, Reader& reader) {
  for (std::string_view piece = input.next(); !piece.empty(); piece = input.next()) reader.take(piece);
}

struct Importer {
  std::string id;     // as in --as
  std::string title;  // in words, for lists
  // `head`: the first bytes. `path` only counts if the name shows something that the content doesn't.
  std::function<bool(std::string_view head, const std::filesystem::path& path)> recognises;
  // `path` as in ImportInput; `options` and `sink` outlive the reader.
  std::function<std::unique_ptr<ImportReader>(const std::filesystem::path& path, const ImportOptions& options,
                                              ImportSink& sink)>
      reader;
  // false: a format without training steps, which is recognised only to say so. Lists of importable formats skip it.
  bool has_runs = true;
  // The reader opens the file at `path` itself, as a database, and needs no bytes.
  bool opens_file = false;

  // Reads the whole input. Throws ImportError if it holds nothing to import. A malformed line is a note.
  void read(ImportInput& input, const ImportOptions& options, ImportSink& sink) const;
};

namespace importers {
#define IMPORTER(name) Importer name();
#include "storage/importers/importers.def"
#undef IMPORTER
}  // namespace importers

// All importers, the most specific first: the first that recognises an input reads it.
const std::vector<Importer>& all_importers();

// The importer that `options.format` names, else the first that recognises the input. Throws ImportError if none
// does or the name is unknown.
const Importer& importer_for(std::string_view head, const std::filesystem::path& path, const ImportOptions& options);
inline const Importer& importer_for(ImportInput& input, const ImportOptions& options) {
  return importer_for(input.head(), input.path(), options);
}

// A piece of memory as an input, for tests and pasted text. Does not own the bytes.
class MemoryInput : public ImportInput {
 public:
  explicit MemoryInput(std::string_view bytes, std::filesystem::path path = {})
      : bytes_(bytes), path_(std::move(path)) {}
  std::string_view head() override { return bytes_.substr(0, 65536); }
  std::string_view next() override { return std::exchange(rest_read_, true) ? std::string_view() : bytes_; }
  const std::filesystem::path& path() const override { return path_; }

 private:
  std::string_view bytes_;
  std::filesystem::path path_;
  bool rest_read_ = false;
};

// Notes of one kind: the sink gets the first twenty and, at the end, the number of the others.

class CappedNotes {
 public:
  // `rest` ends the last note: "3 more " + rest. It and the sink outlive this.
  CappedNotes(ImportSink& sink, std::string_view rest) : sink_(&sink), rest_(rest) {}

  void note(std::int64_t line, std::string text) {
    if (++count_ <= most) sink_->note(line, std::move(text));
  }

  void finish() {
    if (count_ > most) sink_->note(0, std::to_string(count_ - most) + " more " + std::string(rest_));
    count_ = 0;
  }

 private:
  static constexpr int most = 20;

  ImportSink* sink_;
  std::string_view rest_;
  int count_ = 0;
};

}  // namespace stepladder
