// Runs this program's own commands one after the other and reads their JSON, so that what is checked is what users run.
// A part that fails is recorded with its sentence and the next one begins. No path, user or host of this machine gets
// into the file.
#include "app/cli/setup/gpu_check.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <ctime>
#include <iostream>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "app/cli/terminal/output_options.h"
#include "app/exit_status.h"
#include "app/host/scratch_folder.h"
#include "app/process/awaited_program.h"
#include "app/text/format.h"
#include "engine/files/files.h"
#include "engine/kernel_parts.h"
#include "engine/loaded_libraries.h"
#include "storage/errors.h"
#include "storage/importers/journal/journal_reader.h"

namespace stepladder {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Words = std::vector<std::string>;

// One of this program's commands, once it has ended.
struct Ended {
  int status = 0;
  Json json;             // null if it printed none
  std::string sentence;  // the error that it gave
  bool is_cut = false;   // stopped since the time was over
};

// A part of the check. It has failed if it has problems, was stopped if the time or Ctrl-C ended it before its own end,
// and was skipped if it says why.
struct Part {
  std::string id, title;
  double seconds = 0;
  Words problems;
  Words notes;  // worth knowing, and not wrong
  bool is_stopped = false;
  std::string skipped;           // why
  bool lacked_the_time = false;  // skipped since the time was over or after Ctrl-C
  Json figures = Json::object();

  const char* result() const {
    return !problems.empty() ? "failed" : is_stopped ? "stopped" : skipped.empty() ? "passed" : "skipped";
  }
  bool is_complete() const { return !is_stopped && !lacked_the_time; }
};

// The shapes and lengths of the trainings.
struct Sizes {
  Words big, small;  // the model that figures are of, and the one that is compared with plain steps
  std::string steps, half_of_resumed, resumed;
};

Sizes sizes_for(const std::string& device, std::int64_t memory_bytes) {
  const Words tiny = {"--model", "nano",    "--layers", "2",       "--heads", "2",     "--d-model",
                      "64",      "--vocab", "256",      "--batch", "4",       "--seq", "32"};
  if (device != "cuda") return {.big = tiny, .small = tiny, .steps = "8", .half_of_resumed = "4", .resumed = "8"};
  // The baseline of gpt2 takes 31.4 GB with a batch of 16, and nearly all of it by sequence.
  const double gigabytes = static_cast<double>(memory_bytes) / 1e9;
  const char* const batch = gigabytes >= 40   ? "16"
                            : gigabytes >= 22 ? "8"
                            : gigabytes >= 11 ? "4"
                            : gigabytes >= 7  ? "2"
                                              : "1";
  return {.big = {"--model", "gpt2", "--batch", batch, "--seq", "1024"},
          .small = {"--model", "nano"},
          .steps = "12",
          .half_of_resumed = "10",
          .resumed = "20"};
}

Json only(const Json& object, std::initializer_list<const char*> keys) {
  Json kept = Json::object();
  for (const char* key : keys) kept[key] = object.is_object() && object.contains(key) ? object[key] : Json();
  return kept;
}

// What is going on, on stderr as --progress says.
void say(const std::string& line) {
  const ProgressStyle style = progress_style();
  if (style == ProgressStyle::json)
    print_line({{"note", line}}, std::cerr);
  else if (style != ProgressStyle::none)
    std::cerr << harmless(line) << std::endl;
}

class GpuCheck {
 public:
  explicit GpuCheck(const GpuCheckOptions& options)
      : options_(options),
        ends_(Clock::now() +
              std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(60 * options.minutes))) {}

  // Throws NotFound if the device isn't there.
  void run();
  Json document() const;
  const std::vector<Part>& parts() const { return parts_; }

 private:
  using Work = void (GpuCheck::*)(Part&);
  struct Step {
    const char *id, *title;
    Work work;
  };

  void machine(Part& part);
  void stages(Part& part);
  void self_checks(Part& part);
  void rungs(Part& part);
  void kernels(Part& part);
  void trace(Part& part);
  void card_readings(Part& part);
  void resume(Part& part);
  void peak(Part& part);

  void add(const Step& step, std::size_t place, std::size_t of);
  Ended command(Words words);
  Ended command(Part& part, Words words);
  Json ladder(Part& part, const Words& sizes, const Words& options);
  std::vector<double> losses_of(Part& part, const std::string& run);
  bool is_on_gpu() const { return options_.device == "cuda"; }
  std::string fastest_stages() const;

  const GpuCheckOptions options_;
  const Clock::time_point ends_;
  const double began_at_ = unix_now();
  const ScratchFolder scratch_{"stepladder-gpu"};
  Sizes sizes_;
  std::set<std::string> available_;  // stages
  std::vector<Part> parts_;
};

// Shows what the command says of its progress, and stops it when the time is over or after Ctrl-C.
Ended GpuCheck::command(Words words) {
  words.insert(words.begin(), "stepladder");
  words.emplace_back("--json");
  const std::string folder = scratch_.path().string();
  AwaitedProgram program(
      {.command = words,
       .program = "/proc/self/exe",
       .environment = {"STEPLADDER_DB=" + folder + "/check.db", "XDG_CONFIG_HOME=" + folder + "/config",
                       "XDG_CACHE_HOME=" + folder + "/cache", "XDG_STATE_HOME=" + folder + "/state"},
       .group = Launch::Group::ours});
  Ended ended;
  std::size_t shown = 0;
  std::optional<Clock::time_point> stop_at;
  bool was_asked = false;
  const auto patience = std::chrono::seconds(30), own_chance = std::chrono::seconds(2);
  for (bool over = false; !over;) {
    over = program.process().wait(std::chrono::milliseconds(100));
    const std::string errors = program.errors();
    for (std::size_t end; (end = errors.find('\n', shown)) != std::string::npos; shown = end + 1) {
      const std::string_view line = std::string_view(errors).substr(shown, end - shown);
      if (!line.starts_with("{\"error\"") && !line.starts_with("  product ")) say(std::string(line));
    }
    if (over) break;
    const auto now = Clock::now();
    if (!stop_at && interrupted()) stop_at = now + own_chance;  // a terminal's Ctrl-C has reached it too
    if (!stop_at && now > ends_) stop_at = now, ended.is_cut = true;
    if (stop_at && now >= *stop_at) {
      program.process().kill(was_asked ? SIGKILL : SIGINT);
      was_asked = true;
      stop_at = now + patience;
    }
  }
  ended.status = program.process().exit_status();
  ended.json = Json::parse(program.output(), nullptr, false);
  if (ended.json.is_discarded()) ended.json = nullptr;
  const std::string errors = program.errors();
  const Json error = Json::parse(errors.substr(std::min(errors.find("{\"error\""), errors.size())), nullptr, false);
  if (error.is_object()) ended.sentence = text_in(error["error"], "message");
  if (ended.status > 128 && ended.status != exit_interrupted && ended.sentence.empty())
    ended.sentence = fmt::format("ended by signal {}", ended.status - 128);
  return ended;
}

// The same, and a problem of the part if it failed.
Ended GpuCheck::command(Part& part, Words words) {
  const std::string name = words.front();
  Ended ended = command(std::move(words));
  if (ended.is_cut) part.notes.push_back("stopped, since the time was over");
  part.is_stopped = part.is_stopped || ended.is_cut || interrupted();
  if (ended.status != exit_done && !part.is_stopped && (ended.json.is_null() || !ended.sentence.empty()))
    part.problems.push_back(name + ": " +
                            (ended.sentence.empty() ? fmt::format("exit status {}", ended.status) : ended.sentence));
  if (!ended.json.is_structured()) ended.json = Json::object();
  return ended;
}

void GpuCheck::machine(Part& part) {
  const Ended ended = command(part, {"doctor"});
  part.figures = only(ended.json, {"cpu", "cores", "cpu_capability", "memory_bytes", "libtorch", "gpus", "cuda_note",
                                   "libraries", "card_numbers"});
  // A list of folders, or of cards by names that no other machine has, is only told to be there.
  for (const char* name : {"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "LD_LIBRARY_PATH"}) {
    const char* const value = std::getenv(name);
    const bool is_told = value && (std::string_view(name) == "CUDA_DEVICE_ORDER" ||
                                   std::string_view(value).find_first_not_of("0123456789,-") == std::string_view::npos);
    part.figures[name] = !value ? Json() : is_told ? Json(value) : Json("set");
  }
  std::vector<LoadedLibrary> libraries;
  for (Json& library : part.figures["libraries"]) {
    const std::string file = fs::path(text_in(library, "file")).filename().string();
    library["file"] = file;
    libraries.push_back({.name = text_in(library, "name"), .file = file, .shadows = library.value("shadows", false)});
  }
  if (const std::string note = shadow_note(libraries); !note.empty()) part.notes.push_back(note);
  if (!is_on_gpu()) return void(sizes_ = sizes_for(options_.device, 0));
  const bool has_answered = ended.status == exit_done && !part.is_stopped;
  if (has_answered && part.figures["gpus"].is_array() && part.figures["gpus"].empty())
    throw NotFound("there is no NVIDIA GPU that Stepladder can use: " + text_in(ended.json, "cuda_note"),
                   {.argument = "--device",
                    .value = options_.device,
                    .hint = "`stepladder doctor --gpu --device cpu` runs the same parts on the CPU, in small sizes"});
  const double bytes = part.figures["gpus"].empty() ? missing : number_in(part.figures["gpus"][0], "memory_bytes");
  sizes_ = sizes_for(options_.device, is_missing(bytes) ? 0 : static_cast<std::int64_t>(bytes));
  for (const Json& card : part.figures["card_numbers"])
    if (number_in(card, "nvml") < 0)
      part.problems.push_back(fmt::format(
          "NVML doesn't know CUDA's GPU {}, so its clock, power and throttling are unknown", card["cuda"].dump()));
}

void GpuCheck::stages(Part& part) {
  for (const Json& stage : command(part, {"stages"}).json) {
    const std::string id = text_in(stage, "id"), reason = text_in(stage, "reason");
    part.figures[id] = text_or_null(reason);
    if (reason.empty())
      available_.insert(id);
    else if (is_on_gpu() && id.starts_with("compile"))
      part.problems.push_back(id + " isn't available: " + reason);
  }
}

// The fastest way that the device has, for kernels and trace.
std::string GpuCheck::fastest_stages() const {
  return available_.contains("bf16") ? "bf16+compile-max" : "compile-max";
}

// Trains a ladder; -> its rungs, each with what its run says. Runs that failed or fell back are problems.
Json GpuCheck::ladder(Part& part, const Words& sizes, const Words& options) {
  Words words = {"ladder", "--device", options_.device, "--steps", sizes_.steps, "--warmup", "2"};
  words.insert(words.end(), sizes.begin(), sizes.end());
  words.insert(words.end(), options.begin(), options.end());
  const Ended ended = command(part, words);
  Json rungs = Json::array();
  for (const Json& run : ended.json.value("runs", Json::array())) {
    Json rung = only(run, {"stage", "status", "reason", "fell_back", "dt_ms_median", "tokens_per_s", "setup_ms",
                           "peak_memory_bytes", "loss_last", "attention", "precision"});
    const std::string stage = text_in(run, "stage"), status = text_in(run, "status");
    if (status == "failed") part.problems.push_back(stage + ": " + text_in(run, "reason"));
    if (const std::string fell_back = text_in(run, "fell_back"); !fell_back.empty())
      part.problems.push_back(stage + ": " + fell_back);
    rungs.push_back(std::move(rung));
  }
  for (const Json& rung : ended.json.value("skipped", Json::array()))
    part.notes.push_back(text_in(rung, "id") + " was skipped: " + text_in(rung, "reason"));
  return rungs;
}

// Each way to take a step against plain operations in the same precision.
void GpuCheck::self_checks(Part& part) {
  part.figures["rungs"] =
      ladder(part, sizes_.small, {"--only", "bf16,compile,compile-max,bf16+compile,bf16+compile-max"});
  double plain = missing, plain_bf16 = missing;
  int compared = 0;
  for (const Json& rung : part.figures["rungs"]) {
    const std::string stage = text_in(rung, "stage");
    const double loss = number_in(rung, "loss_last");
    if (stage == "baseline") plain = loss;
    if (stage == "bf16") plain_bf16 = loss;
    const bool rounds = stage.find("bf16") != std::string::npos;
    const double wanted = rounds ? plain_bf16 : plain;
    constexpr double tolerance = 1e-3, rounding_tolerance = 3e-2;  // of the last loss
    if (is_missing(loss) || is_missing(wanted)) {
      if (text_in(rung, "status") == "finished")
        part.problems.push_back(stage + (is_missing(loss) ? " has no loss" : " has no loss to be compared with"));
      continue;
    }
    compared += stage != "baseline" && stage != "bf16";
    if (!(std::abs(loss - wanted) <= (rounds ? rounding_tolerance : tolerance) * std::abs(wanted)))
      part.problems.push_back(
          fmt::format("{} ends with a loss of {:.6g}, plain operations with {:.6g}", stage, loss, wanted));
  }
  part.figures["compared"] = compared;
  if (compared == 0 && part.problems.empty() && !part.is_stopped)
    part.problems.emplace_back("no captured or planned step was compared");
}

void GpuCheck::rungs(Part& part) {
  part.figures["rungs"] = ladder(part, sizes_.big, {"--all"});
  for (const Json& rung : part.figures["rungs"])
    if (text_in(rung, "status") == "finished" && is_missing(number_in(rung, "dt_ms_median")))
      part.problems.push_back(text_in(rung, "stage") + " has no step time");
  if (part.figures["rungs"].empty() && part.problems.empty() && !part.is_stopped)
    part.problems.emplace_back("no rung was trained");
}

// The whole planned step, and with LibTorch's operations in the place of one kernel after the other.
void GpuCheck::kernels(Part& part) {
  const std::string top = fastest_stages();
  std::string list = top;
  for (const KernelPart& kernel : kernel_parts())
    if (!is_on_gpu() || kernel.name != "attention")  // which is LibTorch's there
      list += fmt::format(",without-{0}:{1}:without_kernel={0}", kernel.name, top);
  const Json rungs = ladder(part, sizes_.big, {"--only", list});
  double whole = missing;
  Json times = Json::array();
  for (const Json& rung : rungs) {
    const std::string stage = text_in(rung, "stage");
    const double ms = number_in(rung, "dt_ms_median");
    if (stage == "baseline") continue;
    if (is_missing(whole)) whole = ms;
    times.push_back({{"stage", stage},
                     {"status", rung["status"]},
                     {"dt_ms_median", number(ms)},
                     {"over_whole", number(is_missing(ms) || !(whole > 0) ? missing : ms / whole)}});
  }
  part.figures["steps"] = std::move(times);
}

void GpuCheck::trace(Part& part) {
  Words words = {"profile", "run", "--device", options_.device, "--stages"};
  std::string stages = fastest_stages();
  std::ranges::replace(stages, '+', ',');
  words.push_back(stages);
  words.insert(words.end(), sizes_.big.begin(), sizes_.big.end());
  const Ended ended = command(part, words);
  part.figures = only(ended.json, {"device", "has_steps", "steps", "step_ms", "calls", "kinds", "notes"});
  if (!(number_in(ended.json, "step_ms") > 0) && part.problems.empty() && !part.is_stopped)
    part.problems.push_back("the trace has no steps");
}

// What NVML said while the rungs trained.
void GpuCheck::card_readings(Part& part) {
  if (!is_on_gpu()) return void(part.skipped = "NVML only knows NVIDIA's GPUs");
  constexpr const char* readings[] = {"gpu_load",          "gpu_clock_mhz",    "gpu_power_w",
                                      "gpu_temperature_c", "gpu_memory_bytes", "other_gpu_load"};
  std::size_t samples = 0;
  Json found = Json::object();
  std::set<std::string> throttled;
  for (const char* reading : readings) found[reading] = {{"samples", 0}, {"lowest", nullptr}, {"highest", nullptr}};
  const Ended ended = command(part, {"show", "device=cuda"});
  for (const Json& run : ended.json.is_array() ? ended.json : Json::array({ended.json})) {
    for (const Json& lane : run.value("lanes", Json::array())) {
      ++samples;
      if (const std::string reason = text_in(lane, "throttle_reason"); !reason.empty()) throttled.insert(reason);
      for (const char* reading : readings) {
        const double value = number_in(lane, reading);
        if (is_missing(value)) continue;
        Json& of = found[reading];
        of["samples"] = of["samples"].get<int>() + 1;
        if (of["lowest"].is_null() || value < of["lowest"].get<double>()) of["lowest"] = value;
        if (of["highest"].is_null() || value > of["highest"].get<double>()) of["highest"] = value;
      }
    }
  }
  part.figures = {{"samples", samples}, {"readings", found}, {"throttle_reasons", throttled}};
  if (part.is_stopped) return;
  if (samples == 0) return void(part.problems.push_back("no sample was taken while runs trained"));
  for (const char* reading : readings)
    if (found[reading]["samples"] == 0 && std::string_view(reading) != "other_gpu_load")
      part.problems.push_back(std::string(reading) + ": no value in " + plural(samples, "sample"));
}

std::vector<double> GpuCheck::losses_of(Part& part, const std::string& run) {
  std::vector<double> losses;
  const Ended ended = command(part, {"show", run, "--steps"});
  for (const Json& step : ended.json.value("data", Json::array())) losses.push_back(number_in(step, "loss"));
  return losses;
}

// The same training in one piece and in two.
void GpuCheck::resume(Part& part) {
  const auto train = [&](const Words& options) {
    Words words = {"train", "--device", options_.device, "--stages", "compile-max"};
    words.insert(words.end(), sizes_.small.begin(), sizes_.small.end());
    words.insert(words.end(), options.begin(), options.end());
    return number_in(command(part, words).json, "id");
  };
  const double whole = train({"--steps", sizes_.resumed});
  const double first = train({"--steps", sizes_.half_of_resumed, "--save-every", sizes_.half_of_resumed});
  if (part.is_stopped || !part.problems.empty()) return;
  if (is_missing(whole) || is_missing(first)) return void(part.problems.emplace_back("a training has no number"));
  const std::string half = std::to_string(static_cast<std::int64_t>(first));
  command(part, {"train", "--resume", half, "--steps", sizes_.resumed});
  const std::vector<double> wanted = losses_of(part, std::to_string(static_cast<std::int64_t>(whole))),
                            found = losses_of(part, half);
  const auto steps = static_cast<std::size_t>(std::stoi(sizes_.resumed)),
             before = static_cast<std::size_t>(std::stoi(sizes_.half_of_resumed));
  if (part.is_stopped || !part.problems.empty()) return;
  if (wanted.size() != steps || found.size() != steps)
    return void(
        part.problems.push_back(fmt::format("{} and {} of {} steps are there", wanted.size(), found.size(), steps)));
  const auto largest_gap = [&](std::size_t from, std::size_t to) {
    double gap = 0;
    for (std::size_t i = from; i < to; ++i) gap = std::max(gap, std::abs(found[i] - wanted[i]) / std::abs(wanted[i]));
    return gap;
  };
  const double repeated = largest_gap(0, before), resumed = largest_gap(before, steps);
  part.figures = {
      {"steps", steps}, {"resumed_after", before}, {"gap_of_a_repeat", repeated}, {"gap_after_resuming", resumed}};
  constexpr double tolerance = 1e-3;  // cuDNN's and flash attention's backward passes needn't repeat their bits
  if (!(repeated <= tolerance))
    part.problems.push_back(fmt::format("two equal trainings differ by {:.2g} in a loss", repeated));
  if (!(resumed <= tolerance)) part.problems.push_back(fmt::format("after resuming a loss differs by {:.2g}", resumed));
}

void GpuCheck::peak(Part& part) {
  if (!is_on_gpu()) return void(part.skipped = "`doctor --probe` measures a CPU");
  const Ended ended = command(part, {"doctor", "--probe"});
  part.figures =
      only(ended.json.value("probe", Json::object()), {"hardware", "peaks", "bandwidth_gb_s", "bandwidth_bytes"});
  if (part.figures["peaks"].is_null() && part.problems.empty() && !part.is_stopped)
    part.problems.emplace_back("no peak was measured");
}

void GpuCheck::add(const Step& step, std::size_t place, std::size_t of) {
  Part part{.id = step.id, .title = step.title};
  if (interrupted() || Clock::now() > ends_) {
    part.skipped = interrupted() ? "interrupted" : "no time was left";
    part.lacked_the_time = true;
  } else {
    say(fmt::format("stepladder: {} of {}, {}", place, of, part.title));
    const auto began = Clock::now();
    try {
      (this->*step.work)(part);
    } catch (const NotFound&) {
      throw;
    } catch (const std::exception& error) {
      part.problems.emplace_back(error.what());
    }
    part.seconds = std::chrono::duration<double>(Clock::now() - began).count();
    if (interrupted()) part.is_stopped = true, part.notes.push_back("interrupted");
  }
  parts_.push_back(std::move(part));
}

void GpuCheck::run() {
  static constexpr Step steps[] = {
      {"machine", "libraries, versions and the order of the cards", &GpuCheck::machine},
      {"stages", "the stages that this device has", &GpuCheck::stages},
      {"self-checks", "captured and planned steps against plain operations", &GpuCheck::self_checks},
      {"rungs", "every rung of the ladder", &GpuCheck::rungs},
      {"kernels", "the planned step without each of its kernels", &GpuCheck::kernels},
      {"trace", "a trace by LibTorch's profiler", &GpuCheck::trace},
      {"card-readings", "NVML's readings while runs trained", &GpuCheck::card_readings},
      {"resume", "a training in two pieces", &GpuCheck::resume},
      {"peak", "the measured peak", &GpuCheck::peak}};
  for (std::size_t i = 0; i < std::size(steps); ++i) add(steps[i], i + 1, std::size(steps));
}

Json GpuCheck::document() const {
  Json parts = Json::array();
  for (const Part& part : parts_)
    parts.push_back({{"id", part.id},
                     {"title", part.title},
                     {"result", part.result()},
                     {"seconds", part.seconds},
                     {"problems", part.problems},
                     {"notes", part.notes},
                     {"skipped", text_or_null(part.skipped)},
                     {"figures", part.figures}});
  return without_names({{"stepladder", STEPLADDER_VERSION},
                        {"made_at", time_json(began_at_)},
                        {"device", options_.device},
                        {"minutes", options_.minutes},
                        {"complete", std::ranges::all_of(parts_, &Part::is_complete)},
                        {"parts", parts}},
                       scratch_.path());
}

fs::path default_file() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  char text[64];
  ::localtime_r(&now, &parts);
  std::strftime(text, sizeof text, "stepladder-gpu-%Y-%m-%d-%H%M%S.json", &parts);
  return text;
}

}  // namespace

int check_gpu(const GpuCheckOptions& options, const CommonOptions& common) {
  const fs::path out = options.out.empty() ? default_file() : options.out;
  keep_off_database(out, common.database);
  keep_existing(out, options.forces);
  OutputFile file(out);  // now, since ten minutes later is late for an error
  say(fmt::format("stepladder: checking this machine for about {} at most; Ctrl-C ends it with what is known",
                  duration_text(60 * options.minutes)));
  GpuCheck check(options);
  check.run();
  const Json document = check.document();
  const std::string text = document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  file.write(std::as_bytes(std::span(text)));
  file.commit();
  print_as(
      common, [&] { return document; }, [&] { return gpu_check_text(document, out); });
  if (interrupted()) return exit_interrupted;
  const bool failed = std::ranges::any_of(check.parts(), [](const Part& part) { return !part.problems.empty(); });
  return failed ? exit_failed : exit_done;
}

}  // namespace stepladder
