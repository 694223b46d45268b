#include "app/cli/report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "app/environment.h"
#include "app/format.h"
#include "engine/files/checkpoint_folder.h"
#include "storage/analysis/energy.h"

namespace stepladder {
namespace {

Json text_or_null(const std::string& text) {
  return text.empty() ? Json() : Json(text);
}
Json count_or_null(std::int64_t count) {
  return count > 0 ? Json(count) : Json();
}

std::string status_text(const Run& run) {
  return std::string(to_string(run.status)) + (run.reason.empty() ? "" : ": " + run.reason);
}

// "bf16  (autocast off -> bf16)"; "-" where neither is known.
std::string with_detail(const std::string& text, const std::string& detail) {
  if (detail.empty()) return text.empty() ? "-" : text;
  return text + "  (" + detail + ")";
}

std::string left_out_text(std::int64_t warmup_steps) {
  if (warmup_steps == 0) return "no step left out";
  return "the first " + (warmup_steps == 1 ? "step" : grouped(warmup_steps) + " steps") + " left out";
}

double seed_tokens_per_s(const LadderPlan& plan, int rung) {
  const auto place = static_cast<std::size_t>(rung);
  return place < plan.rungs.size() ? plan.rungs[place].seed_tokens_per_s : missing;
}

Json energy_json(const Energy& energy) {
  if (is_missing(energy.wh)) return nullptr;
  return {{"wh", number(energy.wh)},
          {"seconds", number(energy.seconds)},
          {"mean_power_w", number(energy.mean_power_w)},
          {"joules_per_token", number(energy.joules_per_token)},
          {"tokens_per_s_per_w", number(energy.tokens_per_s_per_w)}};
}

}  // namespace

Json number(double value) {
  if (is_missing(value)) return nullptr;
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

PlausibilityContext load_judge(RunStore* store) {
  PlausibilityContext judge{.hardware = HardwareTable::load(assets_folder()), .repeats = {}};
  if (!store) return judge;
  for (const Run& run : store->runs()) judge.repeats.add(run);
  return judge;
}

Json interval_json(const Interval& interval) {
  return interval.known() ? Json::array({number(interval.low), number(interval.high)}) : Json();
}

Json parity_json(const LossParity& loss) {
  return {{"verdict", to_string(loss.verdict)},
          {"max_gap", std::isfinite(loss.max_gap) ? Json(loss.max_gap) : Json()},
          {"at_step", is_missing(loss.max_gap) ? Json() : Json(loss.at_step)}};
}

Json run_json(const Run& run, const Summary& summary, const PlausibilityContext& judge) {
  const bool measured = summary.steps > 0;
  const RunUtilisation used = utilisation_of(run, summary, judge.hardware);
  Json flags = Json::array();
  for (const Flag& flag : flags_of(run, summary, judge.repeats.of(run), judge.hardware))
    flags.push_back(to_string(flag.id));
  return {{"id", run.id},
          {"name", run.name},
          {"ladder", run.ladder ? Json(*run.ladder) : Json()},
          {"stage", text_or_null(run.stage)},
          {"repeat", run.repeat},
          {"status", to_string(run.status)},
          {"source", run.source},
          {"source_path", text_or_null(run.source_path)},
          {"steps", summary.steps},
          {"first_step", measured ? Json(summary.first_step) : Json()},
          {"last_step", measured ? Json(summary.last_step) : Json()},
          {"loss_first", number(summary.loss_first)},
          {"loss_last", number(summary.loss_last)},
          {"loss_min", number(summary.loss_min)},
          {"val_loss_last", number(summary.val_loss_last)},
          {"val_loss_min", number(summary.val_loss_min)},
          {"dt_ms_median", number(summary.dt_ms_median)},
          {"tokens_per_step", count_or_null(run.tokens_per_step)},
          {"tokens_per_s", number(summary.tokens_per_s)},
          {"warmup_steps", measured ? Json(summary.warmup_steps) : Json()},
          {"params", count_or_null(run.params)},
          {"model_flops_per_token",
           number(is_missing(run.model_flops_per_token) ? used.flops_per_token : run.model_flops_per_token)},
          {"mfu", number(used.mfu)},
          {"mfu_convention", text_or_null(used.convention)},
          {"device", text_or_null(run.device)},
          {"hardware", text_or_null(run.hardware)},
          {"precision", text_or_null(run.precision)},
          {"sync", to_string(run.sync)},
          {"flags", flags},
          {"rung", run.rung},
          {"title", text_or_null(run.title)},
          {"reason", text_or_null(run.reason)},
          {"parent", run.parent ? Json(*run.parent) : Json()},
          {"forked_at_step", count_or_null(run.forked_at_step)},
          {"attention", text_or_null(run.attention)},
          {"peak_memory_bytes", count_or_null(run.peak_memory_bytes)},
          {"setup_ms", number(run.setup_ms)}};
}

Json life_cycle_json(RunStore& store, const RunAndSummary& run) {
  const StepParts parts = store.mean_parts(run.run, run.summary.warmup_steps);
  Json checkpoints = Json::array();
  for (const Checkpoint& checkpoint : checkpoints_in(run_checkpoint_folder(store.file(), run.run.id))) {
    checkpoints.push_back({{"step", checkpoint.step}, {"folder", checkpoint.folder.string()}});
  }
  Json samples = Json::array();
  for (const TextSample& sample : store.samples(run.run.id)) {
    samples.push_back({{"step", sample.step}, {"text", sample.text}});
  }
  const std::vector<SystemMetrics> looks = store.system_metrics(run.run.id);
  const std::int64_t last_warmup_step = run.summary.first_step + run.summary.warmup_steps - 1;
  Json lanes = Json::array();
  for (const SystemMetrics& sample : looks) {
    lanes.push_back({{"step", sample.step},
                     {"at", number(sample.at)},
                     {"cpu_load", number(sample.cpu_load)},
                     {"process_cores", number(sample.process_cores)},
                     {"resident_bytes", count_or_null(sample.resident_bytes)},
                     {"gpu_load", number(sample.gpu_load)},
                     {"gpu_clock_mhz", number(sample.gpu_clock_mhz)},
                     {"gpu_power_w", number(sample.gpu_power_w)},
                     {"gpu_temperature_c", number(sample.gpu_temperature_c)},
                     {"gpu_memory_bytes", count_or_null(sample.gpu_memory_bytes)},
                     {"throttle_reason", text_or_null(sample.throttle_reason)}});
  }
  Json mean_ms;
  for (const NamedStepPart& part : all_step_parts) mean_ms[std::string(part.name)] = number(parts.*part.ms);
  return {{"mean_ms", mean_ms},
          {"checkpoints", checkpoints},
          {"samples", samples},
          {"console", text_or_null(store.console(run.run.id))},
          {"energy", energy_json(energy_of(looks, last_warmup_step, run.summary.tokens_per_s))},
          {"lanes", lanes}};
}

Json steps_json(const Series& series) {
  Json data = Json::array();
  for (std::size_t i = 0; i < series.size(); ++i) {
    data.push_back({{"step", series.step[i]},
                    {"loss", number(series.loss[i])},
                    {"val_loss", number(series.val_loss[i])},
                    {"dt_ms", number(series.dt_ms[i])},
                    {"tokens", count_or_null(series.tokens[i])},
                    {"tokens_per_s", number(series.tokens_per_s(i))},
                    {"lr", number(series.lr[i])},
                    {"grad_norm", number(series.grad_norm[i])}});
  }
  return data;
}

Json stage_json(const Stage& stage, const std::string& unavailable_because) {
  return {{"id", stage.id},
          {"title", stage.title},
          {"why", stage.why},
          {"kind", to_string(stage.kind)},
          {"available", unavailable_because.empty()},
          {"reason", text_or_null(unavailable_because)}};
}

Json doctor_json(const DeviceReport& report, const std::filesystem::path& database) {
  Json gpus = Json::array();
  for (const Gpu& gpu : report.gpus) {
    gpus.push_back({{"name", gpu.name},
                    {"compute_capability", std::to_string(gpu.compute_major) + "." + std::to_string(gpu.compute_minor)},
                    {"memory_bytes", gpu.memory_bytes}});
  }
  return {{"version", STEPLADDER_VERSION},
          {"cpu", text_or_null(report.cpu_name)},
          {"cores", report.cpu_cores},
          {"cpu_bf16", report.cpu_bf16},
          {"cpu_capability", text_or_null(report.cpu_capability)},
          {"memory_bytes", report.memory_bytes},
          {"libtorch", text_or_null(report.torch_version)},
          {"gpus", gpus},
          {"cuda_note", text_or_null(report.cuda_note)},
          {"mps", report.mps},
          {"display", display_is_there()},
          {"assets", assets_folder().string()},
          {"database", database.string()},
          {"probe", nullptr}};
}

std::vector<LoadedRun> load_runs(RunStore& store, const std::vector<Run>& runs) {
  std::vector<LoadedRun> loaded;
  loaded.reserve(runs.size());
  for (const Run& run : runs) {
    Series series = store.series(run.id);
    Summary summary = store.summary(run);
    loaded.push_back({run, summary, std::move(series), store.profile(run.id)});
  }
  return loaded;
}

std::vector<MeasuredRun> measured(const std::vector<LoadedRun>& runs) {
  std::vector<MeasuredRun> pointers;
  for (const LoadedRun& run : runs) pointers.push_back({&run.run, &run.summary, &run.series});
  return pointers;
}

Json ladder_json(const Ladder& ladder, const std::vector<LoadedRun>& runs, const LadderPlan& plan,
                 const std::filesystem::path& database, const PlausibilityContext& judge) {
  Json rungs = Json::array();
  for (const RungSummary& rung : summarise_rungs(measured(runs))) {
    const Run& first = *rung.runs.front();
    const bool first_rung = rungs.empty();
    Json ids = Json::array();
    for (const Run* run : rung.runs) ids.push_back(run->id);
    rungs.push_back({{"rung", rung.rung},
                     {"stage", first.stage},
                     {"title", first.title},
                     {"changed", first.changed},
                     {"status", to_string(first.status)},
                     {"runs", ids},
                     {"tokens_per_s", number(rung.tokens_per_s)},
                     {"tokens_per_s_low", number(rung.low)},
                     {"tokens_per_s_high", number(rung.high)},
                     {"against_previous", number(rung.against_previous)},
                     {"speedup", number(rung.speedup)},
                     {"ci95", interval_json(rung.verdict.ci95)},
                     {"verdict", first_rung ? Json() : Json(to_string(rung.verdict.verdict))},
                     {"loss", parity_json(rung.loss)},
                     {"loss_against", rung.loss_against},
                     {"seed_tokens_per_s", number(seed_tokens_per_s(plan, rung.rung))}});
  }
  Json left_out = Json::array();
  for (const SkippedStage& stage : plan.skipped) left_out.push_back({{"id", stage.stage}, {"reason", stage.reason}});
  Json all = Json::array();
  for (const LoadedRun& run : runs) all.push_back(run_json(run.run, run.summary, judge));
  return {{"ladder", ladder.id}, {"name", ladder.name}, {"database", database.string()},
          {"rungs", rungs},      {"skipped", left_out}, {"runs", all}};
}

std::string loss_text(const LossParity& loss, bool reference) {
  if (reference) return "reference";
  if (loss.verdict == LossVerdict::better || loss.verdict == LossVerdict::worse) {
    return std::string(to_string(loss.verdict)) + " by " + loss_text(std::fabs(loss.tail_gap));
  }
  return std::string(to_string(loss.verdict));
}

std::string ladder_table(const std::vector<LoadedRun>& runs, const LadderPlan& plan) {
  const bool seeded = std::any_of(plan.rungs.begin(), plan.rungs.end(),
                                  [](const Rung& rung) { return !is_missing(rung.seed_tokens_per_s); });
  std::vector<std::vector<std::string>> rows = {{"rung", "stage", "what changed", "tokens/s", "spread", "vs previous",
                                                 "vs baseline", "95 % interval", "verdict", "loss"}};
  std::vector<bool> right = {true, false, false, true, true, true, true, true, false, false};
  if (seeded) {
    rows.front().insert(rows.front().end(), {"seed tokens/s", "seed vs baseline"});
    right.insert(right.end(), {true, true});
  }
  std::string notes;
  for (const RungSummary& rung : summarise_rungs(measured(runs))) {
    const Run& run = *rung.runs.front();
    rows.push_back({std::to_string(rung.rung), run.stage, run.changed, tokens_per_s_text(rung.tokens_per_s),
                    is_missing(rung.low) ? "-" : compact(rung.low) + " - " + compact(rung.high),
                    factor_text(rung.against_previous), factor_text(rung.speedup), ci95_text(rung.verdict.ci95),
                    rows.size() == 1 ? "baseline" : std::string(to_string(rung.verdict.verdict)),
                    loss_text(rung.loss, rung.rung == 0) +
                        (rung.loss_against > 0 ? " (rung " + std::to_string(rung.loss_against) + ")" : "")});
    if (seeded) {
      const double seed = seed_tokens_per_s(plan, rung.rung);
      rows.back().push_back(tokens_per_s_text(seed));
      rows.back().push_back(factor_text(is_missing(seed) ? missing : seed / seed_tokens_per_s(plan, 0)));
    }
    for (const Run* repeat : rung.runs) {
      if (repeat->status != RunStatus::finished) notes += repeat->name + ": " + status_text(*repeat) + "\n";
    }
  }
  std::string text = table(rows, right);
  for (const SkippedStage& stage : plan.skipped) notes += stage.stage + ": not available, " + stage.reason + "\n";
  return text + (notes.empty() ? "" : "\n" + notes);
}

std::string runs_table(const std::vector<RunAndSummary>& runs) {
  std::vector<std::vector<std::string>> rows = {
      {"id", "name", "status", "steps", "loss", "val loss", "dt ms", "tokens/s", "device", "created"}};
  for (const auto& [run, summary] : runs) {
    rows.push_back({std::to_string(run.id), run.name, std::string(to_string(run.status)), grouped(summary.steps),
                    loss_text(summary.loss_last), loss_text(summary.val_loss_last), compact(summary.dt_ms_median),
                    tokens_per_s_text(summary.tokens_per_s), run.device, local_time_text(run.created_at)});
  }
  return table(rows, {true, false, false, true, true, true, true, true, false, false});
}

std::string run_text(const LoadedRun& loaded, const PlausibilityContext& judge) {
  const Run& run = loaded.run;
  const Summary& summary = loaded.summary;
  const Series& series = loaded.series;
  std::vector<std::vector<std::string>> rows = {
      {"run", std::to_string(run.id) + "  " + run.name},
      {"status", status_text(run)},
      {"stage", with_detail(run.stage, run.changed)},
      {"device", run.hardware.empty() ? with_detail(run.device, "") : with_detail(run.hardware, run.device)},
      {"precision", with_detail(run.precision, "")},
      {"attention", with_detail(run.attention, "")},
      {"peak memory", run.peak_memory_bytes > 0 ? bytes_text(static_cast<double>(run.peak_memory_bytes)) : "-"},
      {"parameters", run.params > 0 ? grouped(run.params) : "-"},
      {"tokens per step", run.tokens_per_step > 0 ? grouped(run.tokens_per_step) : "-"},
      {"created", local_time_text(run.created_at)},
      {"steps", grouped(summary.steps) + (run.planned_steps > 0 ? " of " + grouped(run.planned_steps) : "")}};
  if (summary.steps == 0) return table(rows, {false, false});
  const auto known = [](double figure, const std::string& text) { return is_missing(figure) ? "-" : text; };
  rows.insert(rows.end(),
              {{"loss", loss_text(summary.loss_first) + " -> " + loss_text(summary.loss_last) + ", lowest " +
                            loss_text(summary.loss_min)},
               {"validation loss", known(summary.val_loss_last, loss_text(summary.val_loss_last) + ", lowest " +
                                                                    loss_text(summary.val_loss_min))},
               {"step time", known(summary.dt_ms_median, milliseconds_text(summary.dt_ms_median) + " median, " +
                                                             compact(summary.dt_ms_p25) + " - " +
                                                             compact(summary.dt_ms_p75) + " ms between the quartiles")},
               {"throughput", known(summary.tokens_per_s, tokens_per_s_text(summary.tokens_per_s) + " tokens/s")},
               {"clock", "sync " + std::string(to_string(run.sync)) + ", " + left_out_text(summary.warmup_steps)}});
  const bool has_all = static_cast<std::int64_t>(series.size()) == summary.steps;
  Summary of_series = summary;
  if (!has_all) of_series.warmup_steps = 0;
  const Interval interval = median_interval(sample_median(steady_dt_ms(series, of_series)));
  rows.push_back({"95 % interval",
                  known(interval.low, ci95_text(interval) + " ms for the median step" +
                                          (has_all ? "" : ", from the last " + grouped(std::ssize(series.step))))});
  if (summary.spikes > 0)
    rows.push_back({"slow steps", grouped(summary.spikes) + " of them stand out" +
                                      (summary.spike_period > 0 ? ", every " + grouped(summary.spike_period) +
                                                                      " steps (validation, checkpoints)"
                                                                : "")});
  if (const RunUtilisation used = utilisation_of(run, summary, judge.hardware); !is_missing(used.mfu))
    rows.push_back({"MFU", compact(100 * used.mfu) + " % (" + used.convention + ")"});
  if (!is_missing(run.loss_floor))
    rows.push_back({"loss floor", loss_text(run.loss_floor) + " (entropy of the source)"});
  for (const Flag& flag : flags_of(run, summary, judge.repeats.of(run), judge.hardware))
    rows.push_back({std::string(to_string(flag.id)), flag.why});
  return table(rows, {false, false});
}

std::string ci95_text(const Interval& interval) {
  if (!interval.known()) return "-";
  char text[64];
  std::snprintf(text, sizeof text, "%.*f - %.*f", interval.low < 10 ? 3 : 1, interval.low, interval.low < 10 ? 3 : 1,
                interval.high);
  return text;
}

std::string doctor_text(const DeviceReport& report, const std::filesystem::path& database) {
  std::vector<std::vector<std::string>> rows = {
      {"stepladder", STEPLADDER_VERSION},
      {"LibTorch", report.torch_version.empty() ? "not loaded" : report.torch_version},
      {"CPU", std::to_string(report.cpu_cores) + " x " + report.cpu_name +
                  (report.cpu_capability.empty() ? "" : ", " + report.cpu_capability)},
      {"bf16 on the CPU", report.cpu_bf16 ? "yes, in hardware" : "emulated, slow"},
      {"memory", bytes_text(static_cast<double>(report.memory_bytes))}};
  for (const Gpu& gpu : report.gpus) {
    rows.push_back({"GPU", gpu.name + ", compute capability " + std::to_string(gpu.compute_major) + "." +
                               std::to_string(gpu.compute_minor) + ", " +
                               bytes_text(static_cast<double>(gpu.memory_bytes))});
  }
  if (report.gpus.empty()) rows.push_back({"GPU", "none: " + report.cuda_note});
  rows.push_back({"display", display_is_there() ? "yes" : "none: the desktop cannot open, everything else works"});
  rows.push_back(
      {"assets", assets_folder().string() + (std::filesystem::exists(assets_folder()) ? "" : "  (missing)")});
  rows.push_back({"database", database.string() + (std::filesystem::exists(database) ? "" : "  (not made yet)")});
  return table(rows, {false, false});
}

}  // namespace stepladder
