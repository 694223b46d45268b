#include "app/cli/profile/text_table.h"

#include <iostream>

#include "app/cli/table.h"

namespace stepladder {

void print_table(const TextTable& shown) {
  std::vector<std::vector<std::string>> cells{shown.heads};
  cells.insert(cells.end(), shown.rows.begin(), shown.rows.end());
  std::cout << table(cells, shown.right);
}

}  // namespace stepladder
