// The parts of the window, which its commands work on. Each part is documented where it is declared; this only joins
// them. Owned by DesktopApp; UI thread.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/curves/curve_reader.h"
#include "app/desktop/desktop_theme.h"
#include "app/desktop/models/forecast_reader.h"
#include "app/desktop/models/import_preview.h"
#include "app/desktop/models/project_metrics.h"
#include "app/desktop/models/record_view.h"
#include "app/desktop/models/tries_view.h"
#include "app/desktop/open_panels.h"
#include "app/desktop/popups/messages.h"
#include "app/desktop/popups/palette_popup.h"
#include "app/desktop/profile/imported_trace.h"
#include "app/desktop/profile/profile_view.h"
#include "app/desktop/settings.h"
#include "app/desktop/workspace.h"
#include "app/host/machine_load.h"
#include "app/job.h"
#include "app/machines/machine_watch.h"
#include "app/session/session.h"

namespace stepladder {

struct DesktopState {
  // `session` must outlive this; null shows `store` without an engine (screenshots, tests).
  DesktopState(RunStore& store, Session* session, DesktopSettings settings);

  RunStore& store;
  Session* session;
  DesktopSettings settings;
  Workspace workspace;
  Messages messages;
  std::string unstored;  // says which steps wait to be stored, and why; empty: none
  OpenPanels panels;
  std::function<void()> wake;  // draws a frame; any thread
  DesktopTheme theme;
  PalettePopup palette;

  CurveReader curves;
  bool leaves_for_rescue = false;    // asked for (LeaveForRescue), and not begun yet
  std::atomic<bool> closes = false;  // then deletions end, which the next opening continues
  using Then = std::function<void()>;
  JobQueue<Then> exports;  // make files and texts for the clipboard; the result is what the UI thread does with them
  Job<ImportPreview> import_job;
  int imports_read = 0;
  JobQueue<ImportedTrace> trace_imports;
  Job<bool> peak_probe;  // whether it was measured
  RecordReader records;
  TriesReader tries;
  std::optional<LadderId> tries_asked;  // by a view in the last frame
  ProfileReader profiles;
  ForecastReader forecasts;  // of Launch's rungs
  ProjectMetricsReader metrics;
  MachineLoadReader load;
  std::unique_ptr<MachineWatch> machines;  // null without a session

  // The settings as they are now, with the layout and the state that panels remember. Inside the ImGui context.
  DesktopSettings current_settings() const;

  bool can_train();  // false without a session; says so if the project is read-only

  void require_measurable() const;  // throws std::runtime_error: Workspace::why_not_measure

  const DeviceReport& device() const;  // throws std::runtime_error while it is being detected

  // Notes that a change was made, and how it is undone. `what` is in the past tense.
  void can_undo(const std::string& what, std::function<void()> undo);
  void undo_last();
  void undo(const std::string& what);  // the newest change of this name, whatever came after it
  void forget_changes();               // they may concern runs that no longer exist

  // Writes a file into the folder of exports; `write` runs on another thread.
  void save(const std::string& name, const std::string& ending,
            std::function<void(const std::filesystem::path&)> write);

 private:
  struct Change {
    std::string what;
    std::function<void()> undo;
  };
  std::vector<Change> changes_;
  void undo_at(std::size_t place);
};

}  // namespace stepladder
