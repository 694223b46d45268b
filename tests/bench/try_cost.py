"""What `stepladder try` costs beyond its runs, in a repository of 10,000 files: prints a table.

    STEPLADDER_BUILD=build python3 tests/bench/try_cost.py [FILES]"""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

PROGRAM = pathlib.Path(os.environ.get("STEPLADDER_BUILD", "build")).resolve() / "stepladder"
TRAIN = """import os, random
GAIN = 0.0
print("val_bpb:", 1 - GAIN + random.Random(os.environ["STEPLADDER_RUN"]).gauss(0, 0.001))
"""


def main():
    files = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory(prefix="stepladder-cost-") as folder:
        repository = pathlib.Path(folder) / "repository"
        environment = {**os.environ, "STEPLADDER_DB": f"{folder}/runs.db", "XDG_STATE_HOME": f"{folder}/state",
                       "XDG_DATA_HOME": f"{folder}/data", "XDG_CONFIG_HOME": f"{folder}/config"}
        for i in range(files):
            path = repository / f"package{i // 100}" / f"module{i % 100}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"x = {i}\n" * 20)
        (repository / "train.py").write_text(TRAIN)

        def run(*command):
            begin = time.perf_counter()
            done = subprocess.run(command, cwd=repository, env=environment, capture_output=True, text=True)
            return time.perf_counter() - begin, done

        for command in (("init", "-q"), ("add", "-A"), ("-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "-qm", "First")):
            run("git", *command)
        began, done = run(PROGRAM, "try", "begin", "--metric", "val_bpb", "--", "python3", "train.py")
        assert done.returncode == 0, done.stderr
        nothing, _ = run(PROGRAM, "try", "status", "--json")
        costs, runs = [], []
        for i in range(7):
            (repository / "train.py").write_text(TRAIN + f"# {i}\n")
            wall, done = run(PROGRAM, "try", "-m", f"comment {i}", "--json")
            answer = json.loads(done.stdout)
            shown = json.loads(run(PROGRAM, "try", "show", str(answer["try"]), "--json")[1].stdout)
            costs.append(wall - sum(each["wall_s"] for each in shown["runs_made"]))
            runs.append(answer["runs"])
        single = [cost for cost, count in zip(costs, runs) if count == 1]
        print(f"files {files}; begin {began:.2f} s with 6 runs; status {nothing:.3f} s")
        print("run or runs | cost of a try beyond them (s)")
        for cost, count in sorted(zip(costs, runs), key=lambda each: each[1]):
            print(f"{count:11} | {cost:.3f}")
        print(f"median of one-run tries {statistics.median(single or costs):.3f} s")


if __name__ == "__main__":
    main()
