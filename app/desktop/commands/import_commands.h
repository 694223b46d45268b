// Commands of the Import view.
#pragma once

#include <string>

#include "app/desktop/command.h"
#include "app/desktop/models/import_preview.h"

namespace stepladder {

// Reads files or pasted text without storing anything; the Import view shows the result.
struct PreviewImport {
  ImportQuestion question;
};
struct KeepImport {};  // reads the same input again, into the database
struct ForgetImport {};
struct UndoImport {};  // of what the Import view says was imported, also if other changes came after it
struct OpenExample {   // imports it without a question, and shows what it makes the point with: its ladder or its tries
  std::string path;
  std::string gpu = {};  // as ExampleFile's
};
struct RemoveExamples {};  // the runs that came with the program go to the bin, with an undo

// Shows how far reading is, or its result, once. Call between frames; never blocks.
void take_import(DesktopState& desktop);

}  // namespace stepladder
