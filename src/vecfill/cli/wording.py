"""Messages of the library -> messages of the shell: `member=` is `--member` there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from vecfill.requests import all_options

PYTHON_ONLY = ("dtype", "matches", "words")
"""Arguments that messages name and no command has, beside those of the request objects."""

_MORE = ("n_jobs", "folds", "hide", "append_to")
"""Arguments that are options of some commands, beside those of the request objects."""

_OTHER_NAMES = {"n_jobs": "--jobs", "confidence": "--confidence-column"}
_NEVER_OVERWRITE = ("tokens",)
_OF_COMMAND = {"convert": {"format": "--from"}, "add": {"missing": "--missing"}}


def flag_of(name: str) -> str:
    """Return the shell option that a Python argument is.

    Examples
    --------
    >>> flag_of("min_degree"), flag_of("n_jobs")
    ('--min-degree', '--jobs')
    """
    return _OTHER_NAMES.get(name, f"--{name.replace('_', '-')}")


@cache
def flags_of(command: str) -> Mapping[str, str]:
    """Return the shell option that each Python argument is, for one command.

    Examples
    --------
    >>> flags_of("impute")["min_degree"], flags_of("convert")["format"]
    ('--min-degree', '--from')
    """
    names = [option.name for option in all_options() if option.metadata["option"].in_shell]
    return {name: flag_of(name) for name in (*names, *_MORE)} | _OF_COMMAND.get(command, {})


@cache
def _python_only() -> tuple[str, ...]:
    hidden = [option.name for option in all_options() if not option.metadata["option"].in_shell]
    return (*hidden, *PYTHON_ONLY)


def in_shell_words(message: str, command: str = "impute") -> str:
    """Name options as a shell does; leave out advice that a shell cannot follow.

    Examples
    --------
    >>> in_shell_words("ridge=-5 is out of range. Use force=True, or give counts=.")
    '--ridge -5 is out of range. Use --force, or give --counts.'
    >>> in_shell_words("text=('about', 'more') cannot be used here.")
    "--text 'about' --text 'more' cannot be used here."
    >>> in_shell_words("Its numbers were rounded. Pass dtype='float64' to keep them.")
    'Its numbers were rounded.'
    """
    if command in _NEVER_OVERWRITE:
        message = message.replace("Allow overwriting it (overwrite=True), or choose", "Choose")
    hidden = "|".join(_python_only())
    # A sentence ends at a full stop with a space or nothing after it; names of files have neither.
    sentences = re.split(r"(?<=\.)\s(?=[A-Z])", message)
    useful = [sentence for sentence in sentences if not re.search(rf"\b({hidden})=", sentence)]
    text = " ".join(useful or sentences[:1]) if len(useful) < len(sentences) else message
    flags = flags_of(command)

    def spelled(option: re.Match[str]) -> str:
        flag, value = flags[option[1]], option[2] or ""
        if value.startswith("("):
            return " ".join(f"{flag} {word}" for word in re.findall(r"'[^']*'", value))
        return flag if value in ("", "True") else f"{flag} {value}"

    return re.sub(
        rf"(?<![-\w])({'|'.join(flags)})=('[^']*'|\(('[^']*',? ?)+\)|[-+.\w]*\w)?", spelled, text
    )
