// The Import view's form: what the file did not say, or said wrongly. UI thread.
#pragma once

#include <optional>
#include <string>

#include "app/desktop/fields.h"
#include "app/desktop/workspace.h"

namespace stepladder {

struct ImportForm {
  NumberField tokens;
  NumberField params;
  ImportOptions options;                      // what the fields say
  std::optional<ImportOptions> as_last_time;  // what was said then, where nothing is said now

  void show(const ImportOptions& said);
  std::string problem() const;  // what is wrong with a field; empty where nothing is
};

bool draw_import_form(ImportForm& form, const HardwareTable& hardware);  // whether something was changed

}  // namespace stepladder
