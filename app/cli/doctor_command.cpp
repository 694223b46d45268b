// `stepladder doctor`: describes this machine, measures its peak (--probe), and checks, copies, shares or compacts the
// database. The probe writes the user's hardware.csv, so every later MFU depends on it; a malformed table is reported
// and left as it is.
#include <cmath>
#include <filesystem>
#include <functional>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "app/cli/commands.h"
#include "app/cli/progress.h"
#include "app/cli/setup/gpu_check.h"
#include "app/exit_status.h"
#include "app/host/environment.h"
#include "app/host/machine_load.h"
#include "app/runs/open_store.h"
#include "app/text/format.h"
#include "app/text/secrets.h"
#include "engine/engine.h"
#include "engine/files/files.h"
#include "engine/open_trainer.h"
#include "engine/peak_probe.h"
#include "storage/database/rescue/write_ahead_log.h"
#include "storage/errors.h"
#include "storage/own_folder.h"
#include "storage/regular_file.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

struct DoctorOptions {
  bool checks = false, probes = false, compacts = false;
  double noise_seconds = 0;
  std::string backup, rescue, share;  // files
  bool with_output = false;
  GpuCheckOptions gpu;
};

struct Probe {
  PeakProbe peak;
  Hardware row;                   // as in `file`
  std::filesystem::path file;     // the user's own hardware.csv
  std::optional<Hardware> known;  // the table's row for this hardware, apart from probes
};

// Below this share of the cores' time, the machine was busy.
inline constexpr double least_cpu_share = 0.9;

constexpr std::string_view measured_here = "measured here";

std::string contents(const fs::path& file) {
  RegularFile input(file);
  return {std::istreambuf_iterator<char>(input), {}};
}

bool was_busy(const PeakProbe& peak) {
  return peak.cpu_share < least_cpu_share;
}

// The median, but on a busy machine the fastest sample, since too low a peak would flag honest runs as impossible.
double kept_tflops(const PeakProbe& peak, const ProductRate& rate) {
  return was_busy(peak) ? rate.fastest_tflops : rate.tflops;
}

// A lower precision that is slower than float32 isn't a peak: autocast leaves some products in float32, so a run can be
// faster.
Hardware hardware_row(const PeakProbe& peak, const Hardware* known) {
  Hardware row{.name = peak.hardware, .source = std::string(measured_here)};
  if (known) row.name += " (measured here)";
  if (peak.device == "mps") row.aliases = {row.name};  // "Apple GPU" alone doesn't name a model
  const double fp32 = kept_tflops(peak, peak.rates.front());
  for (const ProductRate& rate : peak.rates) {
    const double tflops = kept_tflops(peak, rate);
    if (tflops >= fp32) row.peak_tflops[static_cast<std::size_t>(precision_from(rate.precision))] = tflops;
  }
  row.bandwidth_gb_s = peak.bandwidth_gb_s;
  row.memory_gb = peak.memory_bytes / 1e9;
  return row;
}

// Reads the table before writing it: reports a malformed one with its line and leaves it unchanged. A link stays a
// link.
void keep(const Hardware& row, const fs::path& file) {
  std::string csv;
  if (fs::exists(file)) {
    HardwareTable::read(file);
    csv = contents(file);
  }
  const std::string text = with_row(csv, row);
  const fs::path target = fs::weakly_canonical(file);
  make_private_folders(target.parent_path());  // the file's own error is more precise
  OutputFile output(target, private_file);
  output.write(std::as_bytes(std::span(text)));
  output.commit();
}

double datasheet_peak(const Probe& probe, const std::string& precision) {
  return probe.known ? probe.known->peak_tflops[static_cast<std::size_t>(precision_from(precision))] : missing;
}

// Measures (some ten seconds) and writes the row. Hardware that the table lacks gets a row under the name that runs
// record, and so a peak. Next to a datasheet's row, it is called "NAME (measured here)", so that MFU stays comparable
// with published figures. Throws StorageError or DataError, with the table unchanged, and std::runtime_error if
// `stop_requested` returns true.
Probe probe_peak(const HardwareTable& table, const std::function<bool()>& stop_requested) {
  Probe probe{.file = HardwareTable::user_file()};
  if (fs::exists(probe.file)) HardwareTable::read(probe.file);  // fails before ten seconds are spent
  probe.peak = Engine([](const RunEvent&) {}).measure_peak(stop_requested).get();
  const Hardware* const known = table.find(probe.peak.hardware);
  if (known && known->source != measured_here) probe.known = *known;  // else it is an earlier probe's
  probe.row = hardware_row(probe.peak, probe.known ? &*probe.known : nullptr);
  keep(probe.row, probe.file);
  return probe;
}

Json probe_json(const Probe& probe) {
  const PeakProbe& peak = probe.peak;
  Json rates = Json::array();
  for (const ProductRate& rate : peak.rates) {
    rates.push_back({{"precision", rate.precision},
                     {"tflops", rate.tflops},
                     {"fastest_tflops", rate.fastest_tflops},
                     {"datasheet_tflops", number(datasheet_peak(probe, rate.precision))},
                     {"size", rate.size},
                     {"samples", rate.samples}});
  }
  return {{"hardware", peak.hardware},
          {"device", peak.device},
          {"threads", peak.threads > 0 ? Json(peak.threads) : Json()},
          {"peaks", rates},
          {"bandwidth_gb_s", peak.bandwidth_gb_s},
          {"datasheet_bandwidth_gb_s", number(probe.known ? probe.known->bandwidth_gb_s : missing)},
          {"bandwidth_bytes", peak.bandwidth_bytes},
          {"cpu_share", peak.cpu_share},
          {"datasheet", probe.known ? Json(probe.known->source) : Json()},
          {"row", probe.row.name},
          {"file", probe.file.string()}};
}

std::string probe_text(const Probe& probe) {
  const PeakProbe& peak = probe.peak;
  std::vector<std::vector<std::string>> rows = {{peak.hardware, "measured here", "fastest", "datasheet", "how"}};
  for (const ProductRate& rate : peak.rates) {
    rows.push_back({rate.precision + " TFLOP/s", compact(rate.tflops), compact(rate.fastest_tflops),
                    compact(datasheet_peak(probe, rate.precision)),
                    fmt::format("median of {} samples, matrices of {} x {}", rate.samples, grouped(rate.size),
                                grouped(rate.size))});
  }
  rows.push_back({"memory GB/s", compact(peak.bandwidth_gb_s), "-",
                  compact(probe.known ? probe.known->bandwidth_gb_s : missing),
                  "a = b + s c over " + bytes_text(static_cast<double>(peak.bandwidth_bytes))});
  std::string text = table(rows, {false, true, true, true, false});
  if (was_busy(peak)) {
    text += fmt::format(
        "\nOther programs used {} % of the cores, so the fastest samples were saved. Probe again when they have "
        "finished.\n",
        std::lround(100 * (1 - peak.cpu_share)));
  }
  return text + "\nsaved as '" + probe.row.name + "' in " + probe.file.string() + "\n";
}

// Checks every page of the file.
int check_database(const CommonOptions& common) {
  if (!std::filesystem::exists(common.database)) open_existing(common.database);  // throws the error
  const std::string file = common.database.string();
  std::string found, sentence, hint;
  std::size_t machines = 0, commands = 0;  // that came with the file
  try {
    // First, since opening the file removes its log.
    sentence = found = damage_of_write_ahead_log(common.database);
    if (found.empty()) {
      RunStore store = open_existing(common.database);
      found = store.upkeep().integrity_check();
      for (const MachineInFile& machine : store.machines().machines_in_file()) {
        ++machines;
        commands += machine.open_runs.size();
      }
      sentence = file + (found == "ok" ? " is intact" : " is damaged: " + found);
    }
    if (found != "ok") hint = rescue_hint(common.database);
  } catch (const DamagedFile& error) {
    sentence = found = error.what();  // so damaged that it can't be opened
    hint = rescue_hint(common.database);
  } catch (const StorageError& error) {
    sentence = found = error.what();  // not Stepladder's database, or locked
  }
  const bool sound = found == "ok";
  if (common.json) {
    print({{"database", file},
           {"sound", sound},
           {"damage", sound ? Json() : Json(found)},
           {"machines_in_file", machines},
           {"commands_in_file", commands}});
  } else {
    std::cout << notes_text(sentence);
    if (machines > 0)
      std::cout << notes_text(
          fmt::format("It names machines that aren't yours ({}), with commands that somebody asked for ({}): nothing "
                      "connects to them or runs them. `stepladder machines` lists them.",
                      machines, commands));
  }
  if (!hint.empty()) std::cerr << "stepladder: " << hint << "\n";
  return sound ? exit_done : exit_failed;
}

// Writes a copy of the file while other processes may be writing to it.
int back_up_database(const fs::path& out, const CommonOptions& common) {
  if (out.empty()) throw UsageError("--backup: the file name is empty");
  keep_off_database(out, common.database, "--backup");
  const FileContents copy = open_existing(common.database).upkeep().back_up(out);
  if (common.json) {
    print({{"database", common.database.string()},
           {"backup", out.string()},
           {"bytes", copy.bytes},
           {"runs", copy.runs},
           {"steps", copy.steps}});
  } else {
    std::cout << notes_text(fmt::format("{} is a complete copy of {}, with {} and {} ({})", out.string(),
                                        common.database.string(), plural(copy.runs, "run"), plural(copy.steps, "step"),
                                        bytes_text(static_cast<double>(copy.bytes))));
  }
  return exit_done;
}

std::string without_secret(const std::string& name, const std::string& text) {
  // In a list, the argument before is the name of this value, unless the value is an option itself.
  if (name.empty() || name.find('=') != std::string::npos || text.starts_with('-'))
    return each_without_secrets({text}).front();
  const std::string hidden = each_without_secrets({name + "=" + text}).front();
  return hidden.starts_with(name + "=") ? hidden.substr(name.size() + 1) : hidden;
}

int share_database(const fs::path& out, bool with_output, const CommonOptions& common) {
  if (out.empty()) throw UsageError("--share: the file name is empty");
  keep_off_database(out, common.database, "--share");
  const SharedCopy copy = open_existing(common.database)
                              .upkeep()
                              .share(out, {.with_output = with_output, .without_secrets = without_secret});
  if (common.json) {
    print({{"database", common.database.string()},
           {"out", out.string()},
           {"bytes", copy.contents.bytes},
           {"runs", copy.contents.runs},
           {"steps", copy.contents.steps},
           {"removed", copy.removed}});
    return exit_done;
  }
  std::string text = fmt::format("{} is a copy for others, with {} and {}\n", out.string(),
                                 plural(copy.contents.runs, "run"), plural(copy.contents.steps, "step"));
  for (const auto& [kind, count] : copy.removed)
    text += "  left out or shortened: " + kind + " (" + grouped(count) + ")\n";
  std::cout << notes_text(text);
  return exit_done;
}

Json load_json(const MachineLoad& load) {
  Json busiest = Json::array();
  for (const BusyProcess& each : load.busiest)
    busiest.push_back({{"pid", each.pid}, {"name", each.name}, {"cores", each.cores}});
  return {{"cores", count_or_null(load.others.cores)},
          {"other_cores", number(load.others.other_cores)},
          {"busiest", busiest}};
}

std::string load_text(const MachineLoad& load) {
  const bool is_busy = load.would_disturb(load.others.cores);
  return load.text() + (is_busy ? ": a run on all cores would be disturbed; --when-quiet waits\n" : "\n");
}

int doctor(bool probe, const CommonOptions& common) {
  require_named_database(common);
  LoadWatch watch;
  DeviceReport report = describe_cpu();
  std::string problem;
  try {
    report = probe_machine();
  } catch (const std::exception& error) {
    problem = error.what();
  }
  Json json = doctor_json(report, common.database);
  const MachineLoad& load = watch.wait_and_read();
  json["load"] = load_json(load);
  std::string text = doctor_text(report, common.database) + "\n" + notes_text(load_text(load));
  if (probe && problem.empty()) {
    std::cerr << "stepladder: probing for about ten seconds; other busy programs lower the figures\n";
    try {
      const Probe found = probe_peak(HardwareTable::load(assets_folder()), interrupted);
      json["probe"] = probe_json(found);
      text += "\n" + probe_text(found);
    } catch (const std::exception& error) {
      if (interrupted()) return report_error(error, exit_interrupted);
      throw;
    }
  }
  print_as(
      common, [&] { return json; }, [&] { return text; });
  if (problem.empty()) return exit_done;
  if (missing_trainer().empty()) return report_error(problem);
  std::cerr << "stepladder: " << problem << "\n";  // who doesn't train lacks nothing
  return exit_done;
}

int compact_database(const CommonOptions& common) {
  RunStore store = open_existing(common.database);
  const std::int64_t before = store.upkeep().space().file_bytes;
  store.bin().finish_deletions(say_deletions());
  if (interrupted()) return exit_interrupted;
  store.upkeep().compact();
  const std::int64_t after = store.upkeep().space().file_bytes;
  if (common.json) {
    print({{"database", common.database.string()}, {"file_bytes_before", before}, {"file_bytes", after}});
  } else {
    std::cout << notes_text(common.database.string() + " has " + bytes_text(static_cast<double>(after)) +
                            " now; it had " + bytes_text(static_cast<double>(before)));
  }
  return exit_done;
}

// --gpu, which excludes all other options that are there already, and its own.
void add_gpu_options(CLI::App& command, GpuCheckOptions& options) {
  const std::vector<CLI::Option*> others = command.get_options();
  CLI::Option* checking = command.add_flag(
      "--gpu", options.is_asked,
      "Check what Stepladder does with the GPU, for about ten minutes, and write it to a file for a bug report");
  for (CLI::Option* other : others)
    if (other != command.get_help_ptr() && !other->check_lname("json") && !other->check_lname("db"))
      checking->excludes(other);
  command.add_option("--out", options.out, "New file for --gpu's JSON (default: stepladder-gpu-DATE.json)")
      ->type_name("FILE")
      ->needs(checking);
  command.add_option("--minutes", options.minutes, "Time limit of --gpu")->check(positive_number())->needs(checking);
  command.add_option("--device", options.device, "What --gpu checks; others than cuda in small sizes")
      ->check(one_of({"cuda", "cpu", "mps"}))
      ->needs(checking);
  add_force(command, options.forces);
  command.get_option("--force")->needs(checking);
}

}  // namespace

Subcommand doctor_command(CLI::App& app, CommonOptions& common) {
  auto options = std::make_shared<DoctorOptions>();
  CLI::App* command = add_with_json(app, common, "doctor", "Show this machine's hardware");
  CLI::Option* checking = command->add_flag("--database", options->checks,
                                            "Read the whole database instead, and report whether it is intact");
  CLI::Option* probing = command->add_flag("--probe", options->probes,
                                           "Measure its peak performance, and compare runs with that from now on");
  CLI::Option* measuring = command
                               ->add_option("--noise", options->noise_seconds,
                                            "Measure how noisy it is: equal runs in turns, for so many seconds "
                                            "(default 60), kept in the project")
                               ->expected(0, 1)
                               ->check(positive_number());
  CLI::Option* backing_up =
      command->add_option("--backup", options->backup,
                          "Write a complete copy of the database to this new file, also while runs are recorded");
  CLI::Option* rescuing =
      command->add_option("--rescue", options->rescue, "Save what can be read of a damaged database in this new file");
  CLI::Option* sharing = command->add_option(
      "--share", options->share,
      "Write a copy for others to this new file: without environments, commands, machines, output and private notes");
  command->add_flag("--with-output", options->with_output, "Share the output of watched programs too")->needs(sharing);
  CLI::Option* compacting =
      command->add_flag("--compact", options->compacts,
                        "Rewrite the database without its unused space; no other program may have it open");
  const std::vector<CLI::Option*> alone = {measuring, backing_up, rescuing, sharing, compacting};
  for (CLI::Option* one : alone)
    for (CLI::Option* other : {checking, probing, measuring, backing_up, rescuing, sharing, compacting})
      if (one != other) one->excludes(other);
  add_gpu_options(*command, options->gpu);
  return {command, [=, &common] {
            if (options->gpu.is_asked) return check_gpu(options->gpu, common);
            if (*rescuing) return rescue_database(options->rescue, common);
            if (*sharing) return share_database(options->share, options->with_output, common);
            if (*backing_up) return back_up_database(options->backup, common);
            if (options->compacts) return compact_database(common);
            constexpr double usual_seconds = 60;  // CLI11 makes a value that isn't given 0
            if (*measuring)
              return measure_noise(options->noise_seconds > 0 ? options->noise_seconds : usual_seconds, common);
            return options->checks ? check_database(common) : doctor(options->probes, common);
          }};
}

}  // namespace stepladder
