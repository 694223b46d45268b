// NVIDIA's libraries as this process has really loaded them. A toolkit on LD_LIBRARY_PATH comes before LibTorch's own
// wheels, and another version than it was built with may be slower, or refuse what works. Any thread.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace stepladder {

struct LoadedLibrary {
  std::string name;  // "cuBLASLt"
  std::filesystem::path file;
  std::string version;   // as it says itself: "13.1.0"; empty: unknown
  std::string origin;    // origin_of its file
  bool shadows = false;  // it comes from elsewhere, and LibTorch's wheels have one too
};

// LibTorch's own first, if it is loaded, then NVIDIA's in a fixed order; a library that isn't loaded is left out.
std::vector<LoadedLibrary> loaded_libraries();

// "wheel": inside the folder that wheels are installed in; "system": in one of the system's folders of libraries; else
// "elsewhere".
std::string origin_of(const std::filesystem::path& file, const std::filesystem::path& site);

// Whether the file is outside the folder that wheels are installed in (it holds torch/ and nvidia/), while that has a
// library of this name.
bool shadows_wheel(const std::filesystem::path& file, const std::filesystem::path& site);

// "LD_LIBRARY_PATH hides LibTorch's own cuDNN, NVRTC: ..." as a sentence; empty if nothing is hidden.
std::string shadow_note(const std::vector<LoadedLibrary>& libraries);

}  // namespace stepladder
