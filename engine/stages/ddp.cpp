// Data parallelism: N processes hold the same weights, and each trains on 1/N of every micro-batch's rows.
//
// The gradient of a mean loss is the mean of its parts' gradients, so averaging them over the processes gives what one
// process would have computed from the whole batch, up to the order of additions. A ring all-reduce does the averaging:
// the gradients are cut into N pieces that travel around the ring twice, once to be summed and once to be handed out.
// Each process sends (and receives) 2 (N - 1) / N of the gradients' bytes, which hardly grows with N; the slowest link
// sets the pace. Sending each of a hundred tensors alone would pay the latency of the ring a hundred times, and
// sending all at the end would leave the processors idle meanwhile. So gradients are gathered in buckets of 25 MiB in
// the order in which the backward pass finishes them, last layer first, and a full bucket travels while earlier layers
// are still being computed (Li et al. 2020). The first bucket has only 1 MiB, so that sending starts early. With
// gradient accumulation only the last micro-batch's backward pass sends anything.
//
// On one CPU the processes share its cores and its memory bandwidth, so all they can save is the time that threads lose
// waiting for each other. With several GPUs or hosts, throughput grows with their number.
#include "engine/stage.h"

namespace stepladder {

Stage stages::ddp() {
  return {
      .id = "ddp",
      .title = "Data parallel",
      .why =
          "Two processes (with GPUs: one GPU each) share the rows of each batch and average their gradients during the "
          "backward pass; batch and loss stay the same.",
      .kind = StageKind::systems_only,
      .apply = [](Recipe& recipe) { recipe.nproc = 2; },
      .undo = [](Recipe& recipe) { recipe.nproc = 1; },
      .is_on = [](const Recipe& recipe) { return recipe.nproc > 1; },
      .unavailable = [](const Recipe& recipe, const DeviceReport& report, const std::string& device) -> std::string {
        if (device == "cuda") {
          if (report.gpus.size() < 2) return "needs two GPUs";
          if (recipe.compile == Compile::on) return "a captured step (compile) cannot exchange gradients";
          return report.gpu_process_groups_note;
        }
        if (device != "cpu") return "process groups don't support " + device;
        if (!report.process_groups_note.empty()) return report.process_groups_note;
        return report.cpu_cores < 2 ? "needs two CPU cores" : "";
      },
      .seldom_faster = [](const std::string& device) -> std::string {
        return device == "cpu" ? "processes on one CPU share its cores, so they seldom save time" : "";
      },
      .known = {.words = {"ddp", "data parallel"},
                .law = {.terms = {{.device = "cuda",
                                   .rule = LawRule::times,
                                   .amount = 0.5,
                                   .at_most = true,
                                   .why = "half the rows for each of two GPUs; the exchange isn't counted"}},
                        .unknown = "processes on one CPU share its cores"}}};
}

}  // namespace stepladder
