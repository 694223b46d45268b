// A text field for a path, with a button that opens the desktop's own dialog. UI thread, inside a frame.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "app/desktop/data_requests.h"
#include "app/desktop/system/file_dialog.h"

namespace stepladder {

class PathField {
 public:
  explicit PathField(FileQuestion question) : question_(std::move(question)) {}

  std::string path() const;  // the text as it is now, as plain_path reads it
  void show(const std::string& path);

  // `width` includes the button. Returns whether a path was entered (Enter) or chosen in the dialog; of several chosen
  // ones `chosen()` has all. Marks NAME and NAME.browse for tests.
  bool draw(const char* id, const char* hint, float width, const std::string& name, DataRequests& requests);
  const std::vector<std::string>& chosen() const { return chosen_; }

 private:
  FileQuestion question_;
  std::array<char, 4096> text_{};
  std::vector<std::string> chosen_;
  std::string problem_;  // of the dialog; shown beneath the field
  std::shared_ptr<FileDialog> dialog_;
};

}  // namespace stepladder
