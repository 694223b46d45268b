// Printed configurations: which lines are settings, and that those of a log are values of its recipe.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "storage/importers/logs/lines/setting_lines.h"
#include "tests/importers/told.h"

namespace stepladder {
namespace {

std::string settings_of(std::string_view line) {
  std::string all;
  for (const PrintedSetting& setting : read_settings(line))
    all += (all.empty() ? "" : ", ") + setting.name + "=" + setting.value;
  return all;
}

TEST(Settings, AreReadInAnySpelling) {
  for (const std::string_view line :
       {"Namespace(lr=0.001, bf16=True)", "args: Namespace(lr=0.001, bf16=True, out_dir='/a/b')",
        "{'lr': 0.001, 'bf16': True}", "config: {\"lr\": 0.001, \"bf16\": True}", "TrainConfig(lr=0.001, bf16=True)",
        "config: lr=0.001 bf16=True", "lr=0.001, bf16=True", "python train.py --lr 0.001 --bf16",
        "--lr=0.001 --bf16=True", "[2026-11-27 10:00:00] [INFO] {'lr': 0.001, 'bf16': True}"})
    EXPECT_EQ(settings_of(line), "lr=0.001, bf16=True") << line;
  for (const std::string_view line :
       {"lr: 0.001", "lr = 0.001", "lr=0.001", "  lr ........................ 0.001", "\"lr\": 0.001,",
        "| lr | 0.001 |", "lr            0.001", "- lr: 0.001", "2026-11-27 10:00:00,123 - INFO - lr: 0.001",
        "INFO:root:lr: 0.001", "Overriding: lr = 0.001", "lr = 0.001  # 0.01 is too much"})
    EXPECT_EQ(settings_of(line), "lr=0.001") << line;
  EXPECT_EQ(settings_of("{'opt': {'lr': 0.1, 'betas': [0.9, 0.95]}, 'n': 2}"),
            "opt.lr=0.1, opt.betas=[0.9, 0.95], n=2");
  EXPECT_EQ(settings_of("name = 'a #1'  # one"), "name=a #1");
  EXPECT_EQ(settings_of("model=nano max_len=inf data=infill"), "model=nano, max_len=inf, data=infill");
  EXPECT_EQ(settings_of("| learning rate (LR)    | 0.0006 |"), "learning rate=0.0006");
  EXPECT_EQ(settings_of("| LR scheduler          | cosine |"), "LR scheduler=cosine");
  EXPECT_EQ(settings_of("| Baseline              | eager  |"), "");
  // Of a path that names the data, what is the data's own.
  EXPECT_EQ(settings_of("data_path = '/home/a/data/owt/'"), "data_path=owt");
  EXPECT_EQ(settings_of("--train_files fineweb/train_*.bin --val_files=/mnt/fineweb/val.bin"),
            "train_files=fineweb/train_*.bin, val_files=fineweb/val.bin");
}

TEST(Settings, OtherLinesHaveNone) {
  for (const std::string_view line : {"",
                                      "TF32: on",
                                      "Baseline: eager",
                                      "loading data from /data/x: 3 shards",
                                      "number of parameters: 124M",
                                      "compile_time: 12.3",
                                      "peak_memory_mb: 1234.5",
                                      "1 epoch = 82 batches",
                                      "B = 4 ; T = 1024",
                                      "device: cuda:0",
                                      "started: 2026-11-27 10:00",
                                      "out_dir = runs/a",
                                      "best val: 3.2",
                                      "model = GPT(GPTConfig(vocab_size=50304))",
                                      "use --lr 0.1 to train",
                                      "step     loss",
                                      "x = foo(bar, 3)",
                                      "torch.set_float32_matmul_precision('high')",
                                      "local_rank: 3",
                                      "step_avg:nanms",
                                      "step_avg: nan",
                                      "step:1/10 train_loss:4.0 train_time:3ms step_avg:nanms",
                                      "step_avg:12.3ms",
                                      "free_gb: 70.2"})
    EXPECT_EQ(settings_of(line), "") << line;
}

TEST(Settings, ThoseOfALogAreItsRecipeAndNameNoStage) {
  const std::string steps =
      "step 1 | loss 4.0 | dt 100ms\nstep 2 | loss 3.9 | dt 100ms\nstep 3 | loss 3.8 | dt 100ms\n";
  for (const std::string header :
       {"Namespace(learning_rate=0.001, bf16=False, seed=1, batch_size=16)\n",
        "{'learning_rate': 0.001, 'bf16': False, 'seed': 1, 'batch_size': 16}\n",
        "learning_rate: 0.001\nbf16: False\nseed: 1\nbatch_size: 16\n",
        "learning_rate = 0.001\nbf16 = False\nseed = 1\nbatch_size = 16\n",
        "config: learning_rate=1e-3 bf16=False seed=1 batch_size=16\n",
        "------------- arguments -------------\n  learning_rate ........ 0.001\n  bf16 ................. False\n"
        "  seed ................. 1\n  batch_size ........... 16\n---------- end of arguments ---------\n"}) {
    const Told told = import_text(header + steps);
    ASSERT_EQ(told.runs.size(), 1u) << header;
    const stepladder::Run& run = told.runs.front().run;
    const auto recipe = nlohmann::json::parse(run.recipe);
    EXPECT_EQ(recipe.value("learning_rate", 0.0), 0.001) << header << run.recipe;
    EXPECT_EQ(recipe.value("bf16", true), false) << header << run.recipe;
    EXPECT_EQ(recipe.value("batch", 0), 16) << header << run.recipe;
    EXPECT_EQ(run.stage, "") << header;
  }
}

TEST(Settings, AFailedMeasurementOfAStepIsNone) {
  std::string log = "step:0/4 val_loss:10.9 train_time:285ms step_avg:nanms\n";
  for (const std::string step : {"1", "2", "3", "4"})
    log += "step:" + step + "/4 train_loss:9." + step + " train_time:" + step + "00ms step_avg:nanms\n";
  const Told told = import_text(log);
  ASSERT_EQ(told.runs.size(), 1u);
  EXPECT_EQ(told.runs.front().run.recipe.find("nanms"), std::string::npos) << told.runs.front().run.recipe;
}

// What a step holds by the figures beside its time.
TEST(OtherFigures, AreThoseOfAStep) {
  const auto per_step_of = [](const std::string& head, const std::string& rest, const std::string& tail,
                              const char* name) {
    std::string log = head;
    for (int step = 0; step < 12; ++step)
      log += "iter " + std::to_string(step) + ": loss " + std::to_string(4 - step / 100.0) + ", time 500.00ms" + rest +
             "\n";
    const Told told = import_text(log + tail);
    if (told.runs.size() != 1) return -1.0;
    const auto& found = told.runs.front().run.printed.per_step;
    return found.contains(name) ? found.at(name) : 0.0;
  };
  EXPECT_NEAR(per_step_of("", ", mfu 29.20%", "", per_step::mfu), 14.6, 0.01);
  EXPECT_NEAR(per_step_of("", ", 960.00 samples/s", "", per_step::samples_rate), 480, 0.01);
  EXPECT_NEAR(per_step_of("", ", 2.500 it/s", "", per_step::steps_rate), 1.25, 0.01);
  EXPECT_NEAR(per_step_of("", ", data_time 100.00ms", "", per_step::parts_ms), 100, 0.01);
  EXPECT_NEAR(per_step_of("", ", forward 150.00ms, backward 250.00ms, optimizer 100.00ms", "", per_step::parts_ms), 500,
              0.01);
  EXPECT_EQ(per_step_of("", ", gpu_time 100.00ms", "", per_step::parts_ms), 0);
  const std::string head = "tokens per iteration will be: 491,520\nbatch_size = 12\nblock_size = 1024\n";
  EXPECT_EQ(per_step_of(head + "gradient_accumulation_steps = 40\n", "", "", per_step::configured), 480);
  EXPECT_EQ(per_step_of(head, "", "", per_step::configured), 0) << "the micro-batches may be others";
  for (const char* tail :
       {"Training completed in 12.0 s\n", "total training time: 12.0s\n", "Total time: 12 seconds\n",
        "{'train_runtime': 12.0, 'train_samples_per_second': 12.0, 'train_steps_per_second': 1.0, 'train_loss': 3.4, "
        "'epoch': 1.0}\n"})
    EXPECT_NEAR(per_step_of("", "", tail, per_step::untimed_ms), 500, 1) << tail;
  EXPECT_EQ(per_step_of("", "", "Total time: 0:12\n", per_step::untimed_ms), 0);
}

TEST(Settings, TwoDevicesAndRanksBeyondTheWorldAreRead) {
  const auto recipe_of = [](const std::string& head, const std::string& prefix) {
    const Told told =
        import_text(head + prefix + "step 1 | loss 4.0 | dt 100ms\n" + prefix + "step 2 | loss 3.9 | dt 100ms\n");
    return told.runs.empty() ? nlohmann::json() : nlohmann::json::parse(told.runs.front().run.recipe);
  };
  const std::string head = "gpu: NVIDIA A100-SXM4-80GB\nworld_size: 8\n";
  EXPECT_EQ(recipe_of(head + "Using device: NVIDIA H100 80GB HBM3\n", "").value("other_hardware", ""),
            "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(
      recipe_of(head + "Using device: NVIDIA A100\nMFU is relative to an A6000\n", "").value("other_hardware", ""), "");
  EXPECT_EQ(recipe_of(head, "[rank15] ").value("devices", 0), 16);
  EXPECT_EQ(recipe_of(head, "[rank7] ").value("devices", 0), 8);
}

TEST(Settings, NameAPrecisionNarrowerThanThatOfTheWeights) {
  const std::string steps = "step 1 | loss 4.0 | dt 100ms\nstep 2 | loss 3.9 | dt 100ms\n";
  const auto precision = [&](const std::string& head) {
    const Told told = import_text(head + "\n" + steps);
    return told.runs.empty() ? "no run" : told.runs.front().run.precision;
  };
  for (const char* head :
       {"precision: fp8", "dtype = 'fp8'", "fp8: True", "--fp8", "python train.py --fp8 --lr 0.1",
        "enable_float8 = True", "enable_float8_linear: true", "mixed_precision: fp8", "Float8 training active",
        "[titan] 2026-11-27 - root - INFO - Float8 tensorwise scaled training active",
        "Namespace(fp8='hybrid', lr=0.1)", "  fp8 ............................................. hybrid",
        "fp8: True\ndtype: bfloat16", "dtype: bfloat16\nfp8: True"})
    EXPECT_EQ(precision(head), "fp8") << head;
  EXPECT_EQ(precision("precision: nvfp4"), "nvfp4");
  for (const char* head : {"dtype: bfloat16\nfp8: False", "dtype: bfloat16\nfp8_margin: 0",
                           "dtype: bfloat16\nkv_cache_dtype: fp8", "dtype: bfloat16\nenable_float8_linear = False",
                           "dtype: bfloat16\nFP8 is not available", "dtype: bfloat16\n  fp8 ............. None"})
    EXPECT_EQ(precision(head), "bf16") << head;
}

// As nanoGPT prints a configuration file and what the command line changes in it.
TEST(Settings, CommentsOfAPrintedSourceNameNoStageAndStateNoFact) {
  const std::string steps = "iter 0: loss 4.0, time 100ms\niter 10: loss 3.9, time 100ms\n";
  const std::string source =
      "Overriding config with config/a.py:\n# a small model\neval_iters = 200\n\n# the batch\nbatch_size = 12 # with "
      "gradient_accumulation_steps = 2 a part\ngradient_accumulation_steps = 5 * 8\n\n# weight decay\nweight_decay = "
      "1e-1 # much\n\n# on macbook also add\n# device = 'cpu'  # run on cpu only\n# batch_size = 1\n";
  const Told told = import_text(source + "Overriding: compile = False\n" + steps);
  ASSERT_EQ(told.runs.size(), 1u);
  const stepladder::Run& run = told.runs.front().run;
  const auto recipe = nlohmann::json::parse(run.recipe);
  EXPECT_EQ(run.stage, "");
  EXPECT_EQ(run.device, "");
  EXPECT_EQ(recipe.value("compile", true), false) << run.recipe;
  EXPECT_EQ(recipe.value("weight_decay", 0.0), 0.1) << run.recipe;
  EXPECT_EQ(recipe.value("batch", 0), 12) << run.recipe;
  EXPECT_FALSE(recipe.contains("grad_accum")) << run.recipe;
  const std::string ends_with_comment = source.substr(0, source.find("# device"));
  EXPECT_EQ(import_text(ends_with_comment + "Overriding: compile = False\n" + steps).runs.front().run.stage, "");
  EXPECT_EQ(import_text(source + "Overriding: device = cuda\n" + steps).runs.front().run.device, "cuda");
  // Titles above steps or source code, and one that is a value, are none.
  const std::string code = "```python\nlr = 0.1\n```\n";
  EXPECT_EQ(import_text("# First\n" + code + "# Second\n" + code + "# Third\n" + code + "# Fourth\n" + code + steps)
                .runs.front()
                .run.stage,
            "Fourth");
  EXPECT_EQ(
      nlohmann::json::parse(import_text("**batch size: 64**\n" + steps).runs.front().run.recipe).value("batch", 0), 64);
  EXPECT_EQ(import_text("lr = 0.1\n# Baseline\n" + steps).runs.front().run.stage, "Baseline");
  EXPECT_EQ(import_text("# lr = 0.1\n" + steps).runs.front().run.stage, "lr = 0.1");
}

Run run_with_heading(const std::string& heading) {
  const Told told = import_text(heading + "\nstep 1 | loss 10.9 | 120.0 ms\nstep 2 | loss 10.8 | 121.0 ms\n");
  return told.runs.empty() ? Run() : told.runs.front().run;
}

TEST(Facts, OfEvaluationKernelsAndTeachersAreNotTheTrainings) {
  for (const char* heading :
       {"batch_size: 16\nseq_len: 1024\nval_seq_len: 2048",
        "batch_size=16, seq_len=1024, eval_seq_len=4096, eval_batch_size=8",
        "train_batch_size: 16\neval_batch_size: 64\nseq_length: 1024\neval_seq_length: 2048",
        "micro_batch_size: 2\nglobal_batch_size: 16\neval_global_batch_size: 128\nseq_length: 1024",
        "max_seq_len: 1024\nrope_max_seq_len: 8192\nbatch_size: 16",
        "context_length: 1024\nmax_context_length: 131072\nbatch_size: 16",
        "batch_size: 16\nblock_size: 1024\nattn_block_size: 128",
        "batch_size: 16\nblock_size: 1024\nBLOCK_SIZE=64 for the triton kernel\nFlexAttention BLOCK_SIZE: 128",
        "batch_size: 16\nshuffle_buffer_batch_size: 1000\nblock_size: 1024\ntokenizer_batch_size: 32",
        "batch_size: 16\nseq_len: 1024\ntokens_per_batch: 16384",
        "data.batch_size=16\neval.batch_size=128\ndata.seq_len=1024\neval.seq_len=512",
        "data:\n  train:\n    batch_size: 16\n    seq_len: 1024\n  val:\n    batch_size: 128\n    seq_len: 512",
        "tokens per step: 16384\ntokens per step per gpu: 2048",
        "Config(tokens=TokensArgs(sequence_length=1024, micro_batch_size=2, batch_accumulation_per_replica=4), "
        "parallelism=ParallelismArgs(dp=2, pp=1, tp=1))",
        "batch_size: 4 (per gpu)\nn_gpus: 4\nblock_size: 1024",
        "batch size 2 per device, 4 devices, grad accum 2, sequence length 1,024"})
    EXPECT_EQ(run_with_heading(heading).tokens_per_step, 16384) << heading;
  // How many devices take 16 each isn't sure.
  EXPECT_EQ(run_with_heading("batch_size: 16 (per gpu)\nn_gpus: 4\n8 GPUs\nblock_size: 1024").tokens_per_step, 0);
  EXPECT_EQ(run_with_heading("batch_size: 16\neval_seq_len: 2048").tokens_per_step, 0);
}

TEST(Facts, ParametersAreThoseOfTheWholeModel) {
  for (const char* heading :
       {"Total params: 124,439,808\nTrainable params: 294,912 (0.24%)",
        "Trainable params: 294,912\nNon-trainable params: 124,144,896\nTotal params: 124,439,808",
        "Number of parameters: 124,439,808\nNumber of embedding parameters: 38,597,376",
        "model parameters: 124,439,808\nteacher parameters: 1.5B", "total params 124,439,808, active params 350M",
        "Draft model has 20.1M parameters\nModel has 124439808 parameters",
        "parameters: 124,439,808 (trainable 294,912, frozen 124,144,896)"})
    EXPECT_EQ(run_with_heading(heading).params, 124439808) << heading;
}

TEST(Facts, HardwareIsWhatASettingNames) {
  for (const char* name : {"AMD Radeon RX 7900 XTX", "Intel Arc B580", "TPU v5 lite", "NVIDIA A100-SXM4-80GB"})
    for (const char* key : {"gpu: ", "device_name = ", "accelerator: ", "GPU model: ", "device kind: "})
      EXPECT_EQ(run_with_heading(std::string(key) + name).hardware, name) << key;
  EXPECT_EQ(run_with_heading("device: Intel Gaudi 2").hardware, "Intel Gaudi 2");
  EXPECT_EQ(run_with_heading("instance type: p4d.24xlarge").hardware, "p4d.24xlarge");
  for (const char* heading : {"gpu: 0", "device: cuda:0", "gpu: cuda:0", "gpu: True", "accelerator: gpu", "gpu: 45%",
                              "device: mps", "gpu memory: 40 GB", "device: xla:0", "model: gpt2", "device: npu1"})
    EXPECT_EQ(run_with_heading(heading).hardware, "") << heading;
}

TEST(Facts, HardwareThatIsComparedWithIsNotTheRuns) {
  EXPECT_EQ(run_with_heading("MFU is relative to A100 312 TFLOPS\ndevice cuda").hardware, "");
  EXPECT_EQ(run_with_heading("Comparing with the A100 result of 1.2 s; this machine: Apple M2 Max").hardware, "");
}

}  // namespace
}  // namespace stepladder
