"""A trace as PyTorch's profiler makes it of a GPU, whose every sum is known: five kernels a slot on four streams, which overlap in a fixed way.

Microseconds within a slot; `cut` are the microseconds by which the second trace's products are shorter:

    stream 0   gemm [4, 44), then an element-wise kernel [44, 64)
    stream 1   attention [30, 60)
    stream 2   communication [60, 90): hidden until 64, then exposed
    stream 3   a copy [88, 96): hidden until 90
    nothing    [96, 100) and [0, 4) of the next slot

So a slot's 100 microseconds are 33 of products (26 alone, 14 shared by two), 12 element-wise, 15 of attention, 26 of exposed communication, 6 of
copies and 8 idle.
"""
import json
import random

SHARES_US = {"matrix products": 33, "element-wise": 12, "attention": 15, "communication": 26, "copies and casts": 6, "idle": 8}
BUSY_US = {"matrix products": 40, "element-wise": 20, "attention": 30, "communication": 30, "copies and casts": 8, "idle": 8}
SLOT_US = 100
FILLER = json.dumps({"External id": 12345, "Record function id": 0, "Concrete Inputs": ["", "", ""], "Input type": ["float"] * 3,
                     "Ev Idx": 12345, "grid": [128, 4, 1], "block": [256, 1, 1]})[1:-1]


def event(category, name, process, thread, start, duration, more):
    return (f'{{"ph": "X", "cat": "{category}", "name": "{name}", "pid": {process}, "tid": {thread}, "ts": {start:.3f}, "dur": {duration:.3f}, '
            f'"args": {{{more}, {FILLER}}}}}')


def slot_events(number, cut, has_copies):
    """`cut`: everything behind the products begins that much earlier, so the slot is that much shorter."""
    length = SLOT_US - cut
    at = number * length
    kernels = [("aten::mm", f"sm80_xmma_gemm_{number % 40}", 0, 4, 40 - cut), ("aten::add", "vectorized_elementwise_kernel", 0, 44 - cut, 20),
               ("aten::scaled_dot_product_attention", "flash_fwd_kernel", 1, 30 - cut, 30),
               ("c10d::allreduce_", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 2, 60 - cut, 30)]
    if has_copies:
        kernels.append(("aten::copy_", "Memcpy DtoD (Device -> Device)", 3, 88 - cut, 8))
    for i, (operator, name, stream, start, duration) in enumerate(kernels):
        correlation = 5 * number + i + 1
        asked = at + 0.5 * i
        yield event("cpu_op", operator, 1, 1, asked, 0.4, '"a": 1')
        yield event("cuda_runtime", "cudaLaunchKernel", 1, 1, asked + 0.1, 0.2, f'"correlation": {correlation}')
        yield event("gpu_memcpy" if name.startswith("Memcpy") else "kernel", name, 0, stream, at + start, duration,
                    f'"device": 0, "stream": {stream}, "correlation": {correlation}')


def write(path, kernels, steps, cut=0, has_copies=True, shuffled=False):
    """`kernels` counts five a slot. Returns the number of slots a step."""
    per_step = kernels // 5 // steps
    length = (SLOT_US - cut) * per_step

    def events():
        for step in range(steps):
            yield event("user_annotation", f"ProfilerStep#{step}", 1, 1, step * length, length, '"a": 1')
            for slot in range(step * per_step, (step + 1) * per_step):
                yield from slot_events(slot, cut, has_copies)

    all_events = events()
    if shuffled:
        all_events = list(all_events)
        random.Random(1).shuffle(all_events)
    with open(path, "w") as out:
        out.write('{"schemaVersion": 1, "traceEvents": [\n')
        for each in all_events:
            out.write(each + ",\n")
        out.write('{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}}]}\n')
    return per_step


def check_sums(case, shown, per_step):
    """Every kind's share and busy time within 1 % of a step, and all kinds together as long as the steps."""
    step_ms = per_step * SLOT_US / 1000
    case.assertAlmostEqual(shown["step_ms"], step_ms, delta=0.01 * step_ms)
    kinds = {each["kind"]: each for each in shown["kinds"]}
    case.assertEqual(set(kinds), set(SHARES_US))
    for kind, share in SHARES_US.items():
        case.assertAlmostEqual(kinds[kind]["ms"], per_step * share / 1000, delta=0.01 * step_ms, msg=kind)
        case.assertAlmostEqual(kinds[kind]["busy_ms"], per_step * BUSY_US[kind] / 1000, delta=0.01 * step_ms, msg=kind)
    for step in shown["data"]:
        case.assertAlmostEqual(sum(kind["ms"] for kind in step["kinds"]), step["dt_ms"], delta=0.001 * step["dt_ms"])


def check_difference(case, made, per_step, cut):
    """Products are `cut` shorter a slot, the copies are gone, and their time is idle; all rows add up to the difference of the steps."""
    step_ms = per_step * SLOT_US / 1000
    case.assertAlmostEqual(sum(row["delta_ms"] for row in made["rows"]), made["delta_ms"], places=6)
    case.assertAlmostEqual(made["delta_ms"], -per_step * cut / 1000, delta=0.01 * step_ms)
    deltas = {}
    for row in made["rows"]:
        deltas[row["kind"]] = deltas.get(row["kind"], 0) + row["delta_ms"]
    expected = {"matrix products": -cut, "copies and casts": -SHARES_US["copies and casts"], "idle": SHARES_US["copies and casts"]}
    for kind in SHARES_US:
        case.assertAlmostEqual(deltas.get(kind, 0), per_step * expected.get(kind, 0) / 1000, delta=0.01 * step_ms, msg=kind)
    changes = {(row["change"], row["kind"]) for row in made["rows"]}
    case.assertIn(("faster", "matrix products"), changes)
    case.assertIn(("vanished", "copies and casts"), changes)
