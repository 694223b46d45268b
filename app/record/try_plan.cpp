// Plans of `stepladder try` as JSON and as words of the command line.
#include "app/record/try_plan.h"

#include <algorithm>
#include <charconv>

#include "app/exit_status.h"
#include "storage/analysis/metric_comparison.h"
#include "storage/errors.h"

namespace stepladder {
namespace {

Json figure_json(const FigureQuestion& figure) {
  return {{"by", to_string(figure.by)},
          {"metric", figure.by == FigureBy::metric ? Json(to_string(figure.metric)) : Json()},
          {"lower_is_better", figure.lower_is_better}};
}

FigureQuestion figure_from(const Json& json) {
  FigureQuestion figure{.by = figure_by(json.at("by").get<std::string>()).value_or(FigureBy::throughput),
                        .metric = {},
                        .lower_is_better = json.at("lower_is_better").get<bool>()};
  if (figure.by == FigureBy::metric) figure.metric = metric_named(json.at("metric").get<std::string>());
  return figure;
}

}  // namespace

Json plan_json(const TryPlan& plan) {
  Json guards = Json::array(), seals = Json::array();
  for (const TryGuard& guard : plan.guards)
    guards.push_back({{"figure", figure_json(guard.figure)},
                      {"better", to_string(guard.better)},
                      {"tolerance", guard.tolerance},
                      {"is_share", guard.is_share}});
  for (const TrySeal& seal : plan.seals)
    seals.push_back({{"path", seal.path}, {"in_tree", seal.in_tree}, {"content", seal.content}, {"stamp", seal.stamp}});
  return {{"version", 1},
          {"checkout", plan.checkout},
          {"folder", plan.folder},
          {"command", plan.command},
          {"figure", figure_json(plan.figure)},
          {"guesses_direction", plan.guesses_direction},
          {"guards", guards},
          {"seals", seals},
          {"links", plan.links},
          {"holdout", plan.holdout},
          {"first_runs", plan.first_runs},
          {"budget_runs", plan.budget_runs},
          {"budget_s", plan.budget_s},
          {"quiet_s", plan.quiet_s},
          {"machine", plan.machine},
          {"there", plan.there},
          {"strict", plan.false_keeps == FalseKeeps::none}};
}

TryPlan try_plan_from(const Json& json) {
  try {
    TryPlan plan{.command = json.at("command").get<std::vector<std::string>>(),
                 .checkout = json.at("checkout").get<std::string>(),
                 .folder = json.at("folder").get<std::string>(),
                 .figure = figure_from(json.at("figure")),
                 .guesses_direction = json.value("guesses_direction", false),
                 .links = json.at("links").get<std::vector<std::string>>(),
                 .holdout = json.value("holdout", ""),
                 .first_runs = json.at("first_runs").get<std::int64_t>(),
                 .budget_runs = json.at("budget_runs").get<std::int64_t>(),
                 .budget_s = json.at("budget_s").get<double>(),
                 .quiet_s = json.value("quiet_s", 0.0),
                 .machine = json.value("machine", ""),
                 .there = json.value("there", ""),
                 .false_keeps = json.at("strict").get<bool>() ? FalseKeeps::none : FalseKeeps::few};
    for (const Json& guard : json.at("guards"))
      plan.guards.push_back({.figure = figure_from(guard.at("figure")),
                             .better = direction_from(guard.at("better").get<std::string>()),
                             .tolerance = guard.at("tolerance").get<double>(),
                             .is_share = guard.at("is_share").get<bool>()});
    for (const Json& seal : json.at("seals"))
      plan.seals.push_back({.path = seal.at("path").get<std::string>(),
                            .in_tree = seal.at("in_tree").get<bool>(),
                            .content = seal.at("content").get<std::string>(),
                            .stamp = seal.at("stamp").get<std::string>()});
    return plan;
  } catch (const std::exception&) {
    throw StorageError("the plan of this series of tries can't be read");
  }
}

TryGuard guard_from(const std::string& text) {
  const std::size_t sign = text.rfind('=');
  const UsageError malformed("--also " + text + " isn't NAME=TOLERANCE, such as val_loss=0.01 or memory=2%");
  if (sign == std::string::npos || sign == 0) throw malformed;
  const std::string name = text.substr(0, sign);
  TryGuard guard{.figure = {.by = FigureBy::metric, .metric = metric_named(name)}};
  const char* const begin = text.data() + sign + 1;
  const char* const stop = text.data() + text.size();
  const auto [end, error] = std::from_chars(begin, stop, guard.tolerance);
  guard.is_share = end < stop && *end == '%';
  if (error != std::errc() || end + (guard.is_share ? 1 : 0) != stop || !(guard.tolerance >= 0)) throw malformed;
  if (guard.is_share) guard.tolerance /= 100;
  guard.better = direction_of_name(guard.figure.metric.metric);
  guard.figure.lower_is_better = guard.better == Direction::lower;
  return guard;
}

double duration_from(const std::string& text) {
  double seconds = 0;
  const char* at = text.data();
  const char* const stop = at + text.size();
  const UsageError malformed("'" + text + "' isn't a duration, such as 8h, 90m or 1h30m");
  while (at < stop) {
    double value = 0;
    const auto [end, error] = std::from_chars(at, stop, value);
    if (error != std::errc() || !(value >= 0)) throw malformed;
    const char unit = end < stop ? *end : 's';
    const double factor = unit == 'd' ? 86400 : unit == 'h' ? 3600 : unit == 'm' ? 60 : unit == 's' ? 1 : 0;
    if (factor == 0) throw malformed;
    seconds += value * factor;
    at = end < stop ? end + 1 : stop;
  }
  if (!(seconds > 0)) throw malformed;
  return seconds;
}

}  // namespace stepladder
