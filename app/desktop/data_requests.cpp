// Reads what views lack between two frames. Curves are read on another thread, since there may be thousands.
#include "app/desktop/data_requests.h"

#include <algorithm>
#include <utility>

#include "app/desktop/desktop_state.h"
#include "app/desktop/workspace/launch_state.h"
#include "app/host/environment.h"
#include "app/runs/excerpt.h"
#include "app/text/format.h"
#include "storage/errors.h"

namespace stepladder {
namespace {

// Reading steps may take this long between two frames; the rest is read after later frames.
constexpr std::chrono::milliseconds reading_time{30};

void load_resumable(RunStore& store, Workspace& workspace) {
  std::vector<ResumableRun>& resumable = workspace.launch->resumable;
  resumable.clear();
  for (const RunId id : runs_with_checkpoint_folders(store.file())) {
    const RunEntry* entry = workspace.find(id);
    if (!entry || !is_over(entry->run.status)) continue;
    const std::vector<Checkpoint> saved = run_checkpoints(checkpoint_owner(store.file(), entry->run));
    if (!saved.empty()) resumable.push_back({id, saved.back().step});
  }
  std::ranges::sort(resumable, std::greater{}, &ResumableRun::run);
}

// Has every curve that a chart lacks read. Returns whether any was read since the last call.
bool read_curves(DesktopState& desktop, const std::vector<DataRequests::Curve>& curves) {
  std::vector<CurveWanted> wanted;
  for (const auto& [run, quantity, zoom] : curves) wanted.push_back(desktop.workspace.wanted(run, quantity, zoom));
  const std::vector<CurveWanted> late = desktop.workspace.late_steps();
  wanted.insert(wanted.end(), late.begin(), late.end());
  desktop.curves.want(wanted);
  // Short ones appear in the next frame.
  return take_curves(desktop, wanted.empty() ? std::chrono::milliseconds(0) : desktop.workspace.patience);
}

}  // namespace

bool take_curves(DesktopState& desktop, std::chrono::milliseconds patience) {
  const std::vector<CurveRead> read = desktop.curves.take(patience);
  for (const CurveRead& each : read) {
    desktop.workspace.keep(each);
    // Charts ask in every frame.
    if (!each.problem.empty() && desktop.messages.empty()) desktop.messages.show_error(each.problem);
  }
  return !read.empty();
}

bool read_requested(DesktopState& desktop, const DataRequests& asked) {
  RunStore& store = desktop.store;
  Workspace& workspace = desktop.workspace;
  const auto end = std::chrono::steady_clock::now() + reading_time;
  const auto read = [&](auto&& load) {
    try {
      load();
    } catch (const std::exception& error) {  // StorageError
      desktop.messages.show_error(error_text(error));
    }
  };
  const auto read_in_time = [&](const auto& all, auto&& load) {
    for (const auto& each : all)
      if (std::chrono::steady_clock::now() <= end) read([&] { load(each); });
  };
  desktop.tries_asked = asked.tries;
  if (asked.figures) workspace.wanted_figures = *asked.figures;
  read_in_time(asked.series, [&](RunId run) { workspace.load_series(store, run); });
  read_in_time(asked.excerpts, [&](const auto& excerpt) { workspace.load_excerpt(store, excerpt.run, excerpt.most); });
  read_in_time(asked.metrics, [&](RunId run) { workspace.load_metrics(store, run); });
  for (const RunId run : asked.details) read([&] { workspace.load_detail(store, run); });
  if (!asked.details.empty()) workspace.environment = environment_json();
  if (asked.bin) read([&] { workspace.load_bin(store); });
  if (asked.resumable) read([&] { load_resumable(store, workspace); });
  return read_curves(desktop, asked.curves) || asked.reads();
}

}  // namespace stepladder
