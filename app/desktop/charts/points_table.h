// A chart's points as values, for a file or the clipboard.
#pragma once

#include <string>
#include <vector>

namespace stepladder {

struct PointsTable {
  struct Curve {
    std::string label;
    std::vector<double> x;
    std::vector<double> y;
  };
  std::string x_head;  // "step"
  std::string y_head;  // "Step time (ms)"
  std::vector<Curve> curves;
};

// A row for each point: "curve,x,y".
std::string points_csv(const PointsTable& table);

}  // namespace stepladder
