// Data parallelism: several processes hold the same weights, each computes the gradients of its own rows of every
// micro-batch, and all of them step by the mean. With one process, every function does nothing.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <optional>
#include <vector>

#include "engine/files/tokens.h"
#include "engine/training_job.h"

namespace stepladder {

class DataParallel {
 public:
  // Joins the processes that a launcher has started (engine/processes/rendezvous.h); a process that was started alone
  // becomes rank 0 and starts the others, which load while rank 0 continues. The recipe's "auto"s must be resolved.
  // Throws RecipeError if the processes don't fit the recipe or the build.
  DataParallel(const Recipe& recipe, RunControl& control);

  // Ends all processes that it started.
  ~DataParallel();
  DataParallel(const DataParallel&) = delete;
  DataParallel& operator=(const DataParallel&) = delete;

  // Waits for the other processes and sends them rank 0's parameters, its last step and, after a step, its moments.
  // From then on gradients are averaged: those of autograd by `backward`, those of a planned step by `begin_average`.
  // False if a stop was requested before all had joined.
  enum class Gradients { autograd, planned };
  bool connect(const std::vector<at::Tensor>& parameters, const std::vector<at::Tensor>& moments, std::int64_t& done,
               Gradients gradients = Gradients::autograd);

  bool is_rank0() const;  // the one that records the run

  // The GPU that this process computes on; nothing on a CPU, or if it is alone and uses the first.
  std::optional<at::Device> own_gpu() const;

  // This process's rows of a micro-batch: rank r of N has [r B / N, (r + 1) B / N).
  Batch share(Batch batch) const;

  // loss.backward(). With `average` the gradients, those gathered by earlier calls included, become their mean over all
  // processes when it returns; without, nothing is sent. Everything runs on the calling thread except the sending,
  // which overlaps with the rest of the backward pass.
  void backward(const at::Tensor& loss, bool average);

  // Begins to replace a piece of the gradients, (n), float32, on the CPU, by its mean over all processes, which all
  // begin the same pieces in the same order. Nobody else may touch it until `finish_averages` returns.
  void begin_average(const at::Tensor& gradients);
  void finish_averages();

  // The time that the last backward pass waited for other processes after it had sent everything; `missing` with one
  // process, and on GPUs, since the host doesn't wait.
  double waited_ms() const;

  // Mean over all processes of each one's loss. Also exchanges stop requests and rank 0's pauses.
  double mean(double loss);

  // Returns once the run is not paused or has to stop. While paused, the processes keep exchanging messages, since a
  // silent one would count as lost.
  void wait_while_paused();

  // Whether one of the processes had been asked to stop when `mean` was last called; the same on all of them.
  bool stop_requested() const;

 private:
  struct Group;
  RunControl& control_;
  std::unique_ptr<Group> group_;  // null with one process
};

// CPU threads of each process of a run.
int threads_per_process(const Recipe& recipe);

}  // namespace stepladder
