"""A model that goes on: it gives vectors to new entities, learns new known ones, saves, loads.

`model` is what users hold: add, update, forget, save, load. `kept_model` is what it knows and
derives, and `state` gives threads one state of it at a time. `file` has the typed fields that are
saved, and the one file that holds them. `adding` reads the entities of a new table, and has what
they get; `judging` says how far to trust them. `fitted` makes a model of what was fitted.
"""
