#include "engine/trainer/device/nvidia_wheels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "engine/loaded_libraries.h"
#include "engine/trainer/cuda_library.h"
#include "engine/trainer/device/kernel_module.h"

namespace stepladder {
namespace {

namespace fs = std::filesystem;

TEST(NvidiaWheels, ALibraryIsFoundBesideLibTorch) {
  const fs::path site = fs::path(testing::TempDir()) / "nvidia_wheels";
  fs::remove_all(site);
  EXPECT_TRUE(nvidia_library(site / "torch" / "lib", "libnvrtc", 0).empty());
  for (const char* folder : {"torch/lib", "nvidia/cu12/lib", "nvidia/cu13/lib", "nvidia/nccl"})
    fs::create_directories(site / folder);
  for (const char* file :
       {"nvidia/cu12/lib/libnvrtc-builtins.so.12.8", "nvidia/cu12/lib/libnvrtc.so.12", "nvidia/cu12/lib/libcufile.so.1",
        "nvidia/cu13/lib/libnvrtc-builtins.so.13.0", "nvidia/cu13/lib/libnvrtc-builtins.alt.so.13.0",
        "nvidia/cu13/lib/libnvrtc.so.13", "nvidia/not-a-wheel"})
    std::ofstream(site / file) << "";
  const auto found = [&](const char* prefix, int major) {
    return nvidia_library(site / "torch" / "lib", prefix, major).lexically_relative(site / "nvidia");
  };
  // Beside a LibTorch for CUDA 12, the wheels of CUDA 13 are somebody else's.
  EXPECT_EQ(found("libnvrtc-builtins.so.", 13), "cu13/lib/libnvrtc-builtins.so.13.0");
  EXPECT_EQ(found("libnvrtc-builtins.so.", 12), "cu12/lib/libnvrtc-builtins.so.12.8");
  EXPECT_EQ(found("libnvrtc.so.", 13), "cu13/lib/libnvrtc.so.13");
  EXPECT_EQ(found("libnvrtc.so.", 12), "cu12/lib/libnvrtc.so.12");
  for (const int major : {0, 1, 14}) EXPECT_EQ(found("libnvrtc.so.", major), "cu13/lib/libnvrtc.so.13") << major;
  EXPECT_EQ(found("libcufile.so.", 13), "cu12/lib/libcufile.so.1");
  EXPECT_TRUE(found("libcufft.so.", 13).empty());
  fs::remove_all(site);
}

TEST(NvidiaWheels, LibTorchsFolderIsThatOfItsLibraries) {
  EXPECT_TRUE(fs::exists(torch_library_folder() / "libtorch_cpu.so")) << torch_library_folder();
}

// The test's own LibTorch, and NVRTC where a wheel has it.
TEST(NvidiaWheels, WhatIsLoadedSaysItsVersion) {
  const bool has_nvrtc = nvrtc_note().empty();
  const std::vector<LoadedLibrary> loaded = loaded_libraries();
  ASSERT_FALSE(loaded.empty());
  EXPECT_EQ(loaded.front().name, "LibTorch");
  EXPECT_EQ(loaded.front().file.parent_path(), torch_library_folder());
  if (!has_nvrtc) GTEST_SKIP() << nvrtc_note();
  const auto nvrtc = std::find_if(loaded.begin(), loaded.end(), [](const auto& each) { return each.name == "NVRTC"; });
  ASSERT_NE(nvrtc, loaded.end());
  EXPECT_EQ(nvrtc->version.find('.'), nvrtc->version.size() - 2) << nvrtc->version;
}

TEST(CudaLibrary, AGpuWithoutKernelsIsNotOffered) {
  const auto gpu = [](int major, int minor) {
    return Gpu{.name = "G", .compute_major = major, .compute_minor = minor};
  };
  EXPECT_EQ(
      too_old(gpu(6, 1), 13'000),
      "G has compute capability 6.1, and LibTorch's CUDA 13 has no kernels below 7.5 (Turing); with several GPUs, "
      "CUDA_VISIBLE_DEVICES chooses another");
  EXPECT_NE(too_old(gpu(7, 0), 13'020), "");
  EXPECT_EQ(too_old(gpu(7, 5), 13'000), "");
  EXPECT_EQ(too_old(gpu(9, 0), 13'000), "");
  EXPECT_EQ(too_old(gpu(6, 1), 12'060), "");  // CUDA 12 still has them
}

}  // namespace
}  // namespace stepladder
