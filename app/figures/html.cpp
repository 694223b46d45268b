// Writes the HTML report: styles, sections in the order of a reader's questions, figures as SVG inside. It may contain
// no script and load nothing, and every text from a run is escaped (`tag`, `xml_escaped`).
#include <algorithm>
#include <set>

#include "app/figures/export.h"
#include "app/figures/run_figures.h"
#include "app/figures/step_pair.h"
#include "app/figures/svg_text.h"
#include "app/figures/tables.h"
#include "app/profile/difference_text.h"
#include "app/runs/run_json.h"
#include "app/text/format.h"
#include "app/text/verdict_text.h"

namespace stepladder {
namespace {

constexpr const char* light_colours =
    "--ground:#f6f7f9;--card:#ffffff;--text:#1b2330;--quiet:#5d6778;--line:#98a2b3;--grid:#e4e7ec;--accent:#1f6feb;"
    "--good:#12875a;--bad:#d1323a;--warning:#9a6700;--hatch:#98a2b3;--band:#eef1f5;"
    "--good-ground:#e3f4ec;--bad-ground:#fbe6e7;--warning-ground:#fbf1dc;--quiet-ground:#eef0f3;"
    "--series0:#0072b2;--series1:#d55e00;--series2:#009e73;--series3:#cc79a7;--series4:#e69f00;--series5:#56b4e9;";
constexpr const char* dark_colours =
    "--ground:#14171c;--card:#1b1f26;--text:#e6e9ee;--quiet:#98a1b0;--line:#5b6472;--grid:#2b313b;--accent:#5aa9ff;"
    "--good:#35c48d;--bad:#ff6b6b;--warning:#f2b84b;--hatch:#6b7482;--band:#262c35;"
    "--good-ground:#17362c;--bad-ground:#402327;--warning-ground:#3b3120;--quiet-ground:#2a303a;"
    "--series0:#2f9be0;--series1:#d55e00;--series2:#009e73;--series3:#cc79a7;--series4:#e69f00;--series5:#56b4e9;";

constexpr const char* rules = R"css(
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--text);font:15px/1.55 Inter,system-ui,-apple-system,"Segoe UI",sans-serif;
 font-feature-settings:"tnum","cv05";-webkit-text-size-adjust:100%}
main{max-width:1160px;margin:0 auto;padding:40px 28px 56px}
.kind{color:var(--accent);font-weight:600;font-size:13px;letter-spacing:.02em}
h1{font-size:30px;line-height:1.2;letter-spacing:-.015em;margin:6px 0 8px;overflow-wrap:anywhere}
.facts{color:var(--quiet);margin:0 0 26px;font-size:13.5px}
.lead{font-size:21px;line-height:1.4;letter-spacing:-.008em;font-weight:600;margin:0 0 22px;max-width:52em}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(200px,1fr));gap:14px;margin:0 0 34px}
.tile,.card{background:var(--card);border:1px solid var(--grid);border-radius:8px}
.tile{padding:15px 18px}
.tile b{display:block;font-size:25px;line-height:1.25;letter-spacing:-.015em;font-weight:600}
.tile span{display:block;color:var(--quiet);font-size:12.5px}
h2{font-size:18px;letter-spacing:-.01em;margin:36px 0 4px}
h2+p{margin:0 0 14px;color:var(--quiet);font-size:13.5px;max-width:62em}
h3{font-size:14px;margin:0 0 2px}
.card{padding:16px 18px;margin:0 0 16px}
.scroll{overflow-x:auto}
.pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(440px,1fr));gap:16px}
.pair .card{margin:0;min-width:0}
svg{display:block;width:100%;height:auto}
.note{color:var(--quiet);font-size:12.5px;margin:0 0 6px}
table{border-collapse:collapse;width:100%;font-size:13.5px}
th{font-weight:500;color:var(--quiet);font-size:12px;text-align:left;padding:4px 10px 8px;vertical-align:bottom}
td{padding:9px 10px;border-top:1px solid var(--grid);vertical-align:top}
th:first-child,td:first-child{padding-left:2px}
.n,.v{white-space:nowrap}.n{text-align:right}
td.n{font-variant-numeric:tabular-nums}
td b{font-weight:600}
td .pill{white-space:normal;border-radius:11px}
td small{display:block;color:var(--quiet);font-size:12px}
tr.doubt td.n,tr.doubt td b{color:var(--quiet)}
tr.best td{background:color-mix(in srgb,var(--accent) 8%,transparent)}
.pill{display:inline-block;border-radius:99px;padding:1px 9px;font-size:12px;font-weight:500;white-space:nowrap}
.good{color:var(--good);background:var(--good-ground)}
.bad{color:var(--bad);background:var(--bad-ground)}
.warning{color:var(--warning);background:var(--warning-ground)}
.neutral{color:var(--quiet);background:var(--quiet-ground)}
.flags{list-style:none;margin:0;padding:0}
.flags li{padding:10px 0;border-top:1px solid var(--grid);font-size:13.5px;overflow-wrap:anywhere}
.flags li:first-child{border-top:0;padding-top:0}
.flags li:last-child{padding-bottom:0}
.flags p{margin:5px 0 0}
.flags small{color:var(--quiet)}
.method p{margin:0 0 9px;font-size:13.5px;max-width:72em}
.method p:last-child{margin:0}
dl{display:grid;grid-template-columns:max-content 1fr;gap:3px 18px;margin:0;font-size:13.5px}
dt{color:var(--quiet)}
dd{margin:0;overflow-wrap:anywhere}
details{font-size:13.5px;margin-top:10px}
summary{cursor:pointer;color:var(--quiet)}
details dl{margin-top:8px;font-size:12.5px}
footer{color:var(--quiet);font-size:12.5px;margin-top:30px}
@media screen and (max-width:820px){.wide svg{min-width:740px}}
@media (max-width:620px){main{padding:24px 14px}.pair{grid-template-columns:1fr}h1{font-size:24px}.lead{font-size:18px}}
@media print{body{background:#fff;font-size:10.5pt}main{max-width:none;padding:0}
 figure.card,.tile,tr,.flags p{break-inside:avoid}h2,h2+p{break-after:avoid}details::details-content{content-visibility:visible}summary{display:none}.scroll{overflow:visible}
 .pair{grid-template-columns:1fr 1fr}.card{padding:10px 12px}.pill,tr.best td{print-color-adjust:exact;-webkit-print-color-adjust:exact}
 table{font-size:8pt}td,th{padding:4px 5px}th,td small{font-size:7pt}.pill{font-size:7pt;padding:0 6px}@page{margin:14mm}}
)css";

std::string styles(std::optional<Theme> theme) {
  std::string text = ":root{";
  if (theme) return text + (*theme == Theme::dark ? dark_colours : light_colours) + "}" + rules;
  text += std::string("color-scheme:light dark;") + light_colours + "}\n";
  // Paper is always white.
  text += std::string("@media screen and (prefers-color-scheme:dark){:root{") + dark_colours + "}}";
  return text + rules;
}

std::string tag(const std::string& name, const std::string& text, const std::string& kind = {}) {
  return "<" + name + (kind.empty() ? "" : " class=\"" + kind + "\"") + ">" + xml_escaped(in_print(text)) + "</" +
         name + ">";
}

std::string pill(const std::string& text, CellTone tone) {
  const char* const kind = tone == CellTone::good      ? "pill good"
                           : tone == CellTone::bad     ? "pill bad"
                           : tone == CellTone::warning ? "pill warning"
                                                       : "pill neutral";
  return tag("span", text, kind);
}

std::string tile(const std::string& number, const std::string& what) {
  return "<div class=\"tile\">" + tag("b", number) + tag("span", what) + "</div>\n";
}

std::string tiles(const Study& study) {
  std::string text = "<div class=\"tiles\">\n";
  const StudyRung& base = study.rungs.front();
  if (const StudyRung* best = study.best()) {
    text += tile(factor_text(best->judged.over_baseline.factor),
                 is_informative(best->judged.over_baseline.ci95)
                     ? "over the baseline, 95 % interval " + factor_interval_text(*best)
                     : "over the baseline");
    text +=
        tile(compact(best->rate) + " " + study.rate_unit, "with " + best->label + "; baseline " + compact(base.rate));
    text += tile(loss_verdict_text(*best), best->judged.loss.verdict == LossVerdict::not_comparable
                                               ? "loss against the baseline's"
                                               : "loss against the baseline's: at most " +
                                                     loss_text(best->judged.loss.max_gap) + " apart, at step " +
                                                     grouped(best->judged.loss.at_step));
  } else {
    const auto fastest = std::ranges::max_element(study.rungs, [](const StudyRung& a, const StudyRung& b) {
      const auto rate = [](const StudyRung& rung) { return rung.is_measured() && rung.is_trusted() ? rung.rate : 0; };
      return rate(a) < rate(b);
    });
    if (fastest->is_measured() && fastest->is_trusted())
      text += tile(compact(fastest->rate) + " " + study.rate_unit,
                   (study.rungs.size() > 1 ? "the fastest that can be trusted: " : "") + fastest->label);
    text += tile(loss_text(base.first->summary.loss_last), "last loss of " + base.label);
  }
  std::size_t measured = 0;
  std::size_t believed = 0;
  for (const StudyRung& rung : study.rungs) {
    measured += rung.is_measured() ? 1 : 0;
    believed += rung.is_measured() && rung.is_trusted() ? 1 : 0;
  }
  text += tile(fmt::format("{} of {}", believed, measured),
               std::string("measured ") + (study.is_ladder ? "rungs" : "runs") + " have numbers that can be trusted");
  return text + "</div>\n";
}

std::string rungs_table(const Study& study) {
  const StudyRung* best = study.best();
  std::string text = fmt::format(
      "<div class=\"scroll\"><table><thead><tr><th></th>{}<th class=\"n\">{}</th><th class=\"n\">over previous</th><th "
      "class=\"n\">over baseline</th><th>verdict</th><th>loss</th><th>plausible?</th></tr></thead><tbody>\n",
      study.is_ladder ? "<th>rung / change</th>" : "<th>run</th>", study.rate_unit);
  for (const StudyRung& rung : study.rungs) {
    text += std::string("<tr") +
            (&rung == best       ? " class=\"best\""
             : rung.is_trusted() ? ""
                                 : " class=\"doubt\"") +
            ">";
    text += tag("td", study.is_ladder ? std::to_string(rung.judged.rung) : std::to_string(rung.first->run.id), "n");
    text += "<td>" + tag("b", rung.label) + (rung.changed.empty() ? "" : tag("small", rung.changed));
    const Run& run = rung.first->run;
    if (run.status != RunStatus::finished)
      text += tag("small", std::string(to_string(run.status)) + (run.reason.empty() ? "" : ": " + run.reason));
    if (rung.judged.count.all > 1) text += tag("small", count_text(rung.judged.count));
    text += "</td><td class=\"n\">" + tag("b", compact(rung.rate));
    if (rung.rate_ci95.known())
      text += tag("small", compact(rung.rate_ci95.low) + " - " + compact(rung.rate_ci95.high));
    text += "</td>" + tag("td", rung.is_baseline ? "" : factor_text(rung.judged.over_previous.factor), "n");
    text += "<td class=\"n\">" + xml_escaped(in_print(factor_text(rung.judged.over_baseline.factor)));
    if (!rung.is_baseline) text += tag("small", factor_interval_text(rung));
    text += "</td>" + tag("td", verdict_text(rung), "v");
    text += "<td>" + pill(loss_verdict_text(rung), loss_tone(rung)) + "</td><td>" +
            pill(trust_text(rung), trust_tone(rung)) + "</td></tr>\n";
  }
  return text + "</tbody></table></div>\n";
}

// Lists flag by flag. A note is the same for every rung and appears once; a flag of many rungs is collapsed.
std::string flags_list(const Study& study) {
  constexpr std::size_t most_unfolded = 3;
  std::string text;
  for (const FlagKind& kind : flag_kinds) {
    const bool is_note = kind.severity == Severity::note;
    const bool is_grave = kind.severity == Severity::grave;
    std::vector<std::string> sentences;
    for (const StudyRung& rung : study.rungs) {
      for (const Flag& flag : rung.judged.flags) {
        if (flag.id != kind.id) continue;
        const std::string sentence =
            "<p>" + (is_note ? "" : tag("b", rung.label) + ": ") + xml_escaped(in_print(flag.why)) + "</p>";
        if (std::ranges::find(sentences, sentence) == sentences.end()) sentences.push_back(sentence);
      }
    }
    if (sentences.empty()) continue;
    text += "<li>" +
            pill(std::string(kind.title), is_grave  ? CellTone::bad
                                          : is_note ? CellTone::quiet
                                                    : CellTone::warning) +
            " " + tag("small", std::string(kind.name));
    const std::size_t shown = sentences.size() <= most_unfolded ? sentences.size() : is_grave ? most_unfolded : 1;
    for (std::size_t i = 0; i < shown; ++i) text += sentences[i];
    if (shown < sentences.size()) {
      text += fmt::format("<details><summary>and {} more</summary>", sentences.size() - shown);
      for (std::size_t i = shown; i < sentences.size(); ++i) text += sentences[i];
      text += "</details>";
    }
    text += "</li>\n";
  }
  if (text.empty()) return "<p class=\"note\">No problems found.</p>\n";
  return "<ul class=\"flags\">\n" + text + "</ul>\n";
}

std::string figure_card(Figure figure, const std::string& id, int width, int height) {
  const SvgOptions options{
      .width = width, .height = height, .theme = Theme::page, .id = id, .with_title = false, .with_caption = false};
  std::string text = "<figure class=\"card\">" + tag("h3", figure.title);
  // The first sentence explains the figure; hardware, n and versions are at the end of the page.
  if (!figure.caption.empty()) text += tag("p", figure.caption.front(), "note");
  return text + "<div class=\"scroll\">" + to_svg(figure, options) + "</div></figure>\n";
}

std::string ladder_card(const Study& study) {
  Figure figure = ladder_figure(study);
  // The table beneath has the rest.
  constexpr std::size_t kept = 3;
  figure.heads.resize(kept);
  for (FigureBar& bar : figure.bars) bar.cells.resize(kept);
  figure.title = "Throughput";
  return "<div class=\"wide\">" + figure_card(std::move(figure), "ladder", 1100, 0) + "</div>\n";
}

std::string value_text(const Json& value) {
  if (!value.is_string()) return value.dump();
  const auto text = value.get<std::string>();
  return text.find('/') == std::string::npos ? text : text.substr(text.find_last_of('/') + 1);
}

std::string recipe_details(const Run& run) {
  const Json recipe = Json::parse(run.recipe, nullptr, false);
  if (!recipe.is_object() || recipe.empty()) return {};
  std::string text = "<details><summary>Recipe of the baseline</summary><dl>\n";
  for (const auto& [name, value] : recipe.items())
    if (value.is_primitive() && !value.is_null() && value != Json(""))
      text += "<dt>" + xml_escaped(name) + "</dt><dd>" + xml_escaped(value_text(value)) + "</dd>\n";
  return text + "</dl></details>\n";
}

std::string method(const Study& study) {
  std::string text = "<div class=\"card method\">\n";
  for (const std::string& line :
       {hardware_line(study) + ".", sample_line(study), timing_line(study),
        std::string(
            "A run's throughput is that of its median steady step; a rung with several runs has the median of theirs. "
            "The 95 % interval is a circular block bootstrap "
            "(block length by Politis and White, 2004), since neighbouring steps are correlated; with repeats, the "
            "spread "
            "between runs (Student's t) gives a second interval, and the wider one is used."),
        std::string(
            "A rung is faster or slower if the factor is beyond 1 % and its whole interval beyond half of that; "
            "the same if the whole interval is within 1 %. The loss is the same if the mean difference over "
            "the last quarter of the shared steps stays within the band: 0.02 nats, or the spread between "
            "repeats of the baseline."),
        std::string(
            "A throughput is impossible if 6 N x tokens/s, N being the parameters, is over the hardware's dense "
            "peak in that precision. 6 N is the lowest convention, so the check is lenient. Impossible and "
            "doubtful throughputs are hatched and never make the headline."),
        version_line(study)})
    text += tag("p", line) + "\n";
  return text + recipe_details(study.rungs.front().first->run) + "</div>\n";
}

// Losses at equal tokens if batches differ and tokens are known.
XAxis loss_axis(const Study& study) {
  std::set<std::int64_t> batches;
  for (const LoadedRun& run : study.runs)
    if (run.summary.steps > 0) batches.insert(run.run.tokens_per_step);
  return batches.size() > 1 && *batches.begin() > 0 ? XAxis::tokens : XAxis::step;
}

bool has_curves(const Figure& figure) {
  return std::ranges::any_of(figure.curves, [](const FigureCurve& curve) { return curve.x.size() > 1; });
}

std::string heading(const std::string& question, const std::string& answer) {
  return tag("h2", question) + "\n" + tag("p", answer) + "\n";
}

std::string speed_section(const Study& study) {
  const std::string rows = "<div class=\"card\">\n" + rungs_table(study) + "</div>\n";
  if (study.rungs.size() == 1)
    return heading("How fast was it?", "The median of its steady steps, and the limit of the hardware.") + rows;
  return (study.is_ladder ? heading("What did each rung gain?", "Each rung is the previous one plus one change.")
                          : heading("What did each run gain?", "Each run against the first.")) +
         ladder_card(study) + rows;
}

std::string loss_section(const Study& study) {
  const XAxis axis = loss_axis(study);
  const Figure loss = loss_figure(study, axis);
  const Figure difference = loss_difference_figure(study, axis);
  if (!has_curves(loss)) return {};
  const std::string head = study.rungs.size() == 1 ? heading("Loss", "Of each step, as recorded.")
                                                   : heading("Did the loss stay the same?",
                                                             "The verdicts in the table follow from these curves.");
  if (!has_curves(difference)) return head + figure_card(loss, "loss", 1100, 380);
  return head + "<div class=\"pair\">\n" + figure_card(loss, "loss", 540, 380) +
         figure_card(difference, "difference", 540, 380) + "</div>\n";
}

std::string time_section(const Study& study) {
  const Figure ecdf = ecdf_figure(study);
  if (!has_curves(ecdf)) return {};
  return heading("How steady were the steps?", "The distribution excludes warm-up; the curves show it.") +
         "<div class=\"pair\">\n" + figure_card(ecdf, "dt", 540, 380) +
         figure_card(throughput_figure(study, XAxis::step), "throughput", 540, 380) + "</div>\n";
}

std::string html_table(const TextTable& table) {
  std::string text = "<table><thead><tr>";
  const auto row = [&](const char* name, const std::vector<std::string>& cells) {
    for (std::size_t i = 0; i < cells.size(); ++i) text += tag(name, cells[i], table.right[i] ? "n" : "");
    text += "</tr>\n";
  };
  row("th", table.heads);
  text += "</thead><tbody>\n";
  for (const auto& cells : table.rows) {
    text += "<tr>";
    row("td", cells);
  }
  return text + "</tbody></table>";
}

std::string operators_section(const Study& study) {
  const TextTable table = operators_table(study);
  if (table.rows.empty()) return {};
  return heading(
             "Where does a step go?",
             "Milliseconds a step by kind of operator, measured in a few extra steps at the end. A rung that is faster "
             "everywhere, not just where its stage works, ran while the machine was less busy.") +
         "<div class=\"card scroll\">" + html_table(table) + "</div>\n";
}

std::string doubts(const StepPair& pair) {
  std::string text;
  for (const TracedSide* side : {&pair.before, &pair.after})
    if (!side->doubt.empty()) text += tag("p", side->label + ": " + side->doubt, "warning");
  return text;
}

// Two traced steps beside each other, and their difference row by row.
std::string steps_section(const Study& study) {
  if (!study.steps) return {};
  const StepPair& pair = *study.steps;
  TextTable table = difference_table(pair.difference, false);
  for (std::vector<std::string>& cells : table.rows) cells[3] = shortened(cells[3], 480, 13.5);
  return heading("Where does " + pair.after.label + " differ?",
                 "A step of " + pair.before.label + " above one of " + pair.after.label +
                     ", from traces of a profiler. Dashed lines mark their ends. A profiler slows a program, so these "
                     "steps explain the factor and don't measure it.") +
         doubts(pair) + "<figure class=\"card\"><div class=\"scroll wide\">" +
         step_pair_svg(pair, Theme::page, "steps") + "</div></figure>\n<div class=\"card scroll\">" +
         html_table(table) +
         tag("p",
             fmt::format("The rows add up. A star marks differences beyond the noise between the steps of each trace; "
                         "the others may be noise. `stepladder profile diff {} {}` prints the same.",
                         pair.before.trace, pair.after.trace),
             "note") +
         "</div>\n";
}

}  // namespace

std::string report_html(const Study& study, std::optional<Theme> theme) {
  const std::string kind = study.is_ladder           ? "Stepladder: a ladder"
                           : study.rungs.size() == 1 ? "Stepladder: a run"
                                                     : "Stepladder: runs side by side";
  return "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n" +
         tag("title", study.title + " - Stepladder") + "\n<style>\n" + styles(theme) +
         "</style>\n</head>\n<body>\n<main>\n<header>\n" + tag("div", kind, "kind") + "\n" + tag("h1", study.title) +
         "\n" + tag("p", hardware_line(study) + ". " + study.origin, "facts") + "\n" +
         tag("p", headline(study), "lead") + "\n" + tiles(study) + "</header>\n" + speed_section(study) +
         heading("Are the numbers plausible?", "Each reason for doubt, with its arithmetic.") +
         "<div class=\"card\">\n" + flags_list(study) + "</div>\n" + loss_section(study) + time_section(study) +
         steps_section(study) + operators_section(study) +
         heading("How it was measured", "Everything needed to reproduce it.") + method(study) + "<footer>" +
         xml_escaped(study.origin) + (study.origin.empty() ? "" : ". ") +
         "Made by Stepladder " STEPLADDER_VERSION ".</footer>\n</main>\n</body>\n</html>\n";
}

}  // namespace stepladder
