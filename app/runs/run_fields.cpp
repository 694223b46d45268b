// Resolves names of fields for `--filter`, `--columns` and History: a run's JSON, recipe and metrics.
// Names are matched exactly first and then in any case. A run's JSON is built only when one of its fields is read.
#include "app/runs/run_fields.h"

#include <algorithm>
#include <utility>

#include "app/text/format.h"
#include "engine/nearest.h"
#include "engine/recipe.h"
#include "engine/stage.h"
#include "storage/by_enum.h"
#include "storage/name_pattern.h"
#include "storage/quantity.h"

namespace stepladder {
namespace {

// The only field that isn't in a run's JSON, since it depends on another run.
constexpr const char* factor_field = "factor";

template <class Enum>
std::vector<std::string> names_of() {
  std::vector<std::string> names;
  for (const Enum each : enumerators<Enum>())
    if (to_string(each) != "unknown") names.emplace_back(to_string(each));
  return names;
}

// Prefers a name in the case in which it was logged: two names may differ in case alone.
std::optional<std::string> same_name(const std::set<std::string>& known, const std::string& name) {
  if (known.contains(name)) return name;
  const std::string wanted = lower_case(name);
  const auto found = std::ranges::find_if(known, [&](const auto& each) { return lower_case(each) == wanted; });
  return found == known.end() ? std::nullopt : std::optional(*found);
}

// Names the nearest, or the first of them.
std::string unknown_of(const std::string& name, std::vector<std::string> known) {
  constexpr std::ptrdiff_t most_listed = 12;
  if (const std::ptrdiff_t more = std::ssize(known) - most_listed; more > 0 && nearest_name(name, known).empty()) {
    known.resize(most_listed);
    known.back() += " and " + std::to_string(more) + " more";
  }
  return unknown_name(name, known);
}

}  // namespace

void add_recipe_names(const Run& run, std::set<std::string>& names) {
  const Json recipe = Json::parse(run.recipe, nullptr, false);
  if (!recipe.is_object()) return;
  for (const auto& [name, value] : recipe.items()) names.insert(lower_case(name));
}

RunFieldNames::RunFieldNames(ProjectNames names) : names_(std::move(names)), fields_(run_json({}, {})) {
  for (const auto& [name, value] : describe(Recipe{})) known_recipe_.insert(name);
}

const std::set<std::string>& RunFieldNames::recipe_names() {
  if (!recipe_) recipe_ = names_.recipe ? names_.recipe() : std::set<std::string>();
  return *recipe_;
}

const std::set<std::string>& RunFieldNames::metric_names() {
  if (metrics_) return *metrics_;
  metrics_ = names_.metrics ? names_.metrics() : std::set<std::string>();
  for (const Quantity quantity : step_quantities) metrics_->emplace(to_string(quantity));
  return *metrics_;
}

std::optional<std::string> RunFieldNames::metric_named(const std::string& name) {
  return same_name(metric_names(), name);
}

std::optional<RunField> RunFieldNames::find(const std::string& name) {
  const std::string plain = lower_case(name);
  if (fields_.contains(plain) || plain == factor_field) return RunField{.name = plain};
  if (known_recipe_.contains(plain) || recipe_names().contains(plain))
    return RunField{.of = RunField::Of::recipe, .name = plain};
  return metric_named(name).has_value() ? find(MetricFigure{.metric = name}) : std::nullopt;
}

std::optional<RunField> RunFieldNames::find(const MetricFigure& figure) {
  RunField field{.of = RunField::Of::metric, .figure = figure};
  const std::optional<std::string> name = metric_named(figure.metric);
  if (!name && names_.metrics) return std::nullopt;
  if (name) field.figure.metric = *name;
  return field;
}

std::string RunFieldNames::unknown(const std::string& name) const {
  std::vector<std::string> known;
  for (const auto& [field, value] : fields_.items()) known.push_back(field);
  known.emplace_back(factor_field);
  known.insert(known.end(), known_recipe_.begin(), known_recipe_.end());
  if (recipe_) known.insert(known.end(), recipe_->begin(), recipe_->end());
  const std::string metric = metrics_ ? nearest_name(name, std::vector(metrics_->begin(), metrics_->end())) : "";
  if (nearest_name(name, known).empty() && !metric.empty()) known = {metric};
  return unknown_of(name, std::move(known));
}

std::string RunFieldNames::unknown_metric(const std::string& name) const {
  if (!metrics_) return unknown_name(name, {});
  return unknown_of(name, {metrics_->begin(), metrics_->end()});
}

Json RunValues::operator[](const RunField& field) {
  if (field.of == RunField::Of::metric) return number(metrics_.value(run_.id, field.figure));
  if (field.of == RunField::Of::run && field.name == factor_field)
    return context_.factor ? number(context_.factor(run_.id)) : Json();
  if (field.of == RunField::Of::run) {
    if (fields_.is_null()) fields_ = run_json(run_, summary_, context_);
    return fields_.at(field.name);
  }
  if (recipe_.is_null()) recipe_ = Json::parse(run_.recipe, nullptr, false);
  if (!recipe_.is_object()) return nullptr;
  auto found = recipe_.find(field.name);
  for (auto it = recipe_.begin(); found == recipe_.end() && it != recipe_.end(); ++it)
    if (lower_case(it.key()) == field.name) found = it;
  return found == recipe_.end() ? Json() : *found;
}

std::vector<RunField> run_fields_from(std::string_view text, RunFieldNames& names) {
  std::vector<RunField> fields;
  std::size_t at = 0;
  const auto skip = [&] { at = std::min(text.find_first_not_of(' ', at), text.size()); };
  try {
    while (true) {
      skip();
      const std::size_t begin = at;
      std::optional<RunField> field;
      if (const auto figure = read_figure(text, at)) {
        field = names.find(*figure);
        if (!field) throw FigureError("the metric " + names.unknown_metric(figure->metric), begin);
      } else {
        std::string name;
        if (at < text.size() && text[at] == '"') {
          name = read_quoted(text, at);
        } else {
          at = std::min(text.find(',', at), text.size());
          name = text.substr(begin, at - begin);
          name.resize(name.find_last_not_of(' ') + 1);
        }
        if (name.empty()) throw FigureError("the name of a column is missing", begin);
        field = names.find(name);
        if (!field) throw FigureError("the field " + names.unknown(name), begin);
      }
      fields.push_back(*field);
      skip();
      if (at == text.size()) return fields;
      if (text[at] != ',') throw FigureError("expected a comma", at);
      ++at;
    }
  } catch (const FigureError& error) {
    throw RunFieldError(std::string(error.what()) + " (" + position_text(text, error.at) + ")");
  }
}

std::vector<std::string> closed_values(const RunField& field) {
  if (field.of != RunField::Of::run) return {};
  std::vector<std::string> known;
  if (field.name == "status") {
    known = names_of<RunStatus>();
  } else if (field.name == "sync") {
    known = names_of<Sync>();
    known.emplace_back("unknown");
  } else if (field.name == "trust") {
    for (const Trust trust : {Trust::trusted, Trust::doubtful, Trust::impossible}) known.emplace_back(to_string(trust));
  } else if (field.name == "flags") {
    for (const FlagKind& kind : flag_kinds) known.emplace_back(kind.name);
  } else if (field.name == "stages") {
    for (const Stage& stage : all_stages()) known.push_back(stage.id);
  } else if (field.name == "source") {
    known = {"launched", "import", "example"};
  } else if (field.name == "paused" || field.name == "pinned" || field.name == "archived") {
    known = {"true", "false"};
  }
  return known;
}

ValueKind kind_of(const RunField& field) {
  constexpr const char* times = "created_at ended_at";
  constexpr const char* numbers =
      "loss_first loss_last loss_min val_loss_last val_loss_min dt_ms_median tokens_per_s model_flops_per_token mfu "
      "setup_ms factor";
  constexpr const char* counts =
      "id ladder repeat steps first_step last_step tokens_per_step warmup_steps params rung parent forked_at_step "
      "peak_memory_bytes watched_steps disturbed_steps exit_status";
  constexpr const char* own_numbers = "batch seq grad_accum layers heads d_model seed lr beta1 beta2 weight_decay clip";
  if (field.of == RunField::Of::metric) return ValueKind::number;
  if (field.of == RunField::Of::recipe) return has_word(own_numbers, field.name) ? ValueKind::number : ValueKind::text;
  return has_word(times, field.name)     ? ValueKind::time
         : has_word(counts, field.name)  ? ValueKind::whole_number
         : has_word(numbers, field.name) ? ValueKind::number
                                         : ValueKind::text;
}

std::string title_of(const RunField& field) {
  return field.of == RunField::Of::metric ? to_string(field.figure) : field.name;
}

std::vector<MetricFigure> figures_of(const std::vector<RunField>& fields) {
  std::vector<MetricFigure> figures;
  for (const RunField& field : fields)
    if (field.of == RunField::Of::metric && std::ranges::find(figures, field.figure) == figures.end())
      figures.push_back(field.figure);
  return figures;
}

std::string position_text(std::string_view text, std::size_t byte) {
  const auto before = text.substr(0, byte);
  const auto characters =
      std::ranges::count_if(before, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
  return "at character " + std::to_string(characters + 1);
}

}  // namespace stepladder
