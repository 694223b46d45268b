// Commands of the Import view.
#pragma once

#include "app/desktop/command.h"
#include "app/desktop/models/import_preview.h"

namespace stepladder {

// Reads files or pasted text without storing anything; the Import view shows the result.
struct PreviewImport {
  ImportQuestion question;
};
struct KeepImport {};  // reads the same input again, into the database
struct ForgetImport {};

// Shows how far reading is, or its result, once. Call between frames; never blocks.
void take_import(DesktopState& desktop);

}  // namespace stepladder
