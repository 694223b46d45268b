// The fields of a run, and those that its start brings, each once, with its name (in the column and in journals), its
// member, its unknown value and where it is stored. The columns of `runs`, journal lines, spill bytes, the import of
// projects and the merge of a start into its run derive from these two tables. Others list what a sample of the machine
// has, and the columns of a series.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <type_traits>
#include <variant>
#include <vector>

#include "storage/records.h"

namespace stepladder {

// The uses of a run's field, as bits.
struct In {
  static constexpr unsigned learnt = 1;  // an import may update it as it reads; others are set when the run is created,
                                         // or by a training
  static constexpr unsigned journal = 2;  // a journal's plan of a run has it
  static constexpr unsigned project = 4;  // a project that is imported brings it
  static constexpr unsigned always = 8;   // never NULL
};

// Texts are unknown if they are empty, numbers of a ladder and of a parent if they are unset.
template <class Value>
using Unknown = std::conditional_t<std::is_arithmetic_v<Value> || std::is_enum_v<Value>, Value, std::monostate>;

template <class Value>
bool is_known(const Value& value, const Unknown<Value>& unknown) {
  if constexpr (std::is_same_v<Value, std::string>)
    return !value.empty();
  else if constexpr (std::is_same_v<Value, double>)
    return !is_missing(value);
  else if constexpr (std::is_same_v<Unknown<Value>, Value>)
    return value != unknown;
  else
    return value.has_value();
}

template <class Value>
struct RunMember {
  const char* name;
  Value Run::*member;
  unsigned use;
  Unknown<Value> unknown = {};
};

// Learnt fields first: the order of the columns in statements.
inline constexpr std::tuple run_fields{
    RunMember<std::string>{"name", &Run::name, In::learnt | In::journal | In::project | In::always},
    RunMember<std::optional<LadderId>>{"ladder_id", &Run::ladder, In::learnt},
    RunMember<int>{"rung", &Run::rung, In::learnt | In::journal | In::always},
    RunMember<int>{"repeat", &Run::repeat, In::learnt | In::journal | In::always},
    RunMember<std::string>{"stage", &Run::stage, In::learnt | In::journal | In::project},
    RunMember<std::string>{"title", &Run::title, In::learnt | In::journal | In::project},
    RunMember<std::string>{"changed", &Run::changed, In::learnt | In::journal | In::project},
    RunMember<RunStatus>{"status", &Run::status, In::learnt | In::project, RunStatus::reported},
    RunMember<std::string>{"reason", &Run::reason, In::learnt | In::project},
    RunMember<std::string>{"source", &Run::source, In::learnt},
    RunMember<std::string>{"source_path", &Run::source_path, In::learnt | In::journal},
    RunMember<double>{"started_at", &Run::started_at, In::learnt | In::journal | In::project, missing},
    RunMember<double>{"ended_at", &Run::ended_at, In::learnt | In::project, missing},
    RunMember<std::int64_t>{"planned_steps", &Run::planned_steps, In::learnt | In::journal | In::project},
    RunMember<std::int64_t>{"tokens_per_step", &Run::tokens_per_step, In::learnt | In::journal | In::project},
    RunMember<std::int64_t>{"warmup_steps", &Run::warmup_steps, In::learnt | In::journal | In::project, -1},
    RunMember<std::int64_t>{"params", &Run::params, In::learnt | In::journal | In::project},
    RunMember<double>{"model_flops_per_token", &Run::model_flops_per_token, In::learnt | In::journal | In::project,
                      missing},
    RunMember<double>{"loss_floor", &Run::loss_floor, In::learnt | In::journal | In::project, missing},
    RunMember<std::string>{"device", &Run::device, In::learnt | In::journal | In::project},
    RunMember<std::string>{"hardware", &Run::hardware, In::learnt | In::journal | In::project},
    RunMember<std::string>{"precision", &Run::precision, In::learnt | In::journal | In::project},
    RunMember<Sync>{"sync", &Run::sync, In::learnt | In::journal | In::project, Sync::unknown},
    RunMember<std::string>{"recipe", &Run::recipe, In::learnt | In::journal | In::project},
    RunMember<std::string>{"environment", &Run::environment, In::learnt | In::journal | In::project},
    RunMember<double>{"created_at", &Run::created_at, In::journal | In::project, missing},
    RunMember<std::optional<RunId>>{"parent_id", &Run::parent, 0},
    RunMember<std::int64_t>{"forked_at_step", &Run::forked_at_step, In::journal},
    RunMember<int>{"loss_against", &Run::loss_against, In::journal | In::project},
    RunMember<std::int64_t>{"stands_on", &Run::stands_on, In::journal | In::project, -1},
    RunMember<std::int64_t>{"looks_up_to", &Run::looks_up_to, In::journal | In::project},
    RunMember<std::string>{"attention", &Run::attention, In::journal | In::project},
    RunMember<double>{"setup_ms", &Run::setup_ms, In::journal | In::project, missing},
    RunMember<std::int64_t>{"peak_memory_bytes", &Run::peak_memory_bytes, In::journal | In::project},
    RunMember<std::string>{"uid", &Run::uid, In::journal},
};

template <class Value>
struct StartedMember {
  const char* name;
  Value RunStarted::*member;
  Value Run::*of_run;
  Unknown<Value> unknown = {};
};

// In the order of their bytes in a spill file.
inline constexpr std::tuple started_fields{
    StartedMember<std::int64_t>{"tokens_per_step", &RunStarted::tokens_per_step, &Run::tokens_per_step},
    StartedMember<std::int64_t>{"params", &RunStarted::params, &Run::params},
    StartedMember<double>{"loss_floor", &RunStarted::loss_floor, &Run::loss_floor, missing},
    StartedMember<std::string>{"device", &RunStarted::device, &Run::device},
    StartedMember<std::string>{"hardware", &RunStarted::hardware, &Run::hardware},
    StartedMember<std::string>{"precision", &RunStarted::precision, &Run::precision},
    StartedMember<std::string>{"attention", &RunStarted::attention, &Run::attention},
    StartedMember<double>{"setup_ms", &RunStarted::setup_ms, &Run::setup_ms, missing},
    StartedMember<Sync>{"sync", &RunStarted::sync, &Run::sync, Sync::unknown},
    StartedMember<std::string>{"recipe", &RunStarted::recipe, &Run::recipe},
};

template <class Value>
struct SampleMember {
  const char* name;  // of the column in `lanes` too
  Value SystemMetrics::*member;
};
inline constexpr std::tuple sample_fields{
    SampleMember<double>{"cpu_load", &SystemMetrics::cpu_load},
    SampleMember<double>{"process_cores", &SystemMetrics::process_cores},
    SampleMember<std::int64_t>{"resident_bytes", &SystemMetrics::resident_bytes},
    SampleMember<double>{"gpu_load", &SystemMetrics::gpu_load},
    SampleMember<double>{"gpu_clock_mhz", &SystemMetrics::gpu_clock_mhz},
    SampleMember<double>{"gpu_power_w", &SystemMetrics::gpu_power_w},
    SampleMember<double>{"gpu_temperature_c", &SystemMetrics::gpu_temperature_c},
    SampleMember<std::int64_t>{"gpu_memory_bytes", &SystemMetrics::gpu_memory_bytes},
    SampleMember<std::string>{"throttle_reason", &SystemMetrics::throttle_reason},
};

// Columns of `lanes` and of `summaries`.
template <class Value>
struct ContentionMember {
  const char* name;
  Value Contention::*member;
};
inline constexpr std::tuple contention_fields{
    ContentionMember<double>{"other_cores", &Contention::other_cores},
    ContentionMember<double>{"program_cores", &Contention::program_cores},
    ContentionMember<double>{"other_gpu_load", &Contention::other_gpu_load},
    ContentionMember<int>{"cores", &Contention::cores},
    ContentionMember<int>{"needed_cores", &Contention::needed_cores},
};

template <class Value>
struct SeriesColumn {
  std::vector<Value> Series::*values;
  Value StepRecord::*of_step;
};

inline constexpr std::tuple series_columns{
    SeriesColumn<std::int64_t>{&Series::step, &StepRecord::step},
    SeriesColumn<std::int64_t>{&Series::tokens, &StepRecord::tokens},
    SeriesColumn<double>{&Series::loss, &StepRecord::loss},
    SeriesColumn<double>{&Series::val_loss, &StepRecord::val_loss},
    SeriesColumn<double>{&Series::dt_ms, &StepRecord::dt_ms},
    SeriesColumn<double>{&Series::lr, &StepRecord::lr},
    SeriesColumn<double>{&Series::grad_norm, &StepRecord::grad_norm},
    SeriesColumn<double>{&Series::at, &StepRecord::at},
};

// Calls `use` with each field of the table, in its order.
template <class Fields, class Use>
constexpr void for_each_field(const Fields& fields, Use&& use) {
  std::apply([&](const auto&... field) { (use(field), ...); }, fields);
}

// Calls `use` with the name and the value of everything that a sample says of its moment.
template <class Sample, class Use>
constexpr void for_each_measurement(Sample&& sample, Use&& use) {
  for_each_field(sample_fields, [&](const auto& field) { use(field.name, sample.*field.member); });
  for_each_field(contention_fields, [&](const auto& field) { use(field.name, sample.contention.*field.member); });
}

// The step at this place, without its run and parts.
inline StepRecord record_of(const Series& series, std::size_t i) {
  StepRecord record;
  for_each_field(series_columns, [&](const auto& column) { record.*column.of_step = (series.*column.values)[i]; });
  return record;
}

// Merges a start into its run, which trains from now on. What the start doesn't know stays as it is.
inline void merge(Run& run, const RunStarted& started) {
  run.status = RunStatus::running;
  run.reason.clear();
  run.ended_at = missing;
  run.started_at = started.at;
  for_each_field(started_fields, [&](const auto& field) {
    const auto& value = started.*field.member;
    if (is_known(value, field.unknown)) run.*field.of_run = value;
  });
  if (started.params > 0) run.model_flops_per_token = 6.0 * static_cast<double>(started.params);
}

}  // namespace stepladder
