"""The program that commands are part of, and the examples that their help ends with."""

from __future__ import annotations

from typing import Any

import typer

from vecfill.cli.help import WIDEST, GroupedCommand

app = typer.Typer(
    name="vecfill",
    help="Trustworthy vectors for the entities that a pre-trained embedding lacks.",
    epilog="Start with: vecfill demo",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": WIDEST},
)

EXAMPLES = {
    "impute": """
        vecfill impute glove.txt cities.csv -o new.txt --report page.html --evaluate
        vecfill impute glove.txt cities.csv -o new.txt --min-confidence 0.3
        vecfill impute items.parquet --vector embedding -o filled.parquet
        vecfill impute vectors/ features/ -o imputed/ --engine processes --work work/
        """,
    "evaluate": "vecfill evaluate glove.txt cities.csv --folds 5",
    "explain": "vecfill explain glove.txt cities.csv 'Fort Worth' -n 5",
    "match": "vecfill match glove.txt cities.csv -o matches.csv",
    "tokens": "vecfill tokens model/ terms.txt --source pieces -o new-model/",
    "add": """
        vecfill add cities.vecfill new.csv -o new.txt
        vecfill add cities.vecfill new.csv -o more.txt --append-to enriched.txt
        """,
    "inspect": "vecfill inspect cities.vecfill --json",
    "verify": """
        vecfill verify glove.txt enriched.txt
        vecfill verify model/ new-model/
        """,
    "convert": "vecfill convert glove.txt vectors.bin",
    "status": "vecfill status work/",
    "demo": "vecfill demo my-folder",
}
"""What the help of each command ends with."""


def registered(name: str) -> Any:
    """Return the decorator that makes a function a command, with its examples."""
    return app.command(name, cls=GroupedCommand, epilog=EXAMPLES[name])
