// Draws a step's slices as an icicle, or two steps beneath each other on one scale of time. UI thread, inside a frame.
#pragma once

#include <imgui.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "app/desktop/profile/profile_view.h"

namespace stepladder {

// What is chosen: slices by their names, as those of a table's row, or all of a kind of work.
struct SliceChoice {
  std::vector<std::string> names;
  std::optional<OperatorKind> kind;
  std::string title;  // empty: nothing is chosen

  bool operator==(const SliceChoice&) const = default;
  bool has(const std::string& name) const { return std::ranges::find(names, name) != names.end(); }
};

class Icicle {
 public:
  // Fills the available width. Null `before`: one step.
  void draw(const ShownProfile* before, const ShownProfile& after, float height);

  // The height that it needs to show all rows.
  static float height(const ShownProfile* before, const ShownProfile& after);

  void search(const std::string& text) { search_text_ = text; }
  // Chooses the next slice that matches the search, or the one before, and brings it into sight.
  void step_to_hit(bool forward);
  std::string hits_text() const;  // "3 of 120"; empty: nothing is searched for

  const SliceChoice& chosen() const { return chosen_; }
  void choose(SliceChoice choice);
  int clicks() const { return clicks_; }  // counts slices that were clicked, so that a table can follow

  // The stretch of time that was dragged over; none: the whole step.
  const std::optional<TimeRange>& range() const { return range_; }
  void clear_range() { range_.reset(); }

 private:
  struct Half {  // one of the two steps
    std::shared_ptr<const StepSlices> slices;
    std::shared_ptr<const SliceIndex> index;
    SliceSearch search;
    std::string searched;
    SliceSearch chosen;
    SliceChoice chosen_for;
    float scroll = 0;
    float content = 0;         // height of all rows
    std::vector<float> row_y;  // of each row in the last frame
    ImVec2 low, high;          // where its rows were
  };
  struct Hovered {
    const ShownProfile* profile;
    std::size_t half, row;
    const KeptSlice* slice;
  };
  struct Selected {  // the slice that was clicked last, or found
    std::size_t half;
    SlicePlace place;
    std::vector<SlicePlace> joined;  // its launch and its kernels
  };
  enum class Drag { none, pan, range };

  void keep_up(const ShownProfile* before, const ShownProfile& after);
  void draw_axis(float x, float y, float width);
  void draw_range(ImVec2 at, ImVec2 size) const;
  void draw_half(std::size_t number, const ShownProfile& shown, ImVec2 at, ImVec2 size, const char* anchor);
  void draw_rows(std::size_t number, const ShownProfile& shown);
  void draw_row(std::size_t number, const ShownProfile& shown, std::size_t row, ImVec2 at, float width);
  void draw_arrows(std::size_t number) const;
  void draw_memory(const StepSlices& step, ImVec2 low, ImVec2 high) const;
  void draw_slice(const StepSlices& step, const SliceRow& row, const DrawnSlice& piece, ImVec2 at);
  void handle_input(ImVec2 at, ImVec2 size);  // mouse and keys
  void handle_keys();
  void choose_hovered();
  void select(std::size_t half, SlicePlace place);
  void bring_into_sight();  // the selected slice
  void fit();
  void zoom(double factor, double at_ns);
  void pan(double ns);
  void draw_tooltip(const Hovered& hovered) const;
  float x_of(double ns, const Half& half) const;

  std::array<Half, 2> halves_;
  TimeRange all_, shown_;
  std::string search_text_;
  SliceChoice chosen_;
  int clicks_ = 0;
  std::optional<TimeRange> chosen_range_;
  std::optional<Selected> selected_;
  std::optional<TimeRange> range_;
  double range_from_ns_ = 0;  // where its drag began
  std::optional<Hovered> hovered_;
  double zoom_at_ = 0;  // where keys zoom: at the mouse, else in the middle
  Drag drag_ = Drag::none;
  float dragged_ = 0;  // pixels since the button went down
  int dragged_half_ = 0;
  float middle_ = 0;  // where the second step begins
  std::vector<DrawnSlice> pieces_;
};

// The colour of a kind of operator, the same in every part of the view.
ImVec4 kind_colour(OperatorKind kind);

ImVec4 memory_colour(MemoryUse use);

// "12.3 us", "4.56 ms".
std::string slice_time_text(double ns);

}  // namespace stepladder
