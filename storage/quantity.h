// A quantity that a chart shows: a field of the steps, or a metric by its name (Metric in records.h).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace stepladder {

// Beyond the fields, each name of a metric has a number for as long as the process lives; quantity_named gives it one.
enum class Quantity : std::uint32_t { loss, val_loss, dt_ms, tokens_per_s, lr, grad_norm };

inline constexpr std::array step_quantities{Quantity::loss,         Quantity::val_loss, Quantity::dt_ms,
                                            Quantity::tokens_per_s, Quantity::lr,       Quantity::grad_norm};

constexpr bool is_field(Quantity quantity) {
  return static_cast<std::size_t>(quantity) < step_quantities.size();
}

// The field of this name, or the metric. Any thread.
Quantity quantity_named(std::string_view name);

// "tokens_per_s", as the column of `steps` is called, or the metric's name. The text is never freed. Any thread.
std::string_view to_string(Quantity quantity);

}  // namespace stepladder
