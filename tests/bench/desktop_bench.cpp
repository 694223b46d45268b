// Measures the CPU time of a frame, drawn without a window over files from overview_bench:
//   build/desktop_bench runs FILE      a thousand runs
//   build/desktop_bench long FILE      one run of ten million steps
//   build/desktop_bench live           ten running runs
//   build/desktop_bench metrics FILE   two hundred metrics of 100,000 values, a chart each in Compare; makes FILE
//   build/desktop_bench profile FILE   two traced steps of a million slices each in Profile; FILE is from
//                                      tests/bench/traces.py --keep FILE
// CPU time of the drawing thread, so that neither a busy machine nor a software renderer counts.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "app/desktop/profile/profile_state.h"
#include "app/desktop/profile/profile_view.h"
#include "app/runs/saved_view.h"
#include "storage/database/traces/trace_details.h"
#include "tests/panels/headless.h"

namespace {
using namespace stepladder;

double cpu_ms(clockid_t clock = CLOCK_PROCESS_CPUTIME_ID) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

void row(const std::string& what, const std::vector<double>& frames_ms) {
  std::vector<double> sorted = frames_ms;
  std::sort(sorted.begin(), sorted.end());
  double sum = 0;
  for (const double ms : sorted) sum += ms;
  const auto last = static_cast<double>(sorted.size() - 1);
  std::printf("%-58s %5zu %9.1f %8.2f %8.2f %8.2f\n", what.c_str(), sorted.size(), sum,
              sum / static_cast<double>(sorted.size()), sorted[static_cast<std::size_t>(last * 0.95)], sorted.back());
  std::fflush(stdout);
}

class Bench {
 public:
  explicit Bench(RunStore& store, const std::string& view, const std::string& state = "") {
    ImGui::GetIO().DisplaySize = ImVec2(1600, 1000);
    DesktopSettings settings{.panels = {view}};
    if (!state.empty()) settings.views[view] = state;
    app_.emplace(store, nullptr, settings);
  }
  Workspace& workspace() { return app_->workspace(); }
  void show(const std::string& view) { app_->show(view); }

  double frame() {
    const double before = cpu_ms(CLOCK_THREAD_CPUTIME_ID);
    corners_ = imgui_.frame(*app_);
    return cpu_ms(CLOCK_THREAD_CPUTIME_ID) - before;
  }
  // Until nothing is requested and layouts have settled.
  std::vector<double> settle() {
    std::vector<double> frames;
    for (int quiet = 0; quiet < 4 && frames.size() < 10'000;) {
      const bool makes = std::isfinite(app_->seconds_to_next_frame(0)) && !workspace().running();
      if (!imgui_.asked() && makes) std::this_thread::sleep_for(std::chrono::milliseconds(100));
      frames.push_back(frame());
      quiet = imgui_.asked() || makes ? 0 : quiet + 1;
    }
    if (!app_->messages().empty()) throw std::runtime_error(app_->messages().front().text);
    return frames;
  }
  void select_all() {
    ImGui::GetIO().AddKeyEvent(ImGuiMod_Ctrl, true);
    ImGui::GetIO().AddKeyEvent(ImGuiKey_A, true);
    frame();
    ImGui::GetIO().AddKeyEvent(ImGuiKey_A, false);
    ImGui::GetIO().AddKeyEvent(ImGuiMod_Ctrl, false);
    frame();
    if (workspace().selection.runs.size() != workspace().runs().size())
      throw std::runtime_error("Ctrl+A selects nothing");
  }
  // Over a chart at this share of the window: in by the wheel, along by dragging, and out again.
  std::vector<double> zoom_and_pan(float x, float y, int notches) {
    ImGuiIO& io = ImGui::GetIO();
    const ImVec2 at(io.DisplaySize.x * x, io.DisplaySize.y * y);
    io.AddMousePosEvent(at.x, at.y);
    settle();
    std::vector<double> frames;
    const auto wheel = [&](float direction) {
      for (int i = 0; i < notches; ++i) {
        io.AddMouseWheelEvent(0, direction);
        frames.push_back(frame());
        frames.push_back(frame());
      }
    };
    wheel(1);
    io.AddMouseButtonEvent(0, true);
    for (int i = 0; i < 80; ++i) {
      io.AddMousePosEvent(at.x + 250 * std::sin(static_cast<float>(i) / 8), at.y);
      frames.push_back(frame());
    }
    io.AddMouseButtonEvent(0, false);
    wheel(-1);
    io.AddMousePosEvent(-1, -1);
    settle();
    return frames;
  }
  // In by W with the mouse here, along by D, and out by S.
  std::vector<double> zoom_by_keys(float x, float y, int presses) {
    ImGuiIO& io = ImGui::GetIO();
    io.AddMousePosEvent(io.DisplaySize.x * x, io.DisplaySize.y * y);
    settle();
    std::vector<double> frames;
    for (const ImGuiKey key : {ImGuiKey_W, ImGuiKey_D, ImGuiKey_S}) {
      for (int i = 0; i < presses; ++i) {
        for (const bool down : {true, false}) {
          io.AddKeyEvent(key, down);
          frames.push_back(frame());
        }
      }
    }
    io.AddMousePosEvent(-1, -1);
    settle();
    return frames;
  }
  // Replaces the view's search letter by letter.
  std::vector<double> search(const std::string& text) {
    if (!imgui_.click(*app_, "profile.search")) throw std::runtime_error("there is no search field");
    imgui_.press(*app_, ImGuiKey_A, true);
    imgui_.press(*app_, ImGuiKey_Delete);
    std::vector<double> frames;
    for (const char letter : text) {
      ImGui::GetIO().AddInputCharacter(static_cast<unsigned>(letter));
      for (int i = 0; i < 2; ++i) frames.push_back(frame());
    }
    imgui_.press(*app_, ImGuiKey_Enter);
    return frames;
  }
  // Drags over the ruler of Profile's icicle, from one share of its width to another.
  std::vector<double> measure_range(int count) {
    const auto box = ui_test_anchors::find("profile.icicle").value();
    ImGuiIO& io = ImGui::GetIO();
    std::vector<double> frames;
    const auto move = [&](int i) {
      io.AddMousePosEvent(
          box.x0 + (box.x1 - box.x0) * (0.1f + 0.8f * static_cast<float>(i) / static_cast<float>(count)), box.y0 + 6);
      frames.push_back(frame());
    };
    move(0);
    io.AddMouseButtonEvent(0, true);
    for (int i = 0; i < count; ++i) move(i);
    io.AddMouseButtonEvent(0, false);
    frames.push_back(frame());
    return frames;
  }
  // Clicks once, and draws some frames after it.
  std::vector<double> click(float x, float y) {
    ImGuiIO& io = ImGui::GetIO();
    io.AddMousePosEvent(x, y);
    std::vector<double> frames{frame()};
    for (const bool down : {true, false}) {
      io.AddMouseButtonEvent(0, down);
      for (int i = 0; i < 2; ++i) frames.push_back(frame());
    }
    return frames;
  }
  std::vector<double> click_anchor(const std::string& name) {
    const auto box = ui_test_anchors::find(name);
    if (!box) throw std::runtime_error("there is no " + name);
    return click((box->x0 + box->x1) / 2, (box->y0 + box->y1) / 2);
  }
  // Types a text and presses Enter so often.
  std::vector<double> step_through(const std::string& text, int count) {
    search(text);
    std::vector<double> frames;
    for (int i = 0; i < count; ++i) {
      for (const bool down : {true, false}) {
        ImGui::GetIO().AddKeyEvent(ImGuiKey_Enter, down);
        frames.push_back(frame());
      }
    }
    return frames;
  }
  void open_view(const std::string& name) { app_->open_view(name); }
  int corners() const { return corners_; }

 private:
  Headless imgui_;
  std::optional<DesktopApp> app_;
  int corners_ = 0;
};

void many_runs(const char* file) {
  RunStore store = RunStore::open(file);
  const double before = cpu_ms();
  Bench bench(store, "history");
  const double made = cpu_ms() - before;
  const double first = bench.frame();
  row("the desktop made, fonts loaded and runs listed", {made});
  row("first frame of History", {first});
  row("from the process's start", {cpu_ms()});
  row("until its small curves are there", bench.settle());
  const double asked = cpu_ms();
  bench.select_all();
  const std::vector<double> frames = bench.settle();
  for (const RunEntry& entry : bench.workspace().runs()) {
    if (!bench.workspace().overview(entry.run.id, Quantity::loss)) throw std::runtime_error("a curve is missing");
  }
  row("all of them overlaid", frames);
  row("  from Ctrl+A on", {cpu_ms() - asked});
  std::printf("  %d corners in a frame\n", bench.corners());
  row("  pan and zoom", bench.zoom_and_pan(0.6f, 0.85f, 20));
  bench.workspace().patience = std::chrono::milliseconds(4);  // as in a window
  bench.show("compare");
  const double compared = cpu_ms();
  row("all of them in Compare", bench.settle());
  row("  all threads", {cpu_ms() - compared});
  std::printf("  %d corners in a frame\n", bench.corners());
  const double moved = cpu_ms();
  row("  pan and zoom", bench.zoom_and_pan(0.35f, 0.3f, 20));
  row("  all threads", {cpu_ms() - moved});
}

void one_long_run(const char* file) {
  RunStore store = RunStore::open(file);
  {
    Bench bench(store, "launch");
    bench.settle();
    const auto& runs = bench.workspace().runs();
    const auto longest = std::max_element(runs.begin(), runs.end(), [](const RunEntry& a, const RunEntry& b) {
      return a.summary.steps < b.summary.steps;
    });
    if (longest == runs.end()) throw std::runtime_error(std::string(file) + " has no runs");
    bench.workspace().selection.shown_run = longest->run.id;
    bench.show("run");
    row("one long run opened in Run", bench.settle());
    row("  pan and zoom", bench.zoom_and_pan(0.35f, 0.4f, 20));
    row("  pan and zoom, down to single steps", bench.zoom_and_pan(0.35f, 0.4f, 100));
  }
  Bench bench(store, "history");
  bench.settle();
  const double asked = cpu_ms();
  bench.select_all();
  bench.settle();
  row("one long run overlaid in History, from Ctrl+A on", {cpu_ms() - asked});
  row("  pan and zoom", bench.zoom_and_pan(0.6f, 0.85f, 20));
  row("  pan and zoom, down to single steps", bench.zoom_and_pan(0.6f, 0.85f, 100));
  bench.show("compare");
  const double compared = cpu_ms();
  const std::vector<double> frames = bench.settle();
  row("all of the file's runs in Compare", frames);
  row("  all threads", {cpu_ms() - compared});
  row("  pan and zoom", bench.zoom_and_pan(0.35f, 0.3f, 20));
}

// Ten runs at once, at 1,000 steps a second each and ten frames a second, after the first minute.
void live_runs() {
  constexpr int count = 10;
  constexpr std::int64_t steps_a_frame = 100;
  RunStore store = RunStore::in_memory();
  Bench bench(store, "live");
  const LadderId ladder = store.create_ladder({.name = "ten at once", .source = "launched", .created_at = 1});
  std::vector<RunId> runs;
  for (int i = 0; i < count; ++i) {
    runs.push_back(store.create_run({.name = "run " + std::to_string(i),
                                     .ladder = ladder,
                                     .rung = i,
                                     .title = "stage " + std::to_string(i),
                                     .source = "launched",
                                     .planned_steps = 1'000'000,
                                     .tokens_per_step = 524'288}));
  }
  Workspace& workspace = bench.workspace();
  workspace.patience = std::chrono::milliseconds(4);  // as in a window
  workspace.add_ladder(store, ladder, runs);
  for (const RunId run : runs) workspace.ingest(RunStarted{.run = run, .at = 100, .tokens_per_step = 524'288});
  std::int64_t step = 0;
  const auto arrive = [&](std::int64_t steps) {
    for (const std::int64_t until = step + steps; step < until;) {
      ++step;
      const auto at = static_cast<double>(step);
      for (const RunId run : runs) {
        const double wobble = std::sin(at * static_cast<double>(run));
        workspace.ingest(StepRecord{.run = run,
                                    .step = step,
                                    .loss = 3 + 8 / std::sqrt(at) + 0.05 * wobble,
                                    .val_loss = step % 1000 == 0 ? 3 : missing,
                                    .dt_ms = 1 + 0.05 * wobble,
                                    .tokens = 524'288,
                                    .lr = 6e-4,
                                    .grad_norm = 0.3 + 0.1 * wobble,
                                    .at = 100 + at / 1000});
      }
    }
  };
  arrive(60 * 1000);
  for (const char* view : {"live", "compare", "ladder", "history"}) {
    bench.show(view);
    if (std::string_view(view) == "history") bench.settle(), bench.select_all();
    for (int i = 0; i < 4; ++i) bench.frame();
    std::vector<double> ingest;
    std::vector<double> draw;
    const double all_before = cpu_ms();
    for (int i = 0; i < 100; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      const double before = cpu_ms();
      arrive(steps_a_frame);
      ingest.push_back(cpu_ms() - before);
      draw.push_back(bench.frame());
    }
    row(std::string("ten live runs in ") + view, draw);
    row("  all threads, with 10,000 steps a second taken in", {cpu_ms() - all_before});
    if (std::string_view(view) == "live") row("  their 1,000 steps a frame taken in", ingest);
  }
}

void many_metrics(const char* file) {
  constexpr int count = 200;
  constexpr std::int64_t values = 100'000;
  RunStore store = RunStore::open(file);  // a store in memory would be read on the drawing thread
  const bool is_new = store.runs().empty();
  const RunId run = is_new ? store.insert_finished({.name = "r"}, std::vector<StepRecord>{{.step = 1, .loss = 4}})
                           : store.runs().front().id;
  std::string charts;
  for (int i = 0; i < count; ++i) {
    const std::string name = "layer/" + std::to_string(i);
    charts += (charts.empty() ? "" : ",") + (R"({"metric":")" + name + R"(","gap":false})");
    std::vector<MetricPoint> points;
    for (std::int64_t step = 1; is_new && step <= values; ++step)
      points.push_back({step, std::sin(static_cast<double>(step * (i + 1)) / 1e4)});
    if (is_new) store.metrics().append(run, name, points);
  }
  Bench bench(store, "compare", R"({"charts":{"now":{"columns":3,"row_height":0,"charts":[)" + charts + "]}}}");
  bench.workspace().selection.runs = {run};
  bench.workspace().patience = std::chrono::milliseconds(4);  // as in a window
  row("200 metrics of 100,000 values in Compare, first time", bench.settle());
  row("  pan and zoom", bench.zoom_and_pan(0.35f, 0.3f, 20));
}

// A step of one trace, then of two beside each other: FILE is from tests/bench/traces.py.
void profile_of_a_million(const char* file) {
  RunStore store = RunStore::open(file);
  const std::vector<StoredTrace> traces = store.traces().list();
  if (traces.size() < 2) throw std::runtime_error(std::string(file) + " has no two traces");
  ui_test_anchors::keep();
  Bench bench(store, "profile");
  const auto measure = [&](const std::string& what, float y) {
    row(what, bench.settle());
    row("  a still frame", {bench.frame(), bench.frame(), bench.frame(), bench.frame()});
    row("  zoom and pan", bench.zoom_and_pan(0.5f, y, 20));
    row("  zoom and pan, down to single slices", bench.zoom_and_pan(0.5f, y, 60));
    row("  zoom by keys", bench.zoom_by_keys(0.5f, y, 20));
    row("  typing into the search", bench.search("gemm_f16f16_f32_tn"));
    row("  zoom and pan while searching", bench.zoom_and_pan(0.5f, y, 20));
    row("  from hit to hit by Enter", bench.step_through("gemm_f16f16_f32_tn", 20));
    bench.search("");
    const auto all = ui_test_anchors::find("profile.icicle").value();
    for (int i = 0; i < 2; ++i)
      bench.click((all.x0 + all.x1) / 2, all.y0 + 60);  // a double click: the whole step again
    bench.settle();
    row("  a stretch dragged over the ruler", bench.measure_range(40));
    row("  a still frame with the stretch", {bench.frame(), bench.frame(), bench.frame(), bench.frame()});
    const auto box = ui_test_anchors::find("profile.icicle").value();
    row("  a slice clicked: its row, its arrows", bench.click((box.x0 + box.x1) / 2, box.y0 + 60));
    row("  a row clicked: its slices", bench.click_anchor("profile.row.0"));
    row("  zoom and pan with chosen slices", bench.zoom_and_pan(0.5f, y, 20));
    row("  a column sorted", bench.click_anchor("profile.sort.1"));
  };
  measure("one step of a million slices in Profile, first time", 0.35f);
  const auto& shown = bench.workspace().profile_state->view->after;
  if (!shown || !shown->slices || slice_count(*shown->slices) < 900'000)
    throw std::runtime_error(std::string(file) + " has no step of a million slices");
  store.views().save("two", text_of(SavedView{.panels = {"profile"},
                                              .states = {{"profile",
                                                          {{"before", {{"kind", 1}, {"id", traces[0].id}}},
                                                           {"after", {{"kind", 1}, {"id", traces[1].id}}}}}},
                                              .selects = false,
                                              .runs = {}}));
  bench.open_view("two");
  measure("two steps of a million slices", 0.35f);
}

}  // namespace

int main(int count, char** words) {
  const std::string_view what = count > 1 ? words[1] : "";
  try {
    std::printf("%-58s %5s %9s %8s %8s %8s\n", "CPU time in ms", "n", "all", "mean", "95 %", "most");
    if (what == "runs" && count == 3) {
      many_runs(words[2]);
    } else if (what == "long" && count == 3) {
      one_long_run(words[2]);
    } else if (what == "live" && count == 2) {
      live_runs();
    } else if (what == "metrics" && count == 3) {
      many_metrics(words[2]);
    } else if (what == "profile" && count == 3) {
      profile_of_a_million(words[2]);
    } else {
      std::fprintf(stderr, "desktop_bench runs FILE | long FILE | live | metrics FILE | profile FILE\n");
      return 2;
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
