#include "engine/trainer/host_copies.h"

#include <gtest/gtest.h>

#include <numeric>

#include "engine/trainer/device_probe.h"

namespace stepladder {
namespace {

Batch batch_from(std::int64_t first, std::size_t tokens) {
  Batch batch;
  batch.inputs.resize(tokens);
  batch.targets.resize(tokens);
  std::iota(batch.inputs.begin(), batch.inputs.end(), first);
  std::iota(batch.targets.begin(), batch.targets.end(), first + 1);
  return batch;
}

// More batches than may be under way at once, some of another size, and none is read before all were handed over.
void expect_all_to_arrive(at::Device device) {
  constexpr std::int64_t seq = 4;
  TokenFeed feed(device, seq);
  std::vector<Tokens> arrived, places;
  for (std::int64_t i = 0; i < 7; ++i) {
    const Batch batch = batch_from(100 * i, i == 3 ? 8 : 12);
    arrived.push_back(feed.to_device(batch));
    const auto place = [&] {
      return at::zeros({std::ssize(batch.inputs) / seq, seq}, at::device(device).dtype(at::kLong));
    };
    places.push_back({place(), place()});
    feed.copy_into(places.back(), batch);
  }
  for (std::int64_t i = 0; i < 7; ++i) {
    const Batch wanted = batch_from(100 * i, i == 3 ? 8 : 12);
    for (const Tokens& tokens : {arrived[static_cast<std::size_t>(i)], places[static_cast<std::size_t>(i)]}) {
      EXPECT_EQ(tokens.inputs.device().type(), device.type());
      EXPECT_EQ(tokens.inputs.size(1), seq);
      EXPECT_TRUE(at::equal(tokens.inputs.cpu().flatten(), at::tensor(wanted.inputs))) << i;
      EXPECT_TRUE(at::equal(tokens.targets.cpu().flatten(), at::tensor(wanted.targets))) << i;
    }
  }
}

void expect_figures(at::Device device) {
  FiguresOnHost figures(device);
  for (const float loss : {3.5F, 2.25F}) {
    const at::Tensor both = at::tensor({loss, loss + 1}).to(device);
    figures.start({.loss = both[0], .norm = both[1]});
    if (device.is_cuda()) at::detail::getCUDAHooks().deviceSynchronize(0);
    EXPECT_EQ(figures.loss(), loss);
    EXPECT_EQ(figures.norm(), loss + 1);
  }
}

TEST(HostCopies, EveryBatchArrives) {
  expect_all_to_arrive(at::kCPU);
  expect_figures(at::kCPU);
}

TEST(HostCopies, EveryBatchArrivesOnCuda) {
  if (device_report().gpus.empty()) GTEST_SKIP() << device_report().cuda_note;
  expect_all_to_arrive(at::Device(at::kCUDA, 0));
  expect_figures(at::Device(at::kCUDA, 0));
}

}  // namespace
}  // namespace stepladder
