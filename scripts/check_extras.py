"""Install each extra alone in an environment of its own and use it: ``... [EXTRA ...]``.

First an environment without any extra: every use must end with the line to type. Then a copy of it
for each extra, which is installed into it: the same use must work. Environments are made under
``build/extras`` (or ``--folder``, which is emptied) and removed afterwards.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

WORDS = """
import numpy as np, pyarrow as pa, tempfile, vecfill as vf
words = vf.Embedding(["cat", "dog", "car"], np.array([[1, 0], [0.8, 0.6], [0, 1]], "f4"))
ids, wave = [1, 2, 3, 4], [680.0, 610.0, 580.0, 595.0]
hue = pa.array([[1.0], [2.0], [3.0], None], pa.list_(pa.float32(), 1))
items = pa.table({"id": ids, "wave": wave, "hue": hue})
folder = tempfile.mkdtemp()
options = {"vector": "hue", "method": "paper"}
"""
"""What every use begins with."""

USES = {
    "gensim": """
        assert vf.to_gensim(words).most_similar("cat", topn=1)[0][0] == "dog"
    """,
    "spacy": """
        vf.to_spacy(None, words) if not has("spacy") else None
        import spacy
        nlp = vf.to_spacy(spacy.blank("en"), words)
        assert nlp("a dog")[1].vector.tolist() == words["dog"].tolist()
    """,
    "torch": """
        layer = vf.to_torch(words, ["<pad>", "dog"], padding="<pad>")
        assert layer.weight.shape == (2, 2) and layer.padding_idx == 0
    """,
    "duckdb": """
        from vecfill.exchange.duckdb import fill_duckdb
        fill_duckdb("no.db", "items", key="id", **options) if not has("duckdb") else None
        import duckdb
        with duckdb.connect() as connection:
            connection.execute("CREATE TABLE stored AS SELECT * FROM items")
            assert fill_duckdb(connection, "stored", key="id", **options).keys == (4,)
    """,
    "lancedb": """
        from vecfill.exchange.lancedb import fill_lancedb
        fill_lancedb(None, key="id", **options) if not has("lancedb") else None
        import lancedb
        table = lancedb.connect(folder).create_table("stored", items)
        assert fill_lancedb(table, key="id", **options).keys == (4,)
    """,
    "postgres": """
        from vecfill.exchange.postgres import fill_postgres
        try:  # there need not be a server; that the library asks for one is what counts
            fill_postgres("host=127.0.0.1 port=1", "items", key="id", **options)
        except Exception as error:
            if type(error).__name__ != "OperationalError":
                raise
    """,
    "qdrant": """
        from vecfill.exchange.qdrant import fill_qdrant
        fill_qdrant(None, "items", **options) if not has("qdrant_client") else None
        from qdrant_client import QdrantClient, models
        client = QdrantClient(":memory:")
        size = models.VectorParams(size=1, distance=models.Distance.DOT)
        client.create_collection("items", vectors_config={"hue": size})
        points = [models.PointStruct(id=i, vector={} if v is None else {"hue": v}, payload={"w": w})
                  for i, v, w in zip(ids, hue.to_pylist(), wave)]
        client.upsert("items", points)
        assert fill_qdrant(client, "items", **options).keys == (4,)
    """,
    "hf": """
        from vecfill.exchange.huggingface.example import write_small_model
        assert "radon" in vf.word_pieces(write_small_model(), ["radon"]).entities
    """,
    "dask": """
        from vecfill.distributed.dask import Dask
        if __name__ == "__main__":
            engine = Dask(workers=1)
            engine.close()
    """,
    "fsspec": """
        from vecfill.distributed.dataset import filesystem
        assert filesystem("memory://a.parquet")[1].endswith("a.parquet")
    """,
    "plot": """
        from vecfill.views import plots
        plots.convergence({"paper": [1.0, 0.1, 0.01]}).savefig(f"{folder}/figure.png")
    """,
}
"""A use of each extra, which without it must end with the line to type."""

FIRST = {"torch": "torch==2.13.0"}
"""What to install before an extra: of torch, a build without GPU libraries."""


def main() -> int:
    """Check the extras that were named, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("extras", nargs="*", default=list(USES), metavar="EXTRA")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "extras")
    given = parser.parse_args()
    folder = given.folder.resolve()
    shutil.rmtree(folder, ignore_errors=True)
    bare = folder / "bare"
    venv.create(bare, with_pip=True)
    _pip(bare, "wheel", "--no-deps", "-w", str(folder), str(ROOT))
    wheel = next(folder.glob("vecfill-*.whl"))
    _install(bare, str(wheel))
    faults = [_fault_without(bare, extra) for extra in given.extras]
    print(f"without extras: {'FAILED' if any(faults) else 'the line to type'}", flush=True)
    for extra in given.extras:
        place = folder / extra
        # Links instead of copies: pip replaces files and does not write into them.
        shutil.copytree(bare, place, symlinks=True, copy_function=os.link)
        if extra in FIRST:
            _install(place, FIRST[extra])
        _install(place, f"vecfill[{extra}] @ {wheel.as_uri()}")
        said = _used(place, extra)
        faults.append(f"{extra} was installed, but its use failed:\n{said}" if said else None)
        print(f"{extra}: {'FAILED' if said else 'installs alone and works'}", flush=True)
        shutil.rmtree(place)
    shutil.rmtree(folder)
    found = [each for each in faults if each]
    print("\n".join(found), file=sys.stderr)
    return 1 if found else 0


def _install(place: Path, what: str) -> None:
    # Compiling every file of every environment would take longer than all the rest.
    _pip(place, "install", "--no-compile", "-c", str(ROOT / "constraints.txt"), what)


def _pip(place: Path, *words: str) -> None:
    python = str(place / "bin" / "python")
    pip = [python, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *words], env=_clean(), check=True)


def _clean() -> dict[str, str]:
    """Return the environment with nothing of these sources on the path."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def _fault_without(place: Path, extra: str) -> str | None:
    said = _used(place, extra)
    line = f"pip install 'vecfill[{extra}]'"
    if line in said and "MissingExtraError" in said:
        return None
    return f"without {extra} the message should give the line {line}, but it was:\n{said}"


def _used(place: Path, extra: str) -> str:
    """Return what a use of an extra wrote before it failed; nothing if it did not fail."""
    lines = USES[extra].strip("\n").splitlines()
    body = "\n".join(line[8:] for line in lines)
    has = "from importlib.util import find_spec\nhas = lambda name: find_spec(name) is not None\n"
    program = place / f"use_{extra}.py"
    program.write_text(WORDS + has + body)
    done = subprocess.run(
        [place / "bin" / "python", program],
        check=False, cwd=place, env=_clean(), capture_output=True, text=True,
    )  # fmt: skip
    return "" if done.returncode == 0 else done.stderr or f"exit code {done.returncode}"


if __name__ == "__main__":
    sys.exit(main())
