// libFuzzer: a project whose values a stranger has changed (value_changes.h) must be refused with one of the errors
// that the command line knows, or opened, shown, judged, exported, copied and imported, whatever its values are. The
// input's first byte chooses what is done with it.
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>

#include "app/cli/commands.h"
#include "app/curves/curve_reader.h"
#include "app/curves/curves.h"
#include "app/curves/slow_steps.h"
#include "app/exit_status.h"
#include "app/host/environment.h"
#include "app/machines/adoption.h"
#include "app/profile/slice_layout.h"
#include "app/runs/bin.h"
#include "app/runs/find_run.h"
#include "app/runs/loaded_runs.h"
#include "app/runs/open_store.h"
#include "app/runs/run_filter.h"
#include "app/runs/saved_view.h"
#include "app/session/launched_runs.h"
#include "app/text/terminal_text.h"
#include "engine/files/data_error.h"
#include "engine/stage.h"
#include "storage/database/rescue/rescue.h"
#include "tests/fuzz/sound_project.h"
#include "tests/fuzz/value_changes.h"
#include "tests/storage/temporary_folder.h"

namespace stepladder {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

// The errors that the command line knows; anything else escapes.
template <class Work>
void expect_answer(Work work) {
  std::string why = "none";
  try {
    work();
  } catch (const StorageError& error) {
    why = error.what();
  } catch (const UsageError& error) {
    why = error.what();
  } catch (const FilterError& error) {
    why = error.what();
  } catch (const RecipeError& error) {
    why = error.what();
  } catch (const DataError& error) {
    why = error.what();
  }
  if (why.empty()) __builtin_trap();
  static const bool says = std::getenv("STEPLADDER_FUZZ_SAYS") != nullptr;  // which commands end with an error
  if (says && why != "none") std::fprintf(stderr, "%s\n", why.c_str());
}

void expect(bool is_so, const char* what) {
  if (is_so) return;
  std::fprintf(stderr, "not as promised: %s\n", what);
  __builtin_trap();
}

struct Printed {
  std::ostringstream out, err;
  std::streambuf* const cout = std::cout.rdbuf(out.rdbuf());
  std::streambuf* const cerr = std::cerr.rdbuf(err.rdbuf());
  ~Printed() {
    std::cout.rdbuf(cout);
    std::cerr.rdbuf(cerr);
  }
};

std::string content_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

using MakeCommand = Subcommand (*)(CLI::App&, CommonOptions&);

class Commands {
 public:
  explicit Commands(fs::path database) : database_(std::move(database)), out_(database_.parent_path() / "out") {
    fs::remove_all(out_);
    fs::create_directory(out_);
  }

  // The command's words; "OUT/x" is a file x that must not exist before.
  void run(MakeCommand make, Words words) {
    bool is_json = false;
    fs::path written;
    for (std::string& word : words) {
      is_json = is_json || word == "--json";
      if (!word.starts_with("OUT/")) continue;
      written = out_ / word.substr(4);
      word = written.string();
    }
    Printed printed;
    {
      const TerminalGuard guard;
      expect_answer([&] { call(make, std::move(words)); });
    }
    const std::string out = printed.out.str();
    expect(out.find('\x1b') == std::string::npos, "no escape sequence");
    if (is_json && !out.empty()) expect(nlohmann::json::accept(out), "JSON");
    if (!written.empty()) check(written);
  }

 private:
  void call(MakeCommand make, Words words) {
    CLI::App app;
    CommonOptions common{.database = database_, .database_is_named = true};
    const Subcommand command = make(app, common);
    std::reverse(words.begin(), words.end());  // as CLI11 wants them
    try {
      app.parse(std::move(words));
    } catch (const CLI::ParseError&) {
      expect(false, "a known command");
    }
    command.run();
  }

  static void check(const fs::path& written) {
    const std::string content = content_of(written), ending = written.extension().string();
    if (content.empty()) return;
    if (ending == ".json" || ending == ".trace") expect(nlohmann::json::accept(content), "JSON in a file");
    if (ending == ".html" || ending == ".svg") expect(content.find("<script>alert") == std::string::npos, "no script");
    if (ending == ".html" || ending == ".svg") expect(content.find("<b onload") == std::string::npos, "no element");
    if (ending == ".tex") expect(content.find("\\input{/etc") == std::string::npos, "no input in TeX");
  }

  fs::path database_, out_;
};

void show(Commands& commands) {
  commands.run(runs_command, {"runs"});
  commands.run(runs_command, {"runs", "--json"});
  commands.run(runs_command, {"runs", "--filter", "loss<50 tokens_per_s>0 name~run tags!=slow", "--columns",
                              "id,name,batch,lr,max(val/acc),at(expert load, 7),tags,note,trust,flags"});
  commands.run(runs_command, {"runs", "--json", "--columns", "id,steps,model,setup_ms,min(loss),last(dt_ms),hardware",
                              "--filter", "status!=queued"});
  for (const char* run : {"1", "4", "6"}) {
    commands.run(show_command, {"show", run, "--steps", "--metrics"});
    commands.run(show_command, {"show", run, "--json", "--steps", "--metrics"});
  }
  commands.run(check_command, {"check"});
  commands.run(check_command, {"check", "--json", "1", "2"});
  commands.run(bin_command, {"bin"});
  commands.run(bin_command, {"bin", "--json"});
  commands.run(machines_command, {"machines"});
  commands.run(machines_command, {"machines", "--json"});
  commands.run(doctor_command, {"doctor", "--database", "--json"});
}

void judge(Commands& commands) {
  commands.run(compare_command, {"compare", "1", "2", "3", "4", "7"});
  commands.run(compare_command, {"compare", "1", "3", "--json"});
  commands.run(compare_command, {"compare", "3", "1", "--target", "3", "--json", "--metric", "val/acc"});
  commands.run(compare_command, {"compare", "2", "4", "--metric", "expert load"});
  commands.run(record_command, {"record", "rung:1/0", "--baseline", "rung:1/1"});
  commands.run(record_command, {"record", "filter:loss<100", "--json", "--rule", "modded-nanogpt-1"});
  commands.run(record_command, {"record", "1", "2", "--baseline", "3", "--baseline", "4", "--plan", "2"});
  commands.run(record_command, {"record", "trade", "--json", "1", "2"});
}

void profile(Commands& commands) {
  commands.run(operators_command, {"operators", "1", "--shapes"});
  commands.run(operators_command, {"operators", "1", "3", "4"});
  commands.run(operators_command, {"operators", "1", "2", "--json"});
  commands.run(profile_command, {"profile", "list"});
  commands.run(profile_command, {"profile", "list", "--json"});
  for (const char* trace : {"1", "2"}) {
    commands.run(profile_command, {"profile", "show", trace, "--all", "--steps"});
    commands.run(profile_command, {"profile", "show", trace, "--anatomy", "--all"});
    commands.run(profile_command, {"profile", "show", trace, "--roofline"});
    commands.run(profile_command, {"profile", "show", trace, "--json"});
  }
  commands.run(profile_command, {"profile", "diff", "1", "2"});
  commands.run(profile_command, {"profile", "diff", "2", "1", "--json"});
  commands.run(profile_command, {"profile", "export", "1", "--out", "OUT/t.json"});
  commands.run(profile_command, {"profile", "export", "2", "--format", "perfetto", "--out", "OUT/t.perfetto-trace"});
  commands.run(profile_command, {"profile", "passes"});
  commands.run(profile_command, {"profile", "passes", "1"});
  commands.run(profile_command, {"profile", "passes", "1", "2", "--json"});
  commands.run(profile_command, {"profile", "passes", "2", "1", "--markdown"});
  commands.run(export_command, {"export", "1", "3", "--out", "OUT/steps.html"});
}

void write_files(Commands& commands) {
  for (const char* file :
       {"OUT/a.json", "OUT/a.csv", "OUT/a.md", "OUT/a.tex", "OUT/a.html", "OUT/a.svg", "OUT/a.trace"})
    commands.run(export_command, {"export", "1", "2", "3", "4", "--out", file});
  commands.run(export_command, {"export", "--ladder", "1", "--out", "OUT/ladder.html", "--theme", "dark"});
  commands.run(export_command, {"export", "7", "--out", "OUT/one.svg"});
  for (const char* what : {"loss", "throughput", "step-time", "dt", "loss-difference"})
    commands.run(export_command,
                 {"export", "1", "4", "7", "--what", what, "--out", "OUT/" + std::string(what) + ".svg"});
  for (const char* x : {"tokens", "time"}) {
    commands.run(export_command, {"export", "1", "4", "--what", "loss", "--x", x, "--out", "OUT/x.tex"});
    commands.run(export_command, {"export", "2", "3", "--what", "throughput", "--x", x, "--out", "OUT/x.svg"});
  }
  commands.run(export_command, {"export", "1", "3", "--table", "--out", "OUT/t.csv"});
  commands.run(export_command, {"export", "1", "3", "--table", "--out", "OUT/t.json"});
  for (const char* metrics : {"long", "wide"})
    commands.run(export_command, {"export", "1", "2", "--metrics", metrics, "--out", "OUT/m.csv"});
}

// What the window reads besides.
void look(RunStore& store) {
  std::vector<RunAndSummary> runs;
  expect_answer([&] { runs = store.runs_with_summaries(); });
  for (const RunAndSummary& each : runs) {
    const Run& run = each.run;
    const RunId id = run.id;
    expect_answer([&] { find_run(store, run.name); });  // other runs may have the name
    expect_answer([&] { find_fork(store, run.name + "@1"); });
    expect_answer([&] { recipe_from_json(run.recipe); });
    expect_answer([&] { throw NotLaunchedHere("--resume", {run}); });
    expect_answer([&] {
      const Series series = store.series(id);
      slow_steps(series, store.recordings().system_metrics(id), {});
      for (const Axis axis : all_axes) points_of(run, series, Quantity::loss, axis);
    });
    expect_answer([&] { store.excerpt(id, 10); });
    expect_answer([&] { store.recordings().mean_parts(run, 1); });
    expect_answer([&] { store.missing_steps(id, 1, 24); });
    expect_answer([&] { console_lines(store.recordings().console(id)); });
    expect_answer([&] { store.recordings().samples(id); });
    expect_answer([&] { store.machines().place_of(id); });
    expect_answer([&] { store.following().sources_of(id); });
    for (const Quantity quantity : {Quantity::loss, Quantity::dt_ms, quantity_named("val/acc")}) {
      expect_answer([&] { read_curve(store, {.run = id, .quantity = quantity}); });
      expect_answer([&] {
        read_curve(store, {.run = id, .quantity = quantity, .zoom = std::pair<std::int64_t, std::int64_t>(2, 30)});
      });
    }
  }
  expect_answer([&] {
    for (const Ladder& ladder : store.ladders()) {
      expect_answer([&] { find_ladder(store, ladder.name); });
      runs_to_continue(store.runs_of(ladder.id));
    }
  });
  expect_answer([&] { store.metrics().all_names(); });
  expect_answer([&] { store.machines().open_runs(); });
  expect_answer([&] { store.processes().runs_under_way(); });
  expect_answer([&] {
    for (const MachineInFile& machine : store.machines().machines_in_file()) {
      for (const std::string& sentence : adoption_text(machine))
        expect(sentence.find('\x1b') == std::string::npos, "no escape sequence");
      expect_answer([&] { store.machines().adopt(machine); });
    }
  });
  expect_answer([&] {
    for (const std::string& name : store.views().names()) {
      const auto content = store.views().content(name);
      try {
        SavedView view = saved_view_from(content.value_or(""));
        runs_in(view);
        renumber(view, [](ViewRun& run) { return run.id > 1 ? std::optional<RunId>(1) : std::nullopt; });
        saved_view_from(text_of(view));
      } catch (const ViewError&) {
      }
    }
  });
}

void look_at_traces(RunStore& store) {
  expect_answer([&] {
    for (const StoredTrace& trace : store.traces().list()) {
      TraceDetails details = store.traces().details();
      for (const KeptStepName& each : details.steps(trace.id))
        expect_answer([&] {
          const StepSlices step = details.slices(trace.id, each.rank, each.step);
          const SliceIndex index(step);
          const SliceSearch search(index, "gemm");
          std::vector<DrawnSlice> drawn;
          for (std::size_t row = 0; row < step.rows.size(); ++row)
            lay_out_row(step.rows[row], row, index, search,
                        {static_cast<double>(first_ns(step)), static_cast<double>(last_ns(step))}, 800, drawn);
        });
    }
  });
}

void change_everything(Commands& commands, const fs::path& file) {
  expect_answer([&] {
    RunStore store = RunStore::open(file);
    expect_answer([&] { store.processes().close_dead_runs(); });
    expect_answer([&] { store.processes().take_requests(); });
    expect_answer([&] { store.curation().set(1, {.tags = {"new"}, .note = "n"}); });
    expect_answer([&] { store.rename_run(2, "renamed"); });
    expect_answer([&] { store.update_run(store.existing_run(3)); });
    expect_answer([&] { store.processes().request(6, RunRequest::stop); });
    expect_answer([&] { store.apply(std::vector<RunEvent>{sound_step(4, 25, 1, 1), sound_step(1, 3, 1, 1)}); });
    expect_answer([&] { store.metrics().append(1, "val/acc", std::vector<MetricPoint>{{.step = 3, .value = 2}}); });
    expect_answer([&] { store.processes().queue_again(3, 50); });
  });
  commands.run(doctor_command, {"doctor", "--share", "OUT/shared.stepladder", "--json"});
  commands.run(doctor_command, {"doctor", "--share", "OUT/shared2.stepladder", "--with-output"});
  commands.run(doctor_command, {"doctor", "--backup", "OUT/backup.stepladder"});
  expect_answer([&] { rescue(file, file.parent_path() / "out" / "rescued.stepladder"); });
  Commands own(file.parent_path() / "own.stepladder");
  own.run(import_command, {"import", file.string(), "--again"});
  own.run(runs_command, {"runs", "--json"});
  commands.run(bin_command, {"bin", "2"});
  commands.run(bin_command, {"bin", "2", "--restore"});
  commands.run(bin_command, {"bin", "--empty", "--yes", "--json"});
  commands.run(doctor_command, {"doctor", "--compact"});
  commands.run(doctor_command, {"doctor", "--database"});
}

class Projects {
 public:
  Projects() {
    setenv("XDG_STATE_HOME", (folder_ / "state").c_str(), 1);
    setenv("XDG_CONFIG_HOME", (folder_ / "config").c_str(), 1);
    setenv("XDG_DATA_HOME", (folder_ / "data").c_str(), 1);
    setenv("HOME", folder_.path().c_str(), 1);
    fs::current_path(folder_.path());
    HardwareTable::load(assets_folder());  // throws if they aren't there: then few commands do anything
    make_sound_project(folder_ / "sound.stepladder", 24);
    make_sound_project(folder_ / "long.stepladder", 5000);
    sound_.emplace(folder_ / "sound.stepladder");
    long_.emplace(folder_ / "long.stepladder");
  }

  fs::path changed(InputBytes& input, bool is_long) const {
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      const std::string name = entry.path().filename().string();
      if (!name.starts_with("sound") && !name.starts_with("long")) fs::remove_all(entry.path());
    }
    (is_long ? *long_ : *sound_).apply(input, folder_ / "changed.stepladder");
    return folder_ / "changed.stepladder";
  }

 private:
  TemporaryFolder folder_;
  std::optional<ValueChanges> sound_, long_;
};

}  // namespace
}  // namespace stepladder

// A report of undefined behaviour ends the run, as the address sanitizer's do.
extern "C" const char* __ubsan_default_options() {
  return "halt_on_error=1:print_stacktrace=1";
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace stepladder;
  static const Projects projects;
  InputBytes input({reinterpret_cast<const char*>(data), size});
  const std::size_t what = input.byte() % 8;
  const std::filesystem::path file = projects.changed(input, what == 7);
  Commands commands(file);
  expect_answer([&] { RunStore::open(file, RunStore::Mode::read_only).runs_with_summaries(); });
  if (what == 0) show(commands);
  if (what == 1) judge(commands);
  if (what == 2) write_files(commands);
  if (what == 3) profile(commands);
  if (what == 4) change_everything(commands, file);
  if (what >= 5) {
    expect_answer([&] {
      RunStore store = RunStore::open(file, what == 5 ? RunStore::Mode::read_only : RunStore::Mode::read_write);
      look(store);
      look_at_traces(store);
      expect_answer([&] { empty_bin(store, 2e9); });
    });
  }
  return 0;
}
