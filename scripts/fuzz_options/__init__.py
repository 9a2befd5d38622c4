"""Fuzzing of combinations of options: `make fuzz FUZZ=options`.

- forms: the commands, and the values that their options may take
- inputs: the small files that commands are tried on
- runs: one command in a process of its own, and all that a user sees of it
- fuzzer: commands drawn at random, and what was wrong with them
"""
