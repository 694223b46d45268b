"""Writes the packages out of what `cmake --install` installed. Each is the same, byte for byte, for the same content.

    pack.py wheel VERSION TREE ARCH OUT           stepladder: everything but training
    pack.py trainer VERSION LIBRARIES TORCH OUT   stepladder-trainer: the trainer, for one version of torch
    pack.py file START VERSION TREE ARCH OUT      one file that unpacks itself (.ci/packaging/one_file.c)
    pack.py deb VERSION TREE ARCH OUT             Debian's package
    pack.py sbom VERSION OUT                      what is inside (SPDX), and SHA256SUMS, for all in OUT

ARCH is x86_64 or aarch64. SOURCE_DATE_EPOCH is the time that files get.
"""
import base64
import datetime
import gzip
import hashlib
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
EPOCH = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
SUMMARY = "A desktop experiment tracker that measures, step by step, what makes training a GPT-2-like model faster"
MAINTAINER = "The Stepladder authors <stepladder@users.noreply.github.com>"  # docs/releasing.md
OLD_GLIBC = "2_28"  # .ci/packaging/CMakeLists.txt
# What Debian links dynamically and these packages have inside, by Debian's source packages, and what pip brings.
INSIDE = {"sqlite3": ("libsqlite3-dev", "blessing"), "pcre2": ("libpcre2-dev", "BSD-3-Clause"),
          "libpng": ("libpng-dev", "libpng-2.0"), "zlib": ("zlib1g-dev", "Zlib"), "fmt": ("libfmt-dev", "MIT"),
          "nlohmann-json": ("nlohmann-json3-dev", "MIT"), "CLI11": ("libcli11-dev", "BSD-3-Clause"),
          "libstdc++": ("libstdc++-12-dev", "GPL-3.0-or-later WITH GCC-exception-3.1"),
          "glibc": ("libc6-dev", "LGPL-2.1-or-later"),  # in stepladder-far and the single file's start, which are static
          "inter": ("fonts-inter", "OFL-1.1"), "jetbrains-mono": ("fonts-jetbrains-mono", "OFL-1.1")}

METADATA = f"""\
Metadata-Version: 2.1
Name: {{name}}
Version: {{version}}
Summary: {SUMMARY}
License: MIT
Requires-Python: >=3.8
{{requires}}
Description-Content-Type: text/markdown

"""
DESCRIPTION = """\
Stepladder runs or imports each optimisation step of a training and shows what the step bought, whether the number is
plausible, and whether the loss stayed the same.

`stepladder` opens the window, `stepladder --help` lists the commands, and `import stepladder` logs from a Python script.
This package needs no torch and never changes yours. To train, `stepladder setup-training` installs torch in a folder of
its own; `pip install stepladder[train]` installs it in this environment instead.
"""
TRAINER_DESCRIPTION = "The part of Stepladder that trains, for torch {torch}. `stepladder setup-training` installs it.\n"
WHEEL = "Wheel-Version: 1.0\nGenerator: stepladder\nRoot-Is-Purelib: false\nTag: py3-none-{platform}\n"
ENTRY_POINTS = "[console_scripts]\nstepladder = stepladder_program:main\n"
DEBIAN_ARCH = {"x86_64": "amd64", "aarch64": "arm64"}
CONTROL = f"""\
Package: stepladder
Version: {{version}}
Architecture: {{arch}}
Maintainer: {MAINTAINER}
Installed-Size: {{kib}}
Depends: libc6 (>= 2.28), libgcc-s1 | libgcc1
Recommends: libgl1, libosmesa6, librsvg2-2, openssh-client
Suggests: python3-venv, git, xdg-desktop-portal
Section: science
Priority: optional
Description: experiment tracker that judges each optimisation step of a training
 Stepladder runs or imports each optimisation step of a training and shows
 what the step bought, whether the number is plausible, and whether the loss
 stayed the same. It works without a network and without torch.
"""
OVERRIDES = """\
# One program for every distribution: it can't use the libraries of any one of them (docs/releasing.md).
stepladder: embedded-library
# It is sent to other machines, whose libraries may be older.
stepladder: statically-linked-binary [usr/lib/stepladder/stepladder-far]
"""


def data_of(content):
    return content.encode() if isinstance(content, str) else content.read_bytes()


def mode_of(data):
    return 0o755 if data.startswith((b"\x7fELF", b"#!")) else 0o644


def files_of(tree):
    return [path for path in sorted(tree.rglob("*")) if path.is_file() and not path.is_symlink()]


def program_of(tree):
    return next(tree.glob("lib*/**/stepladder/stepladder")).parent


def write_wheel(name, version, platform, files, out):
    """`files`: name in the wheel -> a file, or a text."""
    stem = f"{name.replace('-', '_')}-{version}"
    record, lines = f"{stem}.dist-info/RECORD", []
    files = {**files, f"{stem}.dist-info/WHEEL": WHEEL.format(platform=platform), f"{stem}.dist-info/licenses/LICENSE": ROOT / "LICENSE",
             f"{stem}.dist-info/licenses/third-party.md": ROOT / "docs" / "third-party.md"}
    with zipfile.ZipFile(out / f"{stem}-py3-none-{platform}.whl", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        def add(name, data):
            entry = zipfile.ZipInfo(name, max((1980, 1, 1, 0, 0, 0), datetime.datetime.fromtimestamp(EPOCH, datetime.UTC).timetuple()[:6]))
            entry.external_attr = (0o100000 | mode_of(data)) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)
        for file, content in files.items():
            data = data_of(content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            lines.append(f"{file},sha256={digest},{len(data)}")
            add(file, data)
        add(record, "\n".join([*lines, f"{record},,", ""]).encode())


def wheel(version, tree, arch, out):
    tree, own = pathlib.Path(tree), f"stepladder-{version}.dist-info/"
    files = {"stepladder.py": ROOT / "python" / "stepladder.py",
             "stepladder_program/__init__.py": ROOT / "python" / "stepladder_program" / "__init__.py"}
    for path in files_of(program_of(tree)):
        files[f"stepladder_program/{path.relative_to(program_of(tree))}"] = path
    for path in files_of(tree / "share"):
        files[f"stepladder-{version}.data/data/{path.relative_to(tree)}"] = path
    requires = (f"Provides-Extra: train\n"
                f"Requires-Dist: stepladder-trainer=={version}; extra == \"train\" and platform_machine == \"x86_64\"")
    files[own + "METADATA"] = METADATA.format(name="stepladder", version=version, requires=requires) + DESCRIPTION
    files[own + "entry_points.txt"] = ENTRY_POINTS
    write_wheel("stepladder", version, f"manylinux_{OLD_GLIBC}_{arch}", files, pathlib.Path(out))


def trainer(version, libraries, torch, out):
    files = {"stepladder_trainer/__init__.py": '"""Stepladder\'s trainer, which the program opens; there is nothing to import."""\n'}
    files |= {f"stepladder_trainer/{path.name}": path for path in files_of(pathlib.Path(libraries))}
    metadata = METADATA.format(name="stepladder-trainer", version=version, requires=f"Requires-Dist: torch=={torch}")
    files[f"stepladder_trainer-{version}.dist-info/METADATA"] = metadata + TRAINER_DESCRIPTION.format(torch=torch)
    write_wheel("stepladder-trainer", version, f"manylinux_{OLD_GLIBC}_x86_64", files, pathlib.Path(out))


def tar_of(files, tar_format=tarfile.USTAR_FORMAT):
    """A tar archive of name -> (data, mode); a name that ends in / is a folder, and a text is a link's target."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tar_format) as archive:
        for name, (content, mode) in files.items():
            entry = tarfile.TarInfo(name.rstrip("/"))
            entry.mode, entry.mtime, entry.uname, entry.gname = mode, EPOCH, "root", "root"
            if name.endswith("/"):
                entry.type = tarfile.DIRTYPE
            elif isinstance(content, str):
                entry.type, entry.linkname = tarfile.SYMTYPE, content
            else:
                entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content) if entry.isfile() else None)
    return packed.getvalue()


def file(start, version, tree, arch, out):
    tree = pathlib.Path(tree)
    files = {str(path.relative_to(tree)): (path.read_bytes(), mode_of(path.read_bytes())) for path in files_of(tree)}
    archive = gzip.compress(tar_of(files), compresslevel=9, mtime=0)
    head = pathlib.Path(start).read_bytes()
    target = pathlib.Path(out) / f"stepladder-{version}-linux-{arch}"
    target.write_bytes(head + archive + f"{len(head):020}{hashlib.sha256(archive).hexdigest()[:32]}\nstepladder-one-file\n".encode())
    target.chmod(0o755)


def copyright_text():
    licence = "".join(f" {line}\n" if line else " .\n" for line in (ROOT / "LICENSE").read_text().splitlines())
    return ("Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: stepladder\n\n"
            "Files: *\nCopyright: The Stepladder authors\nLicense: MIT\n" + licence +
            "Comment:\n The parts of others, with their licences, are in third-party.md beside this file.\n")


def deb(version, tree, arch, out):
    tree = pathlib.Path(tree)
    date = datetime.datetime.fromtimestamp(EPOCH, datetime.UTC).strftime("%a, %d %b %Y %H:%M:%S +0000")
    changelog = (f"stepladder ({version}) unstable; urgency=medium\n\n  * See CHANGELOG.md.\n\n"
                 f" -- {MAINTAINER}  {date}\n")
    files = {f"usr/lib/stepladder/{path.relative_to(program_of(tree))}": path.read_bytes() for path in files_of(program_of(tree))}
    for path in files_of(tree / "share"):
        data = path.read_bytes()
        if "/man/" in str(path):
            path, data = path.with_name(path.name + ".gz"), gzip.compress(data, 9, mtime=0)
        name = path.relative_to(tree).as_posix().replace("zsh/site-functions", "zsh/vendor-completions")
        files[f"usr/{name}"] = data
    documents = "usr/share/doc/stepladder/"
    files[documents + "copyright"] = copyright_text().encode()
    files[documents + "changelog.gz"] = gzip.compress(changelog.encode(), 9, mtime=0)
    files[documents + "third-party.md"] = (ROOT / "docs" / "third-party.md").read_bytes()
    files["usr/share/lintian/overrides/stepladder"] = OVERRIDES.encode()
    sums = "".join(f"{hashlib.md5(data).hexdigest()}  {name}\n" for name, data in sorted(files.items()))
    control = CONTROL.format(version=version, arch=DEBIAN_ARCH[arch], kib=sum(map(len, files.values())) // 1024)
    entries = {f"./{name}": (data, mode_of(data)) for name, data in files.items()}
    entries["./usr/bin/stepladder"] = ("../lib/stepladder/stepladder", 0o777)
    for name in list(entries):
        for parent in pathlib.PurePosixPath(name).parents:
            entries[f"./{parent}/" if str(parent) != "." else "./"] = (b"", 0o755)
    members = {"debian-binary": b"2.0\n",
               "control.tar.gz": tar_of({"./control": (control.encode(), 0o644), "./md5sums": (sums.encode(), 0o644)}, tarfile.GNU_FORMAT),
               "data.tar.gz": tar_of(dict(sorted(entries.items())), tarfile.GNU_FORMAT)}
    with (pathlib.Path(out) / f"stepladder_{version}_{DEBIAN_ARCH[arch]}.deb").open("wb") as archive:
        archive.write(b"!<arch>\n")
        for name, data in members.items():
            data = gzip.compress(data, 9, mtime=0) if name.endswith(".gz") else data
            archive.write(f"{name:<16}{EPOCH:<12}{0:<6}{0:<6}{100644:<8}{len(data):<10}`\n".encode() + data + b"\n" * (len(data) % 2))


def installed_version(package):
    found = subprocess.run(["dpkg-query", "-Wf", "${source:Version}", package], capture_output=True, text=True)
    return found.stdout.strip() if found.returncode == 0 and found.stdout.strip() else "NOASSERTION"


def imgui_version():
    text = (ROOT / ".ci" / "setup").read_text()
    return re.search(r"^imgui='comma-deps-imgui==([0-9.]+)", text, re.MULTILINE).group(1).rstrip(".")


def sbom(version, out):
    out = pathlib.Path(out)
    packaged = [path for path in sorted(out.iterdir()) if path.is_file() and path.name != "SHA256SUMS" and not path.name.endswith(".spdx.json")]
    sums = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in packaged}
    parts = {name: (installed_version(package), licence) for name, (package, licence) in INSIDE.items()}
    parts |= {"imgui-implot-glfw": (imgui_version(), "MIT AND Zlib")}
    packages = [{"name": "stepladder", "SPDXID": "SPDXRef-stepladder", "versionInfo": version, "downloadLocation": "NOASSERTION",
                 "filesAnalyzed": False, "licenseConcluded": "MIT", "licenseDeclared": "MIT", "copyrightText": "NOASSERTION"}]
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-stepladder")]
    for name, (number, licence) in parts.items():
        identity = "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)
        packages.append({"name": name, "SPDXID": identity, "versionInfo": number, "downloadLocation": "NOASSERTION",
                         "filesAnalyzed": False, "licenseConcluded": licence, "licenseDeclared": licence, "copyrightText": "NOASSERTION"})
        relations.append(("SPDXRef-stepladder", "CONTAINS", identity))
    files = []
    for number, (name, digest) in enumerate(sums.items()):
        files.append({"fileName": f"./{name}", "SPDXID": f"SPDXRef-file-{number}", "licenseConcluded": "NOASSERTION",
                      "copyrightText": "NOASSERTION", "checksums": [{"algorithm": "SHA256", "checksumValue": digest},
                                                                    {"algorithm": "SHA1", "checksumValue": hashlib.sha1((out / name).read_bytes()).hexdigest()}]})
        relations.append((f"SPDXRef-file-{number}", "GENERATED_FROM", "SPDXRef-stepladder"))
    identity = hashlib.sha256(json.dumps([parts, sums], sort_keys=True).encode()).hexdigest()
    document = {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"stepladder-{version}",
                "documentNamespace": f"urn:stepladder:spdx:{version}:{identity}",
                "creationInfo": {"created": datetime.datetime.fromtimestamp(EPOCH, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
                                 "creators": ["Tool: stepladder-package"]},
                "packages": packages, "files": files,
                "relationships": [{"spdxElementId": a, "relationshipType": kind, "relatedSpdxElement": b} for a, kind, b in relations]}
    written = out / f"stepladder-{version}.spdx.json"
    written.write_text(json.dumps(document, indent=1) + "\n")
    sums[written.name] = hashlib.sha256(written.read_bytes()).hexdigest()
    (out / "SHA256SUMS").write_text("".join(f"{digest}  {name}\n" for name, digest in sums.items()))


if __name__ == "__main__":
    {"wheel": wheel, "trainer": trainer, "file": file, "deb": deb, "sbom": sbom}[sys.argv[1]](*sys.argv[2:])
