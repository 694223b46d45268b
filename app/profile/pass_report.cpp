// Writes kept passes and comparisons of two as tables, CSV, Markdown and JSON. Rows are matched by computation,
// precision and warm-up; sentences warn where models, batches or clocks differ.
#include "app/profile/pass_report.h"

#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "app/text/format.h"

namespace stepladder {
namespace {

// A sentence that says why the two are hard to compare; empty if nothing differs.
std::string warning_of(const StoredPasses& before, const StoredPasses& after) {
  std::string differs;
  const auto add = [&](bool is_different, const char* what) {
    if (is_different) differs += (differs.empty() ? "" : ", ") + std::string(what);
  };
  add(before.model != after.model, "models");
  add(before.batch != after.batch || before.seq != after.seq, "batches");
  add(before.vocab != after.vocab, "vocabularies");
  add(before.is_synced != after.is_synced, "clocks (one is flagged no-sync)");
  return differs.empty() ? "" : "The " + differs + " differ, so these factors don't compare the machines alone.";
}

// A sentence that compares a clock that waits for the device with one that doesn't, on the same work; empty if these
// two don't show it.
std::string clock_lesson(const StoredPasses& before, const StoredPasses& after, const PassComparison& comparison) {
  if (before.is_synced == after.is_synced || before.model != after.model || before.hardware != after.hardware)
    return "";
  const ComparedCalls* shown = nullptr;  // the longest row shows it best
  for (const ComparedCalls& row : comparison.rows)
    if (!shown || row.before.median_ms + row.after.median_ms > shown->before.median_ms + shown->after.median_ms)
      shown = &row;
  if (!shown) return "";
  const CallRow& waited = before.is_synced ? shown->before : shown->after;
  const CallRow& unwaited = before.is_synced ? shown->after : shown->before;
  const double factor = waited.median_ms / unwaited.median_ms;
  const std::string numbers = waited.times.computation + " " + waited.times.precision + " reads " +
                              milliseconds_text(unwaited.median_ms) + " without waiting for the device, and " +
                              milliseconds_text(waited.median_ms) + " with it";
  if (factor > 1.1) return "Unsynchronised times are too small by " + factor_text(factor) + ": " + numbers + ".";
  if (factor < 1 / 1.1) return "The two weren't measured under the same conditions: " + numbers + ".";
  return "Both clocks agree here: " + numbers + ".";
}

}  // namespace

std::string setting_of(const StoredPasses& passes) {
  return passes.model + ", batch " + std::to_string(passes.batch) + " x " + std::to_string(passes.seq) +
         " tokens, vocabulary " + std::to_string(passes.vocab) + ", on " +
         (!passes.hardware.empty() ? passes.hardware
          : !passes.device.empty() ? passes.device
                                   : "an unknown device") +
         (passes.threads > 0 ? fmt::format(", {} threads", passes.threads) : "") +
         (passes.host.empty() ? "" : ", " + passes.host) + ", " + local_time_text(passes.measured_at) +
         (passes.is_synced ? "" : "; flagged no-sync");
}

std::string head_of(const StoredPasses& passes) {
  return fmt::format("passes {}, {}: {}", passes.id, passes.name, setting_of(passes));
}

Json passes_json(const StoredPasses& passes) {
  return {{"id", passes.id},
          {"name", passes.name},
          {"measured_at", time_json(passes.measured_at)},
          {"host", passes.host},
          {"hardware", passes.hardware},
          {"device", passes.device},
          {"model", passes.model},
          {"batch", passes.batch},
          {"seq", passes.seq},
          {"vocab", passes.vocab},
          {"threads", passes.threads > 0 ? Json(passes.threads) : Json()},
          {"flags", passes.is_synced ? Json::array() : Json::array({"no-sync"})}};
}

std::vector<std::string> sentences_of(const StoredPasses& passes, const std::vector<CallRow>& rows) {
  std::vector<std::string> sentences;
  if (!passes.is_synced) sentences.push_back(no_sync_sentence(passes.device == "cpu"));
  for (std::string& lesson : lessons_of(rows)) sentences.push_back(std::move(lesson));
  return sentences;
}

bool ComparedCalls::has_few_calls() const {
  return before.times.ms.size() < 3 || after.times.ms.size() < 3;
}

bool ComparedCalls::is_clear() const {
  const auto error = [](const CallRow& row) {
    return row.std_ms / std::sqrt(static_cast<double>(row.times.ms.size()));
  };
  return !has_few_calls() && std::fabs(before.mean_ms - after.mean_ms) > 2 * std::hypot(error(before), error(after));
}

PassComparison compare_passes(const StoredPasses& before, const StoredPasses& after) {
  std::map<std::tuple<std::string, std::string, int>, CallRow> known;
  for (CallRow& row : call_rows(before))
    known.emplace(std::tuple(row.times.computation, row.times.precision, row.times.warmup), row);
  PassComparison comparison;
  for (CallRow& row : call_rows(after)) {
    const auto found = known.find(std::tuple(row.times.computation, row.times.precision, row.times.warmup));
    if (found != known.end()) comparison.rows.push_back({found->second, std::move(row)});
  }
  if (comparison.rows.empty()) comparison.sentences.push_back("They have no row in common.");
  comparison.sentences.push_back(warning_of(before, after));
  comparison.sentences.push_back(clock_lesson(before, after, comparison));
  std::erase(comparison.sentences, "");
  return comparison;
}

TextTable comparison_table(const PassComparison& comparison) {
  TextTable table{.heads = {"computation", "warm-up", "precision", "before", "after", "speed-up", ""},
                  .right = {false, true, false, true, true, true, false},
                  .rows = {}};
  for (const ComparedCalls& row : comparison.rows)
    table.rows.push_back({row.after.times.computation, std::to_string(row.after.times.warmup),
                          row.after.times.precision, milliseconds_text(row.before.median_ms),
                          milliseconds_text(row.after.median_ms), factor_text(row.factor()),
                          row.is_clear()        ? ""
                          : row.has_few_calls() ? "too few calls to tell"
                                                : "within the spread"});
  return table;
}

std::string passes_csv(const std::vector<CallRow>& rows, const PassComparison* comparison) {
  if (!comparison) return rows_csv(rows);
  std::string text = "computation,warmup,precision,before_ms,after_ms,speedup,is_clear\n";
  for (const ComparedCalls& row : comparison->rows)
    text += csv_field(row.after.times.computation) + "," + std::to_string(row.after.times.warmup) + "," +
            csv_field(row.after.times.precision) + "," + exact(row.before.median_ms) + "," +
            exact(row.after.median_ms) + "," + exact(row.factor()) + "," + (row.is_clear() ? "true" : "false") + "\n";
  return text;
}

std::string passes_markdown(const StoredPasses& after, const StoredPasses* before, const PassComparison* comparison) {
  const auto title = [](const StoredPasses& passes) {
    return "**" + markdown_cell(passes.name) + "**: " + markdown_cell(setting_of(passes)) + "\n";
  };
  const std::vector<CallRow> rows = call_rows(after);
  std::string text;
  std::vector<std::string> sentences;
  if (before && comparison) {
    text = "Before: " + title(*before) + "\nAfter: " + title(after) + "\n" + to_markdown(comparison_table(*comparison));
    sentences = comparison->sentences;
  } else {
    text = title(after) + "\n" + to_markdown(rows_table(rows));
    sentences = sentences_of(after, rows);
  }
  for (const std::string& sentence : sentences) text += "\n" + markdown_cell(sentence) + "\n";
  return text;
}

Json passes_with_rows(const StoredPasses& passes, const std::vector<CallRow>& rows) {
  Json json = passes_json(passes);
  json["rows"] = rows_json(rows, passes.is_synced);
  return json;
}

Json comparison_json(const StoredPasses& before, const StoredPasses& after, const PassComparison& comparison) {
  Json list = Json::array();
  for (const ComparedCalls& row : comparison.rows)
    list.push_back({{"computation", row.after.times.computation},
                    {"warmup", row.after.times.warmup},
                    {"precision", row.after.times.precision},
                    {"before_ms", row.before.median_ms},
                    {"after_ms", row.after.median_ms},
                    {"speedup", row.factor()},
                    {"is_clear", row.is_clear()}});
  return {{"before", passes_json(before)},
          {"after", passes_json(after)},
          {"rows", list},
          {"warning", warning_of(before, after)}};
}

}  // namespace stepladder
