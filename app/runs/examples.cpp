// A run of an example is recognised by the file it was read from; projects of earlier versions began with one.
#include "app/runs/examples.h"

#include "app/host/environment.h"

namespace stepladder {
namespace {

const std::string& folder() {
  static const std::string path = (assets_folder() / "examples").string() + "/";
  return path;
}

}  // namespace

std::string path_of(const ExampleFile& example) {
  return folder() + example.file;
}

bool is_example_file(const std::string& path) {
  return path.starts_with(folder());
}

bool is_example(const Run& run) {
  return run.source == "example" || is_example_file(run.source_path);
}

}  // namespace stepladder
