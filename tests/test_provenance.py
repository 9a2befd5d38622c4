"""Results as JSON text."""

import json

import pytest

from vecfill.io.provenance import as_json

SMALL = [
    {},
    [],
    {"a": [], "b": {}},
    [1, [2, {"x": None, "y": [True, 'é"\n\udce9']}]],
    {"a": 1.5, "b": [{"c": 1}, {"d": []}]},
    "x",
    None,
]


@pytest.mark.parametrize("value", SMALL, ids=str)
def test_small_results_look_as_json_does_with_an_indent(value):
    assert as_json(value) == json.dumps(value, indent=2)


def test_each_item_of_something_long_stands_on_one_line():
    value = {"rows": [{"a": n, "b": [1, 2]} for n in range(1500)], "words": {"x": "y"}}
    text = as_json(value)
    assert json.loads(text) == value
    assert text.splitlines()[2] == '    {"a": 0, "b": [1, 2]},'
    assert len(text.splitlines()) == 1500 + 7
