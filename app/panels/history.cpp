// History: every run in a table to filter, sort, group and tidy up; the selected ones overlaid beneath.
#include <imgui.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "app/desktop/chart_export.h"
#include "app/desktop/charts.h"
#include "app/desktop/panel.h"
#include "app/desktop/run_columns.h"
#include "app/desktop/run_points.h"
#include "app/desktop/run_widgets.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/format.h"
#include "app/run_filter.h"

namespace stepladder {
namespace {

enum class Group { none, ladder, tree, stage, hardware, precision, status, tag };
const std::vector<std::string> group_names{"nothing", "ladder", "what it came from", "stage", "hardware", "precision",
                                           "status",  "tag"};

struct OverlayMetric {
  const char* title;
  Quantity quantity;
  const char* unit;
};
constexpr std::array<OverlayMetric, 3> metrics{{{"Loss", Quantity::loss, ""},
                                                {"Throughput", Quantity::tokens_per_s, "tokens/s"},
                                                {"Step time", Quantity::dt_ms, "ms"}}};

// A line of the table: a run, or the head of a group.
struct Row {
  const RunEntry* entry = nullptr;  // null: a head
  std::string head;
  std::size_t runs = 0;  // of a group
  int depth = 0;
};

struct State {
  std::array<char, 256> filter{};
  std::string filter_problem;
  std::vector<std::string> columns;  // shown, in order, after the name
  std::vector<RunColumn> known;      // all that can be shown
  std::uint64_t known_for = 0;
  std::string sorted_by = "created";
  bool ascending = false;
  Group group = Group::none;
  bool archived = false;  // whether those are shown too
  std::set<std::string> folded;
  RunId baseline = 0;
  std::size_t metric = 0;

  std::vector<Row> rows;
  std::size_t matching = 0;
  std::string made_for;  // what the rows depend on
  RunId last_clicked = 0;

  RunId renaming = 0;
  std::array<char, 256> name{};
  std::array<char, 128> tag{};
  bool open_tag = false;
  SharedX x;
};

void take_known(State& state, const Workspace& workspace) {
  if (state.known_for == workspace.version) return;
  state.known_for = workspace.version;
  state.known = measured_columns();
  for (RunColumn& column : recipe_columns(workspace)) state.known.push_back(std::move(column));
  if (state.columns.empty()) {
    for (const RunColumn& column : state.known) {
      if (column.at_first) state.columns.push_back(column.id);
    }
  }
}

const RunColumn* column_of(const State& state, const std::string& id) {
  const auto found =
      std::find_if(state.known.begin(), state.known.end(), [&](const RunColumn& c) { return c.id == id; });
  return found == state.known.end() ? nullptr : &*found;
}

std::vector<std::string> groups_of(const RunEntry& entry, Group group, const Workspace& workspace) {
  const auto or_none = [](std::string text, const char* none) { return text.empty() ? none : std::move(text); };
  switch (group) {
    case Group::ladder: {
      const Ladder* ladder = entry.run.ladder ? workspace.ladder(*entry.run.ladder) : nullptr;
      return {ladder ? ladder->name + "  -  " + local_time_text(ladder->created_at) : "runs of their own"};
    }
    case Group::stage:
      return {or_none(entry.run.stage, "no stage")};
    case Group::hardware:
      return {or_none(entry.run.hardware, "hardware not known")};
    case Group::precision:
      return {or_none(entry.run.precision, "precision not known")};
    case Group::status:
      return {std::string(to_string(entry.run.status))};
    case Group::tag:
      return entry.curation.tags.empty() ? std::vector<std::string>{"no tag"} : entry.curation.tags;
    default:
      return {""};
  }
}

// Forks beneath their parents, rungs beneath their baselines.
void add_tree(std::vector<Row>& rows, const std::vector<const RunEntry*>& sorted, const Workspace& workspace) {
  std::map<RunId, std::vector<const RunEntry*>> children;
  std::set<RunId> listed;
  for (const RunEntry* entry : sorted) listed.insert(entry->run.id);
  std::vector<const RunEntry*> roots;
  for (const RunEntry* entry : sorted) {
    RunId above = entry->run.parent.value_or(0);
    if (above == 0 && entry->run.ladder && (entry->run.rung > 0 || entry->run.repeat > 0)) {
      const std::vector<const RunEntry*> ladder = workspace.runs_of(*entry->run.ladder);
      if (!ladder.empty() && ladder.front() != entry) above = ladder.front()->run.id;
    }
    if (listed.contains(above)) {
      children[above].push_back(entry);
    } else {
      roots.push_back(entry);
    }
  }
  const std::function<void(const RunEntry*, int)> add = [&](const RunEntry* entry, int depth) {
    rows.push_back({.entry = entry, .depth = depth});
    auto below = children[entry->run.id];
    std::stable_sort(below.begin(), below.end(), [](const RunEntry* a, const RunEntry* b) {
      return std::pair(a->run.rung, a->run.repeat) < std::pair(b->run.rung, b->run.repeat);
    });
    if (depth < 40) {
      for (const RunEntry* child : below) add(child, depth + 1);
    }
  };
  for (const RunEntry* root : roots) add(root, 0);
}

void take_rows(State& state, const Workspace& workspace) {
  std::string wanted = std::string(state.filter.data()) + '\n' + state.sorted_by + (state.ascending ? "+" : "-") +
                       std::to_string(static_cast<int>(state.group)) + (state.archived ? "a" : "") +
                       std::to_string(workspace.version) + "/" + std::to_string(state.baseline);
  for (const std::string& folded : state.folded) wanted += '\n' + folded;
  if (wanted == state.made_for) return;
  state.made_for = std::move(wanted);
  state.rows.clear();
  state.filter_problem.clear();
  const ColumnContext context{&workspace, state.baseline};
  std::vector<const RunEntry*> found;
  const auto listed = [&](const RunEntry& entry) { return state.archived || !entry.curation.archived; };
  Judge judge{.hardware = workspace.hardware};
  for (const RunEntry& entry : workspace.runs()) judge.repeats.add(entry.run);
  try {
    const RunFilter filter(state.filter.data());
    for (const RunEntry& entry : workspace.runs()) {
      if (listed(entry) && filter.accepts(entry.run, entry.summary, judge, entry.curation)) found.push_back(&entry);
    }
  } catch (const FilterError& error) {  // half typed: everything stays in view
    state.filter_problem = error.what();
    for (const RunEntry& entry : workspace.runs()) {
      if (listed(entry)) found.push_back(&entry);
    }
  }
  state.matching = found.size();

  const RunColumn* column = column_of(state, state.sorted_by);
  const bool by_text = !column || column->kind != ColumnKind::number;
  struct Keyed {
    const RunEntry* entry;
    double value;
    std::string text;
  };
  std::vector<Keyed> keyed;
  for (const RunEntry* entry : found) {
    Keyed key{.entry = entry, .value = by_text ? missing : cell_value(state.sorted_by, *entry, context), .text = ""};
    if (is_missing(key.value)) key.text = cell_text(state.sorted_by, *entry, context);
    keyed.push_back(std::move(key));
  }
  std::stable_sort(keyed.begin(), keyed.end(), [&](const Keyed& first, const Keyed& second) {
    if (first.entry->curation.pinned != second.entry->curation.pinned) return first.entry->curation.pinned;
    const Keyed& a = state.ascending ? first : second;
    const Keyed& b = state.ascending ? second : first;
    // Not a number sorts before every number, so that the order is one.
    const bool a_nan = a.value != a.value;
    const bool b_nan = b.value != b.value;
    if (a_nan && b_nan) return a.text != b.text ? a.text < b.text : a.entry->run.id < b.entry->run.id;
    if (a_nan || b_nan) return a_nan && !b_nan;
    return a.value != b.value ? a.value < b.value : a.entry->run.id < b.entry->run.id;
  });
  found.clear();
  for (const Keyed& key : keyed) found.push_back(key.entry);

  if (state.group == Group::none) {
    for (const RunEntry* entry : found) state.rows.push_back({.entry = entry});
    return;
  }
  if (state.group == Group::tree) return add_tree(state.rows, found, workspace);
  std::vector<std::string> order;
  std::map<std::string, std::vector<const RunEntry*>> groups;
  for (const RunEntry* entry : found) {
    for (const std::string& name : groups_of(*entry, state.group, workspace)) {
      if (!groups.contains(name)) order.push_back(name);
      groups[name].push_back(entry);
    }
  }
  for (const std::string& name : order) {
    state.rows.push_back({.head = name, .runs = groups[name].size()});
    if (state.folded.contains(name)) continue;
    for (const RunEntry* entry : groups[name]) state.rows.push_back({.entry = entry, .depth = 1});
  }
}

// --- What can be done to runs ------------------------------------------------------------------------------------

std::string runs_text(std::size_t count) {
  return grouped(static_cast<std::int64_t>(count)) + (count == 1 ? " run" : " runs");
}

template <class Change>
void curate(const std::string& done, const std::vector<const RunEntry*>& entries, Commands& commands, Change change) {
  Curate asked{.what = done + " " + (entries.size() == 1 ? entries.front()->run.name : runs_text(entries.size())),
               .changes = {}};
  for (const RunEntry* entry : entries) {
    Curation curation = entry->curation;
    change(curation);
    asked.changes.emplace_back(entry->run.id, std::move(curation));
  }
  if (!asked.changes.empty()) commands.push_back(std::move(asked));
}

std::vector<const RunEntry*> selected_entries(const Workspace& workspace) {
  std::vector<const RunEntry*> entries;
  for (const RunId id : workspace.selected_runs) {
    if (const RunEntry* entry = workspace.find(id)) entries.push_back(entry);
  }
  return entries;
}

void remove(const std::vector<const RunEntry*>& entries, Commands& commands) {
  const double now = unix_now();
  curate("Deleted", entries, commands, [now](Curation& curation) { curation.deleted_at = now; });
}

void archive(const std::vector<const RunEntry*>& entries, Commands& commands) {
  const bool all = std::all_of(entries.begin(), entries.end(), [](const RunEntry* e) { return e->curation.archived; });
  curate(all ? "Took back from the archive" : "Archived", entries, commands,
         [all](Curation& curation) { curation.archived = !all; });
}

void pin(const std::vector<const RunEntry*>& entries, Commands& commands) {
  const bool all = std::all_of(entries.begin(), entries.end(), [](const RunEntry* e) { return e->curation.pinned; });
  curate(all ? "Unpinned" : "Pinned", entries, commands, [all](Curation& curation) { curation.pinned = !all; });
}

void draw_tag_popup(State& state, const std::vector<const RunEntry*>& entries, Commands& commands) {
  if (std::exchange(state.open_tag, false)) ImGui::OpenPopup("##tag");
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(px(14), px(12)));
  if (ImGui::BeginPopup("##tag")) {
    text_quiet("A tag for " + runs_text(entries.size()) + "; a tag that all have is taken away");
    if (ImGui::IsWindowAppearing()) ImGui::SetKeyboardFocusHere();
    ImGui::SetNextItemWidth(px(260));
    const bool done = ImGui::InputTextWithHint("##tag", "night, good", state.tag.data(), state.tag.size(),
                                               ImGuiInputTextFlags_EnterReturnsTrue);
    mark("history.tag.field");
    if (done) {
      for (const std::string& tag : tags_from(state.tag.data())) {
        const auto has = [&](const RunEntry* e) {
          return std::find(e->curation.tags.begin(), e->curation.tags.end(), tag) != e->curation.tags.end();
        };
        const bool all = std::all_of(entries.begin(), entries.end(), has);
        curate(all ? "Took the tag " + tag + " from" : "Tagged " + tag + ":", entries, commands,
               [&](Curation& curation) {
                 std::erase(curation.tags, tag);
                 if (!all) curation.tags.push_back(tag);
               });
      }
      state.tag[0] = 0;
      ImGui::CloseCurrentPopup();
    }
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar();
}

void draw_row_menu(State& state, const RunEntry& entry, const Workspace& workspace, Commands& commands) {
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(px(10), px(8)));
  if (ImGui::BeginPopupContextItem("##menu")) {
    std::vector<const RunEntry*> entries{&entry};
    if (workspace.selected_runs.contains(entry.run.id)) entries = selected_entries(workspace);
    if (ImGui::MenuItem("Open", "double click")) commands.push_back(OpenRun{entry.run.id});
    if (ImGui::MenuItem("Rename", "F2")) {
      state.renaming = entry.run.id;
      std::snprintf(state.name.data(), state.name.size(), "%s", entry.run.name.c_str());
    }
    if (entry.run.ladder && ImGui::MenuItem("Show its ladder")) commands.push_back(SelectLadder{*entry.run.ladder});
    if (ImGui::MenuItem("Baseline of the factors", nullptr, state.baseline == entry.run.id))
      state.baseline = state.baseline == entry.run.id ? 0 : entry.run.id;
    ImGui::Separator();
    if (ImGui::MenuItem("Tag", nullptr)) {
      if (!workspace.selected_runs.contains(entry.run.id)) commands.push_back(SelectRuns{{entry.run.id}});
      state.open_tag = true;
    }
    if (ImGui::MenuItem(entry.curation.pinned ? "Unpin" : "Pin")) pin(entries, commands);
    if (ImGui::MenuItem(entry.curation.archived ? "Take back from the archive" : "Archive")) archive(entries, commands);
    if (ImGui::MenuItem("Delete", "Del")) remove(entries, commands);
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar();
}

// --- The table ---------------------------------------------------------------------------------------------------

void draw_spark(const RunEntry& entry, Quantity quantity, const Workspace& workspace, Commands& commands) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  const float height = px(18);
  ImGui::Dummy(ImVec2(width, height));
  const Glance* glance = workspace.glance(entry.run.id, quantity);
  if (!glance) {
    if (entry.summary.steps > 0 && entry.run.status != RunStatus::running)
      commands.push_back(LoadGlance{entry.run.id, quantity});
    return;
  }
  if (glance->x.size() < 2) return;
  // A spike of the first steps must not press the rest flat: the axis ends at the highest of the later nine tenths.
  double low = glance->y.front();
  double high = -std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < glance->y.size(); ++i) {
    low = std::min(low, glance->y[i]);
    if (i >= glance->y.size() / 10) high = std::max(high, glance->y[i]);
  }
  if (!(high > low)) high = low + 1;
  const double x0 = glance->x.front();
  const double across = std::max(glance->x.back() - x0, 1e-9);
  ImDrawList* draw = ImGui::GetWindowDrawList();
  draw->PathClear();
  for (std::size_t i = 0; i < glance->x.size(); ++i) {
    const double share = std::clamp((glance->y[i] - low) / (high - low), 0.0, 1.0);
    draw->PathLineTo(ImVec2(at.x + width * static_cast<float>((glance->x[i] - x0) / across),
                            at.y + px(2) + (height - px(4)) * static_cast<float>(1 - share)));
  }
  draw->PathStroke(u32(rung_colour(entry.run.rung)), 0, px(1.2f));
}

void click(State& state, const RunEntry& entry, const Workspace& workspace, Commands& commands) {
  const bool is_selected = workspace.selected_runs.contains(entry.run.id);
  if (ImGui::GetIO().KeyShift && state.last_clicked != 0) {  // all between
    std::size_t from = state.rows.size();
    std::size_t to = state.rows.size();
    for (std::size_t i = 0; i < state.rows.size(); ++i) {
      if (!state.rows[i].entry) continue;
      if (state.rows[i].entry->run.id == state.last_clicked) from = i;
      if (state.rows[i].entry->run.id == entry.run.id) to = i;
    }
    if (from < state.rows.size() && to < state.rows.size()) {
      for (std::size_t i = std::min(from, to); i <= std::max(from, to); ++i) {
        if (state.rows[i].entry) commands.push_back(SelectRun{state.rows[i].entry->run.id, true});
      }
      return;
    }
  }
  commands.push_back(SelectRun{entry.run.id, !is_selected});
  state.last_clicked = entry.run.id;
}

void draw_name(State& state, const Row& row, Commands& commands) {
  const RunEntry& entry = *row.entry;
  if (row.depth > 0) {
    ImGui::Dummy(ImVec2(px(14) * static_cast<float>(std::min(row.depth, 8)), 1));
    ImGui::SameLine(0, 0);
  }
  if (state.renaming == entry.run.id) {
    ImGui::SetNextItemWidth(-1);
    ImGui::SetKeyboardFocusHere();
    ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(px(6), px(2)));
    const bool done = ImGui::InputText("##name", state.name.data(), state.name.size(),
                                       ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_AutoSelectAll);
    ImGui::PopStyleVar();
    mark("history.name.field");
    if (done) commands.push_back(RenameRun{entry.run.id, state.name.data()});
    if (done || ImGui::IsKeyPressed(ImGuiKey_Escape)) state.renaming = 0;
    return;
  }
  float room = ImGui::GetContentRegionAvail().x;
  if (entry.curation.pinned) {
    text_toned("*", Tone::accent);
    ImGui::SetItemTooltip("pinned");
    ImGui::SameLine(0, px(6));
    room = ImGui::GetContentRegionAvail().x;
  }
  text_cut(entry.run.name, room, entry.curation.archived ? palette().quiet : palette().text, fonts().regular,
           text_size);
}

void draw_tags(const RunEntry& entry) {
  const float end = ImGui::GetCursorScreenPos().x + ImGui::GetContentRegionAvail().x;
  bool first = true;
  for (const std::string& tag : entry.curation.tags) {
    if (!first) ImGui::SameLine(0, px(4));
    if (!first && ImGui::GetCursorScreenPos().x + pill_size(tag).x > end) {
      text_quiet("...");
      ImGui::SetItemTooltip("%s", tags_text(entry.curation.tags).c_str());
      return;
    }
    pill(tag, Tone::accent);
    first = false;
  }
}

void draw_cell(const RunColumn& column, const RunEntry& entry, const ColumnContext& context, Commands& commands) {
  switch (column.kind) {
    case ColumnKind::spark:
      return draw_spark(entry, column.id == "spark_dt" ? Quantity::dt_ms : Quantity::loss, *context.workspace,
                        commands);
    case ColumnKind::status:
      return pill(std::string(to_string(entry.run.status)), status_tone(entry.run.status));
    case ColumnKind::tags:
      return draw_tags(entry);
    case ColumnKind::number: {
      const std::string text = cell_text(column.id, entry, context);
      const ImVec4* colour = text == "-" ? &palette().quiet : &palette().text;
      return text_right(text, ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x, nullptr, 0, colour);
    }
    case ColumnKind::text:
      break;
  }
  const std::string text = cell_text(column.id, entry, context);
  text_cut(text.empty() ? "-" : text, ImGui::GetContentRegionAvail().x, text.empty() ? palette().quiet : palette().text,
           fonts().regular, text_size);
}

void draw_row(State& state, const Row& row, const std::vector<const RunColumn*>& columns, const ColumnContext& context,
              Commands& commands) {
  const RunEntry& entry = *row.entry;
  const Workspace& workspace = *context.workspace;
  const bool is_selected = workspace.selected_runs.contains(entry.run.id);
  ImGui::PushID(static_cast<int>(entry.run.id));
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  if (ImGui::Selectable("##row", is_selected, ImGuiSelectableFlags_SpanAllColumns | ImGuiSelectableFlags_AllowOverlap,
                        ImVec2(0, px(22))))
    click(state, entry, workspace, commands);
  if (ImGui::IsItemHovered() && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left))
    commands.push_back(OpenRun{entry.run.id});
  mark("history.run." + std::to_string(entry.run.id));
  if (!entry.run.reason.empty()) ImGui::SetItemTooltip("%s", entry.run.reason.c_str());
  draw_row_menu(state, entry, workspace, commands);
  ImGui::SameLine(px(4));
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const ImVec4 colour = rung_colour(entry.run.rung);
  const ImVec2 low(at.x, at.y + px(5));
  const ImVec2 high(at.x + px(12), at.y + px(17));
  if (is_selected) {
    draw->AddRectFilled(low, high, u32(colour), px(3));
  } else {
    draw->AddRect(low, high, u32(colour, 0.7f), px(3), 0, px(1.5f));
  }
  ImGui::TableNextColumn();
  draw_name(state, row, commands);
  for (const RunColumn* column : columns) {
    ImGui::TableNextColumn();
    draw_cell(*column, entry, context, commands);
  }
  ImGui::PopID();
}

void draw_group_head(State& state, const Row& row) {
  ImGui::PushID(row.head.c_str());
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  const bool folded = state.folded.contains(row.head);
  if (ImGui::Selectable("##head", false, ImGuiSelectableFlags_SpanAllColumns, ImVec2(0, px(22)))) {
    if (folded) {
      state.folded.erase(row.head);
    } else {
      state.folded.insert(row.head);
    }
  }
  ImGui::SameLine(px(4));
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float x = at.x + px(6);
  const float y = at.y + px(11);
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const ImU32 ink = u32(palette().quiet);
  if (folded) {
    draw->AddTriangleFilled(ImVec2(x - px(3), y - px(5)), ImVec2(x - px(3), y + px(5)), ImVec2(x + px(4), y), ink);
  } else {
    draw->AddTriangleFilled(ImVec2(x - px(5), y - px(3)), ImVec2(x + px(5), y - px(3)), ImVec2(x, y + px(4)), ink);
  }
  ImGui::TableNextColumn();
  text_cut(row.head + "   " + grouped(static_cast<std::int64_t>(row.runs)), ImGui::GetContentRegionAvail().x,
           palette().text, fonts().semibold, text_size);
  ImGui::PopID();
}

// As ImGui's own, with the names of numbers over the numbers' right edge.
void draw_head_row(const std::vector<const RunColumn*>& columns) {
  ImGui::TableNextRow(ImGuiTableRowFlags_Headers);
  for (int column = 0; column < static_cast<int>(columns.size()) + 2; ++column) {
    if (!ImGui::TableSetColumnIndex(column)) continue;
    const char* name = ImGui::TableGetColumnName(column);
    ImGui::PushID(column);
    if (column >= 2 && columns[static_cast<std::size_t>(column) - 2]->kind == ColumnKind::number) {
      const float right = ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x;
      const ImVec2 at = ImGui::GetCursorPos();
      ImGui::TableHeader("##number");
      ImGui::SetCursorPos(at);
      text_right(name, right, fonts().regular, small_size, &palette().quiet);
    } else {
      ImGui::TableHeader(name);
    }
    ImGui::PopID();
  }
}

// What a narrow table can do without goes from the right end of this list.
std::vector<const RunColumn*> fitting_columns(const State& state, float width) {
  std::vector<const RunColumn*> columns;
  for (const std::string& id : state.columns) {
    if (const RunColumn* column = column_of(state, id)) columns.push_back(column);
  }
  constexpr std::array given_up{"hardware", "tags",         "stage",      "val_loss_last", "created",
                                "factor",   "dt_ms_median", "spark_loss", "loss_last"};
  const auto wanted = [&] {
    float sum = px(200);
    for (const RunColumn* column : columns) {
      const bool stretches = column->kind == ColumnKind::text || column->kind == ColumnKind::tags;
      sum += px(stretches ? 90 * column->width : column->width) + px(20);
    }
    return sum;
  };
  for (const char* id : given_up) {
    if (wanted() <= width) break;
    std::erase_if(columns, [&](const RunColumn* column) { return column->id == id; });
  }
  return columns;
}

void draw_table(State& state, const Workspace& workspace, Commands& commands) {
  constexpr ImGuiTableFlags flags =
      ImGuiTableFlags_Sortable | ImGuiTableFlags_SortTristate | ImGuiTableFlags_Resizable |
      ImGuiTableFlags_Reorderable | ImGuiTableFlags_ScrollX | ImGuiTableFlags_ScrollY | ImGuiTableFlags_BordersInnerH |
      ImGuiTableFlags_NoBordersInBody | ImGuiTableFlags_SizingStretchProp | ImGuiTableFlags_PadOuterX;
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const std::vector<const RunColumn*> columns = fitting_columns(state, room.x);
  // A table for each set of columns, so that each keeps its own widths and order.
  std::string id = "##runs";
  for (const RunColumn* column : columns) id += "," + column->id;
  if (!ImGui::BeginTable(id.c_str(), static_cast<int>(columns.size()) + 2, flags, room)) return;
  ImGui::TableSetupScrollFreeze(2, 1);
  constexpr ImGuiTableColumnFlags fixed = ImGuiTableColumnFlags_WidthFixed;
  ImGui::TableSetupColumn(
      "##on", fixed | ImGuiTableColumnFlags_NoSort | ImGuiTableColumnFlags_NoResize | ImGuiTableColumnFlags_NoReorder,
      px(20));
  ImGui::TableSetupColumn("run", ImGuiTableColumnFlags_WidthStretch | ImGuiTableColumnFlags_NoReorder, 4.2f);
  for (const RunColumn* column : columns) {
    const bool stretches = column->kind == ColumnKind::text || column->kind == ColumnKind::tags;
    ImGuiTableColumnFlags own = stretches ? ImGuiTableColumnFlags_WidthStretch : fixed;
    if (column->kind == ColumnKind::spark) own |= ImGuiTableColumnFlags_NoSort;
    if (column->kind == ColumnKind::number) own |= ImGuiTableColumnFlags_PreferSortDescending;
    if (column->id == state.sorted_by) {
      own |= ImGuiTableColumnFlags_DefaultSort;
      own |= state.ascending ? ImGuiTableColumnFlags_PreferSortAscending : ImGuiTableColumnFlags_PreferSortDescending;
    }
    ImGui::TableSetupColumn(column->title.c_str(), own, stretches ? column->width : px(column->width));
  }
  ImGui::PushFont(fonts().regular, small_size);
  ImGui::PushStyleColor(ImGuiCol_Text, palette().quiet);
  draw_head_row(columns);
  ImGui::PopStyleColor();
  ImGui::PopFont();
  if (const ImGuiTableSortSpecs* specs = ImGui::TableGetSortSpecs(); specs && specs->SpecsCount > 0) {
    const int column = specs->Specs[0].ColumnIndex;
    state.sorted_by = column < 2 ? "name" : columns[static_cast<std::size_t>(column) - 2]->id;
    state.ascending = specs->Specs[0].SortDirection == ImGuiSortDirection_Ascending;
  }
  take_rows(state, workspace);
  const ColumnContext context{&workspace, state.baseline};
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(state.rows.size()));
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      const Row& row = state.rows[static_cast<std::size_t>(i)];
      if (row.entry) {
        draw_row(state, row, columns, context, commands);
      } else {
        draw_group_head(state, row);
      }
    }
  }
  ImGui::EndTable();
}

// --- What stands over the table ------------------------------------------------------------------------------------

void draw_column_choice(State& state, const RunColumn& column) {
  const auto place = std::find(state.columns.begin(), state.columns.end(), column.id);
  bool on = place != state.columns.end();
  ImGui::TableNextColumn();
  if (ImGui::Checkbox((column.title + "##" + column.id).c_str(), &on)) {
    if (on) {
      state.columns.push_back(column.id);
    } else {
      state.columns.erase(place);
    }
  }
  mark("history.column." + column.id);
}

void draw_column_popup(State& state) {
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(px(14), px(12)));
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(px(4), px(3)));
  ImGui::SetNextWindowSizeConstraints(ImVec2(px(300), 0), ImVec2(px(900), px(620)));
  if (ImGui::BeginPopup("##columns")) {
    for (const bool of_recipe : {false, true}) {
      if (of_recipe) ImGui::Dummy(ImVec2(0, px(4)));
      text_quiet(of_recipe ? "Of the recipe" : "Measured, and said of it");
      if (!ImGui::BeginTable(of_recipe ? "##recipe" : "##measured", 4, ImGuiTableFlags_SizingFixedFit)) continue;
      for (const RunColumn& column : state.known) {
        if (column.id.starts_with("recipe.") == of_recipe) draw_column_choice(state, column);
      }
      ImGui::EndTable();
    }
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar(2);
}

// The table as it stands: its rows in their order, its columns.
std::vector<std::vector<std::string>> shown_table(const State& state, const Workspace& workspace) {
  const ColumnContext context{&workspace, state.baseline};
  std::vector<const RunColumn*> columns;
  for (const std::string& id : state.columns) {
    if (const RunColumn* column = column_of(state, id); column && column->kind != ColumnKind::spark)
      columns.push_back(column);
  }
  std::vector<std::vector<std::string>> rows(1, {"run"});
  for (const RunColumn* column : columns) rows.front().push_back(column->title);
  for (const Row& row : state.rows) {
    if (!row.entry) continue;
    rows.push_back({row.entry->run.name});
    for (const RunColumn* column : columns) rows.back().push_back(cell_text(column->id, *row.entry, context));
  }
  return rows;
}

void draw_export_popup(const State& state, const Workspace& workspace, Commands& commands) {
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(px(10), px(8)));
  if (ImGui::BeginPopup("##export")) {
    if (ImGui::MenuItem("Copy the table as Markdown"))
      commands.push_back(CopyText{markdown_table(shown_table(state, workspace)), "The table"});
    mark("history.export.copy");
    if (ImGui::MenuItem("Copy the table as CSV"))
      commands.push_back(CopyText{csv_table(shown_table(state, workspace)), "The table"});
    if (ImGui::MenuItem("Save the table as CSV"))
      commands.push_back(SaveText{"runs", ".csv", csv_table(shown_table(state, workspace))});
    mark("history.export.csv");
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar();
}

void draw_bar(State& state, const Workspace& workspace, Commands& commands) {
  ImGui::SetNextItemWidth(std::min(px(420), ImGui::GetContentRegionAvail().x * 0.4f));
  ImGui::InputTextWithHint("##filter", "filter: nano status=finished tokens_per_s>20000 batch=12 tags~night",
                           state.filter.data(), state.filter.size());
  mark("history.filter");
  flow_to("grouped by", 12);
  int group = static_cast<int>(state.group);
  if (choice("##group", "grouped by", group, group_names, px(150))) state.group = static_cast<Group>(group);
  mark("history.group");
  flow_to("Columns");
  if (ImGui::Button("Columns")) ImGui::OpenPopup("##columns");
  mark("history.columns");
  draw_column_popup(state);
  flow_to("Export");
  if (ImGui::Button("Export")) ImGui::OpenPopup("##export");
  mark("history.export");
  draw_export_popup(state, workspace, commands);
  std::size_t archived = 0;
  for (const RunEntry& entry : workspace.runs()) archived += entry.curation.archived ? 1 : 0;
  if (archived > 0 || state.archived) {
    ImGui::SameLine(0, px(8));
    if (chip(("archived: " + std::to_string(archived)).c_str(), state.archived)) state.archived = !state.archived;
    mark("history.archived");
  }
  if (state.filter[0] != 0) {
    ImGui::SameLine(0, px(12));
    ImGui::AlignTextToFramePadding();
    text_quiet(state.filter_problem.empty() ? grouped(static_cast<std::int64_t>(state.matching)) + " match"
                                            : state.filter_problem);
  }
}

void draw_selection_bar(State& state, const Workspace& workspace, Commands& commands) {
  const std::vector<const RunEntry*> entries = selected_entries(workspace);
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    if (i > 0) ImGui::SameLine(0, px(4));
    ImGui::PushStyleColor(ImGuiCol_Button, i == state.metric ? faded(palette().accent, 0.2f) : ImVec4(0, 0, 0, 0));
    ImGui::PushStyleColor(ImGuiCol_Border, ImVec4(0, 0, 0, 0));
    if (ImGui::Button(metrics[i].title)) state.metric = i;
    ImGui::PopStyleColor(2);
    mark("history.metric." + std::to_string(i));
  }
  ImGui::SameLine(0, px(20));
  ImGui::AlignTextToFramePadding();
  text_quiet(runs_text(entries.size()) + " selected");
  flow_to("Compare");
  if (quiet_button("Compare")) commands.push_back(ShowPanel{"compare"});
  mark("history.compare");
  flow_to("Tag");
  if (quiet_button("Tag")) state.open_tag = true;
  mark("history.tag");
  draw_tag_popup(state, entries, commands);
  flow_to("Pin");
  if (quiet_button("Pin")) pin(entries, commands);
  mark("history.pin");
  flow_to("Archive");
  if (quiet_button("Archive")) archive(entries, commands);
  mark("history.archive");
  flow_to("Delete");
  if (quiet_button("Delete")) remove(entries, commands);
  mark("history.delete");
  ImGui::SetItemTooltip("Into the bin. Ctrl+Z takes them back; after 30 days they are gone for good.");
  flow_to("Clear selection");
  if (quiet_button("Clear selection")) commands.push_back(ClearSelection{});
  mark("history.clear");
}

void draw_overlay(State& state, const Workspace& workspace, Commands& commands) {
  if (workspace.selected_runs.empty()) {
    empty_state("No run is selected.",
                "Click runs in the table: their curves are laid over each other here. Shift takes all between.");
    return;
  }
  draw_selection_bar(state, workspace, commands);
  const OverlayMetric& metric = metrics[state.metric];
  // A rung keeps its colour; where two selected runs share one, the later takes a colour that is free.
  std::vector<int> colours;
  Chart chart{.id = "overlay",
              .title = metric.title,
              .x_label = "step",
              .unit = metric.unit,
              .from_zero = metric.quantity != Quantity::loss,
              .shared = &state.x,
              .commands = &commands};
  const std::size_t count = workspace.selected_runs.size();
  std::int64_t behind = 0;  // values that are shown by the lowest and highest of their neighbours
  for (const RunId id : workspace.selected_runs) {
    const RunEntry* entry = workspace.find(id);
    if (!entry) continue;
    int colour = entry->run.rung % rung_colour_count;
    for (int tries = 0; tries < rung_colour_count && std::find(colours.begin(), colours.end(), colour) != colours.end();
         ++tries)
      colour = (colour + 1) % rung_colour_count;
    colours.push_back(colour);
    Curve curve{.label = entry->run.name + "##" + std::to_string(id),
                .colour = rung_colour(colour),
                .weight = count > 12 ? 1.0f : 1.7f,
                .in_legend = count <= 8,
                .order = static_cast<int>(colours.size()),
                .dash = colour};
    // Few runs: what was zoomed to is read as finely as the window is wide.
    const RunPoints points =
        run_points(workspace, *entry, metric.quantity, count <= 8 ? &state.x : nullptr, commands, Reads::glance);
    if (!points.levels) continue;
    curve.x = points.x;
    curve.y = points.y;
    curve.levels = points.levels;
    behind += points.behind;
    chart.curves.push_back(std::move(curve));
  }
  chart.note = behind_text(behind);
  draw_chart(chart);
}

void handle_keys(State& state, const Workspace& workspace, Commands& commands) {
  if (ImGui::GetIO().WantTextInput || !ImGui::IsWindowFocused(ImGuiFocusedFlags_ChildWindows)) return;
  const std::vector<const RunEntry*> entries = selected_entries(workspace);
  if (ImGui::IsKeyPressed(ImGuiKey_Delete, false) && !entries.empty()) remove(entries, commands);
  if (ImGui::IsKeyPressed(ImGuiKey_F2, false) && entries.size() == 1) {
    state.renaming = entries.front()->run.id;
    std::snprintf(state.name.data(), state.name.size(), "%s", entries.front()->run.name.c_str());
  }
  if (ImGui::IsKeyChordPressed(ImGuiMod_Ctrl | ImGuiKey_A)) {
    std::vector<RunId> all;
    for (const Row& row : state.rows) {
      if (row.entry) all.push_back(row.entry->run.id);
    }
    commands.push_back(SelectRuns{std::move(all)});
  }
}

std::string remember(const State& state) {
  return nlohmann::json{{"columns", state.columns},     {"sorted_by", state.sorted_by},
                        {"ascending", state.ascending}, {"group", static_cast<int>(state.group)},
                        {"archived", state.archived},   {"filter", state.filter.data()},
                        {"metric", state.metric}}
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void recall(State& state, const std::string& text) {
  try {
    const nlohmann::json json = nlohmann::json::parse(text);
    state.columns = json.value("columns", state.columns);
    state.sorted_by = json.value("sorted_by", state.sorted_by);
    state.ascending = json.value("ascending", state.ascending);
    if (const int group = json.value("group", 0); group >= 0 && group < static_cast<int>(group_names.size()))
      state.group = static_cast<Group>(group);
    state.archived = json.value("archived", false);
    state.metric = std::min(json.value("metric", std::size_t{0}), metrics.size() - 1);
    std::snprintf(state.filter.data(), state.filter.size(), "%s", json.value("filter", std::string()).c_str());
  } catch (const nlohmann::json::exception&) {  // of another version: the defaults will do
  }
}

void draw(State& state, const Workspace& workspace, Commands& commands) {
  text_title("History");
  text_cut(workspace.database.empty() ? "There is no database yet"
                                      : runs_text(workspace.runs().size()) + " in " + workspace.database,
           ImGui::GetContentRegionAvail().x, palette().quiet, fonts().regular, small_size);
  if (workspace.runs().empty()) {
    empty_state("No runs yet.", "Start a ladder in Launch; every run that ever ran stays here.");
    return;
  }
  take_known(state, workspace);
  state.x.begin_frame();
  ImGui::Dummy(ImVec2(0, px(2)));
  draw_bar(state, workspace, commands);
  handle_keys(state, workspace, commands);
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const float gap = px(16);
  const float overlay = workspace.selected_runs.empty() ? px(92) : std::max(px(240), room.y * 0.44f);
  begin_card("##table", ImVec2(0, std::max(px(120), room.y - gap - overlay)));
  draw_table(state, workspace, commands);
  end_card();
  ImGui::Dummy(ImVec2(0, gap - ImGui::GetStyle().ItemSpacing.y * 2));
  begin_card("##overlay", ImVec2(0, 0));
  draw_overlay(state, workspace, commands);
  end_card();
}

}  // namespace

Panel panels::history() {
  const auto state = std::make_shared<State>();
  return {.id = "history",
          .title = "History",
          .draw = [state](const Workspace& workspace, Commands& commands) { draw(*state, workspace, commands); },
          .remember = [state] { return remember(*state); },
          .recall = [state](const std::string& text) { recall(*state, text); }};
}

}  // namespace stepladder
