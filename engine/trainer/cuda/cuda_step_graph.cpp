#include "engine/trainer/cuda/cuda_step_graph.h"

#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>

namespace stepladder {
namespace {

class CudaStepGraph : public StepGraph {
 public:
  CudaStepGraph() : stream_before_(c10::cuda::getCurrentCUDAStream()), stream_(c10::cuda::getStreamFromPool()) {
    c10::cuda::device_synchronize();  // weights may still be on their way on the stream before
    c10::cuda::setCurrentCUDAStream(stream_);
  }

  ~CudaStepGraph() override {
    try {
      stream_.synchronize();  // nobody frees what a replay still writes
    } catch (const c10::Error&) {
      // A device failure was already reported to whoever waited for the device.
    }
    c10::cuda::setCurrentCUDAStream(stream_before_);
  }

  CudaStepGraph(const CudaStepGraph&) = delete;
  CudaStepGraph& operator=(const CudaStepGraph&) = delete;

  void record(const std::function<void()>& work) override {
    c10::cuda::device_synchronize();
    // The graph takes its memory from a pool of its own; what the warm-up took goes back first.
    c10::cuda::CUDACachingAllocator::emptyCache();
    auto* const graph = new at::cuda::CUDAGraph;  // never deleted where it fails: the allocator goes on asking it
    graph->capture_begin();
    try {
      work();
    } catch (...) {
      try {
        graph->capture_end();  // the stream must not keep capturing
      } catch (const c10::Error&) {
        // It says only that the capture was broken off; the exception on its way says why.
      }
      throw;
    }
    graph->capture_end();
    graph_.reset(graph);
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
