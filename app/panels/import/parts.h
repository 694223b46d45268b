// The parts of the Import view, each drawn by the file of its name. UI thread.
#pragma once

#include <array>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/desktop/command.h"
#include "app/desktop/fields.h"
#include "app/desktop/models/import_preview.h"
#include "app/desktop/workspace.h"
#include "storage/analysis/plausibility.h"
#include "storage/importers/importer.h"

namespace stepladder {

// The popup for one file of the preview: its role, its rung's name, its place and its tokens per step.
struct ImportFile {
  std::string path;  // Run::source_path
  std::array<char, 256> name{};
  NumberField tokens;
  bool opens = false;  // in the next frame

  void open(const ImportPreview& import, std::size_t run);
};

// A change reads the source again.
void draw_import_file(ImportFile& file, const ImportPreview& import, Commands& commands);

// The form: facts that the file lacks or states wrongly.
struct ImportForm {
  NumberField tokens;
  NumberField params;
  ImportOptions options;                      // from the fields
  std::optional<ImportOptions> as_last_time;  // offered if none are set now

  void show(const ImportOptions& wanted);
  std::string problem() const;  // of a field, in a sentence; empty without one
};

bool draw_import_form(ImportForm& form, const HardwareTable& hardware);  // returns whether something was changed

// The import settings that the user gave for earlier files: saved with the layout and offered for the next ones.
struct Correction {
  std::string folder;  // empty: pasted text
  std::string format;
  ImportOptions options;
};

struct ImportMemory {
  std::string last_path;
  std::vector<Correction> corrections;  // newest first

  std::string text() const;
  void recall(const std::string& text);
  void remember(const ImportPreview& import);
  const ImportOptions* said_last_time(const ImportPreview& import) const;  // of this folder, else of this format
};

// The notes: everything that was skipped, assumed or inferred.
struct ImportNotes {
  std::vector<std::string> lines;
  std::vector<float> tops;  // as wrapped at `width`, with the end of the last
  float width = 0;
};

ImportNotes notes_of(const ImportPreview& import);
void draw_notes(ImportNotes& notes, const ImportPreview& import, Commands& commands);

// The table: the runs as read, and the flags of each.
float import_rows_height(std::size_t runs);  // of the table

// `flags` are each run's; a click on a row changes `selected`, one on its button sets `edited`. Without `edited` there
// are no buttons.
void draw_import_rows(const std::vector<ImportPreview::PreviewRun>& runs, const std::vector<std::vector<Flag>>& flags,
                      std::set<std::size_t>& selected, std::optional<std::size_t>* edited);

// The Import view without runs to show: a place to drop files, or the progress of reading.
std::string source_words(const ImportQuestion& asked);  // "runs/a.log and 3 more"

void draw_nothing(const std::string& last_path, bool is_read_only, Commands& commands);
void draw_reading(const ImportPreview& import, Commands& commands);

}  // namespace stepladder
