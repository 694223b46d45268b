#include "storage/quantity.h"

#include <deque>
#include <map>
#include <string>

#include "storage/thread_safety.h"

namespace stepladder {
namespace {

struct Names {
  Mutex mutex;
  std::deque<std::string> by_number GUARDED_BY(mutex);  // its texts keep their place
  std::map<std::string_view, Quantity> numbers GUARDED_BY(mutex);
};

Names& names() {
  static Names all;
  return all;
}

}  // namespace

Quantity quantity_named(std::string_view name) {
  for (const Quantity field : step_quantities)
    if (name == facts_of(field)->name) return field;
  Names& known = names();
  const MutexLock lock(known.mutex);
  if (const auto found = known.numbers.find(name); found != known.numbers.end()) return found->second;
  const auto number = static_cast<Quantity>(step_quantities.size() + known.by_number.size());
  known.numbers.emplace(known.by_number.emplace_back(name), number);
  return number;
}

std::string_view to_string(Quantity quantity) {
  if (const QuantityFacts* field = facts_of(quantity)) return field->name;
  Names& known = names();
  const MutexLock lock(known.mutex);
  return known.by_number[static_cast<std::size_t>(quantity) - step_quantities.size()];
}

}  // namespace stepladder
