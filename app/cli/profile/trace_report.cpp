// Prints traces and their differences as tables and JSON, for the commands beneath `profile`. Rows below half a percent
// of a step are summed in one line unless all are asked for.
#include "app/cli/profile/trace_report.h"

#include <algorithm>

#include "app/cli/table.h"
#include "app/profile/difference_text.h"
#include "app/profile/trace_owner.h"
#include "app/text/format.h"
#include "storage/bounded_text.h"
#include "storage/traces/trace.h"

namespace stepladder {
namespace {

// Rows below this share of a step are summed in one line.
constexpr double least_share = 0.005;

struct KindMeans {
  KindArray ms{}, busy_ms{};
};

KindMeans kind_means(const TraceProfile& profile) {
  KindMeans means;
  const auto steps = static_cast<double>(profile.steps.size());
  for (const TracedStep& step : profile.steps) {
    for (std::size_t i = 0; i < means.ms.size(); ++i) {
      means.ms[i] += step.ms[i];
      means.busy_ms[i] += step.busy_ms[i];
    }
  }
  for (std::size_t i = 0; i < means.ms.size() && steps > 0; ++i) {
    means.ms[i] /= steps;
    means.busy_ms[i] /= steps;
  }
  return means;
}

std::vector<OperatorKind> kinds_by_time(const KindMeans& means) {
  std::vector<OperatorKind> kinds;
  for (const OperatorKind kind : all_operator_kinds)
    if (means.busy_ms[static_cast<std::size_t>(kind)] > 0) kinds.push_back(kind);
  std::ranges::stable_sort(kinds, [&](OperatorKind a, OperatorKind b) {
    return means.ms[static_cast<std::size_t>(a)] > means.ms[static_cast<std::size_t>(b)];
  });
  return kinds;
}

Json kinds_json(const KindMeans& means) {
  Json kinds = Json::array();
  for (const OperatorKind kind : kinds_by_time(means)) {
    const auto place = static_cast<std::size_t>(kind);
    kinds.push_back({{"kind", to_string(kind)}, {"ms", means.ms[place]}, {"busy_ms", means.busy_ms[place]}});
  }
  return kinds;
}

std::string kinds_text(const TraceProfile& profile) {
  std::vector<std::vector<std::string>> cells{{"kind", "a step", "share", "busy"}};
  const KindMeans means = kind_means(profile);
  const double whole = mean_step_ms(profile);
  for (const OperatorKind kind : kinds_by_time(means)) {
    const auto place = static_cast<std::size_t>(kind);
    cells.push_back({std::string(to_string(kind)), milliseconds_text(means.ms[place]),
                     percent_text(means.ms[place] / whole), milliseconds_text(means.busy_ms[place])});
  }
  cells.push_back({"a step", milliseconds_text(whole), "100 %", ""});
  return table(cells, {false, true, true, true});
}

// A long kernel's name without its middle: the functor at its end tells most.
std::string shortened(const std::string& name) {
  constexpr std::size_t longest = 120, head = 78, tail = 40;
  if (name.size() <= longest) return name;
  std::size_t end = name.size() - tail;
  while (end < name.size() && (static_cast<unsigned char>(name[end]) & 0xc0) == 0x80) ++end;
  return bounded(name, head) + name.substr(end);
}

std::string operators_text(const TraceProfile& profile, bool all) {
  std::vector<std::vector<std::string>> cells{{"part", "operator", "kind", "calls", "a step", "busy", "FLOP/s"}};
  std::vector<bool> right{false, false, false, true, true, true, true};
  if (all) {
    cells.front().emplace_back("shapes");
    right.push_back(false);
  }
  const double whole = mean_step_ms(profile);
  std::size_t small = 0;
  double small_ms = 0;
  for (const TracedOperator& each : profile.operators) {
    if (!all && each.time.self_ms < least_share * whole) {
      ++small;
      small_ms += each.time.self_ms;
      continue;
    }
    const OperatorTime row = row_of(each);
    cells.push_back({each.time.part, all ? title_of(row) : shortened(title_of(row)),
                     std::string(to_string(kind_of(each))), each.time.calls > 0 ? compact(each.time.calls) : "-",
                     milliseconds_text(each.time.self_ms), milliseconds_text(each.busy_ms), flop_rate_text(each.time)});
    if (all) cells.back().push_back(each.time.shapes);
  }
  std::string text = table(cells, right);
  if (small > 0)
    text += notes_text(fmt::format("{} smaller rows: {} (--all lists them)", small, milliseconds_text(small_ms)));
  return text;
}

std::string steps_text(const TraceProfile& profile) {
  std::vector<std::vector<std::string>> cells{{"rank", "step", "dt", "idle", "communication"}};
  for (const TracedStep& step : profile.steps) {
    cells.push_back({std::to_string(step.rank), std::to_string(step.step), milliseconds_text(step.dt_ms),
                     milliseconds_text(step.ms[static_cast<std::size_t>(OperatorKind::idle)]),
                     milliseconds_text(step.ms[static_cast<std::size_t>(OperatorKind::communication)])});
  }
  return table(cells, {true, true, true, true, true});
}

// Each rank's mean step, idle and communication times; empty for fewer than two ranks.
std::string ranks_text(const TraceProfile& profile) {
  const RankReport report = rank_report(profile);
  if (report.rows.empty()) return "";
  std::vector<std::vector<std::string>> cells{
      {"rank", "a step", "until it can exchange", "idle", "exposed communication"}};
  for (const RankRow& row : report.rows)
    cells.push_back({std::to_string(row.rank), milliseconds_text(row.step_ms), milliseconds_text(row.own_ms()),
                     milliseconds_text(row.idle_ms), milliseconds_text(row.communication_ms)});
  return table(cells, {true, true, true, true, true}) + notes_text(report.sentence) + "\n";
}

Json step_json(const TracedStep& step) {
  Json kinds = Json::array();
  for (const OperatorKind kind : all_operator_kinds) {
    const auto place = static_cast<std::size_t>(kind);
    if (step.busy_ms[place] > 0)
      kinds.push_back({{"kind", to_string(kind)}, {"ms", step.ms[place]}, {"busy_ms", step.busy_ms[place]}});
  }
  return {{"rank", step.rank},
          {"step", step.step},
          {"start_ms", step.start_ms},
          {"dt_ms", step.dt_ms},
          {"kinds", std::move(kinds)}};
}

Json anatomy_json(const Anatomy& anatomy) {
  Json rows = Json::array();
  for (const AnatomyRow& row : anatomy)
    rows.push_back({{"phase", to_string(row.phase)},
                    {"part", to_string(row.part)},
                    {"block", row.block >= 0 ? Json(row.block) : Json()},
                    {"known_by", to_string(row.known_by)},
                    {"ms", row.ms}});
  return rows;
}

Json ranks_json(const RankReport& report) {
  if (report.rows.empty()) return nullptr;
  Json rows = Json::array();
  for (const RankRow& row : report.rows)
    rows.push_back({{"rank", row.rank},
                    {"steps", row.steps},
                    {"step_ms", row.step_ms},
                    {"own_ms", row.own_ms()},
                    {"idle_ms", row.idle_ms},
                    {"communication_ms", row.communication_ms}});
  return {{"straggler", report.straggler ? Json(*report.straggler) : Json()},
          {"late_ms", number(report.late_ms)},
          {"noise_ms", number(report.noise_ms)},
          {"sentence", report.sentence},
          {"rows", std::move(rows)}};
}

Json names_json(const std::vector<TracedOperator>& rows) {
  return json_list(rows, [](const TracedOperator& each) { return row_of(each).name; });
}

// "trace 3, eager: 5 steps of 12 ms on a CPU".
std::string head_text(const StoredTrace& trace) {
  const TraceProfile& profile = trace.profile;
  std::string text = fmt::format("trace {}, {}", trace.id, trace.name);
  if (trace.run) text += fmt::format(", of run {}", *trace.run);
  text += ": " + plural(std::ssize(profile.steps), "step") + " of " + milliseconds_text(mean_step_ms(profile)) +
          (profile.on_gpu ? " on a GPU" : " on a CPU");
  if (profile.ranks > 1) text += fmt::format(", {} ranks", profile.ranks);
  if (const std::string note = format_note(trace.format); !note.empty()) text += "\n" + note;
  return notes_text(text) + "\n";
}

}  // namespace

Json trace_json(const StoredTrace& trace) {
  const TraceProfile& profile = trace.profile;
  return {{"id", trace.id},
          {"name", trace.name},
          {"run", trace.run ? Json(*trace.run) : Json()},
          {"format", trace.format},
          {"source_path", trace.source_path},
          {"device", profile.on_gpu ? "cuda" : "cpu"},
          {"has_steps", profile.has_steps},
          {"ranks", profile.ranks},
          {"calls", profile.calls}};
}

Json trace_details_json(const StoredTrace& trace, const Anatomy& anatomy) {
  const TraceProfile& profile = trace.profile;
  Json all = trace_json(trace);
  all["steps"] = profile.steps.size();
  all["step_ms"] = number(mean_step_ms(profile));
  all["kinds"] = kinds_json(kind_means(profile));
  all["notes"] = notes_of(profile);
  all["ranks_report"] = ranks_json(rank_report(profile));
  Json steps = Json::array(), rows = Json::array();
  for (std::size_t i = 0; i < profile.steps.size(); ++i) {
    steps.push_back(step_json(profile.steps[i]));
    steps.back()["is_followed"] = is_followed(profile.steps, i);
  }
  for (const TracedOperator& each : profile.operators) {
    rows.push_back({{"part", each.time.part},
                    {"name", each.time.name},
                    {"launcher", each.launcher},
                    {"shapes", each.time.shapes},
                    {"kind", to_string(kind_of(each))},
                    {"calls", each.time.calls},
                    {"self_ms", each.time.self_ms},
                    {"busy_ms", each.busy_ms},
                    {"flops", number(each.time.flops)}});
  }
  all["anatomy"] = anatomy_json(anatomy);
  all["data"] = std::move(steps);
  all["operators"] = std::move(rows);
  return all;
}

std::string traces_table(const std::vector<StoredTrace>& traces) {
  std::vector<std::vector<std::string>> cells{{"trace", "name", "run", "device", "ranks", "calls"}};
  for (const StoredTrace& each : traces)
    cells.push_back({std::to_string(each.id), each.name, each.run ? std::to_string(*each.run) : "-",
                     each.profile.on_gpu ? "cuda" : "cpu", std::to_string(each.profile.ranks),
                     grouped(each.profile.calls)});
  return table(cells, {true, false, true, false, true, true});
}

std::string trace_text(const StoredTrace& trace, bool all_operators, bool steps) {
  const TraceProfile& profile = trace.profile;
  std::string text = head_text(trace) + kinds_text(profile) + "\n" + ranks_text(profile);
  for (const std::string& note : notes_of(profile)) text += notes_text(note);
  if (steps) text += "\n" + steps_text(profile);
  text += "\n";
  return text + operators_text(profile, all_operators);
}

std::string anatomy_text(const StoredTrace& trace, const Anatomy& anatomy, bool by_block) {
  if (anatomy.empty())
    return head_text(trace) +
           notes_text("This trace was imported by a version that didn't keep its anatomy; import it again.");
  std::vector<std::vector<std::string>> cells{{"part of the step", "known by", "a step", "share"}};
  const double whole = mean_step_ms(trace.profile);
  for (const AnatomyRow& row : by_block ? anatomy : by_part(anatomy)) {
    const bool is_told = row.known_by != KnownBy::nothing;
    cells.push_back({title_of(row, anatomy), is_told ? std::string(to_string(row.known_by)) : "",
                     milliseconds_text(row.ms), percent_text(row.ms / whole)});
  }
  cells.push_back({"a step", "", milliseconds_text(whole), "100 %"});
  const int blocks = block_count(anatomy);
  return head_text(trace) + table(cells, {false, false, true, true}) + "\n" +
         notes_text(
             certainty_of(anatomy, has_graphs(trace.profile.operators)) +
             (blocks > 0 && !by_block ? fmt::format(" The model has {} blocks (--all lists them).", blocks) : ""));
}

Json difference_json(const ProfileDifference& difference, const std::string& before, const std::string& after) {
  Json rows = Json::array();
  for (const RowDifference& row : difference.rows) {
    rows.push_back({{"change", to_string(row.change)},
                    {"kind", to_string(row.kind)},
                    {"part", part_of(row)},
                    {"before", names_json(row.before)},
                    {"after", names_json(row.after)},
                    {"before_ms", row.before_ms},
                    {"after_ms", row.after_ms},
                    {"delta_ms", row.delta_ms()},
                    {"noise_ms", number(row.noise_ms)},
                    {"is_clear", is_missing(row.noise_ms) ? Json() : Json(row.is_clear)},
                    {"before_calls", row.before_calls},
                    {"after_calls", row.after_calls}});
  }
  return {{"before", before},
          {"after", after},
          {"before_ms", difference.before_ms},
          {"after_ms", difference.after_ms},
          {"delta_ms", difference.after_ms - difference.before_ms},
          {"noise_ms", number(difference.noise_ms)},
          {"rows", std::move(rows)}};
}

Json several_json(const SeveralTraces& several, const std::vector<std::string>& titles) {
  Json rows = Json::array();
  for (const SharedRow& row : several.rows) {
    rows.push_back({{"part", row.part},
                    {"name", row.name},
                    {"kind", to_string(row.kind)},
                    {"ms", json_list(row.ms, number)},
                    {"is_new", row.is_new()},
                    {"is_gone", row.is_gone()}});
  }
  return {{"traces", titles}, {"step_ms", several.step_ms}, {"rows", std::move(rows)}};
}

std::string several_text(const SeveralTraces& several, const std::vector<std::string>& titles, bool all) {
  std::string text;
  std::vector<std::string> head{"kind"}, row_head{"part", "operator", ""};
  std::vector<bool> right{false}, row_right{false, false, false};
  for (std::size_t i = 0; i < titles.size(); ++i) {
    text += notes_text(fmt::format("[{}] {}", i + 1, titles[i]));
    for (auto* const each : {&head, &row_head}) each->push_back(fmt::format("[{}]", i + 1));
    for (auto* const each : {&right, &row_right}) each->push_back(true);
  }
  std::vector<std::vector<std::string>> kinds{head}, rows{row_head};
  for (const OperatorKind kind : all_operator_kinds) {
    std::vector<std::string> cells{std::string(to_string(kind))};
    double most = 0;
    for (const std::vector<double>& ms : several.kinds) {
      const double of_kind = ms[static_cast<std::size_t>(kind)];
      most = std::max(most, of_kind);
      cells.push_back(of_kind > 0 ? milliseconds_text(of_kind) : "-");
    }
    if (most > 0) kinds.push_back(std::move(cells));
  }
  std::vector<std::string> whole{"a step"};
  for (const double ms : several.step_ms) whole.push_back(milliseconds_text(ms));
  kinds.push_back(std::move(whole));
  const double longest = *std::ranges::max_element(several.step_ms);
  std::size_t small = 0;
  for (const SharedRow& row : several.rows) {
    double most = 0;
    for (const double ms : row.ms) most = std::max(most, is_missing(ms) ? 0 : ms);
    if (!all && most < least_share * longest) {
      ++small;
      continue;
    }
    rows.push_back({row.part, shortened(title_of(OperatorTime{.part = row.part, .name = row.name})),
                    row.is_new()    ? "new"
                    : row.is_gone() ? "gone"
                                    : ""});
    for (const double ms : row.ms) rows.back().push_back(is_missing(ms) ? "-" : milliseconds_text(ms));
  }
  text +=
      "\n" + table(kinds, right) +
      notes_text("Means of the traced steps. `stepladder profile diff` of two says what differs beyond their noise.") +
      "\n" + table(rows, row_right);
  if (small > 0) text += notes_text(fmt::format("{} smaller rows (--all lists them)", small));
  return text;
}

std::string difference_text(const ProfileDifference& difference, const std::string& before, const std::string& after,
                            bool all) {
  const TextTable rows = difference_table(difference, all);
  const bool leaves_out = rows.rows.size() < difference.rows.size() + 1;
  return notes_text(before + " -> " + after) + "\n" + table(kinds_table(difference)) + "\n" + table(rows) +
         notes_text(clear_rows_text(difference) +
                    (difference.clear_rows() > 0 ? ", for all rows together (*); the others may be noise." : ".") +
                    " Another trace of the same program may differ by more.") +
         (leaves_out ? notes_text("--all lists the smaller rows, too.") : "");
}

}  // namespace stepladder
