// The Import view's form: facts that the file lacks or states wrongly. UI thread.
#pragma once

#include <optional>
#include <string>

#include "app/desktop/fields.h"
#include "app/desktop/workspace.h"
#include "storage/importers/importer.h"

namespace stepladder {

struct ImportForm {
  NumberField tokens;
  NumberField params;
  ImportOptions options;                      // from the fields
  std::optional<ImportOptions> as_last_time;  // offered if none are set now

  void show(const ImportOptions& wanted);
  std::string problem() const;  // of a field, in a sentence; empty without one
};

bool draw_import_form(ImportForm& form, const HardwareTable& hardware);  // returns whether something was changed

}  // namespace stepladder
