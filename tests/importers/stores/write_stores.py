"""Lets the trackers' own writers make the stores that tests/importers/ reads, and describes each one's content beside it.

    python write_stores.py FOLDER [tensorboard mlflow trackio wandb] [--small]

Each store gets STORE.json: a list of runs, each with its name, status, configuration and the numbers of every step as
they were handed to the writer (JSON text "nan" and "inf" where JSON has no word). The writers are the packages in
requirements.txt; one that is not installed is said and left out. --small is for the stores that are kept here: databases
lose their empty tables and get small pages, and what only repeats the path or holds no numbers goes.
"""
import datetime
import json
import math
import os
import pathlib
import shutil
import sqlite3
import struct
import sys
import time

START = 1_763_000_000.0  # unix seconds


def plain(value):
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return value


def float32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def step(number, loss, at, **others):
    return dict(step=number, loss=loss, at=at, **others)


def save(folder, name, runs):
    rows = [{**run, "steps": [{key: plain(value) for key, value in row.items()} for row in run["steps"]]} for run in runs]
    (folder / f"{name}.json").write_text(json.dumps(rows, indent=1) + "\n")


def losses(seed, count):
    """A falling loss, with a NaN and an infinity on the way."""
    values = [3 + 8 * math.exp(-i / 20) + 0.05 * math.sin(i * (seed + 3)) for i in range(count)]
    values[5], values[6] = math.nan, math.inf
    return values


def write_tensorboard(folder):
    import numpy
    from tensorboard.compat.proto import event_pb2, summary_pb2, tensor_pb2, types_pb2
    from tensorboard.plugins.hparams import api_pb2, metadata as hparams, plugin_data_pb2
    from tensorboard.plugins.scalar import summary_v2
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    def writer_in(name, at):
        real_time, time.time = time.time, lambda: at  # the file's name is the time
        try:
            return EventFileWriter(str(folder / name), flush_secs=1)
        finally:
            time.time = real_time

    def add(writer, at, number, *values):
        writer.add_event(event_pb2.Event(wall_time=at, step=number, summary=summary_pb2.Summary(value=values)))

    def hyper_parameters(tag, **data):
        data = plugin_data_pb2.HParamsPluginData(version=hparams.PLUGIN_DATA_VERSION, **data)
        return summary_pb2.Summary.Value(tag=tag, tensor=hparams.NULL_TENSOR,
                                         metadata=hparams.create_summary_metadata(data))

    def session_start(config):
        info = plugin_data_pb2.SessionStartInfo(start_time_secs=START)
        for key, value in config.items():
            kind = {bool: "bool_value", float: "number_value", str: "string_value"}[type(value)]
            setattr(info.hparams[key], kind, value)
        return hyper_parameters(hparams.SESSION_START_INFO_TAG, session_start_info=info)

    # Plain floats, as torch.utils.tensorboard writes them; the second file of a program that was started again.
    rows = {}
    for part, (begin, end) in enumerate(((0, 30), (25, 40))):
        at = START + 1000 * part
        writer = writer_in("tb_simple", at)
        if part == 0:
            config = {"lr": 0.0006, "batch": 8.0, "dtype": "bfloat16", "fused": True}
            add(writer, at, 0, session_start(config))
        else:
            writer.add_event(event_pb2.Event(wall_time=at, step=begin, session_log=event_pb2.SessionLog(
                status=event_pb2.SessionLog.START)))
        for i, loss in list(enumerate(losses(part, 40)))[begin:end]:
            now = at + 0.25 * (i - begin) + 1
            row = step(i, float32(loss), now, lr=float32(0.0006 * (1 - i / 40)), grad_norm=float32(1 + i / 10),
                       dt_ms=float32(250 + i), tokens=8192)
            add(writer, now, i, *[summary_pb2.Summary.Value(tag=tag, simple_value=value) for tag, value in (
                ("train/loss", row["loss"]), ("train/learning_rate", row["lr"]), ("train/grad_norm", row["grad_norm"]),
                ("train/dt_ms", row["dt_ms"]), ("train/tokens_per_second", 8192e3 / row["dt_ms"]),
                ("train/accuracy", 0.5))])
            if i % 10 == 0:
                row["val_loss"] = float32(loss + 0.125)
                add(writer, now, i, summary_pb2.Summary.Value(tag="eval/loss", simple_value=row["val_loss"]))
            rows[i] = row
        if part == 1:
            add(writer, START + 2000, 40, hyper_parameters(
                hparams.SESSION_END_INFO_TAG, session_end_info=plugin_data_pb2.SessionEndInfo(
                    status=api_pb2.STATUS_SUCCESS, end_time_secs=START + 2000)))
        writer.close()
    save(folder, "tb_simple", [dict(title="tb_simple", status="finished", started_at=START, ended_at=START + 2000,
                                    config=config, steps=[rows[i] for i in sorted(rows)])])

    # Tensors of every kind of float, one kind after the other.
    writer = writer_in("tb_tensor", START)
    metadata = summary_v2.scalar_pb("loss", 1.0).value[0].metadata
    rows = []
    for i in range(24):
        loss, now = 4 - i / 16, START + 0.5 * i
        tensor = tensor_pb2.TensorProto()
        tensor.tensor_shape.SetInParent()
        kind = i % 8
        if kind == 0:
            tensor.CopyFrom(summary_v2.scalar_pb("loss", loss).value[0].tensor)
        elif kind == 1:
            tensor.dtype, tensor.tensor_content = types_pb2.DT_FLOAT, numpy.float32(loss).tobytes()
        elif kind == 2:
            tensor.dtype, tensor.tensor_content = types_pb2.DT_DOUBLE, numpy.float64(loss).tobytes()
        elif kind == 3:
            tensor.dtype = types_pb2.DT_DOUBLE
            tensor.double_val.append(loss)
        elif kind == 4:
            tensor.dtype, tensor.tensor_content = types_pb2.DT_HALF, numpy.float16(loss).tobytes()
        elif kind == 5:
            tensor.dtype = types_pb2.DT_HALF
            tensor.half_val.append(int(numpy.float16(loss).view(numpy.uint16)))
        elif kind == 6:
            tensor.dtype = types_pb2.DT_BFLOAT16
            tensor.half_val.append(int(numpy.float32(loss).view(numpy.uint32)) >> 16)
        else:
            bits = int(numpy.float32(loss).view(numpy.uint32)) >> 16
            tensor.dtype, tensor.tensor_content = types_pb2.DT_BFLOAT16, struct.pack("<H", bits)
        add(writer, now, i, summary_pb2.Summary.Value(tag="loss", tensor=tensor, metadata=metadata))
        rows.append(step(i, loss, now, **({"dt_ms": 500.0} if i else {})))
    writer.close()
    save(folder, "tb_tensor", [dict(title="tb_tensor", status="finished", config={}, steps=rows)])


def mlflow_runs(client, uri_of):
    experiment = client.create_experiment("gpt2 ladder", **({"artifact_location": uri_of} if uri_of else {}))
    from mlflow.entities import Metric, Param, RunTag

    runs = []
    for index, (name, status, expected) in enumerate((("baseline", "FINISHED", "finished"), ("bf16", "FAILED", "failed"),
                                                      ("flash", "KILLED", "stopped"), ("alone", None, "interrupted"))):
        begin = START + 100 * index
        run = client.create_run(experiment, start_time=int(begin * 1000), run_name=name)
        config = {"lr": "0.001", "batch_size": "8", "block_size": "1024", "seed": "1", "stage": name}
        metrics, rows = [], []
        for i, loss in enumerate(losses(index, 20)):
            at = begin + i
            row = step(i, loss, at, lr=0.001 / (i + 1), dt_ms=100.0 + i, tokens=8192)
            named = {"train_loss": loss, "lr": row["lr"], "step_time_ms": row["dt_ms"],
                     "samples_per_second": 8000 / row["dt_ms"], "system/gpu_0_power_usage_watts": 300.0}
            if i % 5 == 0:
                row["val_loss"] = named["val_loss"] = 3.5 - i / 100
            metrics += [Metric(key, value, int(at * 1000), i) for key, value in named.items()]
            rows.append(row)
        client.log_batch(run.info.run_id, metrics=metrics, params=[Param(*pair) for pair in config.items()],
                         tags=[RunTag("mlflow.note.content", "what changed"), RunTag("team", "a")])
        if status:
            client.set_terminated(run.info.run_id, status, end_time=int((begin + 50) * 1000))
        runs.append(dict(title=name, status=expected, started_at=begin, config={**config, "tags.team": "a"}, steps=rows,
                         ladder="gpt2 ladder", rung=index))
    gone = client.create_run(experiment, run_name="deleted")
    client.delete_run(gone.info.run_id)
    return runs


def write_mlflow(folder):
    import mlflow

    os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
    for name, uri, artifacts in (("mlflow", f"sqlite:///{folder}/mlflow.db", "artifacts"),
                                 ("mlruns", (folder / "mlruns").as_uri(), None)):
        try:
            client = mlflow.tracking.MlflowClient(tracking_uri=uri)
            runs = mlflow_runs(client, artifacts)
        except mlflow.exceptions.MlflowException as error:
            print(f"{name} was not written: {error}", file=sys.stderr)
            continue
        save(folder, name, runs)


def write_trackio(folder):
    os.environ.update(TRACKIO_DIR=str(folder / "trackio_home"), TRACKIO_SHOW_DASHBOARD="0", HF_HUB_OFFLINE="1")
    from trackio.sqlite_storage import SQLiteStorage

    def iso(at):
        return datetime.datetime.fromtimestamp(at, datetime.timezone.utc).isoformat()

    runs = []
    for index, name in enumerate(("first", "second")):
        begin = START + 1000 * index
        config = {"lr": 0.001, "model": {"n_layer": 12, "dtype": "bf16"}, "variant": name}
        rows, metrics = [], []
        for i, loss in enumerate(losses(index, 25)):
            at = begin + i * 0.5
            row = step(i, loss, at, grad_norm=2 - i / 25, dt_ms=480.0 + i, tokens=524288)
            rows.append(row)
            metrics.append({"loss": loss, "grad/norm": row["grad_norm"], "dt": row["dt_ms"] / 1000,
                            "tok/s": 524288e3 / row["dt_ms"], "text": "not a number"})
        SQLiteStorage.bulk_log(project="ladder", run=name, run_id=f"id{index}", metrics_list=metrics,
                               steps=list(range(25)), timestamps=[iso(row["at"]) for row in rows],
                               config={**config, "_Created": iso(begin), "_Username": "somebody"})
        runs.append(dict(title=name, status="finished", created_at=begin, ladder="ladder", rung=index, steps=rows,
                         config={"lr": 0.001, "model.n_layer": 12, "model.dtype": "bf16", "variant": name}))
    for database in (folder / "trackio_home").glob("ladder.db*"):
        database.rename(folder / database.name)
    save(folder, "ladder", runs)


def write_wandb(folder):
    os.environ.update(WANDB_MODE="offline", WANDB_DIR=str(folder), WANDB_SILENT="true", WANDB_DISABLE_GIT="true",
                      WANDB_DISABLE_CODE="true", WANDB_DISABLE_JOB_CREATION="true", WANDB__DISABLE_STATS="true",
                      WANDB_CONSOLE="off", WANDB__DISABLE_META="true", WANDB_HOST="host", WANDB_USERNAME="somebody")
    import wandb

    runs = []
    for index, (name, code) in enumerate((("baseline", 0), ("bf16", 1))):
        config = {"lr": 0.001, "optim": {"name": "adamw", "betas": [0.9, 0.95]}, "variant": name, "n_params": 124439808}
        run = wandb.init(project="ladder", group="gpt2", name=name, id=f"golden{index}", config=config,
                         settings=wandb.Settings(x_disable_stats=True, x_disable_meta=True, console="off"))
        rows = []
        for i, loss in enumerate(losses(index, 30)):
            row = step(i, loss, None, lr=0.001 * (30 - i) / 30, dt_ms=100.0 + i, tokens=4096)
            named = {"train/loss": loss, "train/lr": row["lr"], "perf/step_time_ms": row["dt_ms"],
                     "perf/tok_per_sec": 4096e3 / row["dt_ms"], "nested": {"deep": 1.0}}
            if i % 10 == 0:
                row["val_loss"] = named["val/loss"] = 3.25
            run.log(named, step=i)
            del row["at"]
            rows.append(row)
        run.finish(exit_code=code)
        runs.append(dict(title=name, status="failed" if code else "finished", ladder="ladder gpt2", rung=index, steps=rows,
                         config={"lr": 0.001, "optim.name": "adamw", "optim.betas": [0.9, 0.95], "variant": name,
                                 "n_params": 124439808}))
    save(folder, "wandb", runs)


def make_small(folder):
    for database in folder.glob("*.db"):
        connection = sqlite3.connect(database, isolation_level=None)
        connection.execute("PRAGMA journal_mode = DELETE")
        tables = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
        for name, in tables:
            if connection.execute(f'SELECT count(*) FROM "{name}"').fetchone() == (0,):
                connection.execute(f'DROP TABLE "{name}"')
        connection.execute("PRAGMA page_size = 512")
        connection.execute("VACUUM")
        connection.close()
    for meta in folder.glob("mlruns/**/meta.yaml"):
        meta.write_text(meta.read_text().replace(folder.as_uri(), "file:///stores"))
    for junk in [*folder.glob("mlruns/.trash"), *folder.glob("mlruns/*/*/artifacts"), *folder.glob("mlruns/models"),
                 folder / "trackio_home", *folder.glob("wandb/*/files"), *folder.glob("wandb/*/logs"),
                 *folder.glob("wandb/*/tmp")]:
        shutil.rmtree(junk, ignore_errors=True)
    for link in folder.glob("wandb/*"):
        if link.is_symlink():
            link.unlink()


if __name__ == "__main__":
    names = [argument for argument in sys.argv[1:] if argument != "--small"]
    target = pathlib.Path(names[0]).resolve()
    target.mkdir(parents=True, exist_ok=True)
    for wanted in names[1:] or ["tensorboard", "mlflow", "trackio", "wandb"]:
        try:
            {"tensorboard": write_tensorboard, "mlflow": write_mlflow, "trackio": write_trackio,
             "wandb": write_wandb}[wanted](target)
        except ImportError as error:
            print(f"{wanted} was not written: {error}", file=sys.stderr)
    if "--small" in sys.argv:
        make_small(target)
