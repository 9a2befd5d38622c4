"""The paper, a module a stage, in the order of the data."""
