// The window's main loop, its end, and screenshots. A frame is: dropped files, ingest, draw, execute. Without input or
// a running run no frame is drawn; a change here needs a look at the CPU that an idle and a training window take.
#include "app/desktop/desktop.h"

#include <imgui.h>
#include <png.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "app/desktop/desktop_app.h"
#include "app/desktop/problem_window.h"
#include "app/desktop/theme.h"
#include "app/desktop/window.h"
#include "app/exit_status.h"
#include "app/figures/export.h"
#include "app/host/crash_report.h"
#include "app/host/environment.h"
#include "app/host/patch.h"
#include "app/job.h"
#include "app/runs/bin.h"
#include "app/runs/open_store.h"
#include "engine/device.h"
#include "engine/open_trainer.h"
#include "storage/database/not_stored_now.h"

namespace stepladder {
namespace {

// Ends the program on SIGINT, SIGTERM and, while it has a window, SIGHUP. Made before any other thread, so that no
// other thread receives the signals.
class CloseSignals {
 public:
  CloseSignals() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGINT);
    sigaddset(&signals_, SIGTERM);
    sigaddset(&signals_, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
    waiter_ = std::thread([this] {
      int signal = 0;
      do {
        sigwait(&signals_, &signal);
      } while (signal == SIGHUP && !window_is_open_);  // the terminal was closed
      came_ = true;
      wake_window();
    });
  }
  ~CloseSignals() {
    window_is_open_ = false;
    pthread_kill(waiter_.native_handle(), SIGTERM);
    waiter_.join();
  }
  CloseSignals(const CloseSignals&) = delete;
  CloseSignals& operator=(const CloseSignals&) = delete;

  void wake_window() const {  // any thread
    if (window_is_open_) Window::wake();
  }
  void window_opened() { window_is_open_ = true; }
  void window_closes() { window_is_open_ = false; }
  bool came() const { return came_; }

 private:
  sigset_t signals_{};
  std::atomic<bool> came_ = false;
  std::atomic<bool> window_is_open_ = false;
  std::thread waiter_;
};

std::string png_of(const std::vector<std::uint8_t>& rgba, int width, int height) {
  png_image image;
  std::memset(&image, 0, sizeof image);
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(height);
  image.format = PNG_FORMAT_RGBA;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::string png(size, '\0');
  if (!png_image_write_to_memory(&image, png.data(), &size, 0, rgba.data(), 0, nullptr))
    throw std::runtime_error(std::string("the PNG cannot be encoded: ") + image.message);
  png.resize(size);
  return png;
}

// Prepares the app for a project that may only be read.
void show_as_read_only(DesktopApp& app, const std::string& why) {
  Workspace& workspace = app.workspace();
  workspace.patience = std::chrono::milliseconds(4);
  workspace.device = describe_cpu();
  workspace.device_problem = "this project is open for reading only";
  workspace.read_only = why;
}

void fit(DesktopApp& app, const Window& window) {
  int width = 0;
  int height = 0;
  window.size(width, height);
  app.fit_window(width, height);
}

// Looks for damaged pages, which a file may have that opens well. Of a large file this would take too long.
void look_for_damage(Job<std::string>& check, const std::filesystem::path& file) {
  constexpr std::uintmax_t most_bytes = 256 << 20;
  std::error_code unknown;
  const std::uintmax_t bytes = std::filesystem::file_size(file, unknown);
  if (unknown || bytes > most_bytes) return;
  const auto work = [file](JobControl&) -> std::string {
    try {
      return RunStore::open(file, RunStore::Mode::read_only).upkeep().integrity_check();
    } catch (const DamagedFile& error) {
      return error.what();
    } catch (const StorageError&) {  // locked, or removed since: what the window shows was read
      return "ok";
    }
  };
  check.start(work, Window::wake);
}

struct WindowEnd {
  Closing closing = Closing::after_step;  // whether the session's runs continue without it
  bool wants_rescue = false;
};

// Shows the window until it is closed. Without a session the store is read-only, and `why` says why.
WindowEnd show_window(Window& window, RunStore& store, Session* session, const std::string& why,
                      const DesktopSettings& settings, CloseSignals& close_signals) {
  DesktopApp app(store, session, settings.for_project(store.file().string()));
  app.set_display_scale(window.display_scale());
  if (session) {
    app.empty_bin(unix_now() - bin_days * 24 * 3600);
  } else {
    show_as_read_only(app, why);
  }
  if (const auto report = take_crash_report())
    app.show_error("Stepladder crashed the last time. The report is " + report->string() +
                   "; what it had recorded is in the project.");

  Job<std::string> check;
  look_for_damage(check, store.file());
  bool wants_rescue = false;
  // ImGui settles within three frames of any input; then the next event, or the next change of a run, triggers the next
  // frame. While a run trains, only a hand makes frames follow each other at once.
  using Clock = std::chrono::steady_clock;
  constexpr double seconds_between_checks = 2;  // of what other processes have written
  constexpr std::chrono::seconds after_input(1);
  int frames_to_settle = 3;
  double frame_seconds = 0;
  auto last_input = Clock::now();
  while (!app.may_close() && !close_signals.came()) {
    if (const auto found = check.take(); found && *found != "ok") app.workspace().damage = *found;
    if (!window.is_open() || app.take_rescue()) {
      wants_rescue = window.is_open();
      window.stay_open();
      app.ask_to_close();
      frames_to_settle = 3;
    }
    const double next_frame_in = app.seconds_to_next_frame(frame_seconds);
    const bool is_busy = std::isfinite(next_frame_in);
    if (frames_to_settle > 0) {
      // Input may arrive here as well as during the wait below. A minimised window doesn't process it.
      const bool has_input = window.poll_input() && window.is_visible();
      frames_to_settle = has_input ? 2 : frames_to_settle - 1;
      if (has_input) last_input = Clock::now();
    } else {
      const bool hovering = window.is_hovering();
      const bool typing = ImGui::GetIO().WantTextInput;  // the caret blinks
      const double patience = std::min(next_frame_in, hovering ? 0.05 : typing ? 0.5 : seconds_between_checks);
      const auto begun = Clock::now();
      const bool had_input = window.wait_for_input(patience) && window.is_visible();
      const bool nothing_came = Clock::now() - begun >= std::chrono::duration<double>(patience);
      if (nothing_came && !is_busy && !hovering && !typing && !app.has_news()) continue;  // costs no frame
      if (had_input || !is_busy) frames_to_settle = 2;
      if (had_input) last_input = Clock::now();
    }
    app.take_dropped(window.take_dropped());
    fit(app, window);
    app.ingest();
    if (is_busy && !std::isfinite(app.seconds_to_next_frame(frame_seconds))) frames_to_settle = 2;
    const auto begun = Clock::now();
    const bool is_rendered = window.is_visible() && window.frame([&] { app.draw(); });
    const double took = std::chrono::duration<double>(Clock::now() - begun).count();
    if (is_rendered) frame_seconds += (took - frame_seconds) / 4;
    const bool asked = app.execute();
    const bool is_watched = !is_busy || Clock::now() - last_input < after_input;
    if (asked && is_watched) frames_to_settle = 3;
  }
  app.close([&] {
    if (window.is_visible()) window.frame([&] { app.draw(); });
    window.poll_input();
  });
  DesktopSettings now = app.settings();
  now.maximised = window.is_maximised();
  if (!now.maximised) window.size(now.width, now.height);
  save_settings(now);
  close_signals.window_closes();
  if (close_signals.came()) return {};
  return {app.closing(), wants_rescue && app.closing() == Closing::after_step};
}

void train_without_window(Session& session, const CloseSignals& close_signals) {
  std::fprintf(stderr,
               "stepladder: training goes on without a window (process %d) to the end of the queue. Start Stepladder "
               "again to see it.\n",
               static_cast<int>(::getpid()));
  while (!session.idle() && !close_signals.came()) session.wait_and_drain(std::chrono::milliseconds(500));
}

}  // namespace

namespace {

// The project as far as it can be opened: with a session, or for reading only, and why.
struct OpenProject {
  std::optional<Session> session;
  std::optional<RunStore> read_only;
  std::string why;
};

// Throws StorageError if it can't be read either.
void open_project(OpenProject& project, const std::filesystem::path& file, const CloseSignals& close_signals) {
  try {
    project.session.emplace(file, [&close_signals] { close_signals.wake_window(); });
  } catch (const FileIsLocked&) {
    throw;
  } catch (const StorageError& error) {
    std::error_code none;
    if (!std::filesystem::exists(file, none)) throw;
    project.read_only.emplace(RunStore::open(file, RunStore::Mode::read_only));  // throws the reason if it is damaged
    project.read_only->runs();
    project.why = error.what();
  }
}

}  // namespace

int open_desktop(const std::filesystem::path& database) {
  const DesktopSettings settings = load_settings();
  CloseSignals close_signals;
  auto window = std::make_unique<Window>(Window::Kind::on_screen, "Stepladder", settings.width, settings.height);
  if (settings.maximised) window->maximise();
  close_signals.window_opened();
  load_fonts(assets_folder() / "fonts");
  // Git may take seconds, and what was uncommitted at the first launch isn't so at the next ones.
  keep_no_patches();
  std::filesystem::path file = database;
  while (true) {
    try {
      OpenProject project;
      open_project(project, file, close_signals);
      Session* const session = project.session ? &*project.session : nullptr;
      close_signals.window_opened();
      const WindowEnd end = show_window(*window, session ? session->store() : *project.read_only, session, project.why,
                                        settings, close_signals);
      if (end.wants_rescue) throw DamagedFile(file, file.string() + " is damaged: parts of it can't be read");
      if (session && end.closing == Closing::in_background) {
        window.reset();
        train_without_window(*session, close_signals);
      }
      if (session && close_signals.came()) session->stop_all(AtStop::checkpoint);  // a logout, or the machine goes down
      return exit_done;
    } catch (const StorageError& error) {  // the project is closed by now, as a rescue needs it to be
      if (!window) throw;
      const auto other = ask_about_problem(*window, file, error, settings, [&] { return close_signals.came(); });
      if (!other) throw;
      file = *other;
    }
  }
}

int take_screenshot(const ScreenshotRequest& request) {
  const std::vector<Panel> panels = all_panels();
  if (!request.view.empty() &&
      std::none_of(panels.begin(), panels.end(), [&](const Panel& panel) { return panel.id == request.view; })) {
    std::string views;
    for (const Panel& panel : panels) views += (views.empty() ? "" : ", ") + panel.id;
    throw UsageError("--view: there isn't a view '" + request.view + "'; the views are " + views);
  }
  auto opened = open_to_read(request.database);
  RunStore store = opened ? std::move(*opened) : RunStore::in_memory();
  const std::vector<std::string> saved = store.views().names();
  if (!request.saved_view.empty() && std::find(saved.begin(), saved.end(), request.saved_view) == saved.end())
    throw NotFound("--saved-view: the project has no saved view '" + request.saved_view + "'");
  Window window(Window::Kind::off_screen, "Stepladder", request.width, request.height);
  load_fonts(assets_folder() / "fonts");
  DesktopApp app(store, nullptr, {.theme = request.dark ? ThemeChoice::dark : ThemeChoice::light});
  if (!request.saved_view.empty()) app.open_view(request.saved_view);
  if (!request.view.empty()) app.show(request.view);
  app.set_display_scale(request.scale > 0 ? static_cast<float>(request.scale) : 1);
  if (request.scale <= 0) fit(app, window);
  app.workspace().device = describe_cpu();
  app.workspace().device_problem = missing_trainer();
  app.workspace().follow_others(store, store.processes().runs_under_way());  // Live shows the one that is running
  // Panels ask for steps in one frame and get them in one of the next; layouts settle in a few more.
  constexpr int most_frames = 1000;
  for (int frame = 0, quiet = 0; quiet < 5 && frame < most_frames; ++frame) {
    app.ingest();
    window.frame([&] { app.draw(); });
    quiet = app.execute() ? 0 : quiet + 1;
  }
  int width = 0;
  int height = 0;
  const std::vector<std::uint8_t> pixels = window.pixels(width, height);
  write_file(request.out, png_of(pixels, width, height));
  return exit_done;
}

}  // namespace stepladder
