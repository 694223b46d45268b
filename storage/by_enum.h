// Values by an enumeration, and its enumerators. One that has no value doesn't build, as with -Wswitch. The
// enumerators are those from 0 on without a gap.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <type_traits>

namespace stepladder {

// The compiler writes a value that has a name as "Trust::doubtful", and others as "(Trust)7".
template <auto value>
constexpr bool has_name() {
  const std::string_view text = __PRETTY_FUNCTION__;
  return text[text.find_last_of("):")] == ':';
}

template <class Enum, int first = 0>
constexpr std::size_t enum_count() {
  if constexpr (has_name<static_cast<Enum>(first)>())
    return enum_count<Enum, first + 1>();
  else
    return first;
}

template <class Enum>
constexpr std::array<Enum, enum_count<Enum>()> enumerators() {
  std::array<Enum, enum_count<Enum>()> all{};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<Enum>(i);
  return all;
}

template <class Enum, class Value>
struct ByEnum {
  std::array<Value, enum_count<Enum>()> values;

  constexpr Value operator[](Enum each) const { return values[static_cast<std::size_t>(each)]; }

  // The first enumerator with this value.
  template <class Same>
  std::optional<Enum> find(const Same& value) const {
    const auto found = std::ranges::find(values, value);
    return found == values.end() ? std::nullopt : std::optional(static_cast<Enum>(found - values.begin()));
  }
};

// by_enum<Severity>("note", "warning", "grave")[severity]
template <class Enum, class... Values>
constexpr ByEnum<Enum, std::common_type_t<Values...>> by_enum(Values... values) {
  static_assert(sizeof...(Values) == enum_count<Enum>(), "one value for each enumerator, in their order");
  return {{values...}};
}

}  // namespace stepladder
