// A quantity that a chart shows: a field of the steps, or a metric by its name (Metric in records.h).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "storage/by_enum.h"
#include "storage/records.h"

namespace stepladder {

// Beyond the fields, each name of a metric has a number for as long as the process lives; quantity_named gives it one.
enum class Quantity : std::uint32_t { loss, val_loss, dt_ms, tokens_per_s, lr, grad_norm };

inline constexpr auto step_quantities = enumerators<Quantity>();

constexpr bool is_field(Quantity quantity) {
  return static_cast<std::size_t>(quantity) < step_quantities.size();
}

struct QuantityFacts {
  std::string_view name;  // the column of `steps`
  std::string_view title;
  std::string_view unit;  // empty: none, or nats per token
  Direction better;
  double StepRecord::*of_step = nullptr;  // null: the throughput, which is derived
  std::vector<double> Series::*of_series = nullptr;
};

inline constexpr auto quantity_facts = by_enum<Quantity>(
    QuantityFacts{"loss", "Loss", "", Direction::lower, &StepRecord::loss, &Series::loss},
    QuantityFacts{"val_loss", "Validation loss", "", Direction::lower, &StepRecord::val_loss, &Series::val_loss},
    QuantityFacts{"dt_ms", "Step time", "ms", Direction::lower, &StepRecord::dt_ms, &Series::dt_ms},
    QuantityFacts{"tokens_per_s", "Throughput", "tokens/s", Direction::higher},
    QuantityFacts{"lr", "Learning rate", "", Direction::unknown, &StepRecord::lr, &Series::lr},
    QuantityFacts{"grad_norm", "Gradient norm", "", Direction::unknown, &StepRecord::grad_norm, &Series::grad_norm});

// Null for a metric.
constexpr const QuantityFacts* facts_of(Quantity quantity) {
  return is_field(quantity) ? &quantity_facts.values[static_cast<std::size_t>(quantity)] : nullptr;
}

// The field of this name, or the metric. Any thread.
Quantity quantity_named(std::string_view name);

// "tokens_per_s", as the column of `steps` is called, or the metric's name. The text is never freed. Any thread.
std::string_view to_string(Quantity quantity);

}  // namespace stepladder
