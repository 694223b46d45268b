// Opens a profiler's trace, whatever wrote it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "storage/traces/trace.h"

namespace stepladder {

// A file's bytes in order, unpacked if they are gzip. One thread.
// The share of a file that has been read, 0 to 1. Called on the reading thread now and then; an exception from it ends
// the reading.
using TraceProgress = std::function<void(double share)>;

class TraceBytes {
 public:
  static constexpr std::int64_t most_bytes = std::int64_t{8} << 30;  // unpacked

  // Throws TraceError if the file can't be opened.
  explicit TraceBytes(const std::filesystem::path& file, TraceProgress progress = {});
  ~TraceBytes();

  // Valid until the next call; empty at the end. Blocks on the disk. Throws TraceError if the file can't be read, its
  // gzip data is damaged or cut off, or it unpacks to more than most_bytes or to 200 times what has been read of the
  // file (beyond 64 MiB).
  std::string_view next();

 private:
  struct File;
  std::unique_ptr<File> file_;
};

// Recognises the format by content: PyTorch's JSON, also gzipped, which is of one process, or the SQLite export of
// Nsight Systems, which may hold several. Blocks on the disk. Throws TraceError.
std::vector<Trace> read_trace(const std::filesystem::path& file, const TraceProgress& progress = {});

// The host in the name of a file of torch.profiler.tensorboard_trace_handler, "HOST_PID.TIME.pt.trace.json"; empty: it
// has another name, or is of another process.
std::string host_in_name(const std::string& name, std::int64_t pid);

// Whether bytes, packed with gzip or not, begin as a trace does.
bool begins_like_trace(std::string_view bytes);

// Whether a file's beginning is that of a trace. Reads at most a megabyte; false if it can't be read.
bool looks_like_trace(const std::filesystem::path& file);

// Reads the traces that PyTorch's profiler exports (Kineto's Chrome JSON).
// Reads to the end, event by event. Throws TraceError.
Trace read_kineto(TraceBytes& bytes);

// Reads what `nsys export --type sqlite` writes.

bool is_nsight(std::string_view head);  // by the first bytes of a file: whether it is an SQLite database

// A trace for each process with work on a GPU, in the order of their GPUs; also of an export packed with gzip. Throws
// TraceError.
std::vector<Trace> read_nsight(const std::filesystem::path& file, const TraceProgress& progress = {});

}  // namespace stepladder
