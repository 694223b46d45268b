// Prints a table that the window and exports have too.
#pragma once

#include "app/figures/tables.h"

namespace stepladder {

void print_table(const TextTable& shown);  // on standard output

}  // namespace stepladder
