// What is asked of predictions, read from options, and their answers as JSON and in words.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "app/exit_status.h"
#include "app/profile/predict.h"
#include "app/text/format.h"
#include "storage/number_text.h"

namespace stepladder {
namespace {

constexpr double most_scale = 100;

std::string part_word(ModelPart part) {
  return part == ModelPart::mlp ? "mlp" : std::string(to_string(part));
}

std::vector<std::string> kind_words() {
  std::vector<std::string> words;
  for (const OperatorKind kind : all_operator_kinds) words.push_back(kind_key(kind));
  return words;
}

OperatorKind kind_from(const std::string& text, const std::string& option) {
  const std::string word = text == "optimiser"                     ? "optimizer"
                           : text == "matmul" || text == "matmuls" ? "products"
                                                                   : text;
  for (const OperatorKind kind : all_operator_kinds)
    if (word == kind_key(kind) || text == to_string(kind)) return kind;
  throw UsageError(
      fmt::format("{}: there is no kind of work '{}'; the kinds are {}", option, text, fmt::join(kind_words(), ", ")),
      {.code = "invalid-value", .argument = option, .value = text});
}

double factor_from(const std::string& text, const std::string& option) {
  const std::optional<double> value = parse_number<double>(text);
  if (!value || !std::isfinite(*value) || *value < 0 || *value > most_scale)
    throw UsageError(fmt::format("{}: the factor must be a number from 0 to {}, not '{}'", option, most_scale, text),
                     {.code = "invalid-value", .argument = option, .value = text});
  return *value;
}

// The pieces of "a=1,b=2", each cut at its "=".
std::vector<std::pair<std::string, std::string>> pairs_of(const std::vector<std::string>& texts,
                                                          const std::string& option, const char* example) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const std::string& text : texts) {
    for (std::size_t begin = 0; begin <= text.size();) {
      const std::size_t comma = std::min(text.find(',', begin), text.size());
      const std::string piece = text.substr(begin, comma - begin);
      const std::size_t equals = piece.find('=');
      if (equals == std::string::npos || equals == 0 || equals + 1 == piece.size())
        throw UsageError(fmt::format("{}: '{}' isn't like {}", option, piece, example),
                         {.code = "invalid-value", .argument = option, .value = piece});
      pairs.emplace_back(piece.substr(0, equals), piece.substr(equals + 1));
      begin = comma + 1;
    }
  }
  return pairs;
}

Json step_json(const PredictedStep& step) {
  Json json = {{"bound", to_string(step.bound)},
               {"predicted_ms", number(step.ms)},
               {"ci95", interval_json(step.ci95)},
               {"factor", number(step.factor)},
               {"factor_ci95", interval_json(step.factor_ci95)}};
  json["why_unknown"] = text_or_null(step.why_unknown);
  return json;
}

Json calibration_json(const LawRecord& record) {
  return {{"n", record.n},
          {"here", record.here},
          {"median_error", number(record.median_error)},
          {"broken", record.broken},
          {"from_all_stages", record.is_of_all_stages}};
}

Json answer_json(const PredictionAnswer& answer) {
  Json json = step_json(answer.step);
  Json rows = Json::array();
  for (const PredictionRow& row : answer.rows)
    rows.push_back({{"kind", row.title},
                    {"before_ms", row.before_ms},
                    {"after_ms", row.after_ms},
                    {"bound", row.at_most ? to_string(Bound::at_most) : to_string(Bound::estimate)},
                    {"law", row.why}});
  json["rows"] = std::move(rows);
  json["calibration"] = answer.stage.empty() ? Json() : calibration_json(answer.record);
  json["notes"] = answer.notes;
  return json;
}

Json subject_json(const PredictionSubject& subject) {
  return {{"of",
           {{"profile", subject.trace.id},
            {"run", subject.run ? Json(subject.run->id) : Json()},
            {"name", subject.trace.name},
            {"device", subject.device},
            {"hardware", text_or_null(subject.ceiling.hardware)}}},
          {"step_ms", number(subject.step_ms)},
          {"step_from", subject.step_is_of_run ? "run" : "trace"},
          {"traced_ms", number(subject.traced_ms)}};
}

}  // namespace

std::string kind_key(OperatorKind kind) {
  constexpr std::pair<OperatorKind, const char*> keys[] = {
      {OperatorKind::products, "products"},
      {OperatorKind::softmax, "softmax"},
      {OperatorKind::layer_norm, "norm"},
      {OperatorKind::gelu, "gelu"},
      {OperatorKind::elementwise, "elementwise"},
      {OperatorKind::copies, "copies"},
      {OperatorKind::optimizer, "optimizer"},
      {OperatorKind::between, "between"},
      {OperatorKind::graph, "graphs"},
  };
  for (const auto& [known, key] : keys)
    if (known == kind) return key;
  return std::string(to_string(kind));
}

std::vector<WorkChange> parse_scales(const std::vector<std::string>& texts) {
  const std::string option = "--scale";
  std::vector<WorkChange> changes;
  std::set<OperatorKind> seen;
  for (const auto& [word, factor] : pairs_of(texts, option, "attention=0.4")) {
    const OperatorKind kind = kind_from(word, option);
    if (!seen.insert(kind).second)
      throw UsageError(fmt::format("{}: {} is given twice", option, word),
                       {.code = "invalid-value", .argument = option, .value = word});
    changes.push_back({.kinds = {kind}, .factor = factor_from(factor, option), .why = "as asked for"});
  }
  return changes;
}

std::vector<WorkChange> parse_parts(const std::vector<std::string>& texts) {
  const std::string option = "--part";
  std::vector<WorkChange> changes;
  std::set<std::pair<ModelPart, std::vector<OperatorKind>>> seen;
  for (const auto& [word, factor] : pairs_of(texts, option, "mlp/gelu=fused or attention=0.5")) {
    const std::size_t slash = word.find('/');
    const std::string part_name = word.substr(0, slash);
    WorkChange change{.why = "as asked for"};
    std::vector<std::string> parts;
    for (const ModelPart part : all_model_parts) {
      if (part == ModelPart::unknown) continue;
      parts.push_back(part_word(part));
      if (part_name == parts.back() || part_name == to_string(part)) change.part = part;
    }
    if (change.part == ModelPart::unknown)
      throw UsageError(fmt::format("{}: there is no part of the model '{}'; the parts are {}", option, part_name,
                                   fmt::join(parts, ", ")),
                       {.code = "invalid-value", .argument = option, .value = part_name});
    if (slash != std::string::npos) change.kinds = {kind_from(word.substr(slash + 1), option)};
    if (!seen.insert({change.part, change.kinds}).second)
      throw UsageError(fmt::format("{}: {} is given twice", option, word),
                       {.code = "invalid-value", .argument = option, .value = word});
    if (factor == "fused") {
      change.factor = 0;
      change.at_most = true;
      change.why = "fused into the work around it, if that costs nothing";
    } else {
      change.factor = factor_from(factor, option);
    }
    changes.push_back(std::move(change));
  }
  return changes;
}

std::string step_text(const PredictedStep& step) {
  if (step.bound == Bound::unknown) return "-";
  if (step.bound == Bound::at_most) return "at best " + milliseconds_text(step.ms);
  return fmt::format("{} ({} - {})", milliseconds_text(step.ms), ms_figure(step.ci95.low, step.ms),
                     ms_figure(step.ci95.high, step.ms));
}

std::string gain_text(const PredictedStep& step) {
  if (step.bound == Bound::unknown) return "unknown";
  if (step.bound == Bound::at_most) return "at most " + factor_text(step.factor);
  return fmt::format("{} ({:.2f} - {:.2f})", factor_text(step.factor), step.factor_ci95.low, step.factor_ci95.high);
}

Json prediction_json(const PredictionSubject& subject, const PredictionAnswer& answer, const WhatIf& what_if) {
  Json json = subject_json(subject);
  json["stages"] = what_if.stages;
  Json scales = Json::array();
  for (const WorkChange& each : what_if.scales)
    scales.push_back({{"kind", each.kinds.empty() ? Json() : Json(to_string(each.kinds.front()))},
                      {"part", each.part == ModelPart::unknown ? Json() : Json(part_word(each.part))},
                      {"factor", each.factor}});
  json["scale"] = std::move(scales);
  json.update(answer_json(answer));
  for (const std::string& note : subject.notes) json["notes"].push_back(note);
  return json;
}

Json overview_json(const PredictionSubject& subject, const PredictionOverview& overview) {
  Json json = subject_json(subject);
  const StepFloor& floor = overview.floor;
  const double gap = is_missing(floor.floor_ms) ? missing : floor.step_ms - floor.floor_ms;
  Json kinds = Json::array();
  for (const KindFloor& each : floor.kinds)
    kinds.push_back({{"kind", to_string(each.kind)},
                     {"ms", each.ms},
                     {"least_ms", is_missing(gap) ? Json() : Json(each.least_ms)},
                     {"known_ms", each.known_ms},
                     {"share_of_gap", gap > 0 ? Json(each.gap_ms() / gap) : Json()}});
  json["floor"] = {{"floor_ms", number(floor.floor_ms)},
                   {"share", number(floor.share())},
                   {"known_share", floor.known_share},
                   {"kinds", std::move(kinds)},
                   {"reason", text_or_null(overview.why_no_floor)}};
  const auto list = [&](const std::vector<PredictionAnswer>& answers) {
    Json made = Json::array();
    for (const PredictionAnswer& each : answers) {
      Json one = {{"stage", each.stage}};
      one.update(answer_json(each));
      one["share_of_floor"] = is_missing(floor.floor_ms) || is_missing(each.step.ms)
                                  ? Json()
                                  : Json(std::min(1.0, floor.floor_ms / each.step.ms));
      made.push_back(std::move(one));
    }
    return made;
  };
  json["stages"] = list(overview.stages);
  json["order"] = list(overview.order);
  json["largest"] = text_or_null(overview.largest);
  json["sentence"] = text_or_null(overview.sentence);
  json["notes"] = subject.notes;
  return json;
}

std::string subject_text(const PredictionSubject& subject) {
  const std::string name = subject.run ? fmt::format("run {}, {}", subject.run->id, subject.run->name)
                                       : fmt::format("trace {}, {}", subject.trace.id, subject.trace.name);
  if (!subject.step_is_of_run)
    return fmt::format("{}: a traced step of {}. The profiler slows a step, so the factors count more than the times.",
                       name, milliseconds_text(subject.traced_ms));
  return fmt::format("{}: a step of {}. Trace {}, whose step takes {} under the profiler, gives the factors.", name,
                     milliseconds_text(subject.step_ms), subject.trace.id, milliseconds_text(subject.traced_ms));
}

}  // namespace stepladder
