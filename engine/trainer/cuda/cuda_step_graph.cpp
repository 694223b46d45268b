#include <ATen/core/CachingHostAllocator.h>
#include <ATen/cuda/CUDAContextLight.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>

#include <map>

#include "engine/trainer/cuda/make_parts.h"

namespace stepladder {
namespace {

// The same one for each graph of a device and thread: LibTorch keeps a workspace of cuBLAS for each stream forever, on
// Hopper 32 MiB.
c10::cuda::CUDAStream graph_stream() {
  static thread_local std::map<c10::DeviceIndex, c10::cuda::CUDAStream> streams;
  const c10::DeviceIndex device = c10::cuda::current_device();
  const auto found = streams.find(device);
  return found != streams.end() ? found->second : streams.emplace(device, c10::cuda::getStreamFromPool()).first->second;
}

// Ends a capture that failed, so that the stream captures no longer and the allocator has the graph's memory back.
// After a call that a capture forbids, LibTorch's own end of a capture throws before it does the second.
void abandon(std::unique_ptr<at::cuda::CUDAGraph> graph, at::cuda::MempoolId_t pool) {
  const auto attempt = [](const auto& work) {
    try {
      work();
      return true;
    } catch (const c10::Error&) {
      return false;  // the exception in flight has the reason
    }
  };
  if (attempt([&] { graph->capture_end(); })) return;
  (void)graph.release();  // its destructor expects a capture that has ended
  const c10::DeviceIndex device = c10::cuda::current_device();
  at::HostAllocator& host = *at::getHostAllocator(at::kCUDA);
  attempt([&] { c10::cuda::CUDACachingAllocator::endAllocateToPool(device, pool); });
  attempt([&] { c10::cuda::CUDACachingAllocator::releasePool(device, pool); });
  attempt([&] { host.end_allocate_to_pool(pool); });
  attempt([&] { host.release_pool(pool); });
}

class CudaStepGraph : public StepGraph {
 public:
  CudaStepGraph() : stream_before_(c10::cuda::getCurrentCUDAStream()), stream_(graph_stream()) {
    c10::cuda::device_synchronize();  // weights may still be copied on the previous stream
    c10::cuda::setCurrentCUDAStream(stream_);
  }

  ~CudaStepGraph() override {
    try {
      stream_.synchronize();  // so that nobody frees memory that a replay still writes
    } catch (const c10::Error&) {
      // A device failure was already reported to the caller that waited for the device.
    }
    c10::cuda::setCurrentCUDAStream(stream_before_);
    graph_.reset();
    at::cuda::clearCublasWorkspaces();  // else the next run's peak would include them
  }

  CudaStepGraph(const CudaStepGraph&) = delete;
  CudaStepGraph& operator=(const CudaStepGraph&) = delete;

  void record(const std::function<void()>& work) override {
    c10::cuda::device_synchronize();
    // The graph has a memory pool of its own; the warm-up's memory is returned first.
    c10::cuda::CUDACachingAllocator::emptyCache();
    const at::cuda::MempoolId_t pool = at::cuda::graph_pool_handle();
    auto graph = std::make_unique<at::cuda::CUDAGraph>();
    graph->capture_begin(pool);
    try {
      work();
      graph->capture_end();
    } catch (...) {
      abandon(std::move(graph), pool);
      throw;
    }
    graph_ = std::move(graph);
  }

  void replay() override { graph_->replay(); }

 private:
  const c10::cuda::CUDAStream stream_before_, stream_;
  std::unique_ptr<at::cuda::CUDAGraph> graph_;
};

}  // namespace

std::unique_ptr<StepGraph> make_cuda_step_graph() {
  return std::make_unique<CudaStepGraph>();
}

}  // namespace stepladder
