#include "app/import/trace_import.h"

#include <filesystem>
#include <set>
#include <utility>

#include "storage/traces/trace.h"
#include "storage/traces/trace_file.h"

namespace stepladder {
namespace {

std::string name_of(const std::filesystem::path& file) {
  std::string name = file.filename().string();
  for (const std::string_view ending : {".gz", ".json", ".pt.trace", ".sqlite", ".hatchet"}) {
    if (name.size() > ending.size() && name.ends_with(ending)) name.resize(name.size() - ending.size());
  }
  return name;
}

// Checks the ranks of the newest process: no earlier process may have them, and its device must be of the same kind. A
// file with several GPUs has a rank for each.
void require_own_ranks(const std::vector<TracedProcess>& processes, std::set<int>& known) {
  if (processes.back().profile.on_gpu != processes.front().profile.on_gpu)
    throw TraceError(processes.front().profile.on_gpu ? "is of a CPU only, but the first file is of a GPU"
                                                      : "is of a GPU, but the first file is of a CPU only");
  std::set<int> own;
  for (const TracedStep& step : processes.back().profile.steps) own.insert(step.rank);
  for (const int rank : own) {
    if (!known.insert(rank).second)
      throw TraceError("is of rank " + std::to_string(rank) +
                       ", as another file is; import traces of different runs one by one");
  }
}

}  // namespace

ReadTrace read_traces(const TraceFiles& asked, const TraceProgress& progress) {
  const std::filesystem::path first(asked.files.front());
  ReadTrace read{.trace = {.run = asked.run,
                           .name = asked.name.empty() ? name_of(first) : asked.name,
                           .source_path = std::filesystem::absolute(first).string()}};
  std::vector<TracedProcess> ranks;
  std::set<int> known;
  double files = 0;
  for (const std::string& file : asked.files) {
    const auto share = [&](double of_file) {
      if (progress) progress((files + of_file) / static_cast<double>(asked.files.size()));
    };
    try {
      bool is_first = true;
      for (Trace& trace : read_trace(file, share)) {
        // The processes of one file are ranks of one training.
        const int next = is_first ? static_cast<int>(ranks.size()) : *known.rbegin() + 1;
        if (trace.rank < 0) trace.rank = next;
        if (!std::exchange(is_first, false)) trace.first_gpu = next;
        read.trace.format = trace.format;
        if (read.trace.hardware.empty()) read.trace.hardware = trace.hardware;
        if (read.trace.precision.empty()) read.trace.precision = trace.precision;
        ranks.push_back(attribute_all(trace));
        require_own_ranks(ranks, known);
      }
    } catch (const TraceError& error) {
      throw StorageError(file + " " + error.what());
    }
    ++files;
  }
  read.process = ranks.size() == 1 ? std::move(ranks.front()) : join_ranks(std::move(ranks));
  return read;
}

}  // namespace stepladder
