"""The small files that commands are tried on."""

from __future__ import annotations

import contextlib
import io
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scripts.fuzz_options.forms import DATASETS
from tests.distributed.made import made
from tests.exchange import model_folders as models
from tests.shell import N_KNOWN, World

from vecfill import Embedding, write_embedding
from vecfill.cli import main as run_command


def write_inputs(folder: Path) -> None:
    """Write the small files that commands are tried on."""
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
    vectors = ["impute", "base.vec", "towns.csv", "-o", "longer.vec", "--method", "paper"]
    table = ["impute", "items.parquet", "--vector", "embedding", "-o", "filled.parquet"]
    jobs = (
        [*vectors, "--save", "towns.model"],
        [*table, "--method", "paper", "--save", "items.model", "--no-manifest"],
        [*DATASETS.split(), "-o", "out", "--work", "work"],
    )
    with contextlib.chdir(folder):
        for words in jobs:
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
                assert run_command(words) == 0, (words, printed.getvalue())


def _write_csv(path: Path, columns: dict) -> None:
    rows = zip(*columns.values(), strict=True)
    lines = [",".join(columns), *(",".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
