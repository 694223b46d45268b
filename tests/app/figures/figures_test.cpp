// Figures, tables and traces of made-up runs contain everything that they must.
#include <gtest/gtest.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <sstream>

#include "app/figures/export.h"
#include "app/figures/run_figures.h"
#include "app/figures/svg_text.h"
#include "app/figures/tables.h"
#include "app/figures/tex.h"
#include "app/figures/trace.h"
#include "app/runs/run_json.h"
#include "engine/files/data_error.h"
#include "storage/importers/importer.h"
#include "tests/importers/collecting_sink.h"

namespace stepladder {
namespace {

constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

LoadedRun make_run(int rung, const std::string& title, double dt_ms, double loss_shift = 0, int steps = 60) {
  LoadedRun loaded;
  Run& run = loaded.run;
  run.id = rung + 1;
  run.name = "made up " + std::to_string(rung);
  run.ladder = 7;
  run.rung = rung;
  run.stage = "stage-" + std::to_string(rung);
  run.title = title;
  run.status = RunStatus::finished;
  run.tokens_per_step = 8192;
  run.params = 124'439'808;
  run.hardware = "NVIDIA A100-SXM4-40GB";
  run.precision = "bf16";
  run.sync = Sync::event;
  for (int step = 1; step <= steps; ++step) {
    const double wobble = 0.01 * ((step * 7919) % 13 - 6);
    loaded.series.append({.run = run.id,
                          .step = step,
                          .loss = 3 + 8.0 / step + loss_shift,
                          .dt_ms = dt_ms * (1 + 0.1 * wobble),
                          .tokens = 8192});
  }
  loaded.summary = summarise(loaded.series, run.warmup_steps, run.tokens_per_step);
  return loaded;
}

RunContext context() {
  RunContext made;
  made.hardware = HardwareTable::load(std::filesystem::path(STEPLADDER_SOURCE_DIR) / "assets");
  return made;
}

// Rung 1 is twice as fast and plausible; rung 2 is faster than an A100 can be: 6 N x 8,192 tokens in 10 ms are 612
// TFLOP/s.
Study make_ladder() {
  std::vector<LoadedRun> runs;
  runs.push_back(make_run(0, "Baseline", 200));
  runs.push_back(make_run(1, "Flash & fast <attention>", 100));
  runs.push_back(make_run(2, "Too good", 10));
  return make_study("A ladder", "made up", std::move(runs), context().hardware);
}

TEST(Figures, of_times_mark_what_cannot_be_trusted) {
  const Study study = make_ladder();
  for (const Figure& figure : {throughput_figure(study, XAxis::step), step_time_figure(study, XAxis::tokens),
                               ecdf_figure(study), loss_figure(study, XAxis::time)}) {
    EXPECT_EQ(figure.curves[1].label, study.rungs[1].label);
    EXPECT_EQ(figure.curves[2].label, "Too good, impossible") << figure.title;
    if (figure.title == "Loss") continue;
    EXPECT_TRUE(std::ranges::any_of(figure.caption, [](const std::string& line) {
      return line.starts_with("Too good: ");
    })) << figure.title;
  }
  EXPECT_EQ(loss_figure(study, XAxis::step).curves[2].label, "Too good");
}

TEST(Operators, AreATableWhereARungHasThem) {
  EXPECT_TRUE(operators_table(make_ladder()).rows.empty());
  EXPECT_FALSE(holds(report_html(make_ladder()), "Where does a step go?"));
  std::vector<LoadedRun> runs;
  runs.push_back(make_run(0, "Baseline", 200));
  runs.push_back(make_run(1, "Fused | once", 100));
  runs.push_back(make_run(2, "Too good", 10));
  runs[0].profile = {.steps = 1,
                     .operators = {{"forward", "aten::mm", "", 1, 150, 1e9}, {"forward", "aten::gelu", "", 1, 50}}};
  runs[1].profile = {
      .steps = 1, .operators = {{"forward", "aten::mm", "", 1, 99.5, 1e9}, {"forward", "aten::embedding", "", 1, 0.5}}};
  const Study study = make_study("T", "", std::move(runs), context().hardware);
  const TextTable table = operators_table(study);
  EXPECT_EQ(table.heads, (std::vector<std::string>{"rung", "stage", "matrix products", "GELU", "other", "a step"}));
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.rows[0], (std::vector<std::string>{"0", "Baseline", "150.0", "50.0", "0.0", "200.0"}));
  EXPECT_EQ(table.rows[1], (std::vector<std::string>{"1", "Fused | once", "99.5", "", "0.5", "100.0"}));
  EXPECT_TRUE(holds(study_markdown(study), "| 1 | Fused \\| once | 99.5 |"));
  EXPECT_TRUE(holds(report_html(study), "<td class=\"n\">99.5</td>"));
}

TEST(Ticks, AreAtRoundNumbersInsideTheRange) {
  for (const FigureRange range :
       {FigureRange{0, 1}, FigureRange{-3.7, 4.2}, FigureRange{0, 1'340'000}, FigureRange{10.81, 10.83},
        FigureRange{1, 50}, FigureRange{-1e-6, 3e-6}, FigureRange{9e9, 3e12}}) {
    const std::vector<Tick> list = ticks(range, false, 6);
    ASSERT_GE(list.size(), 2u) << range.low << " to " << range.high;
    EXPECT_LE(list.size(), 7u);
    const double step = list[1].value - list[0].value;
    const double mantissa = step / std::pow(10, std::floor(std::log10(step * 1.0000001)));
    EXPECT_TRUE(std::abs(mantissa - 1) < 1e-6 || std::abs(mantissa - 2) < 1e-6 || std::abs(mantissa - 5) < 1e-6)
        << step;
    for (std::size_t i = 0; i < list.size(); ++i) {
      EXPECT_GE(list[i].value, range.low - step * 1e-6);
      EXPECT_LE(list[i].value, range.high + step * 1e-6);
      EXPECT_TRUE(i == 0 || list[i].label != list[i - 1].label) << "two ticks that read alike";
    }
  }
  EXPECT_EQ(ticks({0, 100'000}, false, 2)[1].label, "50 k");
  EXPECT_EQ(ticks({0, 1}, false, 5)[1].label, "0.2");
}

TEST(Ticks, OfALogAxisAreDecades) {
  const std::vector<Tick> list = ticks({3, 4000}, true, 4);
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[0].value, 10);
  EXPECT_EQ(list[2].label, "1000");
  EXPECT_GE(ticks({140, 190}, true, 5).size(), 2u) << "less than a decade still has ticks";
}

TEST(Ranges, HoldEveryFiniteValueBandMarkAndLimit) {
  Figure figure{.curves = {{.x = {1, 2, 3}, .y = {5, nan_value, -2}}}, .bands = {{-9, 1, ""}}, .marks = {{30, ""}}};
  EXPECT_LE(y_range(figure).low, -9);
  EXPECT_GE(y_range(figure).high, 30);
  EXPECT_EQ(x_range(figure).low, 1);
  Figure bars{.x = {.from_zero = true}, .bars = {{.value = 5, .whisker = {4, 6}, .limit = 11}}};
  EXPECT_EQ(x_range(bars).low, 0);
  EXPECT_GE(x_range(bars).high, 11);
  bars.bars.front().whisker = {0.001, 4e8};
  EXPECT_LT(x_range(bars).high, 30) << "an endless whisker leaves the bars their length";
}

TEST(Drawn, ASpikeAmongThousandsOfPointsStays) {
  FigureCurve curve;
  for (int i = 0; i < 100'000; ++i) {
    curve.x.push_back(i);
    curve.y.push_back(i == 54'321 ? 99 : std::sin(i * 0.01));
  }
  const DrawnCurve line = drawn(curve, {}, 300);
  EXPECT_LE(line.x.size(), 1300u);
  EXPECT_EQ(line.points, 100'000u);
  EXPECT_EQ(*std::max_element(line.y.begin(), line.y.end()), 99);
}

TEST(Drawn, WhatIsNotANumberIsMarkedAndWhatIsMissingIsNot) {
  const FigureCurve curve{.x = {1, 2, 3, 4}, .y = {1, nan_value, missing, std::numeric_limits<double>::infinity()}};
  EXPECT_EQ(drawn(curve, {}, 100).not_drawn_x, (std::vector<double>{2, 4}));
  const FigureCurve negative{.x = {1, 2}, .y = {1, -1}};
  EXPECT_EQ(drawn(negative, {.y = {.is_log = true}}, 100).not_drawn_x, (std::vector<double>{2}));
}

TEST(Strokes, OfTwelveNeighboursAreAllDifferent) {
  std::vector<std::pair<int, int>> seen;
  for (int style = 0; style <= 12; ++style) {
    const Stroke stroke = stroke_of(style);
    EXPECT_EQ(std::count(seen.begin(), seen.end(), std::pair(stroke.colour, stroke.dash)), 0) << style;
    EXPECT_TRUE(style < 2 || stroke.dash != stroke_of(style - 1).dash) << "without colour these two are one";
    seen.emplace_back(stroke.colour, stroke.dash);
  }
}

TEST(Study, BestIsTheFastestThatCanBeTrue) {
  const Study study = make_ladder();
  ASSERT_EQ(study.rungs.size(), 3u);
  EXPECT_EQ(study.rungs[2].judged.trust, Trust::impossible);
  EXPECT_EQ(study.rungs[1].judged.trust, Trust::trusted);
  EXPECT_TRUE(study.rungs[1].judged.is_checked);
  ASSERT_TRUE(study.best());
  EXPECT_EQ(study.best()->judged.rung, 1);
  EXPECT_TRUE(holds(headline(study), "2.00 x")) << headline(study);
  EXPECT_TRUE(holds(headline(study), " Faster, one run: " + study.rungs[1].label + " 2.00 x."))
      << "the window's answer";
  EXPECT_TRUE(holds(headline(study), "Impossible: 1 of 3.")) << headline(study);
  EXPECT_TRUE(study.rungs[1].rate_ci95.low < study.rungs[1].rate &&
              study.rungs[1].rate < study.rungs[1].rate_ci95.high);
  // 312 TFLOP/s (NVIDIA's A100 datasheet, bf16 dense) over 6 N.
  EXPECT_NEAR(study.rungs[1].limit, 312e12 / (6 * 124'439'808.0), 1);
}

TEST(Study, ALossThatGotWorseIsNotBest) {
  std::vector<LoadedRun> runs;
  runs.push_back(make_run(0, "Baseline", 200));
  runs.push_back(make_run(1, "Fast and wrong", 50, 0.5));
  const Study study = make_study("A ladder", "", std::move(runs), context().hardware);
  EXPECT_FALSE(study.best());
  EXPECT_TRUE(holds(headline(study), "No rung")) << headline(study);
}

TEST(Study, RunsOfDifferentLaddersBecomeARungEach) {
  std::vector<LoadedRun> runs;
  runs.push_back(make_run(5, "A", 200));
  runs.push_back(make_run(5, "B", 100));
  runs[1].run.ladder = 8;
  const Study study = make_study("Two", "", std::move(runs), context().hardware);
  EXPECT_FALSE(study.is_ladder);
  ASSERT_EQ(study.rungs.size(), 2u);
  EXPECT_NEAR(study.rungs[1].judged.over_baseline.factor, 2, 0.01);
}

TEST(Study, WithoutStepsOrTokensSaysSo) {
  std::vector<LoadedRun> runs;
  runs.push_back(make_run(0, "Baseline", 200, 0, 0));
  const Study empty = make_study("Empty", "", std::move(runs), context().hardware);
  EXPECT_FALSE(to_svg(ladder_figure(empty)).empty());
  EXPECT_TRUE(holds(to_svg(loss_figure(empty, XAxis::step)), "nothing to draw"));
  EXPECT_TRUE(holds(report_html(empty), "No run has steps."));

  runs.clear();
  runs.push_back(make_run(0, "Baseline", 200));
  runs[0].run.tokens_per_step = 0;
  std::fill(runs[0].series.tokens.begin(), runs[0].series.tokens.end(), 0);
  runs[0].summary = summarise(runs[0].series, -1, 0);
  const Study tokenless = make_study("Tokenless", "", std::move(runs), context().hardware);
  EXPECT_EQ(tokenless.rate_unit, "steps/s");
  EXPECT_NEAR(tokenless.rungs[0].rate, 5, 0.1);
  EXPECT_TRUE(loss_figure(tokenless, XAxis::tokens).curves.empty());
  EXPECT_TRUE(holds(loss_figure(tokenless, XAxis::tokens).caption.front(), "1 run is left out"));
}

TEST(Svg, OfALadderNamesEveryRungHatchesTheImpossibleAndShowsTheLimit) {
  const std::string svg = to_svg(ladder_figure(make_ladder()));
  for (const char* text :
       {">Baseline<", ">Flash &amp; fast &lt;attention&gt;<", ">Too good<", ">tokens/s<", "2.00\u00D7", "impossible",
        "NVIDIA A100-SXM4-40GB", "n = 3 rungs \u00D7 1 run \u00D7 60 steps", "bootstrap", "Stepladder "})
    EXPECT_TRUE(holds(svg, text)) << text;
  EXPECT_EQ(count(svg, "fill=\"url(#f-hatch)\""), 1u) << "one bar of three";
  EXPECT_EQ(count(svg, "#d1323a\" stroke-width=\"2.4\""), 3u) << "a limit for each";
  EXPECT_FALSE(holds(svg, "nan"));
  EXPECT_TRUE(holds(to_svg(ladder_figure(make_ladder()), {.theme = Theme::dark}), "fill=\"#1b1f26\""));
}

TEST(Svg, GrowsRatherThanLosingRows) {
  const std::string svg = to_svg(ladder_figure(make_ladder()), {.width = 320, .height = 200});
  EXPECT_TRUE(holds(svg, ">Too good"));
  const std::string ample = to_svg(ladder_figure(make_ladder()), {.width = 1600, .height = 900});
  EXPECT_TRUE(holds(ample, "width=\"1600\" height=\"900\""));
}

TEST(Svg, OfCurvesHasOneForEachRunWithItsLegend) {
  const Study study = make_ladder();
  for (const FigureKind kind : {FigureKind::loss, FigureKind::throughput, FigureKind::step_time, FigureKind::dt}) {
    const std::string svg = to_svg(make_figure(kind, study));
    EXPECT_TRUE(holds(svg, ">Too good")) << to_string(kind);
    EXPECT_EQ(count(svg, "stroke-linejoin"), 3u) << to_string(kind);
    EXPECT_EQ(figure_kind(to_string(kind)), kind);
  }
  const std::string difference = to_svg(make_figure(FigureKind::loss_difference, study));
  EXPECT_EQ(count(difference, "stroke-linejoin"), 2u);
  EXPECT_TRUE(holds(difference, "counts as the same"));
}

TEST(Svg, TellsLossesThatAreNotNumbers) {
  std::vector<LoadedRun> runs;
  runs.push_back(make_run(0, "Baseline", 200));
  runs[0].series.loss[40] = nan_value;
  const std::string svg = to_svg(loss_figure(make_study("NaN", "", std::move(runs), context().hardware), XAxis::step));
  EXPECT_TRUE(holds(svg, "1 value is NaN or infinite")) << svg;
}

TEST(LossDifference, LeavesOutWhatCannotBeComparedAndSaysSo) {
  std::vector<LoadedRun> runs;
  runs.push_back(make_run(0, "Baseline", 200));
  runs.push_back(make_run(1, "Bigger batch", 100));
  runs[1].run.tokens_per_step = 2 * 8192;
  const Figure figure = loss_difference_figure(make_study("A", "", std::move(runs), context().hardware), XAxis::step);
  EXPECT_TRUE(figure.curves.empty());
  EXPECT_TRUE(std::any_of(figure.caption.begin(), figure.caption.end(), [](const std::string& line) {
    return holds(line, "Left out") && holds(line, "Bigger batch");
  }));
}

TEST(Escapes, XmlTexMarkdownAndCsv) {
  EXPECT_EQ(xml_escaped("a<b>&\"c"), "a&lt;b&gt;&amp;&quot;c");
  EXPECT_EQ(xml_escaped("\x01\xff é"), "\xEF\xBF\xBD\xEF\xBF\xBD é");
  EXPECT_EQ(xml_escaped("\xed\xa0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD") << "half a surrogate pair";
  EXPECT_EQ(tex_escaped("50% & a_b #1 {x} $ ~^\\..."),
            "50\\% \\& a\\_b \\#1 \\{x\\} \\$ \\textasciitilde{}\\textasciicircum{}\\textbackslash{}\\ldots{}");
  EXPECT_EQ(xml_escaped("a\x7f\xC2\x9B\xE2\x80\xAEz\n"), "a\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBDz\n") << "bidi and C1";
  EXPECT_EQ(tex_escaped("a\xC2\x9B\xE2\x80\xAE\nb\xFF"), "a.. b?");
  EXPECT_EQ(markdown_cell("[a](javascript:b) `c` &#x202e; ~d~ $e$\r\n| \xE2\x80\xAE"),
            "\\[a\\](javascript:b) \\`c\\` \\&#x202e; \\~d\\~ \\$e\\$. \\| .");
  EXPECT_EQ(csv_field("plain"), "plain");
  EXPECT_EQ(csv_field("=1+1"), "'=1+1");
  EXPECT_EQ(csv_field("=A,\"b\""), "\"'=A,\"\"b\"\"\"");
  EXPECT_EQ(csv_field("a,\"b\"\n"), "\"a,\"\"b\"\"\n\"");
  std::vector<LoadedRun> runs;
  runs.push_back(make_run(0, "", 200));
  runs[0].run.name = "a|b\n*c*";
  EXPECT_TRUE(holds(study_markdown(make_study("T", "", std::move(runs), context().hardware)), "a\\|b \\*c\\*"));
}

TEST(Csv, GivesEveryValueBackExactly) {
  stepladder::Run run{.id = 3, .name = "a, \"b\"", .ladder = 2, .rung = 1, .repeat = 4, .stage = "bf16"};
  const std::vector<double> values{0.1 + 0.2, 1.0 / 3, 5e-324, 1.7976931348623157e308, -0.0, 1790000000.123456};
  std::vector<StepRecord> steps;
  for (std::size_t i = 0; i < values.size(); ++i)
    steps.push_back({.step = static_cast<std::int64_t>(i) + 1,
                     .loss = values[i],
                     .dt_ms = 0.1 + values[0] * static_cast<double>(i),
                     .tokens = 1'000'003,
                     .at = values[5]});
  steps.push_back({.step = 7, .loss = nan_value, .val_loss = -std::numeric_limits<double>::infinity()});
  std::istringstream lines(steps_csv_head() + steps_csv(run, steps));
  std::string line;
  std::getline(lines, line);
  const auto columns = static_cast<std::size_t>(std::count(line.begin(), line.end(), ',')) + 1;
  for (const StepRecord& step : steps) {
    ASSERT_TRUE(std::getline(lines, line));
    const std::string quoted = "3,\"a, \"\"b\"\"\",2,1,bf16,4,";
    ASSERT_TRUE(line.starts_with(quoted)) << line;
    std::vector<std::string> fields{"", "", "", "", "", ""};
    std::istringstream rest(line.substr(quoted.size()) + ",");
    for (std::string field; std::getline(rest, field, ',');) fields.push_back(field);
    ASSERT_EQ(fields.size(), columns);
    const auto value = [&](std::size_t i) {
      double number = missing;
      std::from_chars(fields[i].data(), fields[i].data() + fields[i].size(), number);
      return number;
    };
    EXPECT_EQ(fields[6], std::to_string(step.step));
    if (step.step == 7) {
      EXPECT_EQ(fields[7], "NaN");
      EXPECT_EQ(fields[8], "-Infinity");
      EXPECT_EQ(fields[9], "");
      continue;
    }
    EXPECT_EQ(value(7), step.loss);
    EXPECT_EQ(std::signbit(value(7)), std::signbit(step.loss));
    EXPECT_EQ(value(9), step.dt_ms);
    EXPECT_EQ(value(11), 1'000'003 * 1000.0 / step.dt_ms);
    EXPECT_EQ(value(14), step.at);
  }
}

TEST(Csv, GivesTheNamesBackWhenItIsImported) {
  std::string text = steps_csv_head();
  const std::vector<std::string> names{"=1+1", "'=1+1", "a, \"b\"", "-5", "@x", " spaces "};
  for (std::size_t i = 0; i < names.size(); ++i) {
    const stepladder::Run run{.id = static_cast<RunId>(i) + 1, .name = names[i], .stage = i == 0 ? "+bf16" : ""};
    const std::vector<StepRecord> steps{{.step = 1, .loss = 3, .dt_ms = 20, .tokens = 100},
                                        {.step = 2, .loss = 2, .dt_ms = 20, .tokens = 100}};
    text += steps_csv(run, steps);
  }
  MemoryInput input(text);
  CollectingSink sink;
  importers::csv().read(input, {}, sink);
  ASSERT_EQ(sink.runs.size(), names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(sink.runs[i].run.name, names[i]);
    ASSERT_EQ(sink.runs[i].steps.size(), 2U);
    EXPECT_EQ(sink.runs[i].steps[1].dt_ms, 20);
  }
  EXPECT_EQ(sink.runs[0].run.stage, "+bf16");
}

TEST(Csv, OfSummariesHasARowForEachRunAndEqualColumns) {
  const std::string text = summaries_csv(make_ladder(), context());
  std::istringstream lines(text);
  std::vector<std::string> rows;
  for (std::string line; std::getline(lines, line);) rows.push_back(line);
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_TRUE(holds(rows[0], "tokens_per_s,") && holds(rows[0], "speedup_ci95_low"));
  for (const std::string& row : rows) EXPECT_EQ(count(row, ","), count(rows[0], ",")) << row;
  EXPECT_TRUE(holds(rows[3], "impossible-throughput"));
}

TEST(Markdown, HasARowForEachRungAndTheArithmetic) {
  const std::string text = study_markdown(make_ladder());
  EXPECT_EQ(count(text, "\n| "), 4u + 1) << text;
  EXPECT_TRUE(holds(text, "| impossible | same |"));
  EXPECT_TRUE(holds(text, "parameters = "));
}

TEST(Tex, HoldsFigureAndTable) {
  const Study study = make_ladder();
  const std::string bars = to_tex(ladder_figure(study), study);
  for (const char* text : {"\\begin{axis}", "\\toprule", "\\bottomrule", "Flash \\& fast \\textless{}attention",
                           "north east lines", "\\end{document}"})
    EXPECT_TRUE(holds(bars, text)) << text;
  EXPECT_EQ(count(bars, "pattern=north"), 1u);
  EXPECT_EQ(count(to_tex(loss_figure(study, XAxis::step), study), "\\addplot["), 3u);
}

TEST(Html, AsksForNothingAndTellsAll) {
  const std::string page = report_html(make_ladder());
  for (const char* part : {"http://", "https://", "<script", "<link", "@import", "url(http"}) {
    const std::string allowed = "xmlns=\"http://www.w3.org/2000/svg\"";
    EXPECT_EQ(count(page, part), std::string(part) == "http://" ? count(page, allowed) : 0) << part;
  }
  for (const char* text : {"Flash &amp; fast &lt;attention&gt;", "prefers-color-scheme:dark", "@media print",
                           "impossible-throughput", "bootstrap", "2 of 3", ">impossible<"})
    EXPECT_TRUE(holds(page, text)) << text;
  EXPECT_EQ(count(page, "<svg "), 5u);
  EXPECT_FALSE(holds(report_html(make_ladder(), Theme::dark), "prefers-color-scheme"));
}

// Read in pieces of this many steps.
Json trace_of(const stepladder::Run& run, std::span<const StepRecord> steps, std::size_t at_once) {
  std::string text;
  const auto in_pieces = [&](const stepladder::Run&, const auto& use) {
    for (std::size_t i = 0; i < steps.size(); i += at_once) use(steps.subspan(i, std::min(at_once, steps.size() - i)));
  };
  stepladder::write_trace({run}, in_pieces, [&](std::string_view piece) { text += piece; });
  return Json::parse(text);
}

TEST(Trace, StepsLieOnTheClockWithTheirPartsInside) {
  stepladder::Run run{.id = 3, .name = "traced"};
  std::vector<StepRecord> steps;
  for (int i = 1; i <= 3; ++i)
    steps.push_back({.run = 3,
                     .step = i,
                     .loss = 2,
                     .dt_ms = 100,
                     .at = 1000 + i * 0.5,
                     .parts = {.data_ms = 5, .forward_ms = 30, .backward_ms = 50, .optimizer_ms = 10}});
  const Json trace = trace_of(run, steps, 2);
  EXPECT_EQ(trace["otherData"]["origin_unix_s"], 1000.4);
  double step_start = 0;
  int parts = 0;
  int seen = 0;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    const double ts = event["ts"];
    const double dur = event["dur"];
    if (event["cat"] == "step") {
      EXPECT_NEAR(ts, 500'000.0 * seen++, 1);
      EXPECT_EQ(dur, 100'000);
      step_start = ts;
    } else {
      ++parts;
      EXPECT_GE(ts, step_start);
      EXPECT_LE(ts + dur, step_start + 100'000);
    }
  }
  EXPECT_EQ(seen, 3);
  EXPECT_EQ(parts, 12);
}

TEST(Trace, WithoutAClockStepsFollowEachOther) {
  stepladder::Run run{.id = 3, .name = "imported"};
  const std::vector<StepRecord> steps{{.step = 1, .dt_ms = 100}, {.step = 2}, {.step = 3, .dt_ms = 50}};
  const Json trace = trace_of(run, steps, 2);
  EXPECT_EQ(trace["otherData"]["runs_without_wall_clock"], Json::array({3}));
  std::vector<double> starts;
  for (const Json& event : trace["traceEvents"])
    if (event["ph"] == "X") starts.push_back(event["ts"]);
  EXPECT_EQ(starts, (std::vector<double>{0, 100'000}));
}

TEST(ExportFigure, GoesByTheEndingAndNamesTheFile) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "stepladder-figures-test";
  std::filesystem::create_directories(folder);
  const Figure figure = ladder_figure(make_ladder());
  export_figure(figure, folder / "a.SVG");
  EXPECT_GT(std::filesystem::file_size(folder / "a.SVG"), 1000u);
  if (!why_not(FigureFormat::png)) {
    EXPECT_EQ(render(figure, FigureFormat::png).substr(1, 3), "PNG");
    EXPECT_EQ(render(figure, FigureFormat::pdf).substr(0, 4), "%PDF");
  }
  try {
    export_figure(figure, folder / "a.gif");
    FAIL();
  } catch (const DataError& error) {
    EXPECT_TRUE(holds(error.what(), "a.gif"));
  }
  try {
    export_figure(figure, folder / "none" / "a.svg");
    FAIL();
  } catch (const DataError& error) {
    EXPECT_TRUE(holds(error.what(), "a.svg"));
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace stepladder
