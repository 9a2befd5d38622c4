"""A model that goes on: it gives vectors to new entities, learns new known ones, saves, loads.

`model` is what users hold: add, update, forget, save, load. `kept_model` is what it knows and
derives, `kept` the typed fields that are saved, and `file` the one file that holds them. `adding`
reads the entities of a new table, `added` is what they get, and `fitted` makes a model of what was
fitted.
"""
