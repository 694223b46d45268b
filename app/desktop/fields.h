// Input fields that several panels use. UI thread, inside a frame.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "storage/analysis/hardware.h"

namespace stepladder {

// Reads a positive number as people type it: "524288", "524,288", "124M", "0.5 M", "64 x 1024". nullopt if it isn't
// one.
std::optional<double> read_number(std::string_view text);

// The same for a whole number that is small enough to be exact.
std::optional<std::int64_t> read_count(std::string_view text);

// A plain path from what file managers and shells write: file:///tmp/a%20b, quotes around it, ~ for the home folder.
std::string plain_path(std::string text);

// A field for a number that may be left empty. Text that isn't a number stays in it, in red, and changes nothing.
class NumberField {
 public:
  enum class Kind { whole, any };

  void show(double value);  // empty if it is missing or 0

  // Returns whether the user entered another value (missing if empty), by Enter or by leaving the field.
  bool draw(const char* id, const char* hint, double& value, Kind kind = Kind::whole);
  bool is_wrong() const { return is_wrong_; }
  std::string text() const { return text_.data(); }

 private:
  std::array<char, 48> text_{};
  bool is_wrong_ = false;
};

// True if `text` contains `typed`, in any case.
bool holds(std::string_view text, std::string_view typed);

// True if the typed pattern matches the name: with * for any text ("val/*") the whole name, else any part of it, in any
// case. An empty pattern matches all.
bool is_meant(std::string_view name, std::string_view typed);

// True if `typed` matches this device by a part of its name or of one of its aliases, in any case.
bool hardware_matches(const Hardware& hardware, std::string_view typed);

// A searchable combo of the hardware table. `none` is shown for an empty name. With `any_name` the typed text itself
// can be chosen. Returns whether `name` changed.
bool pick_hardware(const char* id, std::string& name, const HardwareTable& table, const char* none, bool any_name);

}  // namespace stepladder
