// Derives and draws the rows of the project's and of published runs. Rows are derived when runs or convention change,
// and sorted and filtered when those change; the project's own runs are first, and unknown values last in either order.
#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "app/desktop/run_widgets.h"
#include "app/desktop/theme.h"
#include "app/desktop/widgets.h"
#include "app/host/environment.h"
#include "app/panels/mfu/parts.h"
#include "app/runs/examples.h"
#include "app/text/format.h"

namespace stepladder {
namespace {

std::string points_text(double difference) {
  if (is_missing(difference)) return "-";
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%+.2f", 100 * difference);
  return std::fabs(difference) < 0.00005 ? "0.00" : text.data();
}

void read_published_once(MfuTable& table, const std::string& imported) {
  if (table.has_read && table.seen_imported == imported) return;
  table.has_read = true;
  table.seen_imported = imported;
  try {
    table.published = with_imported(read_published(assets_folder() / "mosaic-mfu.csv"), imported);
  } catch (const StorageError& error) {
    table.published_problem = error.what();
  }
}

// A narrow table shows only the beginning of a name, so the stage, which distinguishes runs of one file, is first:
// "TF32 #2, nano" of "nano: TF32 #2".
std::string name_of(const Run& run) {
  const std::size_t at = run.title.empty() ? std::string::npos : run.name.rfind(" " + run.title);
  if (at == std::string::npos)
    return run.title.empty() || run.title == run.name ? run.name : run.title + ", " + run.name;
  const std::string before = run.name.substr(0, at - (at > 0 && run.name[at - 1] == ':' ? 1 : 0));
  return run.name.substr(at + 1) + (before.empty() ? "" : ", " + before);
}

MfuRow row_of(const RunEntry& entry, MfuConvention convention, const HardwareTable& table) {
  const Run& run = entry.run;
  const ModelShape shape = shape_of(run, entry.summary);
  const Peak peak = peak_of(run, table);
  const RunUtilisation use = assumed_utilisation_of(run, entry.summary, table, convention);
  MfuRow row{.run = run.id,
             .name = name_of(run),
             .hardware = hardware_text(run),
             .devices = peak.devices,
             .seq = shape.seq_len,
             .params = shape.params,
             .tokens_per_s = entry.summary.tokens_per_s,
             .doubt = speed_doubt(entry, table),
             .is_example = is_example(run)};
  row.mfu = use.mfu;
  if (is_missing(row.mfu)) {
    row.remark = is_missing(row.tokens_per_s) ? "Unknown throughput."
                 : shape.params == 0 ? "Unknown parameter count. Import the run again with it, or enter N above."
                 : is_missing(use.flops_per_token) ? "This convention needs layers, width and context; 6N needs only N."
                 : run.hardware.empty()            ? "Unknown hardware."
                                                   : "The hardware table has no peak for " + row.hardware + ".";
    return row;
  }
  row.peak = peak.precision;
  row.is_assumed = !use.assumed.empty();
  row.remark = row.doubt.why.empty() ? use.assumed : row.doubt.why + ". " + use.assumed;
  return row;
}

MfuRow row_of(const PublishedRow& published, std::size_t index, MfuConvention convention, const HardwareTable& table) {
  const Hardware* gpu = table.find(published.gpu);
  // The tables' starred MFU is 6N; every other convention counts attention, like their MFU without a star.
  const bool starred = convention == MfuConvention::six_n;
  const MosaicFigures again = recompute(published);
  MfuRow row{.published = index,
             .name = published.model,
             .hardware = gpu ? gpu->name : published.gpu,
             .devices = published.gpus,
             .seq = published.shape.seq_len,
             .params = published.shape.params,
             .tokens_per_s = published.tokens_per_s,
             .stated = starred ? published.published.mfu_star : published.published.mfu,
             .computed = starred ? again.mfu_star : again.mfu,
             .remark = disagreement(published.published, again)};
  if (gpu) {
    row.peak = Precision::bf16;
    row.mfu = utilisation(flops_per_token(convention, published.shape), published.tokens_per_s,
                          peak_of(*gpu, row.peak) * published.gpus);
  }
  return row;
}

// Rows with figures first, then impossible ones, and last those without a value.
int rank_of(const MfuRow& row, double value) {
  return is_missing(value) ? 2 : row.doubt.trust == Trust::impossible ? 1 : 0;
}

double sort_value(const MfuRow& row, int column) {
  switch (column) {
    case column_seq:
      return static_cast<double>(row.seq);
    case column_params:
      return static_cast<double>(row.params);
    case column_tokens:
      return row.tokens_per_s;
    case column_said:
      return row.stated;
    case column_computed:
      return row.computed;
    case column_difference:
      return row.difference();
    default:
      return row.mfu;
  }
}

void take_shown(MfuTable& table) {
  if (!table.must_sort && table.seen_filter == table.filter.data()) return;
  table.must_sort = false;
  table.seen_filter = table.filter.data();
  table.shown.clear();
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const MfuRow& row = table.rows[i];
    const char* kind = row.run == 0 ? " published" : row.is_example ? " example" : " yours";
    if (holds(row.name + " " + row.hardware + kind, table.seen_filter)) table.shown.push_back(i);
  }
  for (int column = column_seq; column < column_count; ++column)
    table.has_value[static_cast<std::size_t>(column)] = std::ranges::any_of(table.shown, [&](std::size_t i) {
      const double value = sort_value(table.rows[i], column);
      return column == column_peak ? table.rows[i].peak != Precision::unknown
                                   : !is_missing(value) && (value > 0 || column == column_difference);
    });
  const int column = table.sorted_by;
  std::stable_sort(table.shown.begin(), table.shown.end(), [&](std::size_t a, std::size_t b) {
    const MfuRow& x = table.rows[a];
    const MfuRow& y = table.rows[b];
    if ((x.run == 0) != (y.run == 0)) return x.run != 0;  // the project's own first
    if (column == column_name || column == column_hardware) {
      const std::string& left = column == column_name ? x.name : x.hardware;
      const std::string& right = column == column_name ? y.name : y.hardware;
      return table.ascending ? left < right : right < left;
    }
    const double left = sort_value(x, column);
    const double right = sort_value(y, column);
    const int left_rank = rank_of(x, left), right_rank = rank_of(y, right);  // the same in either order
    if (left_rank != right_rank || left_rank == 2) return left_rank < right_rank;
    if (column == column_peak && x.peak != y.peak) return (x.peak > y.peak) != table.ascending;
    return table.ascending ? left < right : right < left;
  });
}

void draw_head_row() {
  ImGui::PushFont(fonts().regular, small_size);
  ImGui::PushStyleColor(ImGuiCol_Text, palette().quiet);
  ImGui::TableNextRow(ImGuiTableRowFlags_Headers);
  for (int column = 0; column < column_count; ++column) {
    if (!ImGui::TableSetColumnIndex(column)) continue;
    const char* name = ImGui::TableGetColumnName(column);
    column_head(name, column >= column_seq);
    mark(std::string("mfu.column.") + name);
  }
  ImGui::PopStyleColor();
  ImGui::PopFont();
}

void draw_row(const MfuTable& table, MfuForm& form, const MfuRow& row, std::size_t place, const Workspace& workspace) {
  ImGui::PushID(static_cast<int>(place));
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  const bool is_shown = row.run != 0 && row.run == form.run;
  if (ImGui::Selectable("##row", is_shown, ImGuiSelectableFlags_SpanAllColumns | ImGuiSelectableFlags_AllowOverlap,
                        ImVec2(0, px(20)))) {
    if (row.run == 0) {
      fill_from_published(form, table.published[row.published], workspace.hardware);
    } else if (const RunEntry* entry = workspace.find(row.run)) {
      fill_from_run(form, *entry, workspace.hardware);
    }
  }
  mark("mfu.row." + std::to_string(place));
  if (row.run != 0) mark("mfu.run." + std::to_string(row.run));
  wrapped_tooltip(row.name + (row.remark.empty() ? "" : "\n" + row.remark), 440);
  ImGui::SameLine(0, 0);
  const RunEntry* own = workspace.find(row.run);
  colour_square(own ? rung_colour(workspace.colour_of(own->run)) : faded(palette().quiet, 0.35f));
  same_line(8);
  text_cut(row.name, ImGui::GetContentRegionAvail().x, palette().text, fonts().regular, 13.5f);
  if (ImGui::TableNextColumn()) {
    const std::string count =
        row.devices > 1 && !row.hardware.empty() && row.run == 0 ? grouped(row.devices) + " \xC3\x97 " : "";
    text_cut(row.hardware.empty() ? "-" : count + row.hardware, ImGui::GetContentRegionAvail().x, palette().quiet,
             fonts().regular, 13.5f);
  }
  const auto number = [&](const std::string& text, const ImVec4& colour) {
    if (!ImGui::TableNextColumn()) return;
    text_right(text, ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x, fonts().regular, 13.5f, &colour);
  };
  number(row.seq > 0 ? grouped(row.seq) : "-", palette().quiet);
  number(row.params > 0 ? compact(static_cast<double>(row.params)) : "-", palette().quiet);
  const bool is_doubted = row.doubt.trust != Trust::trusted;
  number(tokens_per_s_text(row.tokens_per_s), is_doubted ? palette().quiet : palette().text);
  number(percent(row.stated), palette().text);
  number(percent(row.computed), palette().quiet);
  const bool differs = std::fabs(row.difference()) >= 0.00005;
  number(points_text(row.difference()), differs ? palette().warning : palette().quiet);
  number(row.peak == Precision::unknown ? "-" : std::string(to_string(row.peak)), palette().quiet);
  const Tone tone = tone_of_share(row.mfu);
  const bool is_impossible = row.doubt.trust == Trust::impossible;
  number((row.is_assumed ? "~" : "") + percent(row.mfu), is_impossible                  ? palette().bad
                                                         : is_doubted || row.is_assumed ? palette().quiet
                                                         : tone != Tone::neutral        ? tone_colour(tone)
                                                                                        : palette().text);
  ImGui::PopID();
}

// The number of rows, and the filter.
void draw_head(MfuTable& table, MfuConvention convention) {
  text_strong("Runs");
  ImGui::SameLine();
  ImGui::SetCursorPosY(ImGui::GetCursorPosY() + px(2));
  const float field = px(150);
  const auto examples = std::ranges::count_if(table.rows, &MfuRow::is_example);
  const auto own = std::ssize(table.rows) - std::ssize(table.published) - examples;
  // The tables' starred MFU is 6N; every other convention is compared with their MFU without a star.
  const char* figure = convention == MfuConvention::six_n ? "MFU* (6 N)" : "MFU (6 N + 4 L d T)";
  const auto impossible =
      std::ranges::count_if(table.rows, [](const MfuRow& row) { return rank_of(row, row.mfu) == 1; });
  const std::string counts = table.published_problem.empty()
                                 ? grouped(own) + " yours, " +
                                       (examples > 0 ? plural(examples, "example") + ", " : "") +
                                       (impossible > 0 ? grouped(impossible) + " of them impossible, " : "") +
                                       grouped(table.published.size()) + " published as " + figure
                                 : "published runs missing: " + table.published_problem;
  text_cut(counts, std::max(px(20), ImGui::GetContentRegionAvail().x - field - px(20)),
           table.published_problem.empty() ? palette().quiet : palette().bad, fonts().regular, small_size);
  ImGui::SameLine(ImGui::GetContentRegionMax().x - field);
  ImGui::SetCursorPosY(ImGui::GetCursorPosY() - px(7));
  ImGui::SetNextItemWidth(field);
  ImGui::PushFont(fonts().regular, small_size);
  ImGui::InputTextWithHint("##filter", "Filter", table.filter.data(), table.filter.size());
  ImGui::PopFont();
  mark("mfu.filter");
}

}  // namespace

void derive_rows(MfuTable& table, const Workspace& workspace, MfuConvention convention) {
  const std::vector<RunEntry>& runs = workspace.runs();
  const HardwareTable& hardware = workspace.hardware;
  read_published_once(table, workspace.published_mfu);
  table.must_sort = true;
  table.rows.clear();
  std::map<std::string, int> named;
  for (const RunEntry& entry : runs) {
    table.rows.push_back(row_of(entry, convention, hardware));
    ++named[table.rows.back().name];
  }
  for (MfuRow& row : table.rows)
    if (named[row.name] > 1) row.name += ", run " + std::to_string(row.run);
  for (std::size_t i = 0; i < table.published.size(); ++i)
    table.rows.push_back(row_of(table.published[i], i, convention, hardware));
}

std::string mfu_answer(const MfuTable& table) {
  const MfuRow* best = nullptr;
  std::int64_t own = 0, unknown = 0, impossible = 0;
  for (const MfuRow& row : table.rows) {
    if (row.run == 0 || row.is_example) continue;
    ++own;
    const int rank = rank_of(row, row.mfu);
    (rank == 2 ? unknown : impossible) += rank > 0 ? 1 : 0;
    if (rank == 0 && (!best || row.mfu > best->mfu)) best = &row;
  }
  if (own == 0) return "";
  std::string text = best ? "Best: " + best->name + ", " + (best->is_assumed ? "about " : "") + percent(best->mfu) +
                                " of the " + std::string(to_string(best->peak)) + " peak of " + best->hardware + "."
                          : "No run has a share: it takes throughput, parameters and a device whose peak is known.";
  if (best && unknown > 0)
    text += " " + grouped(unknown) + " of " + plural(own, "run") + (unknown == 1 ? " has" : " have") + " no share.";
  if (impossible > 0) text += " " + grouped(impossible) + (impossible == 1 ? " is" : " are") + " impossible.";
  return text;
}

std::string published_range(const MfuTable& table) {
  double low = missing;
  double high = missing;
  for (const MfuRow& row : table.rows) {
    if (row.run != 0 || is_missing(row.mfu)) continue;
    low = is_missing(low) ? row.mfu : std::min(low, row.mfu);
    high = is_missing(high) ? row.mfu : std::max(high, row.mfu);
  }
  return is_missing(low) ? "" : percent(low) + " to " + percent(high);
}

void draw_mfu_table(MfuTable& table, MfuForm& form, MfuConvention convention, const Workspace& workspace) {
  draw_head(table, convention);
  constexpr ImGuiTableFlags flags = ImGuiTableFlags_Sortable | ImGuiTableFlags_Resizable | ImGuiTableFlags_Hideable |
                                    ImGuiTableFlags_ScrollY | ImGuiTableFlags_BordersInnerH |
                                    ImGuiTableFlags_NoBordersInBody | ImGuiTableFlags_SizingStretchProp;
  ImVec2 room = ImGui::GetContentRegionAvail();
  room.x = std::min(room.x, px(1600));  // wider, a name would be far from its numbers
  take_shown(table);
  ImGui::PushStyleVar(ImGuiStyleVar_CellPadding, ImVec2(px(6), px(3)));
  if (!ImGui::BeginTable("##runs", column_count, flags, room)) return ImGui::PopStyleVar();
  constexpr ImGuiTableColumnFlags fixed = ImGuiTableColumnFlags_WidthFixed;
  constexpr ImGuiTableColumnFlags most_first = fixed | ImGuiTableColumnFlags_PreferSortDescending;
  const bool is_wide = room.x >= px(840), is_narrow = room.x < px(500);
  const auto setup = [&](const char* name, MfuColumn column, bool has_room, float width) {
    const ImGuiTableColumnFlags absent = has_room && table.has_value[column] ? 0 : ImGuiTableColumnFlags_Disabled;
    ImGui::TableSetupColumn(name, absent | (column == column_seq ? fixed : most_first), px(width));
  };
  ImGui::TableSetupScrollFreeze(0, 1);
  ImGui::TableSetupColumn("run", ImGuiTableColumnFlags_WidthStretch | ImGuiTableColumnFlags_NoHide, 1.8f);
  ImGui::TableSetupColumn("hardware",
                          (is_narrow ? ImGuiTableColumnFlags_Disabled : 0) | ImGuiTableColumnFlags_WidthStretch, 1.3f);
  setup("T", column_seq, is_wide, 58);
  setup("N", column_params, is_wide, 66);
  setup("tokens/s", column_tokens, !is_narrow, 56);
  setup("published", column_said, is_wide, 62);
  setup("recomputed", column_computed, is_wide, 78);
  setup("diff., pp", column_difference, is_wide, 64);
  setup("peak", column_peak, true, 48);
  ImGui::TableSetupColumn("MFU", most_first | ImGuiTableColumnFlags_DefaultSort, px(66));
  draw_head_row();
  if (ImGuiTableSortSpecs* specs = ImGui::TableGetSortSpecs(); specs && specs->SpecsDirty && specs->SpecsCount > 0) {
    table.sorted_by = specs->Specs[0].ColumnIndex;
    table.ascending = specs->Specs[0].SortDirection == ImGuiSortDirection_Ascending;
    table.must_sort = true;
    specs->SpecsDirty = false;
  }
  take_shown(table);
  draw_rows(table.shown.size(),
            [&](std::size_t i) { draw_row(table, form, table.rows[table.shown[i]], i, workspace); });
  ImGui::EndTable();
  ImGui::PopStyleVar();
}

}  // namespace stepladder
