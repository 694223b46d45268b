#include "app/import/trace_import.h"

#include <set>
#include <utility>

#include "app/import/follow_request.h"
#include "storage/traces/trace.h"

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
                           .source_path = asked.are_temporary ? "" : std::filesystem::absolute(first).string()}};
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
        if (is_missing(read.trace.origin.began_at)) read.trace.origin = trace.origin;
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

std::vector<std::string> TraceSearch::find_new(const std::vector<std::filesystem::path>& paths, bool is_last) {
  namespace fs = std::filesystem;
  std::vector<std::string> found;
  for (const fs::path& path : paths) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      look_at(path, is_last, found);
      continue;
    }
    for (auto it = fs::recursive_directory_iterator(path, fs::directory_options::skip_permission_denied, error);
         !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
      const std::string name = it->path().filename().string();
      std::error_code unreadable;
      if (it->is_directory(unreadable) && (name.starts_with(".") || it.depth() >= deepest_followed_folder))
        it.disable_recursion_pending();
      if (name.find(".json") != std::string::npos || name.find(".sqlite") != std::string::npos)
        look_at(it->path(), is_last, found);
    }
  }
  return found;
}

void TraceSearch::look_at(const std::filesystem::path& file, bool is_last, std::vector<std::string>& found) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(file, error);
  if (error) return;
  const auto [known, is_new] = known_.try_emplace(file.string(), Known{.size = size});
  const bool has_grown = std::exchange(known->second.size, size) != size;
  if (has_grown) known->second.is_done = false;
  if (known->second.is_done || ((is_new || has_grown) && !is_last)) return;
  known->second.is_done = true;
  if (looks_like_trace(file)) found.push_back(file.string());
}

}  // namespace stepladder
