// The Import view's table: the runs as read, and the flags of each. UI thread.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "app/desktop/models/import_preview.h"
#include "app/desktop/workspace.h"
#include "storage/analysis/plausibility.h"

namespace stepladder {

float import_rows_height(std::size_t runs);  // of the table

// `flags` are each run's; a click on a row changes `selected`, one on its button sets `edited`. Without `edited` there
// are no buttons.
void draw_import_rows(const std::vector<ImportPreview::PreviewRun>& runs, const std::vector<std::vector<Flag>>& flags,
                      std::set<std::size_t>& selected, std::optional<std::size_t>* edited);

}  // namespace stepladder
