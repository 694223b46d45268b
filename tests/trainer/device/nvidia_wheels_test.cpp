#include "engine/trainer/device/nvidia_wheels.h"

#include <gtest/gtest.h>

#include <fstream>

#include "engine/trainer/cuda_library.h"

namespace stepladder {
namespace {

namespace fs = std::filesystem;

TEST(NvidiaWheels, ALibraryIsFoundBesideLibTorch) {
  const fs::path site = fs::path(testing::TempDir()) / "nvidia_wheels";
  fs::remove_all(site);
  EXPECT_TRUE(nvidia_library(site / "torch" / "lib", "libnvrtc").empty());
  for (const char* folder : {"torch/lib", "nvidia/cu12/lib", "nvidia/cu13/lib", "nvidia/nccl"})
    fs::create_directories(site / folder);
  for (const char* file :
       {"nvidia/cu12/lib/libnvrtc-builtins.so.12.8", "nvidia/cu13/lib/libnvrtc-builtins.so.13.0",
        "nvidia/cu13/lib/libnvrtc-builtins.alt.so.13.0", "nvidia/cu13/lib/libnvrtc.so.13", "nvidia/not-a-wheel"})
    std::ofstream(site / file) << "";
  EXPECT_EQ(nvidia_library(site / "torch" / "lib", "libnvrtc-builtins.so."),
            site / "nvidia" / "cu13" / "lib" / "libnvrtc-builtins.so.13.0");
  EXPECT_EQ(nvidia_library(site / "torch" / "lib", "libnvrtc.so."),
            site / "nvidia" / "cu13" / "lib" / "libnvrtc.so.13");
  EXPECT_TRUE(nvidia_library(site / "torch" / "lib", "libcufft.so.").empty());
  fs::remove_all(site);
}

TEST(NvidiaWheels, LibTorchsFolderIsThatOfItsLibraries) {
  EXPECT_TRUE(fs::exists(torch_library_folder() / "libtorch_cpu.so")) << torch_library_folder();
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
