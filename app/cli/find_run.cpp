#include "app/cli/find_run.h"

#include <charconv>

#include "app/exit_status.h"

namespace stepladder {
namespace {

// `items`, oldest first. `what` is "run" or "ladder"; `hint` names the command that lists them.
template <class Item>
Item find_named(std::vector<Item> items, const std::string& wanted, const std::string& what, const std::string& hint) {
  std::vector<Item> named;
  for (Item& item : items) {
    if (std::to_string(item.id) == wanted) return std::move(item);
    if (item.name == wanted) named.push_back(std::move(item));
  }
  if (named.empty() && wanted == "latest" && !items.empty()) return std::move(items.back());
  if (named.empty()) throw UsageError("there is no " + what + " " + (wanted.empty() ? "''" : wanted) + hint);
  if (named.size() > 1)
    throw UsageError(std::to_string(named.size()) + " " + what + "s are called '" + wanted + "'; give its number");
  return std::move(named.front());
}

}  // namespace

Run find_run(RunStore& store, const std::string& wanted) {
  return find_named(store.runs(), wanted, "run", "; `stepladder runs` lists them");
}

Ladder find_ladder(RunStore& store, const std::string& wanted) {
  return find_named(store.ladders(), wanted, "ladder", "; `stepladder runs --json` lists each run's ladder");
}

std::pair<Run, std::optional<std::int64_t>> find_fork(RunStore& store, const std::string& text) {
  const auto at = text.rfind('@');
  if (at == std::string::npos) return {find_run(store, text), std::nullopt};
  std::int64_t step = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data() + at + 1, end, step);
  if (error != std::errc() || stopped != end) return {find_run(store, text), std::nullopt};  // a name with an @ in it
  return {find_run(store, text.substr(0, at)), step};
}

}  // namespace stepladder
