// The Import view's form: facts that the file lacks or states wrongly. UI thread.
#pragma once

#include <optional>
#include <string>

#include "app/desktop/fields.h"
#include "app/desktop/workspace.h"

namespace stepladder {

struct ImportForm {
  NumberField tokens;
  NumberField params;
  ImportOptions options;                      // of the fields
  std::optional<ImportOptions> as_last_time;  // offered where none are set now

  void show(const ImportOptions& said);
  std::string problem() const;  // of a field, in a sentence; empty where there is none
};

bool draw_import_form(ImportForm& form, const HardwareTable& hardware);  // returns whether something was changed

}  // namespace stepladder
