// Draws a step's slices as an icicle, or two steps beneath each other on one scale of time. UI thread, inside a frame.
#pragma once

#include <imgui.h>

#include <array>
#include <optional>
#include <string>

#include "app/desktop/profile/profile_view.h"

namespace stepladder {

class Icicle {
 public:
  // Fills the available width. Null `before`: one step.
  void draw(const ShownProfile* before, const ShownProfile& after, float height);

  // The height that it needs to show all rows.
  static float height(const ShownProfile* before, const ShownProfile& after);

  void search(const std::string& text) { search_text_ = text; }
  const std::string& chosen() const { return chosen_; }  // the name of the slice that was clicked last

 private:
  struct Half {  // one of the two steps
    std::shared_ptr<const StepSlices> slices;
    SliceSearch search;
    std::string searched;
    float scroll = 0;
    float content = 0;  // height of all rows
  };
  struct Hovered {
    const ShownProfile* profile;
    std::size_t row;
    const KeptSlice* slice;
  };

  void keep_up(const ShownProfile* before, const ShownProfile& after);
  void draw_axis(float x, float y, float width);
  void draw_half(Half& half, const ShownProfile& shown, ImVec2 at, ImVec2 size, const char* anchor);
  void draw_row(const Half& half, const ShownProfile& shown, std::size_t row, ImVec2 at, float width);
  void draw_memory(const StepSlices& step, ImVec2 low, ImVec2 high) const;
  void draw_slice(const StepSlices& step, const SliceRow& row, const DrawnSlice& piece, ImVec2 at);
  void handle_input(ImVec2 at, ImVec2 size);  // mouse and keys
  void handle_keys();
  void choose();
  void fit();
  void zoom(double factor, double at_ns);
  void pan(double ns);
  void draw_tooltip(const Hovered& hovered) const;

  std::array<Half, 2> halves_;
  TimeRange all_, shown_;
  std::string search_text_, chosen_;
  std::optional<TimeRange> chosen_range_;
  std::optional<Hovered> hovered_;
  double zoom_at_ = 0;  // where keys zoom: at the mouse, else in the middle
  float dragged_ = 0;   // pixels since the button went down
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
