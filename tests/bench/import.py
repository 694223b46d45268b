"""Measures the speed and memory of `import` with and without its database, on generated logs:
python tests/bench/import.py [MB] [BUILD]."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

SIZE = int(sys.argv[1]) if len(sys.argv) > 1 else 200
BUILD = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else "build")

LOGS = {
    "every line a step": lambda i: f"step {i:8d} | loss: {3 + 1 / (i + 1):.6f} | lr 6.0000e-04 | norm: 0.3121 | "
                                   f"dt: {330 + i % 97 / 10:.2f}ms | tok/sec: {524288e3 / (330 + i % 97 / 10):.2f}\n",
    "one step in 20 lines": lambda i: f"step {i // 20} loss {3 + 1 / (i + 1):.4f} dt 331.02ms\n" if i % 20 == 0 else
                            f"2024-05-01 12:00:{i % 60:02d},123 DEBUG data.py:{i % 97}: shard {i % 31} fetched, queue holds "
                            f"{i % 13} batches of 64 x 1024\n",
}


def main():
    with tempfile.TemporaryDirectory(prefix="stepladder-bench-") as folder:
        for name, line in LOGS.items():
            log = pathlib.Path(folder) / "run.log"
            size, i = 0, 0
            with log.open("w") as file:
                while size < SIZE * 1_000_000:
                    block = "".join(line(j) for j in range(i, i + 10000))
                    i += 10000
                    size += file.write(block)
            reader = BUILD / "read_log"
            if reader.exists():
                print(subprocess.run([reader, log], capture_output=True, text=True, check=True).stdout.strip().replace(str(log), "read only: " + name))
            database = pathlib.Path(folder) / "runs.db"
            started = time.time()
            process = subprocess.Popen([BUILD / "stepladder", "--db", database, "import", "--json", log], stdout=subprocess.PIPE)
            out = process.stdout.read()
            _, status, usage = os.wait4(process.pid, 0)
            seconds = time.time() - started
            run, = json.loads(out)["runs"]
            print(json.dumps({"log": name, "mb": size / 1e6, "steps": run["steps"], "exit": os.waitstatus_to_exitcode(status),
                              "seconds": round(seconds, 2), "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 2),
                              "mb_per_s": round(size / 1e6 / seconds, 1),
                              "mb_per_cpu_s": round(size / 1e6 / (usage.ru_utime + usage.ru_stime), 1),
                              "peak_memory_mb": round(usage.ru_maxrss / 1024, 1)}))
            for file in pathlib.Path(folder).iterdir():
                file.unlink()


if __name__ == "__main__":
    main()
