"""Run an experiment: ``python experiments/run.py NAME --data DIR --out DIR [--quick]``."""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import time
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import record

HERE = Path(__file__).resolve().parent
NAMES = (
    "classification",
    "frequency",
    "sensitivity",
    "convergence",
    "theory",
    "scaling",
    "self-embedding",
    "language-model",
    "rare-words",
    "medicine",
    "new-tokens",
    "new-tokens-causal",
    "new-tokens-medical",
    "triples",
    "migration",
    "atoms",
    "cold-start",
)


def read_config(name: str, *, quick: bool) -> dict[str, Any]:
    """Return everything that was chosen; ``[quick]`` overrides what makes a run long."""
    config = tomllib.loads((HERE / name / "config.toml").read_text(encoding="utf-8"))
    shorter = config.pop("quick", {})
    return (config | shorter if quick else config) | {"quick": quick}


def load_experiment(name: str) -> ModuleType:
    """Import ``NAME/experiment.py``; a folder with a hyphen cannot be imported by name."""
    path = HERE / name / "experiment.py"
    spec = importlib.util.spec_from_file_location(name.replace("-", "_"), path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def with_changes(config: dict[str, Any], changes: list[str]) -> dict[str, Any]:
    """Return `config` with values replaced, each written as in TOML: ``n_pairs = 100``."""
    for change in changes:
        try:
            given = tomllib.loads(change)
        except tomllib.TOMLDecodeError as error:
            raise SystemExit(
                f"--set {change!r} is not TOML ({error}). Write name=value."
            ) from error
        unknown = sorted(given.keys() - config.keys())
        if unknown:
            raise SystemExit(f"--set {unknown[0]}: config.toml has no such value.")
        config = config | given
    return config


def run_one(name: str, data: Path, out: Path, *, config: dict[str, Any]) -> None:
    """Run one experiment and write what it found under ``out/NAME``."""
    folder = out / name
    folder.mkdir(parents=True, exist_ok=True)
    start, spent = time.perf_counter(), _processor_seconds()
    result = load_experiment(name).run(config, data, folder)
    record.write(result, folder, name=name, config=config, seconds=time.perf_counter() - start)
    print(
        f"{name}: {time.perf_counter() - start:.0f} s, "
        f"{_processor_seconds() - spent:.0f} s of processor time",
        file=sys.stderr,
    )


def _processor_seconds() -> float:
    """Return what this process and those that it has started and ended took so far."""
    return sum(os.times()[:4])


def main() -> int:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=(*NAMES, "all"))
    parser.add_argument("--data", type=Path, default=HERE.parents[1] / "shared" / "data")
    parser.add_argument("--out", type=Path, default=HERE / "results")
    parser.add_argument("--quick", action="store_true", help="small and short, to see it run")
    parser.add_argument(
        "--resume", action="store_true", help="skip experiments that ended with the same values"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="replace a chosen value"
    )
    parser.add_argument(
        "--docs",
        type=Path,
        metavar="CHECKOUT",
        help="put the tables into experiments/NAME/README.md of this checkout",
    )
    given = parser.parse_args()
    if not (given.data / "finance").is_dir():
        print(f"{given.data} has no folder finance. Pass --data DIR.", file=sys.stderr)
        return 2
    for name in NAMES if given.name == "all" else (given.name,):
        try:
            config = read_config(name, quick=given.quick)
            config = with_changes(config, given.set)
            if given.resume and record.is_done(given.out / name, config):
                print(f"{name}: done before", file=sys.stderr)
            else:
                run_one(name, given.data, given.out, config=config)
            if given.docs is not None:
                page = given.docs / "experiments" / name / "README.md"
                figures = given.docs / "docs" / "figures"
                record.fill_page(page, name, given.out / name, figures, quick=given.quick)
        except ModuleNotFoundError as error:
            print(
                f"{name} needs {error.name}. Type: pip install 'vecfill[experiments]'",
                file=sys.stderr,
            )
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
