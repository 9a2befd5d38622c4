"""Commands with options drawn at random, and what was wrong with them.

A run fails if

- it ends with another status than 0 (done), 2 (refused) or 3 (no signal), shows a traceback, or
  does not end;
- an input changed, or a run that was refused left a file;
- an option that was accepted can be left out without any difference: status, what is printed and
  what is written are the same. It was ignored, and should have been refused.

What failed is printed as a line of a shell. The seed of the run makes it again.
"""

from __future__ import annotations

import random
import shlex
import time
from collections import Counter
from pathlib import Path

from scripts.fuzz_options.forms import FORMS, FREE, TARGETS, Form
from scripts.fuzz_options.runs import Outcome, Runs

SHARE_INVALID = 0.05
"""Of the values that are drawn. A guess that leaves more than half of all runs accepted."""

MOST_COMPARED = 60
"""Runs in which an option is left out, for each option of each command: so that options that come
often do not take all the time."""

MOST_SHOWN = 3
"""Runs that are shown in which the same option makes no difference: more say no more."""


class Fuzzer:
    """Runs of random commands in one folder, and what was wrong with them."""

    def __init__(self, folder: Path, seed: int, only: list[str] | None = None) -> None:
        self.random = random.Random(seed)
        self.runs = Runs(folder)
        self.forms = [form for form in FORMS if only is None or form.command in only]
        self.n_runs, self.n_accepted = Counter[str](), Counter[str]()
        self.n_compared: Counter[tuple[str, str]] = Counter()
        self.n_without_effect: Counter[str] = Counter()
        self.failures: list[str] = []

    def run(self, n_runs: int, minutes: float) -> int:
        """Run so many commands; print what failed, and how many were accepted."""
        self.runs.warm_up([self._drawn(form)[0] for form in self.forms])
        end = time.monotonic() + 60 * minutes
        weights = [form.weight for form in self.forms]
        for _ in range(n_runs):
            if time.monotonic() > end:
                break
            self._try(*self._drawn(self.random.choices(self.forms, weights)[0]))
        self._report()
        return int(bool(self.failures))

    def _report(self) -> None:
        print(f"{'command':<10} {'runs':>7} {'accepted':>9}")
        for command, n_of_command in sorted(self.n_runs.items()):
            print(f"{command:<10} {n_of_command:>7,} {self.n_accepted[command]:>9,}")
        n_all, n_accepted = sum(self.n_runs.values()), sum(self.n_accepted.values())
        print(f"{'all':<10} {n_all:>7,} {n_accepted:>9,}  ({n_accepted / max(n_all, 1):.0%})")
        print(f"{sum(self.n_compared.values()):,} runs were compared without one of their options")
        print(f"{len(self.failures)} failures")

    def _drawn(self, form: Form) -> tuple[list[str], list[list[str]]]:
        """Return words that are always there, and some options."""
        words = form.words.split()
        if form.command == "convert":
            words.append(self.random.choice(TARGETS))
        n_options = self.random.randint(0, min(form.most_options, len(form.options)))
        options = []
        for name in self.random.sample(list(form.options), n_options):
            valid, invalid = form.options[name]
            is_invalid = invalid and self.random.random() < SHARE_INVALID
            if values := invalid if is_invalid else valid:
                value = self.random.choice(values)
                options.append([name, value] if value else [name])
        return words, options

    def _try(self, words: list[str], options: list[list[str]]) -> None:
        command, line = words[0], _line(words, options)
        self.n_runs[command] += 1
        outcome = self._outcome(line)
        if outcome.status == 0:
            self.n_accepted[command] += 1
            for number in range(len(options)):
                self._compare(words, options, number, outcome)
        elif outcome.status not in (2, 3):
            self._fail(line, f"status {outcome.status}: {outcome.err.strip()[-300:]}")
        elif "Traceback" in outcome.err or not outcome.err.strip():
            self._fail(line, f"a refusal without a reason: {outcome.err[-300:]!r}")
        elif outcome.files:
            self._fail(line, f"refused, but it left {sorted(outcome.files)}")

    def _compare(
        self, words: list[str], options: list[list[str]], number: int, outcome: Outcome
    ) -> None:
        """Leave an option out, and see whether anything changes."""
        option, command = options[number], words[0]
        name = option[0]
        if {name, f"{command} {name}"} & FREE or self.n_compared[command, name] >= MOST_COMPARED:
            return
        if name == "--verbose" and ["--json"] in options:
            return  # JSON has the exact values of everything.
        self.n_compared[command, name] += 1
        shorter = options[:number] + options[number + 1 :]
        if outcome.is_same(self._outcome(_line(words, shorter))):
            key = f"{command} {' '.join(option)}"
            self.n_without_effect[key] += 1
            if self.n_without_effect[key] <= MOST_SHOWN:
                self._fail(_line(words, options), f"{' '.join(option)} made no difference")

    def _outcome(self, line: list[str]) -> Outcome:
        outcome = self.runs.outcome(line)
        if outcome.changed:
            self._fail(line, f"inputs changed: {outcome.changed}")
        return outcome

    def _fail(self, line: list[str], why: str) -> None:
        self.failures.append(shlex.join(line))
        print(f"FAILED  vecfill {shlex.join(line)}\n        {why}", flush=True)


def _line(words: list[str], options: list[list[str]]) -> list[str]:
    """Return the words of a command with options."""
    return [*words, *(word for option in options for word in option)]
