// Reads the settings of a training from the lines that print its configuration: "Namespace(lr=0.001, seed=1)",
// "{'lr': 0.001}", "lr: 0.001", "lr = 0.001", "config: lr=0.001 seed=1", "--lr 0.001", and lists of arguments with
// dots between name and value. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stepladder {

struct PrintedSetting {
  std::string name;      // as printed; one within another has both names: "optim.lr"
  std::string value;     // without quotes
  bool is_text = false;  // it was quoted, or isn't a number, True, False, None or a list
};

// Without measurements, and what differs from run to run anyway: paths, dates, processes. Empty for other lines.
std::vector<PrintedSetting> read_settings(std::string_view line);

// Whether the line is an assignment, as in source code: "lr = 0.1", "device = 'cpu'  # or cuda".
bool is_assignment(std::string_view line);
// The same line without the comment behind an assignment; any other line as it is.
std::string_view without_comment(std::string_view line);

}  // namespace stepladder
