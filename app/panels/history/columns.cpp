// History's columns: the ids that settings and saved views store, and the ones that are drawn. Only the default set is
// shortened to the table's width; a set that the user chose scrolls instead.
#include "app/panels/history/columns.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>

#include "app/desktop/models/project_metrics.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/text/format.h"

namespace stepladder {
namespace {

const std::string recipe_prefix = "recipe.";  // of a column's id
constexpr const char* last_usual = "factor";  // values of the recipe that differ come after it

}  // namespace

void HistoryColumns::update(const Workspace& workspace) {
  if (workspace.project_metrics && units_of != workspace.project_metrics->reading) {
    units_of = workspace.project_metrics->reading;
    for (auto& [id, column] : metrics) {
      const Metric* metric = workspace.project_metrics->find(column.metric->figure.metric);
      if (metric && !metric->unit.empty()) column = *metric_column(id, metric->unit);
    }
  }
  if (known_for == workspace.version && !shown.empty()) return;
  known_for = workspace.version;
  has_tags = std::ranges::any_of(workspace.runs(), [](const RunEntry& entry) { return !entry.curation.tags.empty(); });
  known = measured_columns();
  for (RunColumn& column : recipe_columns(workspace)) known.push_back(std::move(column));
  if (shown.empty()) {
    for (const RunColumn& column : known) {
      if (column.at_first) shown.push_back(column.id);
    }
  }
}

const RunColumn* HistoryColumns::find(const std::string& id) {
  const auto found = std::ranges::find(known, id, &RunColumn::id);
  if (found != known.end()) return &*found;
  const auto made = metrics.find(id);
  if (made != metrics.end()) return &made->second;
  std::optional<RunColumn> column = metric_column(id);
  if (!column) return nullptr;
  units_of = 0;  // the next update adds its unit
  return &metrics.emplace(id, std::move(*column)).first->second;
}

bool HistoryColumns::shows(const std::string& id) const {
  return std::ranges::find(shown, id) != shown.end();
}

void HistoryColumns::add(const std::string& id) {
  if (shows(id) || shown.size() >= most_columns_shown) return;
  const RunColumn* column = find(id);
  auto place = shown.end();
  if (column && column->metric)
    place = std::ranges::find_if(shown, [](const std::string& each) { return !metric_column(each); });
  shown.insert(place, id);
}

void HistoryColumns::remove(const std::string& id) {
  std::erase(shown, id);
}

void HistoryColumns::move(const std::string& id, int places) {
  const auto at = std::ranges::find(shown, id);
  if (at == shown.end()) return;
  const auto to = at - shown.begin() + places;
  if (to < 0 || to >= std::ssize(shown)) return;
  std::swap(*at, shown[static_cast<std::size_t>(to)]);
}

std::vector<MetricFigure> HistoryColumns::figures() {
  std::vector<MetricFigure> figures;
  for (const std::string& id : shown) {
    const RunColumn* column = find(id);
    if (!column || !column->metric) continue;
    if (std::ranges::find(figures, column->metric->figure) == figures.end()) figures.push_back(column->metric->figure);
  }
  return figures;
}

bool HistoryColumns::is_default() const {
  std::vector<std::string> at_first;
  for (const RunColumn& column : known)
    if (column.at_first) at_first.push_back(column.id);
  return shown == at_first;
}

std::vector<const RunColumn*> HistoryColumns::wanted(const ListedValues& listed) {
  std::vector<const RunColumn*> columns;
  const bool by_itself = is_default();
  for (const std::string& id : shown) {
    if (const RunColumn* column = find(id); column && !(by_itself && listed.empty.contains(id)))
      columns.push_back(column);
    if (!by_itself || id != last_usual) continue;
    constexpr std::size_t most_differing = 4;
    for (std::size_t i = 0; i < std::min(most_differing, listed.differing.size()); ++i)
      if (const RunColumn* column = find(recipe_prefix + listed.differing[i])) columns.push_back(column);
  }
  return columns;
}

std::vector<const RunColumn*> HistoryColumns::fit(float width, float name_width, const ListedValues& listed) {
  std::vector<const RunColumn*> columns = wanted(listed);
  left_out.clear();
  if (!is_default()) return columns;
  std::erase_if(columns, [&](const RunColumn* column) { return listed.repeating.contains(column->id); });
  std::vector<std::string> given_up{"hardware", "stage", "created"};
  if (!has_tags) given_up.insert(given_up.begin(), "tags");  // a tag that somebody has set is in sight
  const std::size_t for_names = given_up.size();
  for (const RunColumn* column : columns)  // values of the recipe, the last one first
    if (column->id.starts_with(recipe_prefix))
      given_up.insert(given_up.begin() + static_cast<std::ptrdiff_t>(for_names), column->id);
  given_up.insert(given_up.end() - (given_up.size() > for_names ? 1 : 0), "spark_loss");
  given_up.insert(given_up.end(), {"dt_ms_median", "val_loss_last", "loss_last", last_usual});
  for (std::size_t i = 0; i < given_up.size(); ++i) {
    if (wanted_width(columns, i < for_names ? name_width : least_name_width()) <= width) continue;
    if (std::erase_if(columns, [&](const RunColumn* column) { return column->id == given_up[i]; }) > 0)
      left_out.push_back(find(given_up[i])->title);
  }
  return columns;
}

float least_name_width() {
  return px(200);
}

float wanted_width(const std::vector<const RunColumn*>& columns, float name_width) {
  float sum = name_width;
  for (const RunColumn* column : columns) {
    const bool stretches = column->kind == ColumnKind::text || column->kind == ColumnKind::tags;
    sum += px(stretches ? 90 * column->width : column->width) + px(20);
  }
  return sum;
}

void draw_left_out_columns(const HistoryColumns& columns) {
  if (columns.left_out.empty()) return;
  const std::string words = plural(columns.left_out.size(), "column") + " hidden";
  flow_for(ImGui::CalcTextSize(words.c_str()).x);
  ImGui::AlignTextToFramePadding();
  text_quiet(words);
  mark("history.left_out");
  wrapped_tooltip(fmt::format("No room for {}. The table scrolls sideways once you choose columns yourself.",
                              fmt::join(columns.left_out, ", ")),
                  px(320));
}

}  // namespace stepladder
