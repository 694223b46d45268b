"""Trains a tiny model as people do, with a logger as people call it: program.py TRAINER LOGGER FOLDER.

TRAINER: nanogpt (a plain loop), hf (Hugging Face's Trainer) or lightning. LOGGER: wandb, trackio, tensorboard or
mlflow. Nobody passes step= where the logger doesn't ask for it. What was logged goes to FOLDER/expected.json:
the loss of each logged step.
"""
import json
import os
import pathlib
import sys
import time

trainer, logger, folder = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]).resolve()
os.chdir(folder)
os.environ.update(WANDB_MODE="offline", WANDB_SILENT="true", WANDB_DIR=str(folder), TRACKIO_DIR=str(folder / "trackio"),
                  MLFLOW_TRACKING_URI=f"sqlite:///{folder}/mlflow.db", TENSORBOARD_LOGGING_DIR=str(folder / "tb"),
                  HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false")

import torch

torch.manual_seed(1)
torch.set_num_threads(1)
STEPS, EVERY, PAUSE_S = 60, 5, 0.05


def batch(i):
    generator = torch.Generator().manual_seed(i)
    x = torch.randint(16, (4, 8), generator=generator)
    return x, (x + 1) % 16


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Embedding(16, 32), torch.nn.Linear(32, 16))

    def loss(self, x, y):
        return torch.nn.functional.cross_entropy(self.layers(x).view(-1, 16), y.view(-1))


def nanogpt():
    """nanoGPT's loop: iter_num is a logged value, and the logger counts its calls."""
    if logger == "wandb":
        import wandb
        wandb.init(project="owt", name="gpt2", config={"learning_rate": 1e-2})
        log = wandb.log
    elif logger == "trackio":
        import trackio
        trackio.init(project="owt", name="gpt2", config={"learning_rate": 1e-2})
        log = trackio.log
    elif logger == "tensorboard":
        from torch.utils.tensorboard import SummaryWriter
        writer = SummaryWriter(folder / "tb")

        def log(values):
            for key, value in values.items():
                if key != "iter":
                    writer.add_scalar(key, value, values["iter"])
    else:
        import mlflow
        mlflow.set_experiment("owt")
        mlflow.start_run(run_name="gpt2")
        mlflow.log_params({"learning_rate": 1e-2})

        def log(values):
            mlflow.log_metrics({key: value for key, value in values.items() if key != "iter"}, step=values["iter"])
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    expected, began = {}, time.time()
    for iter_num in range(STEPS + 1):
        if iter_num % 20 == 0:
            with torch.no_grad():
                losses = {"train": model.loss(*batch(900)).item(), "val": model.loss(*batch(901)).item()}
            print(f"step {iter_num}: train loss {losses['train']:.4f}, val loss {losses['val']:.4f}", flush=True)
            log({"iter": iter_num, "train/loss": losses["train"], "val/loss": losses["val"], "lr": 1e-2})
            expected[iter_num] = losses["train"]
        loss = model.loss(*batch(iter_num))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        ended = time.time()
        if iter_num % EVERY == 0:
            print(f"iter {iter_num}: loss {loss.item():.4f}, time {(ended - began) * 1000:.2f}ms, mfu 1.00%", flush=True)
        began = ended
        time.sleep(PAUSE_S)
    if logger == "wandb":
        wandb.finish()
    elif logger == "trackio":
        trackio.finish()
    elif logger == "tensorboard":
        writer.close()
    else:
        mlflow.end_run()
    return expected


def hf():
    import transformers
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

    class Data(torch.utils.data.Dataset):
        def __len__(self):
            return 160

        def __getitem__(self, i):
            x = torch.arange(8) % (i % 15 + 1)
            return {"input_ids": x, "labels": x}

    model = GPT2LMHeadModel(GPT2Config(n_layer=1, n_head=1, n_embd=8, vocab_size=16, n_positions=8))
    options = TrainingArguments("out", max_steps=STEPS, logging_steps=EVERY, report_to=[logger], use_cpu=True,
                                eval_strategy="steps", eval_steps=20, run_name="tiny", save_strategy="no", disable_tqdm=True,
                                include_num_input_tokens_seen=True)

    class Slow(transformers.TrainerCallback):
        def on_step_end(self, *args, **kwargs):
            time.sleep(PAUSE_S)

    trained = Trainer(model, options, train_dataset=Data(), eval_dataset=Data(), callbacks=[Slow()])
    trained.train()
    return {row["step"]: row["loss"] for row in trained.state.log_history if "loss" in row}


def lightning():
    import lightning
    from lightning.pytorch import loggers

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.model, self.seen = Model(), {}

        def training_step(self, b, i):
            time.sleep(PAUSE_S)
            loss = self.model.loss(*b)
            self.log("train_loss", loss, prog_bar=True)
            if (self.global_step + 1) % EVERY == 0:
                self.seen[self.global_step] = loss.item()
            return loss

        def validation_step(self, b, i):
            self.log("val_loss", self.model.loss(*b))

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), lr=1e-2)

    kept = {"wandb": lambda: loggers.WandbLogger(project="lit", name="tiny", save_dir=folder, offline=True),
            "tensorboard": lambda: loggers.TensorBoardLogger(folder, name="tb"),
            "mlflow": lambda: loggers.MLFlowLogger("lit", run_name="tiny", tracking_uri=os.environ["MLFLOW_TRACKING_URI"])}[logger]()
    data = [batch(i) for i in range(20)]
    module = Module()
    trained = lightning.Trainer(max_steps=STEPS, logger=kept, log_every_n_steps=EVERY, accelerator="cpu", devices=1,
                                enable_checkpointing=False, enable_model_summary=False, default_root_dir=folder,
                                limit_val_batches=2)
    trained.fit(module, torch.utils.data.DataLoader(data, batch_size=None),
                torch.utils.data.DataLoader(data[:2], batch_size=None))
    return module.seen


expected = {"nanogpt": nanogpt, "hf": hf, "lightning": lightning}[trainer]()
(folder / "expected.json").write_text(json.dumps(expected))
