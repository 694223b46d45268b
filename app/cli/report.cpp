// Writes runs, ladders, stages and hardware as JSON and as tables. The JSON's field names are a contract with scripts
// (docs/command-line.md); the tables may change.
#include "app/cli/report.h"

#include <algorithm>
#include <cmath>

#include "app/host/crash_report.h"
#include "app/host/environment.h"
#include "app/host/patch.h"
#include "app/text/format.h"
#include "app/text/verdict_text.h"
#include "engine/files/run_checkpoints.h"
#include "engine/loaded_libraries.h"
#include "engine/open_trainer.h"
#include "engine/system_metrics.h"
#include "storage/analysis/energy.h"
#include "storage/record_fields.h"

namespace stepladder {
namespace {

std::string status_text(const Run& run, const RunContext& context) {
  return std::string(to_string(run.status)) + (context.paused.contains(run.id) ? ", paused" : "") +
         (run.reason.empty() ? "" : ": " + run.reason);
}

// "bf16  (autocast off -> bf16)"; "-" if neither is known.
std::string with_detail(const std::string& text, const std::string& detail) {
  if (detail.empty()) return text.empty() ? "-" : text;
  return text + "  (" + detail + ")";
}

std::string warmup_text(std::int64_t warmup_steps) {
  if (warmup_steps == 0) return "no warm-up step excluded";
  return plural(warmup_steps, "warm-up step") + " excluded";
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

Json parity_json(const LossParity& loss) {
  return {{"verdict", to_string(loss.verdict)},
          {"max_gap", std::isfinite(loss.max_gap) ? Json(loss.max_gap) : Json()},
          {"at_step", is_missing(loss.max_gap) ? Json() : Json(loss.at_step)},
          {"ci95", interval_json(loss.ci95)},
          {"tolerance", loss.tolerance},
          {"by", loss.by_validation ? "val_loss" : "loss"},
          {"runs", loss.runs}};
}

Json life_cycle_json(RunStore& store, const RunAndSummary& run) {
  const StepParts parts = store.recordings().mean_parts(run.run, run.summary.warmup_steps);
  Json checkpoints = Json::array();
  for (const Checkpoint& checkpoint : run_checkpoints(checkpoint_owner(store.file(), run.run)))
    checkpoints.push_back({{"step", checkpoint.step}, {"folder", checkpoint.folder.string()}});
  Json samples = Json::array();
  for (const TextSample& sample : store.recordings().samples(run.run.id))
    samples.push_back({{"step", sample.step}, {"text", sample.text}});
  const std::vector<SystemMetrics> looks = store.recordings().system_metrics(run.run.id);
  const std::int64_t last_warmup_step = run.summary.first_step + run.summary.warmup_steps - 1;
  Json lanes = Json::array();
  for (const SystemMetrics& sample : looks) {
    Json& lane = lanes.emplace_back(Json{{"step", sample.step}, {"at", number(sample.at)}});
    for_each_measurement(sample, [&]<class Value>(const char* name, const Value& value) {
      if constexpr (std::is_same_v<Value, double>)
        lane[name] = number(value);
      else if constexpr (std::is_same_v<Value, std::string>)
        lane[name] = text_or_null(value);
      else
        lane[name] = count_or_null(value);
    });
  }
  Json mean_ms;
  for (const NamedStepPart& part : all_step_parts) mean_ms[std::string(part.name)] = number(parts.*part.ms);
  const RunPatch patch = store.recordings().patch(run.run.id);
  return {{"mean_ms", mean_ms},
          {"patch_bytes", patch.bytes == unknown_length ? Json(nullptr) : Json(patch.bytes)},
          {"patch_left_out", patch.left_out},
          {"checkpoints", checkpoints},
          {"samples", samples},
          {"console", text_or_null(store.recordings().console(run.run.id))},
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
                    {"compute_capability", fmt::format("{}.{}", gpu.compute_major, gpu.compute_minor)},
                    {"memory_bytes", gpu.memory_bytes}});
  }
  const auto crash = newest_crash_report();
  const std::vector<LoadedLibrary> loaded = loaded_libraries();
  Json libraries = Json::array(), cards = Json::array();
  for (const LoadedLibrary& library : loaded) {
    libraries.push_back({{"name", library.name},
                         {"file", library.file.string()},
                         {"version", text_or_null(library.version)},
                         {"origin", library.origin},
                         {"shadows", library.shadows}});
  }
  for (const CardNumber& card : card_numbers(static_cast<int>(report.gpus.size()))) {
    cards.push_back({{"cuda", card.cuda},
                     {"pci_address", text_or_null(card.pci_address)},
                     {"nvml", card.nvml < 0 ? Json() : Json(card.nvml)},
                     {"name", text_or_null(card.name)}});
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
          {"card_numbers", cards},
          {"libraries", libraries},
          {"libraries_note", text_or_null(shadow_note(loaded))},
          {"mps", report.mps},
          {"display", display_is_there()},
          {"assets", assets_folder().string()},
          {"database", database.string()},
          {"crash_report", crash ? Json(crash->string()) : Json()},
          {"probe", nullptr}};
}

Json ladder_json(const Ladder& ladder, const std::vector<LoadedRun>& runs, const LadderPlan& plan,
                 const std::filesystem::path& database, const RunContext& context) {
  Json rungs = Json::array();
  for (const RungJudgement& rung : judge_rungs(measured(runs), context.hardware)) {
    const Run& first = *rung.runs.front();
    const bool first_rung = rungs.empty();
    rungs.push_back({{"rung", rung.rung},
                     {"stage", first.stage},
                     {"title", first.title},
                     {"changed", first.changed},
                     {"status", to_string(first.status)},
                     {"runs", json_list(rung.runs, [](const Run* run) { return run->id; })},
                     {"counted_runs", rung.count.counted()},
                     {"tokens_per_s", number(rung.tokens_per_s)},
                     {"tokens_per_s_low", number(rung.low)},
                     {"tokens_per_s_high", number(rung.high)},
                     {"tokens_per_s_ci95", interval_json(rung.rate_ci95(rung.tokens_per_s))},
                     {"why_no_interval", text_or_null(rung.why_no_interval)},
                     {"against_previous", number(rung.over_previous.factor)},
                     {"speedup", number(rung.over_baseline.factor)},
                     {"ci95", interval_json(rung.over_baseline.ci95)},
                     {"answer", to_string(rung.answer())},
                     {"stands_on", rung.is_baseline ? Json() : Json(rung.stands_on)},
                     {"verdict", first_rung ? Json() : Json(to_string(rung.over_baseline.verdict))},
                     {"spread_from", text_or_null(std::string(to_string(rung.over_baseline.spread_from)))},
                     {"needed_runs", count_or_null(rung.needed_runs())},
                     {"trust", to_string(rung.over_baseline.worst())},
                     {"loss", parity_json(rung.loss)},
                     {"loss_doubt", text_or_null(rung.loss.doubt)},
                     {"loss_against", rung.loss_against},
                     {"seed_tokens_per_s", number(seed_tokens_per_s(plan, rung.rung))}});
  }
  Json left_out = Json::array();
  for (const SkippedRung& rung : plan.skipped)
    left_out.push_back({{"id", rung.stage}, {"reason", rung.reason.for_command_line()}});
  const Json all = json_list(runs, [&](const LoadedRun& run) { return run_json(run.run, run.summary, context); });
  return {{"ladder", ladder.id}, {"name", ladder.name}, {"database", database.string()},    {"rungs", rungs},
          {"skipped", left_out}, {"runs", all},         {"binned_runs", ladder.binned_runs}};
}

std::string doubt_notes(const RungJudgement& rung, const std::string& who) {
  std::string notes;
  for (const Flag& flag : rung.flags)
    if (flag.trust() != Trust::trusted)
      notes += who + ", " + std::string(to_string(flag.id)) + ": " + flag_text(flag) + "\n";
  return notes;
}

std::string ladder_table(const Ladder& ladder, const std::vector<LoadedRun>& runs, const LadderPlan& plan,
                         const RunContext& context) {
  const bool seeded =
      std::ranges::any_of(plan.rungs, [](const Rung& rung) { return !is_missing(rung.seed_tokens_per_s); });
  std::vector<std::vector<std::string>> rows = {{"rung", "stage", "what changed", "answer", "tokens/s", "spread",
                                                 "vs previous", "vs baseline", "95 % interval", "verdict", "loss"}};
  std::vector<bool> right = {true, false, false, false, true, true, true, true, true, false, false};
  if (seeded) {
    rows.front().insert(rows.front().end(), {"seed tokens/s", "seed vs baseline"});
    right.insert(right.end(), {true, true});
  }
  std::string notes;
  const std::vector<RungJudgement> judged = judge_rungs(measured(runs), context.hardware);
  std::vector<AnsweredRung> answered;
  for (const RungJudgement& rung : judged) {
    const Run& run = *rung.runs.front();
    answered.push_back({run.title.empty() ? run.stage : run.title, &rung});
    const Gain& gain = rung.over_baseline;
    rows.push_back({std::to_string(rung.rung), run.stage, run.changed, std::string(answer_word(rung.answer())),
                    tokens_per_s_text(rung.tokens_per_s),
                    is_missing(rung.low) ? "-" : compact(rung.low) + " - " + compact(rung.high),
                    factor_text(rung.over_previous.factor), factor_text(gain.factor), ci95_text(gain.ci95),
                    rows.size() == 1 ? "baseline" + (rung.is_trusted() ? "" : ", " + std::string(to_string(rung.trust)))
                                     : verdict_text(gain),
                    loss_text(rung.loss, rows.size() == 1) +
                        (rung.loss_against > 0 ? fmt::format(" (rung {})", rung.loss_against) : "")});
    if (seeded) {
      const double seed = seed_tokens_per_s(plan, rung.rung);
      rows.back().push_back(tokens_per_s_text(seed));
      rows.back().push_back(factor_text(is_missing(seed) ? missing : seed / seed_tokens_per_s(plan, 0)));
    }
    if (rung.count.disturbed + rung.count.copies > 0) notes += run.stage + ": " + count_text(rung.count) + "\n";
    if (const std::string needed = needed_text(rung); !needed.empty())
      notes += run.stage + ", inconclusive: " + needed + "\n";
    notes += doubt_notes(rung, run.stage);
    for (const Run* repeat : rung.runs)
      if (repeat->status != RunStatus::finished) notes += repeat->name + ": " + status_text(*repeat, context) + "\n";
  }
  std::string text = table(rows, right);
  for (const SkippedRung& rung : plan.skipped)
    notes += rung.stage + ": left out, " + rung.reason.for_command_line() + "\n";
  std::vector<Trust> trust;
  for (const LoadedRun& run : runs) trust.push_back(plausibility_of(run.run, run.summary, context).trust);
  if (const std::string doubts = trust_line(trust); !doubts.empty()) notes += (notes.empty() ? "" : "\n") + doubts;
  if (const std::string answer = answer_text(answered, ladder.binned_runs); !answer.empty())
    notes = answer + "\n" + (notes.empty() ? "" : "\n") + notes;
  return text + (notes.empty() ? "" : "\n" + notes_text(notes));
}

std::string runs_table(const std::vector<RunAndSummary>& runs, const RunContext& context) {
  std::vector<std::vector<std::string>> rows = {
      {"id", "name", "status", "steps", "loss", "val loss", "step time", "tokens/s", "trust", "device", "created"}};
  std::vector<bool> right = {true, false, false, true, true, true, true, true, false, false, false};
  std::vector<Trust> trust;
  for (const auto& [run, summary] : runs) {
    trust.push_back(plausibility_of(run, summary, context).trust);
    rows.push_back({std::to_string(run.id), run.name,
                    std::string(to_string(run.status)) + (context.paused.contains(run.id) ? ", paused" : ""),
                    grouped(summary.steps), loss_text(summary.loss_last), loss_text(summary.val_loss_last),
                    milliseconds_text(summary.dt_ms_median), tokens_per_s_text(summary.tokens_per_s),
                    trust.back() == Trust::trusted ? "" : std::string(to_string(trust.back())), run.device,
                    local_time_text(run.created_at)});
  }
  const std::string doubts = trust_line(trust);
  constexpr int trust_column = 8;
  if (doubts.empty()) {
    for (std::vector<std::string>& row : rows) row.erase(row.begin() + trust_column);
    right.erase(right.begin() + trust_column);
  }
  return table(rows, right) + (doubts.empty() ? "" : "\n" + notes_text(doubts));
}

std::string trust_line(std::span<const Trust> runs) {
  const auto impossible = std::ranges::count(runs, Trust::impossible);
  const auto doubtful = std::ranges::count(runs, Trust::doubtful);
  if (impossible + doubtful == 0) return "";
  std::string text = fmt::format("{} of {} ", impossible > 0 ? impossible : doubtful, plural(std::ssize(runs), "run"));
  text += impossible > 0 ? "impossible" : "doubtful";
  if (impossible > 0 && doubtful > 0) text += fmt::format(", {} doubtful", doubtful);
  return text + ": stepladder check\n";
}

std::string run_text(const LoadedRun& loaded, const RunContext& context) {
  const Run& run = loaded.run;
  const Summary& summary = loaded.summary;
  const Series& series = loaded.series;
  // Some count from 0, and call the last step the number of steps.
  const bool is_from_zero = summary.first_step == 0 && summary.last_step == run.planned_steps;
  const std::int64_t planned = run.planned_steps + (run.planned_steps > 0 && is_from_zero ? 1 : 0);
  std::vector<std::vector<std::string>> rows = {
      {"run", fmt::format("{}  {}", run.id, run.name)},
      {"status", status_text(run, context)},
      {"stage", with_detail(run.stage, run.changed)},
      {"device", run.hardware.empty() ? with_detail(run.device, "") : with_detail(run.hardware, run.device)},
      {"precision", with_detail(run.precision, "")},
      {"attention", with_detail(run.attention, "")},
      {"peak memory", run.peak_memory_bytes > 0 ? bytes_text(static_cast<double>(run.peak_memory_bytes)) : "-"},
      {"parameters", run.params > 0 ? grouped(run.params) : "-"},
      {"tokens per step", run.tokens_per_step > 0 ? grouped(run.tokens_per_step) : "-"},
      {"created", local_time_text(run.created_at)},
      {"steps", grouped(summary.steps) + (planned > 0 ? " of " + grouped(planned) : "")}};
  if (const Curation& curation = context.curation(run.id); !curation.tags.empty() || !curation.note.empty())
    rows.insert(rows.end(),
                {{"tags", with_detail(tags_text(curation.tags), "")}, {"note", with_detail(curation.note, "")}});
  if (summary.steps == 0) return table(rows, {false, false});
  const auto known = [](double figure, const std::string& text) { return is_missing(figure) ? "-" : text; };
  rows.insert(
      rows.end(),
      {{"loss", known(summary.loss_last, loss_text(summary.loss_first) + " -> " + loss_text(summary.loss_last) +
                                             ", min " + loss_text(summary.loss_min))},
       {"validation loss",
        known(summary.val_loss_last, loss_text(summary.val_loss_last) + ", min " + loss_text(summary.val_loss_min))},
       {"step time", known(summary.dt_ms_median, milliseconds_text(summary.dt_ms_median) + " median, " +
                                                     milliseconds_text(summary.dt_ms_p25) + " - " +
                                                     milliseconds_text(summary.dt_ms_p75) + " between the quartiles")},
       {"throughput", known(summary.tokens_per_s, tokens_per_s_text(summary.tokens_per_s) + " tokens/s")},
       {"clock", "sync " + std::string(to_string(run.sync)) + ", " + warmup_text(summary.warmup_steps)}});
  const Interval interval = median_interval(sample_steps(steady_dt_ms(series, summary), read_from(run)));
  rows.push_back(
      {"95 % interval",
       known(interval.low,
             ci95_text(interval) + " ms for the median step" +
                 (loaded.is_excerpt() ? ", from " + grouped(std::ssize(series.step)) + " evenly spaced steps" : ""))});
  if (summary.spikes > 0)
    rows.push_back({"slow steps", plural(summary.spikes, "outlier") +
                                      (summary.spike_period > 0 ? ", every " + grouped(summary.spike_period) +
                                                                      " steps (validation, checkpoints)"
                                                                : "")});
  if (summary.watched_steps > 0)
    rows.push_back({"disturbed steps", grouped(summary.disturbed_steps) + " of " + grouped(summary.watched_steps) +
                                           ", by other programs"});
  if (const RunUtilisation used = utilisation_of(run, summary, context.hardware); !is_missing(used.mfu))
    rows.push_back({"MFU", (used.assumed.empty() ? "" : "~") + compact(100 * used.mfu) + " % (" + used.convention +
                               (used.condition.empty() ? "" : ", " + used.condition) + ")"});
  if (!is_missing(run.loss_floor)) rows.push_back({"loss floor", loss_text(run.loss_floor) + " (source entropy)"});
  const Plausibility plausibility = plausibility_of(run, summary, context);
  const bool is_clock_unknown = plausibility.trust == Trust::trusted && run.sync == Sync::unknown;
  rows.push_back(
      {"trust", std::string(to_string(plausibility.trust)) + (is_clock_unknown ? ", timing sync unknown" : "")});
  for (const Flag& flag : plausibility.flags) rows.push_back({std::string(to_string(flag.id)), flag_text(flag)});
  return table(rows, {false, false});
}

std::string flag_text(const Flag& flag) {
  if (!flag.remedy) return flag.why;
  return flag.why + (*flag.remedy == Remedy::give_params
                         ? " `stepladder import --params N` sets the number of parameters."
                         : " `stepladder doctor --probe` measures the peak again.");
}

std::string doctor_text(const DeviceReport& report, const std::filesystem::path& database) {
  std::vector<std::vector<std::string>> rows = {
      {"stepladder", STEPLADDER_VERSION},
      {"LibTorch", !report.torch_version.empty() ? report.torch_version
                   : missing_trainer().empty()   ? "not loaded"
                                                 : "not set up"},
      {"CPU", std::to_string(report.cpu_cores) + " x " + report.cpu_name +
                  (report.cpu_capability.empty() ? "" : ", " + report.cpu_capability)},
      {"bf16 on the CPU", report.cpu_bf16 ? "yes, in hardware" : "emulated, slow"},
      {"memory", bytes_text(static_cast<double>(report.memory_bytes))}};
  for (const Gpu& gpu : report.gpus) {
    rows.push_back({"GPU", fmt::format("{}, compute capability {}.{}, {}", gpu.name, gpu.compute_major,
                                       gpu.compute_minor, bytes_text(static_cast<double>(gpu.memory_bytes)))});
  }
  if (report.gpus.empty())
    rows.push_back({"GPU", report.cuda_note.empty() ? "unknown: LibTorch looks for it" : "none: " + report.cuda_note});
  const std::vector<LoadedLibrary> loaded = loaded_libraries();
  if (!report.gpus.empty())
    for (const LoadedLibrary& library : loaded)
      rows.push_back({library.name, with_detail(library.version, library.file.string())});
  if (const std::string note = shadow_note(loaded); !note.empty()) rows.push_back({"libraries", note});
  rows.push_back({"display", display_is_there() ? "yes" : "none: the desktop cannot open, everything else works"});
  rows.push_back(
      {"assets", assets_folder().string() + (std::filesystem::exists(assets_folder()) ? "" : "  (missing)")});
  rows.push_back({"database", database.string() + (std::filesystem::exists(database) ? "" : "  (not created yet)")});
  if (const auto crash = newest_crash_report()) rows.push_back({"last crash", crash->string()});
  return table(rows, {false, false});
}

std::vector<CheckedRun> check_runs(const std::vector<RunAndSummary>& runs, const RunContext& context) {
  std::vector<CheckedRun> checked;
  checked.reserve(runs.size());
  for (const auto& [run, summary] : runs) checked.push_back({run, plausibility_of(run, summary, context)});
  return checked;
}

Json check_json(const std::vector<CheckedRun>& runs) {
  Json list = Json::array();
  for (const CheckedRun& checked : runs) {
    Json flags = Json::array();
    for (const Flag& flag : checked.plausibility.flags)
      flags.push_back({{"id", to_string(flag.id)}, {"why", flag_text(flag)}});
    list.push_back({{"id", checked.run.id}, {"name", checked.run.name}, {"flags", flags}});
  }
  return list;
}

std::string check_text(const std::vector<CheckedRun>& runs) {
  std::string text;
  for (const CheckedRun& checked : runs) {
    text += fmt::format("{}  {}{}", checked.run.id, checked.run.name,
                        checked.plausibility.flags.empty() ? ": no flags\n" : "\n");
    for (const Flag& flag : checked.plausibility.flags)
      text += "   " + std::string(to_string(flag.id)) + ": " + flag_text(flag) + "\n";
  }
  return notes_text(text);
}

}  // namespace stepladder
