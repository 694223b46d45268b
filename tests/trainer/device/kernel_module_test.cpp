#include "engine/trainer/device/kernel_module.h"

#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <iostream>
#include <regex>

namespace stepladder {
namespace {

namespace fs = std::filesystem;

class KernelCache : public testing::Test {
 protected:
  KernelCache() { fs::remove_all(folder_); }
  ~KernelCache() override { fs::remove_all(folder_); }

  std::string get(const std::string& key) {
    return cached(folder_, key, [this] {
      ++made_;
      return std::string("machine\0code\n", 13);
    });
  }
  fs::path entry() const { return fs::directory_iterator(folder_)->path(); }

  const fs::path folder_ = fs::path(testing::TempDir()) / "kernel_cache";
  int made_ = 0;
};

TEST_F(KernelCache, AnEntryIsMadeOnce) {
  const std::string bytes = get("sm_90 1");
  EXPECT_EQ(bytes.size(), 13u);
  EXPECT_EQ(get("sm_90 1"), bytes);
  EXPECT_EQ(made_, 1);
  get("sm_80 1");
  EXPECT_EQ(made_, 2);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 2);  // no temporary file is left
}

TEST_F(KernelCache, AnEntryThatIsNotWholeIsMadeAgain) {
  const std::string bytes = get("sm_90 1");
  const fs::path file = entry();
  for (const std::uintmax_t size : {fs::file_size(file) - 1, std::uintmax_t{20}, std::uintmax_t{0}}) {
    fs::resize_file(file, size);
    made_ = 0;
    EXPECT_EQ(get("sm_90 1"), bytes);
    EXPECT_EQ(made_, 1);
    EXPECT_EQ(get("sm_90 1"), bytes);
    EXPECT_EQ(made_, 1);
  }
  std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).seekp(-1, std::ios::end).put('x');
  EXPECT_EQ(get("sm_90 1"), bytes);
  EXPECT_EQ(made_, 2);
  // Another key whose file has that name.
  std::ofstream(file, std::ios::binary) << "stepladder kernels 3 0\nsm_80 1\nabc";
  EXPECT_EQ(get("sm_90 1"), bytes);
  EXPECT_EQ(made_, 3);
}

TEST_F(KernelCache, AFolderThatCannotBeWrittenCostsOnlyTime) {
  std::ofstream(folder_) << "a file";
  EXPECT_EQ(get("sm_90 1").size(), 13u);
  EXPECT_EQ(get("sm_90 1").size(), 13u);
  EXPECT_EQ(made_, 2);
}

// NVRTC needs no GPU. Registers and spills of each kernel are printed.
TEST_F(KernelCache, NvrtcCompilesTheKernelsForEveryCard) {
  if (!nvrtc_note().empty()) GTEST_SKIP() << nvrtc_note();
  constexpr std::array<KernelTarget, 4> targets{{{.compute_major = 7, .compute_minor = 5},
                                                 {.compute_major = 8, .half = true},
                                                 {.compute_major = 9, .half = true},
                                                 {.compute_major = 10, .half = true}}};
  for (KernelTarget target : targets) {
    target.width = 768;
    target.vocab = 50257;
    target.padded_vocab = 50304;
    const CompiledModule module = compile_kernels(target);
    EXPECT_EQ(module.cubin.substr(1, 3), "ELF");
    EXPECT_EQ(module.log.find("warning"), std::string::npos) << module.log;
    const std::regex spill("([1-9][0-9]*) bytes spill");
    EXPECT_FALSE(std::regex_search(module.log, spill)) << module.log;
    for (const char* kernel :
         {"add_norm", "add_norm_backward", "adamw", "bias_gradient", "classifier", "clip_factor", "column_sums",
          "embedding", "embedding_backward", "gelu", "gelu_backward", "gradient_squares"})
      EXPECT_NE(module.cubin.find(std::string(".text.") + kernel), std::string::npos) << kernel;
    if (target.compute_major == 9) std::cout << module.log;
  }
  const KernelTarget target{.compute_major = 9, .half = true};
  const std::string bytes = kernel_module(target, folder_);
  EXPECT_EQ(kernel_module(target, folder_), bytes);
  EXPECT_THROW(compile_kernels({.compute_major = 1}), std::runtime_error);
}

}  // namespace
}  // namespace stepladder
