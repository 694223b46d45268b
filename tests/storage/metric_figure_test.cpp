// Figures of metrics as people write them: "min(val/loss)".
#include "storage/metric_figure.h"

#include <gtest/gtest.h>

namespace stepladder {
namespace {

using Kind = MetricFigure::Kind;

std::string error_of(const std::string& text) {
  std::size_t at = 0;
  try {
    read_figure(text, at);
  } catch (const FigureError& error) {
    EXPECT_EQ(at, 0u);
    return std::to_string(error.at) + ": " + error.what();
  }
  return "none";
}

TEST(MetricFigure, is_read_as_it_is_written) {
  const std::vector<std::pair<std::string, MetricFigure>> written{
      {"last(val/acc)", {"val/acc"}},
      {"min(val/loss)", {"val/loss", Kind::min}},
      {"max(a b)", {"a b", Kind::max}},
      {"median(\"top(1), \\\"best\\\" \\\\ 5\")", {"top(1), \"best\" \\ 5", Kind::median}},
      {"at(val/loss, 1000)", {"val/loss", Kind::at, 1000}},
      {"at(\" x\", 0)", {" x", Kind::at, 0}}};
  for (const auto& [text, figure] : written) {
    EXPECT_EQ(to_string(figure), text);
    EXPECT_EQ(metric_figure_from(text), figure) << text;
  }
  EXPECT_EQ(metric_figure_from("MIN( val/loss )"), (MetricFigure{"val/loss", Kind::min}));
  EXPECT_EQ(metric_figure_from("at(x,7)"), (MetricFigure{"x", Kind::at, 7}));
}

TEST(MetricFigure, other_text_is_none) {
  for (const char* text : {"", "loss", "minimum(loss)", "min (loss)", "min(loss) ", "val/min(x)", "at(x)", "min()"})
    EXPECT_FALSE(metric_figure_from(text)) << text;
  std::size_t at = 4;
  EXPECT_TRUE(read_figure("a<3 min(b)>2", at));
  EXPECT_EQ(at, 10u);
}

TEST(MetricFigure, an_error_names_its_place) {
  EXPECT_TRUE(error_of("min(").starts_with("4: the name of a metric is missing"));
  EXPECT_TRUE(error_of("min(loss").starts_with("8: the closing bracket"));
  EXPECT_TRUE(error_of("min(\"loss)").starts_with("4: the closing quotation mark"));
  EXPECT_TRUE(error_of("at(loss)").starts_with("7: a step is missing"));
  EXPECT_TRUE(error_of("at(loss, -1)").starts_with("9: a step is a whole number"));
  EXPECT_TRUE(error_of("at(loss, 99999999999999999999)").starts_with("9: a step is a whole number"));
  EXPECT_TRUE(error_of("last(loss, 5)").starts_with("9: expected ')'"));
  EXPECT_TRUE(error_of("last(a(1))").starts_with("6: a name with '(' needs quotation marks"));
}

}  // namespace
}  // namespace stepladder
