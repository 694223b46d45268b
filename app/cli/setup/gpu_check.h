// `stepladder doctor --gpu`: what a machine with a GPU can check by itself, in one file that can be attached to a bug
// report. Nothing is sent anywhere.
#pragma once

#include <filesystem>
#include <string>

#include "app/cli/subcommand.h"

namespace stepladder {

struct GpuCheckOptions {
  bool is_asked = false;
  std::string device = "cuda";  // any other: the same parts in sizes that it does in seconds
  double minutes = 10;          // no part begins after that, and the one under way is stopped
  std::filesystem::path out;    // empty: stepladder-gpu-DATE.json here
  bool forces = false;          // overwrites `out`
};

// Blocks until all parts are done. Each is one or a few of this program's commands, in processes of their own: a GPU
// that failed once fails for the rest of its process. They use a project, settings and caches of their own, which are
// removed. Returns exit_failed if a part failed, exit_interrupted after Ctrl-C; the file is written in both cases.
// Throws NotFound if there is no such device, UsageError for a file that is there, StorageError if it can't be written.
int check_gpu(const GpuCheckOptions& options, const CommonOptions& common);

// Replaces what names this machine, its user or a folder of theirs in all texts of the document. `scratch`: the
// folder that the check used.
Json without_names(Json document, const std::filesystem::path& scratch);

// The parts with their results, the rungs' figures, and the sentences of what failed. `out`: the document's file.
std::string gpu_check_text(const Json& document, const std::filesystem::path& out);

}  // namespace stepladder
