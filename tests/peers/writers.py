"""Trains with one library and writes with its own tracker, then notes what that tracker's own reader reads back.

    python writers.py KIND FOLDER

KIND is one of WRITERS. FOLDER/KIND.json gets {"runs": [{name: [[step, value], ...]}]}: every number that the library's
reader returns, in its order, as hexadecimal floats.
"""
import json
import os
import pathlib
import sys
import time

STEPS = 300


def pause():
    time.sleep(0.01)


def numbers(step):
    return {"train/loss": 3 / (step + 1), "val/acc": step / 7, "lr": 1e-3 * (1 + step)}


def from_tensorboard(folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    reader = EventAccumulator(str(folder), size_guidance={"scalars": 0, "tensors": 0})
    reader.Reload()
    return {tag: [(event.step, event.value) for event in reader.Scalars(tag)] for tag in reader.Tags()["scalars"]}


def tensorboard(folder):
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(folder / "tb", flush_secs=1)
    for step in range(STEPS):
        for name, value in numbers(step).items():
            writer.add_scalar(name, value, step)
        pause()
    writer.close()
    return [from_tensorboard(folder / "tb")]


def wandb(folder):
    os.environ.update(WANDB_MODE="offline", WANDB_SILENT="true")
    import wandb

    run = wandb.init(project="peers", name="live", dir=str(folder), config={"batch": 8})
    for step in range(STEPS):
        run.log(numbers(step), step=step)
        pause()
    run.finish()
    # wandb 0.31 has no reader of its files in Python, so what was handed to it is what must be there.
    return [{name: [(step, numbers(step)[name]) for step in range(STEPS)] for name in numbers(0)}]


def mlflow(folder):
    import mlflow

    mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
    with mlflow.start_run(run_name="live") as run:
        mlflow.log_param("batch", 8)
        for step in range(STEPS):
            mlflow.log_metrics(numbers(step), step=step)
    client = mlflow.MlflowClient()
    return [{name: [(each.step, each.value) for each in client.get_metric_history(run.info.run_id, name)]
             for name in client.get_run(run.info.run_id).data.metrics}]


def trackio(folder):
    os.environ.update(TRACKIO_DIR=str(folder / "trackio"))
    import trackio
    from trackio.sqlite_storage import SQLiteStorage

    trackio.init(project="peers", name="live", config={"batch": 8}, embed=False)
    for step in range(STEPS):
        trackio.log(numbers(step), step=step)
        pause()
    trackio.finish()
    found = {}
    for row in SQLiteStorage.get_logs("peers", "live"):
        for name in numbers(0):
            if name in row:
                found.setdefault(name, []).append((row["step"], row[name]))
    return [found]


def transformers(folder):
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

    os.environ["TENSORBOARD_LOGGING_DIR"] = str(folder / "hf")
    model = GPT2LMHeadModel(GPT2Config(n_layer=1, n_head=1, n_embd=8, vocab_size=16, n_positions=8))

    class Data(torch.utils.data.Dataset):
        def __len__(self):
            return 64

        def __getitem__(self, i):
            x = torch.arange(8) % (i % 15 + 1)
            return {"input_ids": x, "labels": x}

    Trainer(model, TrainingArguments(str(folder / "out"), max_steps=STEPS, logging_steps=1, report_to=["tensorboard"],
                                     use_cpu=True, eval_strategy="steps", eval_steps=50, save_strategy="no",
                                     disable_tqdm=True),
            train_dataset=Data(), eval_dataset=Data()).train()
    return [from_tensorboard(file) for file in sorted({file.parent for file in folder.rglob("*tfevents*")})]


def lightning(folder):
    import lightning
    import torch
    from lightning.pytorch.loggers import TensorBoardLogger

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)

        def training_step(self, batch, index):
            loss = self.layer(batch).square().mean()
            self.log_dict({"train_loss": loss, "half": loss / 2})
            return loss

        def validation_step(self, batch, index):
            self.log("val_loss", self.layer(batch).square().mean())

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.01)

    data = torch.utils.data.DataLoader(torch.randn(100, 4), batch_size=2)
    trainer = lightning.Trainer(max_steps=STEPS, logger=TensorBoardLogger(folder, name="lightning"), log_every_n_steps=1,
                                enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
                                accelerator="cpu", default_root_dir=folder)
    trainer.fit(Module(), data, data)
    return [from_tensorboard(file) for file in sorted({file.parent for file in folder.rglob("*tfevents*")})]


WRITERS = {each.__name__: each for each in (tensorboard, wandb, mlflow, trackio, transformers, lightning)}


def main():
    kind, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    runs = WRITERS[kind](folder)
    text = json.dumps({"runs": [{name: [(step, float(value).hex()) for step, value in points]
                                 for name, points in run.items()} for run in runs]})
    (folder / f"{kind}.json").write_text(text)
    os._exit(0)  # some libraries leave servers behind


if __name__ == "__main__":
    main()
