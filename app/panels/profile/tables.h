// The tables of the view Profile: operators, the difference of two, and the parts of the model. UI thread, inside a
// frame.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/desktop/profile/profile_view.h"

namespace stepladder {

bool holds(const std::string& text, const std::string& searched);  // whatever the case of letters

// The rows whose names hold the searched text. Found once, since a trace may have 100,000 rows.
class FoundRows {
 public:
  void update(const std::shared_ptr<const ProfileView>& view, const std::string& search);
  bool is_searched() const { return !search_.empty(); }

  std::vector<const TracedOperator*> operators;  // of the step after
  std::vector<const RowDifference*> differences;
  double left_out_ms = 0;  // of the other differences

 private:
  std::shared_ptr<const ProfileView> view_;  // owns the rows
  std::string search_;
};

// Each fills the available room.
void draw_operator_table(const ShownProfile& shown, const FoundRows& found);
void draw_roofline_table(const ShownProfile& shown);
void draw_difference_table(const ProfileDifference& difference, const FoundRows& found);
void draw_anatomy_table(const ShownProfile* before, const ShownProfile& after);

}  // namespace stepladder
