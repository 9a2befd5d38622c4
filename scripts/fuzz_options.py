"""Fuzz combinations of options: `make fuzz FUZZ=options`, or run this file.

    python scripts/fuzz_options.py --runs 5000
    python scripts/fuzz_options.py --runs 200 --only match add --seed 7

Every command runs in this process, on small files, with options drawn at random, of which most have
valid values. A run fails if

- it ends with another status than 0 (done), 2 (refused) or 3 (no signal), or shows a traceback;
- an input changed, or a run that was refused left a file;
- an option that was accepted can be left out without any difference: status, what is printed and
  what is written are the same. It was ignored, and should have been refused.

What failed is printed as a line of a shell. The seed of the run makes it again.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import random
import re
import shlex
import shutil
import sys
import tempfile
import time
import zipfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

SHARE_INVALID = 0.05
"""Of the values that are drawn. A guess that leaves more than half of all runs accepted."""
MOST_COMPARED = 25
"""Runs in which an option is left out, for each option of each command: so that options that come
often do not take all the time."""

FREE = {
    *("--jobs", "--overwrite", "--seed", "--patience", "--memory", "--workers", "--force"),
    *("--no-manifest", "--debug", "--recall"),
    # They say what is found out anyway, or what need not be read.
    *("--format", "--from", "match --ignore"),
}
"""Options that may make no difference to a result on small files, by what they mean."""

READING: dict[str, tuple[list[str], list[str]]] = {
    "--key": (["other"], ["nothing"]),
    "--match": (["exact"], ["nearly"]),
    "--aliases": (["aliases.csv"], ["towns.csv", "nothing.csv"]),
    "--exclude": (["town3", "excluded.txt"], ["unheard of"]),
    "--counts": (["n", "counts.csv"], ["nothing"]),
    "--min-count": (["20"], ["-1", "many"]),
    "--from-rank": (["30"], ["0", "first"]),
    "--ignore": (["x"], ["nothing"]),
    "--separator": ([], [";", "ab"]),
    "--encoding": ([], ["nothing", "utf-16"]),
    "--format": (["word2vec-text"], ["npz", "nothing"]),
    "--member": ([], ["b.vec"]),
    "--source": (["more=facts.csv", "near=places.vec:embedding"], ["more", "more=nothing.csv"]),
}
DESCRIBING: dict[str, tuple[list[str], list[str]]] = {
    "--standardize": ([""], []),
    "--categorical": (["code"], ["nothing"]),
    "--names": (["spelling"], ["nothing"]),
    "--text": (["about"], ["nothing"]),
    "--n-dims": ([], ["8", "0"]),
    "--edge-columns": ([], ["x"]),
    "--encoder": ([], ["nothing"]),
}
SETTING: dict[str, tuple[list[str], list[str]]] = {
    "--preparation": (["standardized", "rank_normal"], ["nothing"]),
    "--min-degree": (["3", "5"], ["0", "x"]),
    "--ridge": (["0.5"], ["-1"]),
    "--residual-share": (["0.5"], ["2"]),
}
CHOOSING: dict[str, tuple[list[str], list[str]]] = {
    "--goal": (["rank", "cosine"], ["nothing"]),
    "--candidates": (["classic"], ["nothing"]),
    "--offset": (["off"], ["on"]),
}
ANY_METHOD: dict[str, tuple[list[str], list[str]]] = {
    "--force": ([""], []),
    "--seed": (["1"], ["-1"]),
    "--jobs": (["1", "2"], ["0"]),
}
TRUST: dict[str, tuple[list[str], list[str]]] = {
    "--level": (["0.6"], ["1"]),
    "--calibrate-norms": ([""], []),
}
LIMITS: dict[str, tuple[list[str], list[str]]] = {
    "--min-confidence": (["0.7"], ["2"]),
    "--min-bound": (["0.7"], ["-2"]),
}
"""Apart from other options: where everything is left out, nothing else makes a difference."""
WRITING: dict[str, tuple[list[str], list[str]]] = {
    "--report": (["new.html"], ["towns.csv", "nowhere/new.html"]),
    "--save": (["new.model"], ["base.vec", "nowhere/new.model"]),
    "--no-manifest": ([""], []),
    "--overwrite": ([""], []),
    "--verbose": ([""], []),
    "--json": ([""], []),
}
JSON: dict[str, tuple[list[str], list[str]]] = {"--json": ([""], [])}


@dataclass(frozen=True)
class Form:
    """One way to use a command: words that are always there, and options that may be added."""

    words: str
    options: dict[str, tuple[list[str], list[str]]] = field(default_factory=dict)
    weight: int = 1
    most_options: int = 4

    @property
    def command(self) -> str:
        """The command."""
        return self.words.split()[0]


VECTORS = "impute base.vec towns.csv -o new.vec"
DATASETS = "impute vectors features --engine serial --min-degree 4"
REPLACING: dict[str, tuple[list[str], list[str]]] = {
    "--replace": (["excluded", "excluded.txt"], ["nothing"]),
    "--blend": (["5"], ["-1"]),
}
CONFIDENCE = {"--confidence-column": (["sure"], ["x", "embedding"])}
PAPER_FORMS = READING | DESCRIBING | SETTING | ANY_METHOD | TRUST | WRITING | REPLACING
FORMS = [
    Form(VECTORS + " --min-degree 4", {**PAPER_FORMS, "--min-degree": ([], [])}, 8),
    Form(VECTORS + " --method paper", READING | DESCRIBING | ANY_METHOD | TRUST | WRITING, 6),
    Form(VECTORS + " --method paper --exclude town3 --counts n", REPLACING | TRUST | WRITING, 4),
    Form(VECTORS, CHOOSING | ANY_METHOD | READING | TRUST | WRITING | {"--evaluate": ([""], [])}),
    Form(VECTORS + " --method paper", LIMITS, 2, 1),
    Form(
        "tokens model terms.txt --source towns.csv -o new --method paper",
        {"--min-confidence": (["0.99"], ["2"]), "--min-bound": (["0.99"], ["-2"])},
        1,
        1,
    ),
    Form(
        "impute base.vec places.vec --kind embedding -o new.vec --method paper",
        TRUST | WRITING | {"--ignore": ([], ["x"]), "--standardize": ([], [""])},
        2,
    ),
    Form(
        "impute base.vec edges.csv --kind edges -o new.vec --method paper",
        TRUST | WRITING | {"--n-dims": (["8"], ["0"]), "--edge-columns": ([], ["from"])},
        2,
    ),
    Form(
        "impute two.zip towns.csv -o new.vec --method paper",
        WRITING | {"--member": (["a.vec", "b.vec"], ["c.vec"])},
    ),
    Form(
        "impute items.parquet --vector embedding -o new.parquet --method paper",
        # Without counts: kinds by rarity need more rows than are here.
        {name: values for name, values in READING.items() if name != "--counts"}
        | TRUST
        | WRITING
        | CONFIDENCE
        | {"--evaluate": ([], [""])},
        4,
        3,
    ),
    Form(
        "impute items.csv --vector embedding -o new.csv --method paper",
        CONFIDENCE | WRITING | TRUST | {"--standardize": ([""], [])},
        3,
    ),
    Form(
        "evaluate base.vec towns.csv",
        READING | {"--folds": (["3"], ["1"]), "--hide": (["rarest"], ["all"])} | JSON,
    ),
    Form(
        "explain base.vec towns.csv town50 --method paper",
        READING | DESCRIBING | JSON | {"-n": (["3"], ["0"]), "--jobs": (["1"], ["0"])},
        4,
    ),
    Form(
        "match base.vec towns.csv",
        READING | JSON | {"-o": (["new.csv", "-"], ["towns.csv"]), "--overwrite": ([""], [])},
        8,
    ),
    Form(
        "add towns.model more.csv -o new.vec",
        {
            "--append-to": (["base.vec"], ["nothing.vec"]),
            "--key": (["other"], ["nothing"]),
            "--save": (["new.model"], ["towns.model", "more.csv"]),
            **CONFIDENCE,
            "--overwrite": ([""], []),
            "--jobs": (["1"], ["0"]),
            **JSON,
        },
        6,
        3,
    ),
    Form(
        "add items.model more.csv -o new.parquet --append-to items.parquet",
        CONFIDENCE
        | JSON
        | {"--save": (["new.model"], ["items.parquet"]), "--key": (["other"], [])},
        2,
    ),
    Form("inspect towns.model", JSON),
    Form(
        "verify base.vec longer.vec",
        JSON
        | {
            "--format": (["word2vec-text"], ["npz"]),
            "--member": ([], ["a.vec"]),
            "--replaced": ([], ["towns.csv", "longer.vec.manifest.json"]),
            "--vector": ([], ["embedding"]),
        },
        2,
    ),
    Form("verify items.parquet filled.parquet --vector embedding", JSON),
    Form(
        "convert base.vec",
        {
            "--from": (["word2vec-text"], ["npz"]),
            "--member": ([], ["a"]),
            "--overwrite": ([""], []),
        },
        3,
    ),
    Form(
        "tokens model terms.txt --source towns.csv -o new --method paper",
        SETTING
        | TRUST
        | JSON
        | {
            "--key": (["other"], ["nothing"]),
            "--match": (["exact"], ["x"]),
            "--ignore": (["x"], ["nothing"]),
            "--standardize": ([""], []),
            "--categorical": (["code"], ["nothing"]),
            "--report": (["new.html"], ["terms.txt"]),
            "--head": ([], ["mean", "nothing"]),
            "--tensor": ([], ["nothing"]),
        },
        2,
        3,
    ),
    Form("status work", JSON),
    Form(
        DATASETS + " -o new-out --work new-work",
        LIMITS
        | JSON
        | {
            "--ridge": (["0.5"], ["-1"]),
            "--recall": (["1"], ["2"]),
            "--memory": (["1GB"], ["much"]),
            "--patience": (["99"], ["-1"]),
            "--jobs": ([], ["2"]),
            "--report": ([], ["new.html"]),
            "--calibrate-norms": ([], [""]),
            "--scheduler": ([], ["tcp://127.0.0.1:1"]),
            "--workers": ([], ["2"]),
        },
        1,
        2,
    ),
]
TARGETS = ["new.vec", "new.npz", "new.parquet", "new.arrow", "new.safetensors", "new.bin",
           "new.csv", "new.tsv", "new.vec.gz", "base.vec", "new.nothing"]  # fmt: skip


def main() -> int:
    """Run commands with options drawn at random; return 1 if one failed."""
    parser = argparse.ArgumentParser(description="Fuzz combinations of options.")
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=1e9, help="end after so many")
    parser.add_argument("--only", nargs="+", metavar="COMMAND", help="not every command")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="vecfill-fuzz-") as folder:
        return Fuzzer(Path(folder), options.seed, options.only).run(options.runs, options.minutes)


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    status: int
    out: str
    err: str
    files: dict[str, bytes]
    """Files that it wrote, by name."""

    def is_same(self, outcome: Outcome) -> bool:
        """Tell whether nothing a user could see differs, but for what only records the options."""
        return self._visible() == outcome._visible()

    def _visible(self) -> tuple[object, ...]:
        files = {name: b"" if _is_record(name) else data for name, data in self.files.items()}
        return self.status, _timeless(self.out), _timeless(self.err), files


def _is_record(name: str) -> bool:
    """Tell whether a file lists the options of the run, so that it differs with each."""
    return name.endswith((".json", ".html", ".model")) or name.startswith("new-work/")


def _timeless(text: str) -> str:
    return re.sub(r"\d[\d.,]* (s|ms|MB)\b", "TIME", re.sub(r"\x1b\[[0-9;]*m", "", text))


class Fuzzer:
    """Runs of random commands in one folder, and what was wrong with them."""

    def __init__(self, folder: Path, seed: int, only: list[str] | None) -> None:
        self.folder = folder
        self.random = random.Random(seed)
        write_inputs(folder)
        self.inputs = contents(folder)
        self.forms = [form for form in FORMS if only is None or form.command in only]
        self.n_runs, self.n_accepted = Counter[str](), Counter[str]()
        self.n_compared: Counter[tuple[str, str]] = Counter()
        self.ignored: Counter[str] = Counter()
        self.failures: list[str] = []

    def run(self, n_runs: int, minutes: float) -> int:
        """Run so many commands; print what failed, and how many were accepted."""
        end = time.monotonic() + 60 * minutes
        weights = [form.weight for form in self.forms]
        for _ in range(n_runs):
            if time.monotonic() > end:
                break
            self._try(*self._drawn(self.random.choices(self.forms, weights)[0]))
        print(f"{'command':<10} {'runs':>7} {'accepted':>9}")
        for command, n_of_command in sorted(self.n_runs.items()):
            print(f"{command:<10} {n_of_command:>7,} {self.n_accepted[command]:>9,}")
        n_all, n_accepted = sum(self.n_runs.values()), sum(self.n_accepted.values())
        print(f"{'all':<10} {n_all:>7,} {n_accepted:>9,}  ({n_accepted / max(n_all, 1):.0%})")
        print(f"{sum(self.n_compared.values()):,} runs were compared without one of their options")
        print(f"{len(self.failures)} failures")
        return int(bool(self.failures))

    def _drawn(self, form: Form) -> tuple[list[str], list[list[str]]]:
        """Return words that are always there, and some options."""
        words = form.words.split()
        if form.command == "convert":
            words.append(self.random.choice(TARGETS))
        n_options = self.random.randint(0, min(form.most_options, len(form.options)))
        chosen = []
        for name in self.random.sample(list(form.options), n_options):
            valid, invalid = form.options[name]
            is_invalid = invalid and self.random.random() < SHARE_INVALID
            if values := invalid if is_invalid else valid:
                value = self.random.choice(values)
                chosen.append([name, value] if value else [name])
        return words, chosen

    def _try(self, words: list[str], options: list[list[str]]) -> None:
        command = words[0]
        self.n_runs[command] += 1
        line = _line(words, options)
        outcome = self._outcome(line)
        if outcome.status == 0:
            self.n_accepted[command] += 1
            for number, option in enumerate(options):
                self._compare(words, options, number, option, outcome)
            return
        if outcome.status not in (2, 3):
            self._fail(line, f"status {outcome.status}: {outcome.err.strip()[-300:]}")
        elif "Traceback" in outcome.err or not outcome.err.strip():
            self._fail(line, f"a refusal without a reason: {outcome.err[-300:]!r}")
        elif outcome.files:
            self._fail(line, f"refused, but it left {sorted(outcome.files)}")

    def _compare(
        self,
        words: list[str],
        options: list[list[str]],
        number: int,
        option: list[str],
        outcome: Outcome,
    ) -> None:
        """Leave an option out, and see whether anything changes."""
        name = option[0]
        if {name, f"{words[0]} {name}"} & FREE or self.n_compared[words[0], name] >= MOST_COMPARED:
            return
        if name == "--verbose" and ["--json"] in options:
            return  # JSON has the exact values of everything.
        self.n_compared[words[0], name] += 1
        shorter = options[:number] + options[number + 1 :]
        if outcome.is_same(self._outcome(_line(words, shorter))):
            key = f"{words[0]} {' '.join(option)}"
            self.ignored[key] += 1
            if self.ignored[key] <= 3:  # The same again and again says no more.
                why = f"{' '.join(option)} made no difference"
                self._fail(_line(words, options), why)

    def _outcome(self, line: list[str]) -> Outcome:
        """Run a command in the folder of the inputs, and leave the folder as it was."""
        from vecfill.cli import main as run  # noqa: PLC0415 - after the path was set

        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
        place = Path.cwd()
        os.chdir(self.folder)
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                status = run(line)
        finally:
            os.chdir(place)
        after = contents(self.folder)
        written = {name: data for name, data in after.items() if self.inputs.get(name) != data}
        changed = [name for name in self.inputs if name in written or name not in after]
        if changed:
            self._fail(line, f"inputs changed: {changed}")
            shutil.rmtree(self.folder)
            self.folder.mkdir()
            write_inputs(self.folder)
        input_names = {name.partition("/")[0] for name in self.inputs}
        for path in self.folder.iterdir():
            if path.name not in input_names:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        texts = [stream.buffer.getvalue().decode(errors="replace") for stream in (out, err)]  # pyright: ignore[reportAttributeAccessIssue]
        return Outcome(status, *texts, written)

    def _fail(self, line: list[str], why: str) -> None:
        self.failures.append(shlex.join(line))
        print(f"FAILED  vecfill {shlex.join(line)}\n        {why}", flush=True)


def _line(words: list[str], options: list[list[str]]) -> list[str]:
    """Return the words of a command with options."""
    return [*words, *(word for option in options for word in option)]


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file in a folder, by its path there."""
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def write_inputs(folder: Path) -> None:
    """Write the small files that commands are tried on."""
    import numpy as np  # noqa: PLC0415
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415
    from tests.distributed.made import made  # noqa: PLC0415
    from tests.exchange import model_folders as models  # noqa: PLC0415
    from tests.shell import N_KNOWN, World  # noqa: PLC0415

    from vecfill import Embedding, write_embedding  # noqa: PLC0415

    world = World(folder)
    rng = np.random.default_rng(1)
    n_rows = len(world.towns)
    # What each option is about is there: words that differ in case, codes, texts, counts.
    names = [name.upper() if row % 7 == 5 else name for row, name in enumerate(world.towns)]
    columns = {
        "name": names,
        "other": [f"{name}s" if row % 5 == 4 else name for row, name in enumerate(world.towns)],
        **{axis: world.places[:, number].round(4).tolist() for number, axis in enumerate("xyz")},
        "code": rng.integers(1, 4, n_rows).tolist(),
        "about": [" ".join(rng.choice(["the", "old", "port", "hill", "river"], 4))
                  for _ in range(n_rows)],
        "n": rng.integers(1, 99, n_rows).tolist(),
    }  # fmt: skip
    _write_csv(folder / "towns.csv", columns)
    later = {name: [cells[row] for row in (1, 2)] for name, cells in columns.items()}
    later |= {"name": ["new1", "new2"], "other": ["new3", "new4"]}
    _write_csv(folder / "more.csv", later)
    _write_csv(
        folder / "facts.csv", {"name": [*names[:-2], "new5", "new6"], "w": rng.normal(size=n_rows)}
    )
    _write_csv(folder / "aliases.csv", {"entity": names[50:52], "word": world.towns[:2]})
    _write_csv(folder / "counts.csv", {"entity": names, "count": columns["n"][::-1]})
    ends = rng.integers(0, n_rows, (300, 2))
    towns = np.array(world.towns)
    _write_csv(folder / "edges.csv", {"from": towns[ends[:, 0]], "to": towns[ends[:, 1]]})
    (folder / "excluded.txt").write_text("town7\ntown8\n")
    write_embedding(Embedding(world.towns, world.places.astype(np.float32)), folder / "places.vec")
    with zipfile.ZipFile(folder / "two.zip", "w") as archive:
        archive.write(folder / "base.vec", "a.vec")
        shorter = Embedding(world.base.words[:40], world.base.vectors[:40])
        write_embedding(shorter, folder / "b.vec")
        archive.write(folder / "b.vec", "b.vec")
    rows = [list(map(float, row)) for row in world.base.vectors[2:]]
    cells = [*rows, *[None] * (n_rows - N_KNOWN)]
    pq.write_table(pa.table({**columns, "embedding": cells}), folder / "items.parquet")
    texts = ["" if cell is None else f'"{cell}"' for cell in cells]
    _write_csv(folder / "items.csv", {**columns, "embedding": texts})
    spec = models.word_piece()
    tokens = ["[PAD]", "[UNK]", *world.towns[:N_KNOWN]]
    spec["model"]["vocab"] = {token: row for row, token in enumerate(tokens)}
    models.write_folder(folder / "model", spec)
    table = np.vstack([np.zeros((2, models.N_DIMS)), world.base.vectors[2:, : models.N_DIMS]])
    tensor = {models.INPUT: models.stored(table, "F32")}
    models.write_safetensors(folder / "model" / "model.safetensors", tensor)
    # The table writes the second in capitals.
    (folder / "terms.txt").write_text("town59\ntown54\n")
    made(folder, n_rows=300, share_known=0.5, n_dims=6, n_parts=1)
    _prepare(folder)


def _prepare(folder: Path) -> None:
    """Make what earlier commands leave: models, a longer file, a filled table."""
    from vecfill.cli import main as run  # noqa: PLC0415

    vectors = ["impute", "base.vec", "towns.csv", "-o", "longer.vec", "--method", "paper"]
    table = ["impute", "items.parquet", "--vector", "embedding", "-o", "filled.parquet"]
    jobs = (
        [*vectors, "--save", "towns.model"],
        [*table, "--method", "paper", "--save", "items.model", "--no-manifest"],
        [*DATASETS.split(), "-o", "out", "--work", "work"],
    )
    place = Path.cwd()
    os.chdir(folder)
    try:
        for words in jobs:
            quiet = io.StringIO()
            with contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet):
                assert run(words) == 0, (words, quiet.getvalue())
    finally:
        os.chdir(place)


def _write_csv(path: Path, columns: dict) -> None:
    rows = zip(*columns.values(), strict=True)
    lines = [",".join(columns), *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    sys.exit(main())
