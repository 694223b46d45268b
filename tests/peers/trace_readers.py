#!/usr/bin/env python3
"""Reads Stepladder's exported traces with the readers of others: Perfetto's published schema, its trace processor, and TensorBoard's profiler.

    pip install perfetto protobuf torch-tb-profiler pandas tensorboard "setuptools<80"
    python tests/peers/trace_readers.py [--program build/stepladder] [--trace-processor FILE]

A reader that isn't installed is skipped and named; Perfetto's package fetches its trace processor from the net unless --trace-processor is given.
Seen on 2026-11-25: perfetto 0.59.1 (schema: every packet known, begins and ends pair up on every track) with a trace processor built from source, v56
(both forms without an error: all slices, their names and durations, GPU streams and CPU threads as tracks, counters of memory), torch-tb-profiler 0.4.3
(2 steps, 43 kernels, its own costs of a step equal to those of the trace that was imported).
"""
import argparse
import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cli"))
import gpu_trace  # noqa: E402


def schema(path, slices):
    """Every packet is known, and begins and ends pair up on every track."""
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace
    trace = Trace()
    trace.ParseFromString(path.read_bytes())
    tracks, stacks, found = set(), {}, 0
    for packet in trace.packet:
        if packet.HasField("track_descriptor"):
            tracks.add(packet.track_descriptor.uuid)
            continue
        assert packet.HasField("track_event"), packet
        event = packet.track_event
        assert event.track_uuid in tracks, event
        if event.type == event.TYPE_COUNTER:
            continue
        stack = stacks.setdefault(event.track_uuid, [])
        if event.type == event.TYPE_SLICE_BEGIN:
            stack.append(packet.timestamp)
        else:
            assert event.type == event.TYPE_SLICE_END and stack.pop() <= packet.timestamp
            found += 1
    assert not any(stacks.values()) and found == slices, (found, slices)
    return f"{found} slices on {len(stacks)} tracks"


def trace_processor(path, chrome, binary):
    """All slices of the JSON `chrome`, by track, name and nanoseconds, and its counters; no error."""
    from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig
    events = json.loads(chrome.read_text())["traceEvents"]
    threads = {(event["pid"], event["tid"]): event["args"]["name"] for event in events if event["ph"] == "M" and event["name"] == "thread_name"}
    expected = sorted((threads[event["pid"], event["tid"]], event["name"], round(event["dur"] * 1000)) for event in events if event["ph"] == "X")
    most = max((value for event in events if event["ph"] == "C" for value in event["args"].values()), default=0)
    with TraceProcessor(trace=str(path), config=TraceProcessorConfig(bin_path=binary)) as processor:
        errors = [row.name for row in processor.query("select name from stats where value > 0 and severity != 'info'")]
        found = sorted((row.thread, row.name, row.dur) for row in processor.query(
            "select slice.name, slice.dur, thread.name as thread from slice join thread_track on slice.track_id = thread_track.id join thread using (utid)"))
        counted = next(iter(processor.query("select coalesce(max(value), 0) as most from counter"))).most
    assert not errors and found == expected and counted == most, (errors, len(found), len(expected), counted, most)
    return f"{len(found)} slices on {len(threads)} tracks, no error"


def tensorboard(path, original):
    from torch_tb_profiler.profiler.data import RunProfileData

    def read(file):
        data = RunProfileData.parse("worker", "1", str(file), tempfile.mkdtemp())
        data.process()
        return data
    data, expected = read(path), read(original)
    assert set(data.steps_names) <= set(expected.steps_names) and len(data.kernel_stat) == len(expected.kernel_stat)
    costs = [round(cost) for cost in data.avg_costs.costs]
    assert costs == [round(cost) for cost in expected.avg_costs.costs], (costs, expected.avg_costs.costs)
    operators = {each.name for each in data.op_list_groupby_name}
    assert operators == {each.name for each in expected.op_list_groupby_name}, operators
    return f"{len(data.steps_names)} steps, {len(data.kernel_stat)} kernels, costs of a step in microseconds {costs}"


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--program", default=str(HERE.parents[1] / "build" / "stepladder"))
    options.add_argument("--trace-processor")
    options = options.parse_args()
    failed = False
    with tempfile.TemporaryDirectory(prefix="stepladder-readers-") as folder:
        folder = pathlib.Path(folder)
        original, chrome, perfetto = folder / "original.json", folder / "chrome.json", folder / "step.perfetto-trace"
        own, own_perfetto = folder / "own.json", folder / "own.perfetto-trace"
        gpu_trace.write(original, 2_000, 4)

        def stepladder(*arguments):
            return json.loads(subprocess.run([options.program, "--db", folder / "runs.db", "profile", *arguments, "--json"],
                                             check=True, capture_output=True).stdout)
        stepladder("import", original)
        slices = stepladder("export", "1", "--out", chrome)["slices"]
        stepladder("export", "1", "--out", perfetto, "--format", "perfetto")
        stepladder("run", "--model", "nano", "--stage", "compile-max", "--nproc", "2", "--traced", "3")  # threads, ranks, memory
        stepladder("export", "2", "--out", own)
        stepladder("export", "2", "--out", own_perfetto, "--format", "perfetto")
        for name, module, read in (("perfetto's schema", "perfetto", lambda: schema(perfetto, slices)),
                                   *((f"perfetto's trace processor, {path.name}", "perfetto",
                                      lambda path=path, json_of=json_of: trace_processor(path, json_of, options.trace_processor))
                                     for path, json_of in ((perfetto, chrome), (chrome, chrome), (own_perfetto, own), (own, own))),
                                   ("TensorBoard's profiler", "torch_tb_profiler", lambda: tensorboard(chrome, original))):
            if not importlib.util.find_spec(module):
                print(f"{name}: skipped, {module} isn't installed")
                continue
            try:
                print(f"{name}: {read()}")
            except Exception as error:  # each reader has errors of its own
                failed = True
                print(f"{name}: failed: {type(error).__name__}: {error}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
