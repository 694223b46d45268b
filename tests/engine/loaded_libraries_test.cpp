// Which of NVIDIA's libraries a process has loaded, and whether they are those of LibTorch's wheels.
#include "engine/loaded_libraries.h"

#include <gtest/gtest.h>

#include <fstream>

namespace stepladder {
namespace {

namespace fs = std::filesystem;

TEST(LoadedLibraries, OneFromElsewhereHidesTheWheels) {
  const fs::path root = fs::path(testing::TempDir()) / "loaded_libraries", site = root / "site-packages";
  fs::remove_all(root);
  for (const char* folder : {"site-packages/torch/lib", "site-packages/nvidia/cudnn/lib", "toolkit"})
    fs::create_directories(root / folder);
  for (const char* file : {"site-packages/torch/lib/libnvrtc.so.13", "site-packages/nvidia/cudnn/lib/libcudnn.so.9",
                           "toolkit/libcudnn.so.9.5", "toolkit/libcuda.so.1"})
    std::ofstream(root / file) << "";
  fs::create_symlink(site, root / "link");

  EXPECT_TRUE(shadows_wheel(root / "toolkit" / "libcudnn.so.9.5", site));
  EXPECT_TRUE(shadows_wheel(root / "toolkit" / "libnvrtc.so.12", site));
  EXPECT_FALSE(shadows_wheel(root / "toolkit" / "libcuda.so.1", site));  // the driver is in no wheel
  EXPECT_FALSE(shadows_wheel(site / "nvidia" / "cudnn" / "lib" / "libcudnn.so.9", site));
  EXPECT_FALSE(shadows_wheel(root / "link" / "nvidia" / "cudnn" / "lib" / "libcudnn.so.9", site));
  EXPECT_EQ(origin_of(root / "link" / "nvidia" / "cudnn" / "lib" / "libcudnn.so.9", site), "wheel");
  EXPECT_EQ(origin_of(root / "toolkit" / "libcudnn.so.9.5", site), "elsewhere");
  EXPECT_EQ(origin_of("/usr/lib/x86_64-linux-gnu/libcuda.so.1", site), "system");
  EXPECT_FALSE(shadows_wheel(root / "toolkit" / "libcudnn.so.9.5", ""));
  EXPECT_FALSE(shadows_wheel(root / "toolkit" / "libcudnn.so.9.5", root / "no such folder"));
  fs::remove_all(root);
}

TEST(LoadedLibraries, TheNoteNamesEachOfThem) {
  EXPECT_EQ(shadow_note({{.name = "cuDNN", .file = "/wheel/libcudnn.so.9"}}), "");
  const std::string note = shadow_note({{.name = "cuDNN", .file = "/toolkit/libcudnn.so.9", .shadows = true},
                                        {.name = "NVRTC", .file = "/toolkit/libnvrtc.so.12", .shadows = true}});
  EXPECT_NE(note.find("(cuDNN by /toolkit/libcudnn.so.9, NVRTC by /toolkit/libnvrtc.so.12)"), std::string::npos)
      << note;
}

}  // namespace
}  // namespace stepladder
