// Stepladder's own events as journal lines, written in the first half and read in the second. A field must appear in
// both (most are in storage/record_fields.h); unknown fields are omitted and read back as unknown. Readers may be older
// or newer versions, so meanings never change.
#include "storage/importers/journal/run_events.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <set>
#include <stdexcept>
#include <utility>

#include "storage/checksum.h"
#include "storage/record_fields.h"

namespace stepladder {
namespace {

constexpr std::size_t longest_bytes = 150'000;              // of a text; a byte takes up to six characters
constexpr std::size_t longest_operators = 900 << 10;        // of a line, without the rest
constexpr std::int64_t most_count = 1'000'000'000'000'000;  // of steps, tokens, bytes: a stranger may write any number
constexpr std::size_t longest_value_name = 1000;

struct NamedNumber {
  const char* name;
  double StepRecord::*value;
};
constexpr std::array step_numbers{
    NamedNumber{"loss", &StepRecord::loss},
    NamedNumber{"val_loss", &StepRecord::val_loss},
    NamedNumber{"lr", &StepRecord::lr},
    NamedNumber{"grad_norm", &StepRecord::grad_norm},
};

// ---- Writing

// A number as JSON has it; NaN and the infinities as texts.
Json json_number(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
}

// Unknown values are omitted.
void put(Json& object, const char* name, double value) {
  if (!is_missing(value)) object[name] = json_number(value);
}
void put(Json& object, const char* name, std::int64_t value, std::int64_t unknown = 0) {
  if (value != unknown) object[name] = value;
}
void put(Json& object, const char* name, const std::string& value) {
  if (!value.empty()) object[name] = value;
}

// Writes a field as the tables of fields have it. The way of synchronising is always written.
template <class Value>
void put_field(Json& object, const char* name, const Value& value, const Unknown<Value>& unknown) {
  if constexpr (std::is_same_v<Value, Sync>)
    object[name] = to_string(value);
  else if constexpr (std::is_same_v<Value, double>)
    put(object, name, value);
  else if (is_known(value, unknown))
    object[name] = value;
}

bool is_utf8(const std::string& text) {
  return Json(text).dump(-1, ' ', true, Json::error_handler_t::ignore) ==
         Json(text).dump(-1, ' ', true, Json::error_handler_t::replace);
}

// `text`, or `b` if its bytes aren't UTF-8.
void put_bytes(Json& object, const std::string& bytes) {
  const std::string kept = bytes.substr(0, longest_bytes);
  if (is_utf8(kept))
    object["text"] = kept;
  else
    object["b"] = text_of_bytes(kept);
}

Json fields_of(const RunStarted& event) {
  Json fields = {{"e", "started"}, {"t", json_number(event.at)}};
  for_each_field(started_fields,
                 [&](const auto& field) { put_field(fields, field.name, event.*field.member, field.unknown); });
  put(fields, "torch", event.torch_version);
  return fields;
}

Json fields_of(const StepRecord& step) {
  Json fields = {{"e", "step"}, {"s", step.step}};
  put(fields, "t", step.at);
  put(fields, "ms", step.dt_ms);
  put(fields, "n", step.tokens);
  Json values = Json::object();
  for (const auto& [name, value] : step_numbers) put(values, name, step.*value);
  fields["v"] = std::move(values);
  Json parts = Json::object();
  for (const NamedStepPart& part : all_step_parts) put(parts, std::string(part.name).c_str(), step.parts.*part.ms);
  if (!parts.empty()) fields["parts"] = std::move(parts);
  return fields;
}

Json fields_of(const RunEnded& end) {
  Json fields = {{"e", "end"}, {"t", json_number(end.at)}, {"status", to_string(end.status)}};
  fields["code"] = end.status == RunStatus::failed ? 1 : 0;
  put(fields, "reason", end.reason);
  put(fields, "peak_memory_bytes", end.peak_memory_bytes);
  return fields;
}

Json fields_of(const SystemMetrics& sample) {
  Json fields = {{"e", "machine"}, {"s", sample.step}, {"t", json_number(sample.at)}};
  for_each_measurement(sample, [&]<class Value>(const char* name, const Value& value) {
    put_field(fields, name, value, Unknown<Value>{});
  });
  return fields;
}

Json fields_of(const CheckpointSaved& saved) {
  Json fields = {{"e", "checkpoint"}, {"s", saved.step}, {"t", json_number(saved.at)}};
  put(fields, "folder", saved.folder);
  put(fields, "bytes", saved.bytes);
  put(fields, "error", saved.error);
  return fields;
}

Json fields_of(const TextSample& sample) {
  Json fields = {{"e", "text"}, {"s", sample.step}, {"t", json_number(sample.at)}};
  put_bytes(fields, sample.text);
  return fields;
}

Json fields_of(const ConsoleText& printed) {
  return {{"e", "out"}, {"t", json_number(printed.at)}, {"b", text_of_bytes(printed.text.substr(0, longest_bytes))}};
}

Json fields_of(const OperatorTime& each) {
  Json fields = {{"part", each.part}};
  put(fields, "name", each.name);
  put(fields, "shapes", each.shapes);
  fields["calls"] = json_number(each.calls);
  fields["self_ms"] = json_number(each.self_ms);
  put(fields, "flops", each.flops);
  return fields;
}

// The rest of too many operators, part by part.
void add_rest(std::vector<OperatorTime>& rest, const OperatorTime& more) {
  auto found = std::ranges::find_if(rest, [&](const auto& each) { return each.part == more.part; });
  if (found == rest.end()) found = rest.insert(rest.end(), {.part = more.part, .name = "other operators"});
  found->calls += more.calls;
  found->self_ms += more.self_ms;
}

Json fields_of(const StepProfile& profile) {
  Json fields = {{"e", "profile"}, {"t", json_number(profile.at)}, {"steps", profile.steps}};
  Json operators = Json::array();
  std::vector<OperatorTime> rest;
  std::size_t size = 0;
  for (const OperatorTime& each : profile.operators) {
    Json row = fields_of(each);
    size += row.dump(-1, ' ', true, Json::error_handler_t::replace).size() + 1;
    if (size < longest_operators)
      operators.push_back(std::move(row));
    else
      add_rest(rest, each);
  }
  for (const OperatorTime& each : rest) operators.push_back(fields_of(each));
  fields["operators"] = std::move(operators);
  return fields;
}

Json fields_of(const MetricValues& logged) {
  Json values = Json::object();
  for (const auto& [name, value] : logged.values) values[name] = json_number(value);
  return {{"e", "log"}, {"s", logged.step}, {"t", json_number(logged.at)}, {"v", std::move(values)}};
}

// ---- Reading

std::int64_t count_in(const Json& object, const char* name) {
  return std::clamp<std::int64_t>(integer_in(object, name), 0, most_count);
}
int small_in(const Json& object, const char* name) {
  return static_cast<int>(std::clamp<std::int64_t>(integer_in(object, name), 0, 1'000'000'000));
}

std::string bytes_in(const Json& object) {
  return object.contains("b") ? bytes_of_text(text_in(object, "b")) : text_in(object, "text");
}

// `otherwise` for words that this version doesn't know.
template <class Enum>
Enum named(Enum (*parse)(std::string_view), const std::string& text, Enum otherwise) {
  try {
    return parse(text);
  } catch (const std::invalid_argument&) {
    return otherwise;
  }
}

template <class Value>
void take_field(const Json& object, const char* name, Value& value, const Unknown<Value>& unknown) {
  if constexpr (std::is_same_v<Value, std::string>)
    value = text_in(object, name);
  else if constexpr (std::is_same_v<Value, double>)
    value = number_in(object, name);
  else if constexpr (std::is_same_v<Value, Sync>)
    value = named(sync_from, text_in(object, name), unknown);
  else if constexpr (std::is_same_v<Value, int>)
    value = small_in(object, name);
  else
    value = object.contains(name) ? count_in(object, name) : unknown;
}

// Calls `use` with the fields of a plan that a journal has.
template <class Use>
void for_each_planned(Use&& use) {
  for_each_field(run_fields, [&]<class Value>(const RunMember<Value>& field) {
    if constexpr (!std::is_same_v<Value, RunStatus> && !std::is_same_v<Value, std::optional<std::int64_t>>) {
      if ((field.use & In::journal) != 0) use(field);
    }
  });
}

RunStarted started_of(const Json& fields, RunId run) {
  RunStarted started{.run = run, .at = number_in(fields, "t"), .torch_version = text_in(fields, "torch")};
  for_each_field(started_fields,
                 [&](const auto& field) { take_field(fields, field.name, started.*field.member, field.unknown); });
  return started;
}

StepRecord step_of(const Json& fields, RunId run) {
  StepRecord step{.run = run,
                  .step = integer_in(fields, "s"),
                  .dt_ms = number_in(fields, "ms"),
                  .tokens = count_in(fields, "n"),
                  .at = number_in(fields, "t")};
  if (const auto values = fields.find("v"); values != fields.end() && values->is_object())
    for (const auto& [name, value] : step_numbers) step.*value = number_in(*values, name);
  if (const auto parts = fields.find("parts"); parts != fields.end() && parts->is_object())
    for (const NamedStepPart& part : all_step_parts)
      step.parts.*part.ms = number_in(*parts, std::string(part.name).c_str());
  return step;
}

SystemMetrics machine_of(const Json& fields, RunId run) {
  SystemMetrics sample{.run = run, .step = integer_in(fields, "s"), .at = number_in(fields, "t")};
  for_each_measurement(
      sample, [&]<class Value>(const char* name, Value& value) { take_field(fields, name, value, Unknown<Value>{}); });
  return sample;
}

// Whether no operator before it has the same part, name and shapes, which are the key of its row.
bool is_new(const Json& row, std::set<std::array<std::string, 3>>& known) {
  return known.insert({text_in(row, "part"), text_in(row, "name"), text_in(row, "shapes")}).second;
}

StepProfile profile_of(const Json& fields, RunId run) {
  StepProfile profile{.run = run, .at = number_in(fields, "t"), .steps = small_in(fields, "steps")};
  const auto operators = fields.find("operators");
  if (operators == fields.end() || !operators->is_array()) return profile;
  std::set<std::array<std::string, 3>> known;
  for (const Json& each : *operators) {
    if (!each.is_object() || !is_new(each, known)) continue;
    const double calls = number_in(each, "calls");
    const double self_ms = number_in(each, "self_ms");
    profile.operators.push_back({.part = text_in(each, "part"),
                                 .name = text_in(each, "name"),
                                 .shapes = text_in(each, "shapes"),
                                 .calls = is_missing(calls) ? 0 : calls,
                                 .self_ms = is_missing(self_ms) ? 0 : self_ms,
                                 .flops = number_in(each, "flops")});
  }
  return profile;
}

MetricValues values_of(const Json& fields, RunId run) {
  MetricValues logged{.run = run, .step = integer_in(fields, "s"), .at = number_in(fields, "t")};
  const auto values = fields.find("v");
  if (values == fields.end() || !values->is_object()) return logged;
  for (const auto& [name, value] : values->items()) {
    double number = 0;
    if (name.empty() || name.size() > longest_value_name) continue;
    if (number_of(value, number)) logged.values.emplace_back(name, number);
  }
  return logged;
}

RunEnded end_of(const Json& fields, RunId run) {
  JournalEnd end = journal_end(fields);
  return {.run = run,
          .at = number_in(fields, "t"),
          .status = end.status,
          .reason = std::move(end.reason),
          .peak_memory_bytes = count_in(fields, "peak_memory_bytes")};
}

}  // namespace

JournalEnd journal_end(const Json& fields) {
  constexpr auto replaced = Json::error_handler_t::replace;
  constexpr std::size_t longest_shown = 100;
  const Json said = field_in(fields, "status"), code = field_in(fields, "code");
  const bool has_failed = !code.is_null() && code != Json(0) && code != Json(false);
  JournalEnd end{.reason = text_in(fields, "reason")};
  std::string shown;
  if (said.is_null()) {
    end.status = has_failed ? RunStatus::failed : code.is_null() ? RunStatus::interrupted : RunStatus::finished;
    if (code.is_null()) shown = "its journal doesn't say how it ended";
  } else {
    const RunStatus status = named(run_status_from, text_in(fields, "status"), RunStatus::queued);
    const bool is_known = is_over(status) && status != RunStatus::reported;
    end.status = !is_known || (status == RunStatus::finished && has_failed) ? RunStatus::failed : status;
    if (!is_known)
      shown = "its journal ends with the unknown status " + said.dump(-1, ' ', true, replaced).substr(0, longest_shown);
  }
  if (has_failed && shown.empty()) shown = "exit code " + code.dump(-1, ' ', true, replaced).substr(0, longest_shown);
  if (end.reason.empty() && end.status != RunStatus::stopped) end.reason = std::move(shown);
  return end;
}

std::string journal_line(const Json& fields) {
  std::string line = fields.dump(-1, ' ', true, Json::error_handler_t::replace);
  char checksum[16];
  std::snprintf(checksum, sizeof checksum, "\t%08x\n", crc32(line));
  return line + checksum;
}

std::string text_of_bytes(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  for (const char byte : bytes) {
    const auto code = static_cast<unsigned char>(byte);
    if (code >= 0x80) text += static_cast<char>(0xc0 | code >> 6);
    text += static_cast<char>(code >= 0x80 ? 0x80 | (code & 0x3f) : code);
  }
  return text;
}

std::string bytes_of_text(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto lead = static_cast<unsigned char>(text[i]);
    if (lead < 0x80) {
      bytes += text[i];
    } else if ((lead == 0xc2 || lead == 0xc3) && i + 1 < text.size()) {
      bytes += static_cast<char>((lead & 3) << 6 | (text[++i] & 0x3f));
    } else {
      bytes += '?';
      while (i + 1 < text.size() && (text[i + 1] & 0xc0) == 0x80) ++i;
    }
  }
  return bytes;
}

Json PlannedRun::fields() const {
  Json fields = Json::object();
  for_each_planned([&](const auto& field) { put_field(fields, field.name, run.*field.member, field.unknown); });
  put(fields, "parent", parent_uid);
  if (!ladder) return fields;
  Json of_ladder = {{"uid", ladder->uid}, {"name", ladder->name}};
  put(of_ladder, "source_path", ladder->source_path);
  put(of_ladder, "notes", ladder->notes);
  put(of_ladder, "created_at", ladder->created_at);
  fields["ladder"] = std::move(of_ladder);
  return fields;
}

std::optional<PlannedRun> PlannedRun::of(const Json& run_line) {
  const auto found = run_line.find("stepladder");
  if (found == run_line.end() || !found->is_object()) return std::nullopt;
  PlannedRun planned;
  Run& run = planned.run;
  for_each_planned([&](const auto& field) { take_field(*found, field.name, run.*field.member, field.unknown); });
  run.source = "launched";
  planned.parent_uid = text_in(*found, "parent");
  const auto ladder = found->find("ladder");
  if (ladder == found->end() || !ladder->is_object()) return planned;
  planned.ladder = {.uid = text_in(*ladder, "uid"),
                    .name = text_in(*ladder, "name"),
                    .source = "launched",
                    .source_path = text_in(*ladder, "source_path"),
                    .notes = text_in(*ladder, "notes"),
                    .created_at = number_in(*ladder, "created_at")};
  return planned;
}

std::string line_of(const RunEvent& event) {
  return journal_line(std::visit([](const auto& each) { return fields_of(each); }, event));
}

std::optional<RunEvent> run_event_of(const JournalEvent& event, RunId run) {
  const Json& fields = event.fields;
  if (event.kind == "started") return started_of(fields, run);
  if (event.kind == "end") return end_of(fields, run);
  const double at = number_in(fields, "t");
  if (event.kind == "out" && std::isfinite(at)) return ConsoleText{.run = run, .at = at, .text = bytes_in(fields)};
  if (event.kind == "profile" && std::isfinite(at)) return profile_of(fields, run);
  const std::int64_t step = integer_in(fields, "s", -1);
  if (step < 0 || step > most_count) return std::nullopt;
  if (event.kind == "step") return step_of(fields, run);
  if (event.kind == "log") return values_of(fields, run);
  if (!std::isfinite(at)) return std::nullopt;
  if (event.kind == "machine") return machine_of(fields, run);
  if (event.kind == "text") return TextSample{.run = run, .step = step, .at = at, .text = bytes_in(fields)};
  if (event.kind == "checkpoint")
    return CheckpointSaved{.run = run,
                           .step = step,
                           .at = at,
                           .folder = text_in(fields, "folder"),
                           .bytes = count_in(fields, "bytes"),
                           .error = text_in(fields, "error")};
  return std::nullopt;
}

}  // namespace stepladder
