"""Writes a wheel of what `cmake --install` installed: wheel.py VERSION INSTALLED TORCH_VERSION OUT_FOLDER

The wheel has stepladder.py, the package stepladder_program with the program and its libraries, and the desktop entry.
LibTorch isn't in it: the trainer looks for it in the package torch, which pip installs beside it.
"""
import base64
import hashlib
import pathlib
import subprocess
import sys
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[1]

METADATA = """\
Metadata-Version: 2.1
Name: stepladder
Version: {version}
Summary: A desktop experiment tracker that measures, step by step, what makes training a GPT-2-like model faster
License: MIT
Requires-Python: >=3.8
Requires-Dist: torch=={torch}
Description-Content-Type: text/markdown

Stepladder runs or imports each optimisation step of a training and shows what the step bought, whether the number is
plausible, and whether the loss stayed the same.

`stepladder` opens the window, `stepladder --help` lists the commands, and `import stepladder` logs from a Python script.
Everything but training works without torch: `pip install --no-deps stepladder`.
"""
WHEEL = """\
Wheel-Version: 1.0
Generator: stepladder
Root-Is-Purelib: false
Tag: py3-none-linux_x86_64
"""
ENTRY_POINTS = """\
[console_scripts]
stepladder = stepladder_program:main
"""


def find_torch_beside(library):
    subprocess.run(["patchelf", "--set-rpath", "$ORIGIN/../torch/lib", library], check=True)


def contents(version, installed, torch):
    """Name in the wheel -> the file, or its text."""
    files = {"stepladder.py": ROOT / "python" / "stepladder.py",
             "stepladder_program/__init__.py": ROOT / "python" / "stepladder_program" / "__init__.py"}
    program = next(installed.glob("lib*/**/stepladder/stepladder")).parent
    for path in sorted(program.rglob("*")):
        if path.is_file():
            files[f"stepladder_program/{path.relative_to(program)}"] = path
            if path.name.startswith("libstepladder_trainer"):
                find_torch_beside(path)
    for path in sorted((installed / "share").rglob("*")):
        if path.is_file():
            files[f"stepladder-{version}.data/data/{path.relative_to(installed)}"] = path
    own = f"stepladder-{version}.dist-info/"
    files.update({own + "METADATA": METADATA.format(version=version, torch=torch), own + "WHEEL": WHEEL,
                  own + "entry_points.txt": ENTRY_POINTS, own + "licenses/LICENSE": ROOT / "LICENSE",
                  own + "licenses/third-party.md": ROOT / "docs" / "third-party.md"})
    return files


def main():
    version, installed, torch, out = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3], pathlib.Path(sys.argv[4])
    record = f"stepladder-{version}.dist-info/RECORD"
    lines = []
    with zipfile.ZipFile(out / f"stepladder-{version}-py3-none-linux_x86_64.whl", "w", zipfile.ZIP_DEFLATED) as wheel:
        def add(name, data, mode):
            entry = zipfile.ZipInfo(name)
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)
        for name, content in contents(version, installed, torch).items():
            data = content.encode() if isinstance(content, str) else content.read_bytes()
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            lines.append(f"{name},sha256={digest},{len(data)}")
            add(name, data, 0o755 if data.startswith(b"\x7fELF") else 0o644)
        add(record, "\n".join([*lines, f"{record},,", ""]), 0o644)


if __name__ == "__main__":
    main()
