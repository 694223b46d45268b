// Assigns each piece of work to a part of the model: by names of ranges and modules or, without these, by the order of
// the forward pass's operators. Backward work has the number of the forward operator that it belongs to. Inside
// storage/traces/ only.
#pragma once

#include <cstdint>
#include <string_view>
#include <tuple>
#include <vector>

#include "storage/traces/anatomy.h"
#include "storage/traces/trace.h"

namespace stepladder {

// A place that time is attributed to, without its phase.
struct Place {
  ModelPart part = ModelPart::unknown;
  int block = -1;
  KnownBy known_by = KnownBy::nothing;
  bool operator<(const Place& other) const {
    return std::tie(part, block, known_by) < std::tie(other.part, other.block, other.known_by);
  }
  bool operator==(const Place&) const = default;
};

// The place inside a range or module of this name and inside `around`; `around` itself if the name gives none.
Place place_of_range(std::string_view name, const Place& around);

// All places of a trace, numbered; 0 is the unknown one.
struct Places {
  std::vector<Place> places{Place{}};
  std::vector<std::uint16_t> of_slice;  // by the slices' order in the trace
};
Places places_of(const Trace& trace);

}  // namespace stepladder
