#!/usr/bin/env python3
"""stepladder.py under a real Hugging Face Trainer, a real Lightning Trainer, and beside a real TensorBoard writer.

    python adapters_test.py [--install]

A test is skipped if its library isn't installed. --install runs them in an environment of its own that has all of them
(requirements.txt) and takes torch from this Python.
"""
import importlib.util
import json
import pathlib
import subprocess
import sys
import unittest

from journal import JournalTest, of_kind, values


def needs(*modules):
    missing = [module for module in modules if importlib.util.find_spec(module) is None]
    return unittest.skipIf(missing, f"not installed: {', '.join(missing)}")


class Adapters(JournalTest):
    @needs("torch", "transformers", "accelerate")
    def test_the_trainer_of_hugging_face(self):
        self.run_script("""
            import json, stepladder, torch, transformers
            from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments
            model = GPT2LMHeadModel(GPT2Config(n_layer=1, n_head=1, n_embd=8, vocab_size=16, n_positions=8))
            class Data(torch.utils.data.Dataset):
                def __len__(self): return 64
                def __getitem__(self, i):
                    x = torch.arange(8) % (i % 15 + 1)
                    return {"input_ids": x, "labels": x}
            trainer = Trainer(model, TrainingArguments("out", max_steps=20, logging_steps=5, report_to=[], use_cpu=True,
                                                       eval_strategy="steps", eval_steps=10, run_name="tiny",
                                                       save_strategy="no", disable_tqdm=True),
                              train_dataset=Data(), eval_dataset=Data(), callbacks=[stepladder.TrainerCallback()])
            trainer.train()
            json.dump(trainer.state.log_history, open("history.json", "w"))
            """)
        events = self.only()
        history = json.loads((self.folder / "history.json").read_text())
        self.assertEqual(events[0]["name"], "tiny")
        for ours, theirs in (("train/loss", "loss"), ("eval/loss", "eval_loss"), ("train/learning_rate", "learning_rate")):
            self.assertEqual(values(events, ours), [(row["step"], row[theirs]) for row in history if theirs in row])
        self.assertEqual([e["s"] for e in of_kind(events, "step")], list(range(1, 21)))
        config = {name: value for event in of_kind(events, "config") for name, value in event["v"].items()}
        self.assertEqual((config["n_embd"], config["max_steps"]), (8, 20))
        self.assertEqual(events[-1]["status"], "finished")

    @needs("torch", "lightning")
    def test_lightning(self):
        out, _ = self.run_script("""
            import lightning, pickle, stepladder, torch
            class Module(lightning.LightningModule):
                def __init__(self, width=4):
                    super().__init__()
                    self.save_hyperparameters()
                    self.layer = torch.nn.Linear(width, 1)
                    self.seen = []
                def training_step(self, batch, i):
                    loss = self.layer(batch).square().mean()
                    self.seen.append(loss.item())
                    self.log("train_loss", loss)
                    return loss
                def configure_optimizers(self): return torch.optim.SGD(self.parameters(), 0.01)
            module = Module()
            logger = pickle.loads(pickle.dumps(stepladder.LightningLogger(name="light")))
            trainer = lightning.Trainer(max_steps=12, logger=logger, log_every_n_steps=3, accelerator="cpu",
                                        enable_progress_bar=False, enable_checkpointing=False)
            trainer.fit(module, torch.utils.data.DataLoader(torch.ones(100, 4), batch_size=4))
            print("SEEN", module.seen)
            """)
        seen = eval(out.partition("SEEN ")[2])
        events = self.only()
        self.assertEqual([step for step, _ in values(events, "train_loss")], [2, 5, 8, 11])
        for step, value in values(events, "train_loss"):
            self.assertAlmostEqual(value, seen[step], places=6)
        config = {name: value for event in of_kind(events, "config") for name, value in event["v"].items()}
        self.assertEqual((events[0]["name"], config["width"]), ("light", 4))

    @needs("torch", "tensorboard")
    def test_the_writer_has_every_method_of_tensorboards(self):
        out, _ = self.run_script("""
            import inspect, stepladder
            from torch.utils.tensorboard import SummaryWriter
            writer = stepladder.SummaryWriter("x")
            for name, method in inspect.getmembers(SummaryWriter, inspect.isfunction):
                if not name.startswith("_"):
                    assert callable(getattr(writer, name)), name
                    ours = getattr(stepladder.SummaryWriter, name, None)
                    if ours and name.startswith("add_"):
                        theirs, mine = (list(inspect.signature(f).parameters) for f in (method, inspect.unwrap(ours)))
                        assert mine[:len(theirs)] == theirs[:len(mine)], (name, mine, theirs)
            print("all")
            """)
        self.assertEqual(out, "all\n")


def install():
    """Runs this file in an environment that has the libraries; 77 if they can't be installed."""
    here = pathlib.Path(__file__).resolve().parent
    sys.path.insert(0, str(here.parent / "importers"))
    from peer_stores_test import SKIPPED, environment
    try:
        folder = environment(here / "requirements.txt", takes_torch=True)
    except (subprocess.CalledProcessError, OSError) as error:
        print(f"skipped: the libraries could not be installed: {error}")
        return SKIPPED
    return subprocess.run([folder / "bin/python", __file__]).returncode


if __name__ == "__main__":
    if "--install" in sys.argv:
        sys.exit(install())
    unittest.main()
