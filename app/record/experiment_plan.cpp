#include "app/record/experiment_plan.h"

#include "app/host/held_folder.h"
#include "app/text/secrets.h"
#include "engine/files/files.h"
#include "storage/database/orders/order_book.h"
#include "storage/database/run_rows.h"
#include "storage/errors.h"
#include "storage/json_values.h"

namespace stepladder {
namespace fs = std::filesystem;
namespace {

fs::path plan_file(const fs::path& folder) {
  return folder / ".state" / "plan.json";
}

Json parsed(const std::string& text, const fs::path& file, const std::string& command, int version) {
  Json plan = nests_deep(text) ? Json() : Json::parse(text, nullptr, false);
  const auto found = plan.is_object() ? plan.find("version") : plan.end();
  if (found == plan.end() || !found->is_number_integer())
    throw StorageError(file.string() + " isn't a plan of " + command);
  if (*found != version) throw StorageError(file.string() + " was written by a newer version");
  return plan;
}

}  // namespace

std::optional<ExperimentPlanFile> read_plan(const fs::path& folder, const std::string& command, int version) {
  const auto text = text_of(plan_file(folder));
  if (!text) return std::nullopt;
  ExperimentPlanFile plan{.shown = parsed(*text, plan_file(folder), command, version), .ordered = {}};
  const auto id = plan.shown.find("id");
  if (id == plan.shown.end() || !id->is_string()) return plan;
  OrderBook orders;
  if (const auto order = orders.find(order_kind::record, fs::canonical(folder).string(), id->get<std::string>()))
    plan.ordered = parsed(*order, orders.file(), command, version);
  return plan;
}

void order_plan(const fs::path& folder, Json plan) {
  plan["id"] = random_uid();
  OrderBook().put(order_kind::record, fs::canonical(folder).string(), {{plan["id"].get<std::string>(), plan.dump()}});
  write_whole(plan_file(folder), shown_plan(std::move(plan)).dump(2) + "\n", private_file);
}

Json shown_plan(Json plan) {
  for (auto& [key, value] : plan.items()) {
    if (value.is_object()) value = shown_plan(std::move(value));
    if (key == "command") value = each_without_secrets(value.get<std::vector<std::string>>());
  }
  return plan;
}

std::string not_ordered(const fs::path& folder, const std::string& would_run, const std::string& again) {
  return folder.string() +
         " was begun elsewhere, by somebody else or by an older Stepladder, so nothing of it is run. It would run" +
         would_run + "\nIf you want that, " + again + " once more";
}

}  // namespace stepladder
