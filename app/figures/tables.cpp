// Writes studies as Markdown and CSV. Tables for people round, CSV never does: numbers have the fewest digits that give
// them back exactly.
#include "app/figures/tables.h"

#include <algorithm>

#include "app/runs/run_json.h"
#include "storage/analysis/step_profile.h"

namespace stepladder {
namespace {

std::string count_or_empty(std::int64_t count) {
  return count > 0 ? std::to_string(count) : "";
}

// A value of the JSON as a CSV field.
std::string field_of(const Json& value) {
  if (value.is_null()) return "";
  if (value.is_number_float()) return exact(value.get<double>());
  if (value.is_string()) return csv_field(value.get<std::string>());
  if (value.is_array()) {
    std::string words;
    for (const Json& item : value)
      words += (words.empty() ? "" : " ") + (item.is_string() ? item.get<std::string>() : item.dump());
    return csv_field(words);
  }
  return value.dump();
}

std::string line_of(const std::vector<std::string>& fields) {
  std::string line;
  for (std::size_t i = 0; i < fields.size(); ++i) line += (i == 0 ? "" : ",") + fields[i];
  return line + "\n";
}

}  // namespace

TextTable study_table(const Study& study) {
  TextTable table{
      .heads = {study.is_ladder ? "rung" : "run", study.is_ladder ? "stage" : "name", "what changed", study.rate_unit,
                "vs previous", "vs baseline", "95 % interval", "verdict", "loss", "plausible?"},
      .right = {true, false, false, true, true, true, true, false, false, false}};
  for (const StudyRung& rung : study.rungs) {
    table.rows.push_back(
        {study.is_ladder ? std::to_string(rung.judged.rung) : std::to_string(rung.first->run.id), rung.label,
         rung.changed, compact(rung.rate), rung.is_baseline ? "" : factor_text(rung.judged.over_previous.factor),
         factor_text(rung.judged.over_baseline.factor), rung.is_baseline ? "" : factor_interval_text(rung),
         verdict_text(rung), loss_verdict_text(rung), trust_text(rung)});
  }
  return table;
}

// Kinds that take less than a hundredth of every step are one column.
TextTable operators_table(const Study& study) {
  struct Profiled {
    const StudyRung& rung;
    KindTimes times;
    double whole;
  };
  std::vector<Profiled> rungs;
  for (const StudyRung& rung : study.rungs) {
    const FittedProfile fitted = fit_to_step(rung.first->profile, rung.first->parts, rung.first->summary.dt_ms_median);
    if (fitted.is_comparable) rungs.push_back({rung, KindTimes(fitted.profile), step_ms(fitted.profile)});
  }
  TextTable table{.heads = {study.is_ladder ? "rung" : "run", study.is_ladder ? "stage" : "name"},
                  .right = {true, false}};
  if (rungs.empty()) return table;
  std::vector<OperatorKind> kinds;
  for (const OperatorKind kind : all_operator_kinds)
    if (kind != OperatorKind::other &&
        std::ranges::any_of(rungs, [&](const Profiled& each) { return each.times.of(kind) >= 0.01 * each.whole; }))
      kinds.push_back(kind);
  for (const OperatorKind kind : kinds) table.heads.emplace_back(to_string(kind));
  table.heads.insert(table.heads.end(), {"other", "a step"});
  table.right.resize(table.heads.size(), true);
  for (const auto& [rung, times, whole] : rungs) {
    double other = whole;
    std::vector<std::string> row{std::to_string(study.is_ladder ? rung.judged.rung : rung.first->run.id), rung.label};
    for (const OperatorKind kind : kinds) {
      const double ms = times.of(kind);
      other -= ms;
      row.push_back(ms > 0 ? ms_figure(ms, whole) : "");
    }
    row.push_back(ms_figure(std::max(0.0, other), whole));
    row.push_back(ms_figure(whole, whole));
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string study_markdown(const Study& study) {
  std::string text = "### " + markdown_cell(study.title) + "\n\n**" + markdown_cell(headline(study)) + "**\n\n" +
                     to_markdown(study_table(study));
  std::string flags;
  for (const StudyRung& rung : study.rungs) {
    for (const Flag& flag : rung.judged.flags) {
      if (kind_of(flag.id).severity == Severity::note) continue;
      flags += fmt::format("- **{}**, {} ({}): {}\n", markdown_cell(rung.label), kind_of(flag.id).title,
                           to_string(flag.id), markdown_cell(flag.why));
    }
  }
  if (!flags.empty()) text += "\n" + flags;
  if (const TextTable operators = operators_table(study); !operators.rows.empty())
    text += "\nMilliseconds a step by kind of operator:\n\n" + to_markdown(operators);
  text += "\n";
  for (const std::string& line :
       {hardware_line(study) + ".", sample_line(study), timing_line(study), version_line(study)})
    text += markdown_cell(line) + "  \n";
  return text;
}

std::string steps_csv_head() {
  return "run_id,name,ladder_id,rung,stage,repeat,step,loss,val_loss,dt_ms,tokens,tokens_per_s,lr,grad_norm,at_unix_s,"
         "data_ms,forward_ms,backward_ms,optimizer_ms,communication_ms\n";
}

std::string steps_csv(const Run& run, std::span<const StepRecord> steps) {
  const std::string start =
      fmt::format("{},{},{},{},{},{},", run.id, csv_field(run.name), run.ladder ? std::to_string(*run.ladder) : "",
                  run.rung, csv_field(run.stage), run.repeat);
  std::string text;
  text.reserve(steps.size() * (start.size() + 80));
  for (const StepRecord& step : steps) {
    const bool has_rate = step.dt_ms > 0 && step.tokens > 0;
    text += fmt::format("{}{},", start, step.step);
    for (const double value : {step.loss, step.val_loss, step.dt_ms}) text += exact(value) + ",";
    text += count_or_empty(step.tokens) + ",";
    text += exact(has_rate ? static_cast<double>(step.tokens) * 1000 / step.dt_ms : missing);
    for (const double value : {step.lr, step.grad_norm, step.at, step.parts.data_ms, step.parts.forward_ms,
                               step.parts.backward_ms, step.parts.optimizer_ms, step.parts.communication_ms})
      text += "," + exact(value);
    text += "\n";
  }
  return text;
}

std::string summaries_csv(const Study& study, const RunContext& context) {
  std::string text;
  for (std::size_t i = 0; i < study.runs.size(); ++i) {
    const StudyRung& rung = study.rung_of(study.runs[i].run);
    const bool compared = !rung.is_baseline;
    Json row = run_json(study.kept[i], study.runs[i].summary, context);
    row["against_previous"] = number(rung.judged.over_previous.factor);
    row["speedup"] = number(rung.judged.over_baseline.factor);
    row["speedup_ci95_low"] = number(rung.judged.over_baseline.ci95.low);
    row["speedup_ci95_high"] = number(rung.judged.over_baseline.ci95.high);
    row["verdict"] = compared ? Json(to_string(rung.judged.over_baseline.verdict)) : Json();
    row["rung_trust"] = to_string(rung.judged.trust);
    row["loss_verdict"] = compared ? Json(to_string(rung.judged.loss.verdict)) : Json();
    row["loss_max_gap"] = compared ? number(rung.judged.loss.max_gap) : Json();
    row["loss_tail_gap"] = compared ? number(rung.judged.loss.tail_gap) : Json();
    std::vector<std::string> heads;
    std::vector<std::string> fields;
    for (const auto& [name, value] : row.items()) {
      heads.push_back(name);
      fields.push_back(field_of(value));
    }
    if (text.empty()) text = line_of(heads);
    text += line_of(fields);
  }
  return text;
}

}  // namespace stepladder
