"""Who took what, as users have it."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from vecfill.errors import InputError
from vecfill.inputs.interactions import interactions

PAIRS = [("ann", "tea"), ("ben", "tea"), ("ben", "rum")]


def test_a_table_a_list_and_a_matrix_say_the_same(tmp_path):
    frame = pd.DataFrame(PAIRS, columns=["who", "what"])
    path = tmp_path / "taken.csv"
    frame.to_csv(path, index=False)
    matrix = csr_array(np.array([[1, 0], [1, 1]]))
    matrices = [
        interactions(source).tastes(("rum", "gin", "tea")).taken.toarray()
        for source in (PAIRS, frame, str(path))
    ]
    named = interactions(matrix, users=["ann", "ben"], items=["tea", "rum"])
    matrices.append(named.tastes(("rum", "gin", "tea")).taken.toarray())
    for rows in matrices:
        np.testing.assert_array_equal(rows, [[0, 0, 1], [1, 0, 1]])


def test_columns_of_a_matrix_without_names_are_the_rows_of_the_table():
    matrix = csr_array(np.array([[1, 0, 3]]))
    tastes = interactions(matrix).tastes(("a", "b", "c"))
    np.testing.assert_array_equal(tastes.taken.toarray(), [[1, 0, 1]])
    with pytest.raises(InputError, match="name none of the 2 entities"):
        interactions(matrix, entities="items").tastes(("a", "b"))


def test_entities_are_users_if_no_item_has_their_name():
    tastes = interactions(PAIRS).tastes(("ben", "ann"))
    assert tastes.are_users
    np.testing.assert_array_equal(tastes.taken.toarray(), [[1, 1], [1, 0]])


def test_numbers_that_name_both_sides_are_items_unless_users_are_asked_for():
    pairs = [(1, 2), (2, 1), (2, 2)]
    assert not interactions(pairs).tastes(("1", "2")).are_users
    assert interactions(pairs, entities="users").tastes(("1", "2")).are_users


def test_the_words_of_entities_do_where_their_names_do_not():
    tastes = interactions(PAIRS).tastes(("Tea", "Rum"), {"Tea": "tea", "Rum": "rum"})
    np.testing.assert_array_equal(tastes.taken.toarray(), [[1, 0], [1, 1]])


def test_an_item_is_liked_if_it_is_rated_no_worse_than_the_mean_of_its_user():
    table = {"user": list("aabb"), "item": list("xyxy"), "Rating": [5, 4, 1, 2]}
    tastes = interactions(table).tastes(("x", "y"))
    np.testing.assert_array_equal(tastes.relevant.toarray(), [[1, 0], [0, 1]])
    of_users = interactions(table, entities="users").tastes(("a", "b"))
    np.testing.assert_array_equal(of_users.relevant.toarray(), [[1, 0], [0, 1]])


def test_a_pair_that_is_listed_again_counts_once():
    tastes = interactions([*PAIRS, PAIRS[0]]).tastes(("tea", "rum"))
    assert tastes.taken.max() == 1.0


def test_what_cannot_be_read_is_refused_with_the_way_out():
    with pytest.raises(InputError, match=r"no column 'usr'\. Did you mean 'user'"):
        interactions({"user": ["a"], "item": ["b"]}, user="usr")
    with pytest.raises(InputError, match="ratings are numbers above 0"):
        interactions({"user": ["a"], "item": ["b"], "rating": [0]})
    with pytest.raises(InputError, match="has empty cells"):
        interactions({"user": ["a"], "item": [None]})
    with pytest.raises(InputError, match="below 0"):
        interactions(csr_array(np.array([[-1.0]])))
    with pytest.raises(InputError, match="an object of type int"):
        interactions(3)
    with pytest.raises(InputError, match="has none for 1 of 2 users"):
        interactions(PAIRS, vectors={"ann": [1.0]}).tastes(("tea",))
