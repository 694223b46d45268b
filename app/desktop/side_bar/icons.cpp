// The side bar's icons as lines on a grid of 24 x 24. A new view adds a function and a line in `icons`; without one it
// gets a circle.
#include "app/desktop/side_bar/icons.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <numbers>

namespace stepladder {
namespace {

constexpr float grid = 24;
constexpr float line_width = 1.75f;  // on the grid

// Draws in grid coordinates, y downwards.
class Pen {
 public:
  Pen(ImDrawList* draw, ImVec2 at, float size, ImU32 colour)
      : draw_(draw), at_(at), scale_(size / grid), width_(std::max(1.0f, line_width * scale_)), colour_(colour) {}

  void line(std::initializer_list<ImVec2> points, bool closed = false) const {
    for (const ImVec2& point : points) draw_->PathLineTo(place(point));
    draw_->PathStroke(colour_, closed ? ImDrawFlags_Closed : ImDrawFlags_None, width_);
  }
  void curve(ImVec2 from, ImVec2 a, ImVec2 b, ImVec2 to) const {
    draw_->PathLineTo(place(from));
    draw_->PathBezierCubicCurveTo(place(a), place(b), place(to));
    draw_->PathStroke(colour_, ImDrawFlags_None, width_);
  }
  void circle(ImVec2 centre, float radius) const {
    draw_->AddCircle(place(centre), radius * scale_, colour_, 0, width_);
  }
  void dot(ImVec2 centre, float radius) const { draw_->AddCircleFilled(place(centre), radius * scale_, colour_); }
  // Between two angles in degrees, clockwise from the right.
  void arc(ImVec2 centre, float radius, float from, float to) const {
    constexpr float turn = std::numbers::pi_v<float> / 180;
    draw_->PathArcTo(place(centre), radius * scale_, from * turn, to * turn);
    draw_->PathStroke(colour_, ImDrawFlags_None, width_);
  }
  void box(ImVec2 low, ImVec2 high, float rounding) const {
    draw_->AddRect(place(low), place(high), colour_, rounding * scale_, 0, width_);
  }

 private:
  ImVec2 place(ImVec2 point) const { return {at_.x + point.x * scale_, at_.y + point.y * scale_}; }

  ImDrawList* draw_;
  ImVec2 at_;
  float scale_;
  float width_;
  ImU32 colour_;
};

void draw_launch(const Pen& pen) {
  pen.line({{7, 4}, {20, 12}, {7, 20}}, true);
}
void draw_live(const Pen& pen) {
  pen.line({{2, 12}, {7, 12}, {10, 4}, {14, 20}, {17, 12}, {22, 12}});
}
void draw_ladder(const Pen& pen) {
  pen.line({{7, 2}, {7, 22}});
  pen.line({{17, 2}, {17, 22}});
  for (const float y : {6.0f, 12.0f, 18.0f}) pen.line({{7, y}, {17, y}});
}
void draw_compare(const Pen& pen) {
  pen.line({{3, 3}, {3, 21}, {21, 21}});
  pen.curve({6, 5}, {8, 13}, {13, 15}, {21, 16});
  pen.curve({6, 9}, {9, 11}, {13, 9}, {21, 6});
}
void draw_history(const Pen& pen) {
  pen.circle({12, 12}, 9);
  pen.line({{12, 7}, {12, 12}, {16, 14}});
}
void draw_run(const Pen& pen) {
  pen.box({4, 3}, {20, 21}, 2.5f);
  pen.line({{8, 8}, {16, 8}});
  pen.line({{8, 12}, {16, 12}});
  pen.line({{8, 16}, {12, 16}});
}
void draw_gauge(const Pen& pen) {
  pen.arc({12, 14}, 9, 155, 385);
  pen.line({{12, 14}, {16, 9}});
  pen.dot({12, 14}, 1.5f);
}
void draw_record(const Pen& pen) {
  pen.line({{7, 3}, {17, 3}, {17, 9}, {12, 14}, {7, 9}}, true);
  pen.line({{12, 14}, {12, 18}});
  pen.line({{8, 20.5f}, {16, 20.5f}});
}
void draw_import(const Pen& pen) {
  pen.line({{12, 3}, {12, 15}});
  pen.line({{7, 10}, {12, 15}, {17, 10}});
  pen.line({{3, 15}, {3, 21}, {21, 21}, {21, 15}});
}
void draw_profile(const Pen& pen) {
  pen.line({{3, 5}, {21, 5}});
  pen.line({{3, 11}, {10, 11}});
  pen.line({{13, 11}, {19, 11}});
  pen.line({{3, 17}, {7, 17}});
  pen.line({{13, 17}, {16, 17}});
}
void draw_tries(const Pen& pen) {
  pen.line({{3, 18}, {9, 18}, {9, 12}, {16, 12}, {16, 6}, {21, 6}});
  pen.dot({5, 10}, 1.2f);
  pen.dot({12.5f, 5.5f}, 1.2f);
  pen.dot({19, 15}, 1.2f);
}
void draw_machines(const Pen& pen) {
  pen.box({3, 4}, {21, 10.5f}, 2);
  pen.box({3, 13.5f}, {21, 20}, 2);
  pen.dot({7, 7.25f}, 1.2f);
  pen.dot({7, 16.75f}, 1.2f);
}
void draw_fold(const Pen& pen) {
  pen.line({{12, 6}, {6, 12}, {12, 18}});
  pen.line({{19, 6}, {13, 12}, {19, 18}});
}
void draw_unfold(const Pen& pen) {
  pen.line({{5, 6}, {11, 12}, {5, 18}});
  pen.line({{12, 6}, {18, 12}, {12, 18}});
}
void draw_theme(const Pen& pen) {
  pen.circle({12, 12}, 4);
  for (int i = 0; i < 8; ++i) {
    const float angle = static_cast<float>(i) * std::numbers::pi_v<float> / 4;
    const ImVec2 way(std::cos(angle), std::sin(angle));
    pen.line({{12 + 7 * way.x, 12 + 7 * way.y}, {12 + 10 * way.x, 12 + 10 * way.y}});
  }
}
void draw_search(const Pen& pen) {
  pen.circle({10.5f, 10.5f}, 6.5f);
  pen.line({{15.5f, 15.5f}, {21, 21}});
}

struct Icon {
  std::string_view name;
  void (*draw)(const Pen&);
};
constexpr std::array icons{Icon{"launch", draw_launch},     Icon{"live", draw_live},       Icon{"ladder", draw_ladder},
                           Icon{"compare", draw_compare},   Icon{"history", draw_history}, Icon{"run", draw_run},
                           Icon{"mfu", draw_gauge},         Icon{"import", draw_import},   Icon{"record", draw_record},
                           Icon{"machines", draw_machines}, Icon{"profile", draw_profile}, Icon{"fold", draw_fold},
                           Icon{"unfold", draw_unfold},     Icon{"theme", draw_theme},     Icon{"search", draw_search},
                           Icon{"tries", draw_tries}};

}  // namespace

bool draw_icon(ImDrawList* draw, std::string_view name, ImVec2 at, float size, ImU32 colour) {
  const Pen pen(draw, at, size, colour);
  const auto found = std::ranges::find(icons, name, &Icon::name);
  const bool is_known = found != icons.end();
  is_known ? found->draw(pen) : pen.circle({12, 12}, 4);
  return is_known;
}

}  // namespace stepladder
