"""`export`: other programs open the files, and their contents match the database."""
import csv
import io
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import unittest
import xml.etree.ElementTree as xml
from html.parser import HTMLParser

from program import PATIENCE_S, Workplace

ROOT = pathlib.Path(__file__).resolve().parents[2]
SEEDS = ROOT / ".." / "shared" / "seeds"
PARAMS = 124439808


def log(dt_ms, steps=60, loss=2.0):
    return "".join(f"step {i} | loss {loss + 9 / i:.6f} | lr 3e-4 | norm: {1 / i:.4f} | dt {dt_ms * (1 + (i * 7919 + int(dt_ms)) % 13 / 1000):.4f}ms\n"
                   for i in range(1, steps + 1))


def needs(program):
    return unittest.skipUnless(shutil.which(program), f"{program} is not installed")


def tool(*arguments, data=None):
    done = subprocess.run([str(a) for a in arguments], input=data, capture_output=True, timeout=PATIENCE_S)
    assert done.returncode == 0, f"{arguments}: {done.stderr.decode(errors='replace')}"
    return done.stdout.decode()


class Case(unittest.TestCase):
    """A ladder of three rungs, the last of which is impossible: 6 x 124,439,808 parameters x 8,192 tokens in 10 ms are
    612 TFLOP/s, and an A100 has 312."""

    @classmethod
    def setUpClass(cls):
        cls.place = Workplace()
        cls.addClassCleanup(cls.place.close)
        folder = cls.place.path / "ladder & co"
        for name, dt_ms in (("a-baseline", 200), ("b-flash", 100), ("c-too-good", 10)):
            (folder / name).mkdir(parents=True)
            (folder / name / "1.log").write_text(log(dt_ms))
        cls.runs = cls.place.json("import", folder, "--tokens-per-step", 8192, "--params", PARAMS, "--gpu",
                                  "NVIDIA A100-SXM4-40GB")["runs"]
        cls.ladder = cls.runs[0]["ladder"]
        assert [r["stage"] for r in cls.runs] == ["a-baseline", "b-flash", "c-too-good"]

    def export(self, *arguments, out, status=0):
        path = out if out == "-" else self.place.path / out
        code, text, error = self.place.run("export", *arguments, "--force", "--out", path)
        self.assertEqual(code, status, error)
        if status != 0:
            self.assertEqual(text, "")
            return error
        return text if out == "-" else path

    def tflops(self, run):
        return f"{6 * PARAMS * run['tokens_per_s'] / 1e12:.0f}"

    def whole(self, *arguments, **options):
        return self.export("--ladder", self.ladder, *arguments, **options)


class Figures(Case):
    def texts(self, svg):
        root = xml.fromstring(svg)
        return [t.text or "" for t in root.iter("{http://www.w3.org/2000/svg}text")]

    def test_svg_holds_every_rung_and_what_a_reader_needs(self):
        svg = self.whole(out="ladder.svg").read_text()
        texts = self.texts(svg)
        for run in self.runs:
            self.assertIn(run["stage"], texts)
        everything = " ".join(texts)
        for words in ("ladder & co", "tokens/s", "2.00×", f"impossible: {self.tflops(self.runs[2])} of 312 TFLOP/s", "NVIDIA A100-SXM4-40GB",
                      "n = 3 rungs × 1 run × 60 steps", "95 %", "Stepladder ", "1.log"):
            self.assertIn(words, everything)
        self.assertEqual(svg.count('fill="url(#f-hatch)"'), 1, "the impossible bar alone is hatched")
        self.assertNotIn("nan", svg)

    def test_each_figure_in_each_theme(self):
        for what, words in (("loss", "nats per token"), ("throughput", "tokens/s"), ("step-time", "step time, ms"),
                            ("dt", "share of steady steps"), ("loss-difference", "counts as the same")):
            svg = self.whole("--what", what, "--theme", "dark", "--size", "800x500", out="f.svg").read_text()
            self.assertIn('width="800" height="500"', svg)
            self.assertIn("#1b1f26", svg)
            texts = " ".join(self.texts(svg))
            self.assertIn(words, texts)
            self.assertIn("c-too-good", texts)

    def test_over_tokens_and_time(self):
        for x, most in (("tokens", "400 k"), ("time", "12")):
            texts = self.texts(self.whole("--what", "loss", "--x", x, out="x.svg").read_text())
            self.assertIn(most, texts)

    def test_one_run_is_its_loss(self):
        texts = self.texts(self.export(self.runs[1]["id"], out="one.svg").read_text())
        self.assertIn("loss, nats per token", texts)

    @needs("rsvg-convert")
    def test_rsvg_draws_the_svg(self):
        for what in ("ladder", "loss", "dt"):
            path = self.whole("--what", what, out="r.svg")
            png = self.place.path / "r.png"
            tool("rsvg-convert", path, "-o", png)
            self.assertGreater(png.stat().st_size, 5000)

    @needs("file")
    def test_png_has_two_pixels_for_one(self):
        code, _, error = self.place.run("export", "--ladder", self.ladder, "--size", "1300x700", "--out",
                                        self.place.path / "l.png")
        if code == 1 and "librsvg" in error:
            self.skipTest("built without librsvg")
        self.assertEqual(code, 0, error)
        self.assertIn("PNG image data, 2600 x 1400", tool("file", self.place.path / "l.png"))

    @needs("pdftotext")
    def test_pdf_has_its_text_as_text(self):
        code, _, error = self.place.run("export", "--ladder", self.ladder, "--out", self.place.path / "l.pdf")
        if code == 1 and "librsvg" in error:
            self.skipTest("built without librsvg")
        self.assertEqual(code, 0, error)
        text = tool("pdftotext", "-layout", self.place.path / "l.pdf", "-")
        for words in ("a-baseline", "b-flash", "c-too-good", "2.00×", "NVIDIA A100-SXM4-40GB", "impossible"):
            self.assertIn(words, text)
        tool("pdftoppm", "-r", 50, "-png", self.place.path / "l.pdf", self.place.path / "page")
        self.assertEqual(len(list(self.place.path.glob("page*.png"))), 1, "one page")


class Tables(Case):
    def test_csv_gives_back_every_step(self):
        rows = list(csv.DictReader(io.StringIO(self.whole(out="s.csv").read_text())))
        self.assertEqual(len(rows), 180)
        for run in self.runs:
            data = self.place.json("show", run["id"], "--steps")["data"]
            own = [r for r in rows if r["run_id"] == str(run["id"])]
            self.assertEqual(len(own), len(data))
            for row, step in zip(own, data):
                self.assertEqual((row["name"], row["stage"]), (run["name"], run["stage"]))
                for column in ("step", "loss", "val_loss", "dt_ms", "tokens", "tokens_per_s", "lr", "grad_norm"):
                    told = None if row[column] == "" else float(row[column])
                    self.assertEqual(told, step[column], column)

    def test_csv_comes_in_again(self):
        path = self.whole(out="again.csv")
        other = Workplace()
        self.addCleanup(other.close)
        runs = other.json("import", path)["runs"]
        self.assertEqual([r["steps"] for r in runs], [60, 60, 60])
        for was, now in zip(self.runs, runs):
            self.assertEqual(now["loss_last"], was["loss_last"])
            self.assertEqual(now["dt_ms_median"], was["dt_ms_median"])

    def test_losses_that_are_not_numbers_stay(self):
        path = self.place.path / "nan.log"
        path.write_text(log(100, 20) + "step 21 | loss nan | dt 100ms\nstep 22 | loss inf | dt 100ms\n")
        run, = self.place.json("import", path)["runs"]
        rows = list(csv.DictReader(io.StringIO(self.export(run["id"], out="nan.csv").read_text())))
        self.assertTrue(math.isnan(float(rows[20]["loss"])))
        self.assertEqual(rows[21]["loss"], "Infinity")
        self.assertIn("2 values are NaN or infinite", self.export(run["id"], out="nan.svg").read_text())

    def test_csv_of_summaries(self):
        rows = list(csv.DictReader(io.StringIO(self.whole("--table", out="t.csv").read_text())))
        self.assertEqual([r["id"] for r in rows], [str(r["id"]) for r in self.runs])
        for row, run in zip(rows, self.runs):
            self.assertEqual(float(row["tokens_per_s"]), run["tokens_per_s"])
            alone, = csv.DictReader(io.StringIO(self.export(run["id"], "--table", out="t.csv").read_text()))
            self.assertEqual((alone["rung"], alone["repeat"]), (str(run["rung"]), str(run["repeat"])))
        self.assertIn("impossible-throughput", rows[2]["flags"])
        low, high = float(rows[1]["speedup_ci95_low"]), float(rows[1]["speedup_ci95_high"])
        self.assertLess(low, float(rows[1]["speedup"]))
        self.assertGreater(high, float(rows[1]["speedup"]))

    def test_json_is_what_show_says(self):
        for run in self.runs:
            self.assertEqual(json.loads(self.export(run["id"], out="r.json").read_text()),
                             [self.place.json("show", run["id"], "--steps")])
        both = json.loads(self.whole(out="r.json").read_text())
        self.assertEqual([r["id"] for r in both], [r["id"] for r in self.runs])
        self.assertNotIn("data", json.loads(self.export(1, "--table", out="r.json").read_text())[0])

    def test_markdown_to_standard_output(self):
        text = self.whole("--format", "md", out="-")
        rows = [line for line in text.splitlines() if line.startswith("| ")]
        self.assertEqual(len(rows), 5, text)
        self.assertEqual(len({line.replace("\\|", "").count("|") for line in rows}), 1)
        self.assertIn("b-flash brings this ladder to 2.00 x", text)
        self.assertIn("| impossible |", text)

    def test_trace(self):
        trace = json.loads(self.whole(out="run.trace.json").read_text())
        steps = [e for e in trace["traceEvents"] if e["ph"] == "X"]
        self.assertEqual(len(steps), 180)
        for event in trace["traceEvents"]:
            self.assertIn(event["ph"], "XMC")
            self.assertIn("pid", event)
        first = [e for e in steps if e["pid"] == self.runs[0]["id"]]
        data = self.place.json("show", self.runs[0]["id"], "--steps")["data"]
        for event, step in zip(first, data):
            self.assertAlmostEqual(event["dur"], step["dt_ms"] * 1000, places=2)
        for before, after in zip(first, first[1:]):
            self.assertGreaterEqual(after["ts"] + 0.01, before["ts"] + before["dur"])

    def test_tex_is_balanced_and_compiles_where_latex_is(self):
        for what in ("ladder", "loss", "loss-difference"):
            path = self.whole("--what", what, out="l.tex")
            text = path.read_text()
            self.assertEqual(sorted(re.findall(r"\\begin{(\w+)}", text)), sorted(re.findall(r"\\end{(\w+)}", text)))
            for words in (r"\toprule", r"ladder \& co", "c-too-good"):
                self.assertIn(words, text)
        if not shutil.which("pdflatex"):
            self.skipTest("pdflatex is not installed")
        done = subprocess.run(["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "l.tex"], cwd=self.place.path,
                              capture_output=True, timeout=PATIENCE_S)
        if b"not found" in done.stdout:
            self.skipTest("pdflatex has no pgfplots or booktabs")
        self.assertEqual(done.returncode, 0, done.stdout[-2000:])


def count_in(path, word):
    """Counts a word piece by piece: a child's highest memory includes that of this process."""
    count, rest = 0, b""
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            text = rest + piece
            count += text.count(word)
            rest = text[-(len(word) - 1):]
    return count


class LongRuns(unittest.TestCase):
    STEPS = 300_000

    def test_every_step_is_written_in_little_memory(self):
        place = Workplace()
        self.addCleanup(place.close)
        log = place.path / "long.csv"
        with log.open("w") as file:
            file.write("step,loss,dt_ms,tokens\n")
            file.writelines(f"{i},{2 + 9 / i:.4f},{90 + i % 20},8192\n" for i in range(1, self.STEPS + 1))
        run, = place.json("import", log)["runs"]
        for form, line in (("csv", b"\n1,"), ("json", b'"dt_ms": '), ("trace", b'"cat":"step"')):
            with self.subTest(form):
                path = place.path / f"long.{form}"
                process = place.start("export", run["id"], "--format", form, "--force", "--out", path)
                _, status, used = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
                _, error = process.communicate()
                self.assertEqual(process.returncode, 0, error)
                self.assertEqual(count_in(path, line), self.STEPS)
                if "STEPLADDER_SANITIZED" not in os.environ:  # a sanitizer keeps freed memory
                    self.assertLess(used.ru_maxrss / 1024, 80, "MiB")


class Page(HTMLParser):
    """A page's text, and its references to other files."""

    VOID = {"meta", "br", "hr", "img", "input", "link"}

    def __init__(self, text):
        super().__init__()
        self.words, self.asks, self.open, self.tags = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        for name, value in attributes:
            if name in ("src", "href", "xlink:href", "action", "data"):
                self.asks.append((tag, value))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-3:]}"
        self.open.pop()

    def handle_data(self, data):
        self.words.append(data)


class Report(Case):
    def test_html_stands_alone_and_tells_all(self):
        text = self.whole(out="report.html").read_text()
        page = Page(text)
        self.assertEqual((page.open, page.asks), ([], []))
        self.assertNotIn("script", page.tags)
        self.assertEqual(page.tags.count("svg"), 5)
        self.assertEqual(re.findall(r"url\((?!#)|@import", text), [])
        words = " ".join(page.words)
        for said in ("b-flash brings this ladder to 2.00× the baseline's throughput", "the loss stayed the same",
                     "2 of 3", "impossible", "impossible-throughput", f"6 × 124,439,808 parameters = {self.tflops(self.runs[2])}",
                     "circular block bootstrap", "NVIDIA A100-SXM4-40GB", "c-too-good"):
            self.assertIn(said, words)
        self.assertIn("prefers-color-scheme:dark", text)
        self.assertNotIn("prefers-color-scheme", self.export(1, 2, "--theme", "dark", out="two.html").read_text())

    def test_html_says_only_text_of_what_is_named_like_markup(self):
        path = self.place.path / "<script>alert(1)</script>.log".replace("/", "_")
        path.write_text(log(100))
        run, = self.place.json("import", "--again", path)["runs"]
        for out in ("x.html", "x.svg"):
            self.assertNotIn("<script", self.export(run["id"], 1, out=out).read_text())

    def test_chromium_shows_it(self):
        chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        if not chromium:
            self.skipTest("no Chromium is installed")
        page = self.whole(out="report.html")
        done = subprocess.run([chromium, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom",
                               f"--user-data-dir={self.place.path / 'profile'}", page.as_uri()], capture_output=True,
                              text=True, timeout=PATIENCE_S, env={**os.environ, "HOME": str(self.place.path)})
        if done.returncode != 0 or "<html" not in done.stdout:
            self.skipTest("Chromium does not start here")
        self.assertEqual(done.stdout.count("<svg"), 5)
        self.assertIn("b-flash brings this ladder to 2.00×", done.stdout)

    def test_seeds(self):
        seeds = sorted(SEEDS.glob("*ladder.txt")) or [ROOT / "assets" / "examples" / "a100-three-rungs.csv"]
        place = Workplace()
        self.addCleanup(place.close)
        for run in place.json("import", *seeds)["runs"][:1]:
            for ending in ("html", "svg", "csv", "md", "tex", "json", "trace"):
                path = place.path / f"seed.{ending}"
                code, _, error = place.run("export", "--ladder", run["ladder"], "--out", path)
                self.assertEqual(code, 0, error)
                self.assertGreater(path.stat().st_size, 500)


class Refusals(Case):
    def test_what_is_wrong_is_a_sentence(self):
        for arguments, words in (((99,), "no run 99"), (("--ladder", "none"), "no ladder none"), ((), "--ladder"),
                                 ((1, "--ladder", 1), "--ladder"), ((1, "--format", "gif"), "'gif'"),
                                 ((1, "--size", "9"), "--size"), ((1, "--what", "ladder", "--x", "time"), "--x"),
                                 ((1, "--what", "loss-difference"), "baseline"), ((1, "--what", "report"), "html")):
            error = self.export(*arguments, out="never.svg", status=1 if words.startswith("no ") else 2)
            self.assertIn(words, error)
            self.assertEqual(len(error.strip().splitlines()), 1, error)
        for arguments, words in (((1, "--what", "loss"), "--what"), ((1, "--theme", "dark"), "--theme"),
                                 ((1, "--size", "800x600"), "--size")):
            self.assertIn(words, self.export(*arguments, out="never.csv", status=2))
        self.assertIn("--format", self.export(1, out="never.xyz", status=2))
        self.assertIn("png", self.export(1, "--format", "png", out="-", status=2))
        self.assertEqual(list(self.place.path.glob("never*")), [])

    def test_a_place_that_cannot_be_written(self):
        error = self.export(1, out="no/such/folder.svg", status=1)
        self.assertIn("folder.svg", error)
        (self.place.path / "taken").mkdir()
        self.export(1, "--format", "svg", out="taken", status=1)
        self.assertEqual(list(self.place.path.glob("taken.part")), [])

    def test_the_database_is_not_written_over(self):
        before = self.place.database.read_bytes()
        self.assertIn("database", self.export(1, "--format", "csv", out="runs.db", status=2))
        self.assertEqual(self.place.database.read_bytes(), before)

    def test_links_and_pipes_stay_what_they_are(self):
        (self.place.path / "real.md").write_text("old")
        link = self.place.path / "link.md"
        link.symlink_to("real.md")
        self.whole(out="link.md")
        self.assertTrue(link.is_symlink())
        pipe = self.place.path / "pipe.md"
        os.mkfifo(pipe)
        process = self.place.start("export", "--ladder", self.ladder, "--out", pipe)
        self.assertEqual(pipe.read_text(), (self.place.path / "real.md").read_text())
        process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 0)
        self.assertTrue(pipe.is_fifo())

    def test_weights_need_a_checkpoint(self):
        self.assertIn("checkpoint", self.export(1, "--format", "safetensors", out="w.safetensors", status=1))
        self.export(1, 2, "--format", "safetensors", out="w.safetensors", status=2)

    def test_no_database(self):
        other = Workplace()
        self.addCleanup(other.close)
        code, _, error = other.run("export", 1, "--out", other.path / "a.svg")
        self.assertEqual(code, 1)
        self.assertIn("runs.db", error)
        self.assertFalse(other.database.exists())


if __name__ == "__main__":
    unittest.main(verbosity=2)
