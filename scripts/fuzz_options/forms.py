"""The commands that are tried, and the values that their options may take."""

from __future__ import annotations

from dataclasses import dataclass, field

Options = dict[str, tuple[list[str], list[str]]]
"""Valid and invalid values of options; the value "" is that of a switch."""

FREE = {
    *("--jobs", "--overwrite", "--seed", "--patience", "--memory", "--workers", "--force"),
    *("--no-manifest", "--debug", "--recall"),
    # They say what is found out anyway, or what need not be read.
    *("--format", "--from", "match --ignore", "--offset"),
    # What it leaves out may not be among the few that are shown.
    "explain --exclude",
}
"""Options that may make no difference to a result on small files, by what they mean."""

READING: Options = {
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
DESCRIBING: Options = {
    "--standardize": ([""], []),
    "--categorical": (["code"], ["nothing"]),
    "--names": (["spelling"], ["nothing"]),
    "--text": (["about"], ["nothing"]),
    "--n-dims": ([], ["8", "0"]),
    "--edge-columns": ([], ["x"]),
    "--encoder": ([], ["nothing"]),
}
SETTING: Options = {
    "--preparation": (["standardized", "rank_normal"], ["nothing"]),
    "--min-degree": (["3", "5"], ["0", "x"]),
    "--ridge": (["0.5"], ["-1"]),
    "--residual-share": (["0.5"], ["2"]),
}
CHOOSING: Options = {
    "--goal": (["rank", "cosine"], ["nothing"]),
    "--candidates": (["classic"], ["nothing"]),
    "--offset": (["off"], ["on"]),
}
ANY_METHOD: Options = {
    "--force": ([""], []),
    "--seed": (["1"], ["-1"]),
    "--jobs": (["1", "2"], ["0"]),
}
TRUST: Options = {
    "--level": (["0.6"], ["1"]),
    "--calibrate-norms": ([""], []),
}
LIMITS: Options = {
    "--min-confidence": (["0.7"], ["2"]),
    "--min-bound": (["0.7"], ["-2"]),
}
"""Apart from other options: where everything is left out, nothing else makes a difference."""
WRITING: Options = {
    "--report": (["new.html"], ["towns.csv", "nowhere/new.html"]),
    "--save": (["new.model"], ["base.vec", "nowhere/new.model"]),
    "--no-manifest": ([""], []),
    "--overwrite": ([""], []),
    "--verbose": ([""], []),
    "--json": ([""], []),
}
JSON: Options = {"--json": ([""], [])}


@dataclass(frozen=True)
class Form:
    """One way to use a command: words that are always there, and options that may be added."""

    words: str
    options: Options = field(default_factory=dict)
    weight: float = 1
    most_options: int = 4

    @property
    def command(self) -> str:
        """The command."""
        return self.words.split()[0]


VECTORS = "impute base.vec towns.csv -o new.vec"
DATASETS = "impute vectors features --engine serial --min-degree 4"
REPLACING: Options = {
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
        0.3,  # It takes thirty times as long as the others.
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
