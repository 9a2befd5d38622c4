"""Entity names meet vocabulary words."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vecfill.errors import InputError, VecfillError
from vecfill.inputs.names.folding import affixed, core, folded, glued
from vecfill.inputs.names.match_report import MatchReport
from vecfill.inputs.names.matching import NameSearch, match_names
from vecfill.io.tables import read_table

words_of_any_kind = st.lists(st.text(max_size=12), max_size=20)
names = st.lists(
    st.text(min_size=1, max_size=12).map(str.strip).filter(bool),
    min_size=1,
    max_size=8,
    unique=True,
)


def found(entity: str, *vocabulary: str, **options) -> str | None:
    return match_names([entity], vocabulary, **options).matches[0].word


@given(names, words_of_any_kind)
def test_a_better_level_never_loses_a_match(entities, vocabulary):
    exact, case, loose = (
        set(match_names(entities, vocabulary, level=level).words)
        for level in ("exact", "case", "loose")
    )
    assert exact <= case <= loose


@given(names, words_of_any_kind)
def test_an_entity_that_is_a_word_is_matched_to_itself(entities, vocabulary):
    report = match_names(entities, [*vocabulary, *entities])
    assert all(match.word == match.entity and match.how == "exact" for match in report.matches)


@given(names, words_of_any_kind, st.integers(1, 5))
def test_words_alone_and_words_in_lists_give_the_same_report(entities, vocabulary, size):
    lists = [vocabulary[start : start + size] for start in range(0, len(vocabulary), size)]
    alone = match_names(entities, iter(vocabulary))
    assert alone == match_names(entities, vocabulary) == match_names(entities, iter(lists))


@given(names, words_of_any_kind, st.randoms(use_true_random=False))
def test_shuffling_entities_changes_nothing_but_the_order(entities, vocabulary, random):
    shuffled = entities.copy()
    random.shuffle(shuffled)
    one, other = match_names(entities, vocabulary), match_names(shuffled, vocabulary)
    assert set(one.matches) == set(other.matches)


@given(words_of_any_kind)
def test_folding_a_batch_is_folding_each_word(words):
    assert folded(words) == [folded([word])[0] for word in words]
    assert glued(folded(words)) == [glued(folded([word]))[0] for word in words]


@given(st.text(max_size=20))
def test_a_word_without_affix_is_its_own_core(word):
    token = folded([word])[0]
    if not affixed([token]):
        assert core(token) == glued([token])[0]


@given(st.text(max_size=20))
def test_what_is_equal_ignoring_case_is_equal_folded(word):
    assert folded([word]) == folded([word.casefold()])


@pytest.mark.parametrize(
    ("entity", "word"),
    [
        ("Coca Cola", "Coca-Cola"),
        ("Coca_Cola", "cocacola"),
        ("Nestlé S.A.", "Nestle"),
        ("Apple Inc.", "apple"),
        ("Apple", "Apple_Inc"),
        ("Aon plc", "aon"),
        ("Siemens AG", "siemens"),
        ("Deere & Co.", "deere"),
        ("AT&amp;T", "AT&T"),
        ("Johnson & Johnson", "Johnson_and_Johnson"),
        ("The Home Depot", "Home_Depot"),
        ("Macy's", "macys"),
        ("McDonald's Corp", "McDonald"),
        ("Kohl\u2019s", "Kohl's"),
        ("Ørsted", "orsted"),
        ("Łódź", "lodz"),
        ("CME Group Holdings Ltd.", "cme"),
    ],
)
def test_the_loose_level_finds(entity, word):
    assert found(entity, "the", "of", word) == word
    assert found(entity, "the", "of", word, level="exact") is None


def test_what_must_stay_apart_stays_apart():
    assert found("Inc", "apple") is None
    assert found("---", "...") is None
    assert found("A Co", "a") is None
    assert found("Coca Cola", "cola") is None


def test_a_better_way_wins_then_the_earlier_word_and_the_rest_are_alternatives():
    report = match_names(["Visa"], ["visa", "VISA", "Visa_Inc", "visa", "Visa", "v-isa"])
    (match,) = report.matches
    assert (match.word, match.how) == ("Visa", "exact")
    assert match.alternatives == ("visa", "VISA", "v-isa", "Visa_Inc")


def test_two_entities_of_one_word_are_both_reported():
    report = match_names(["Apple Inc", "apple"], ["apple"])
    assert report.collisions == {"apple": ("Apple Inc", "apple")}
    assert "Apple Inc, apple" in report.notes[0]


def test_an_alias_goes_before_any_other_way():
    report = match_names(
        ["Alphabet", "IBM"], ["alphabet", "google", "ibm"], aliases={"Alphabet": "google"}
    )
    assert report.words == {"Alphabet": "google", "IBM": "ibm"}
    assert report.counts == {"case": 1, "alias": 1}


def test_aliases_can_come_from_a_file(tmp_path):
    path = tmp_path / "aliases.csv"
    path.write_text("entity,word\nAlphabet,google\n", encoding="utf-8")
    assert match_names(["Alphabet"], ["google"], aliases=path).words == {"Alphabet": "google"}


def test_an_alias_to_a_word_that_is_absent_is_reported_and_nothing_is_guessed():
    report = match_names(["Alphabet"], ["alphabet"], aliases={"Alphabet": "google"})
    assert report.unmatched == ("Alphabet",)
    assert report.missing_aliases == (("Alphabet", "google"),)
    assert "not in the vocabulary" in report.notes[0]


def test_an_alias_of_no_entity_is_reported():
    report = match_names(["IBM"], ["ibm"], aliases={"Googel": "google"}, exclude=["Vissa"])
    assert report.unused_names == ("Googel", "Vissa")
    assert any("2 names have an alias or are excluded" in note for note in report.notes)


def test_an_entity_present_twice_through_aliases_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"'Meta'.*present twice"):
        match_names(["Facebook", "Meta"], ["Meta"], aliases={"Facebook": "Meta"})
    with pytest.raises(InputError, match="word 'Meta' present more than once"):
        match_names(["A", "B"], ["Meta"], aliases={"A": "Meta", "B": "Meta"})
    path = tmp_path / "aliases.csv"
    path.write_text("Facebook,meta\nFacebook,facebook\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"aliases\.csv: entity 'Facebook' present more than once"):
        match_names(["Facebook"], ["meta"], aliases=path)


def test_an_excluded_entity_gets_no_word():
    report = match_names(["visa", "ibm"], ["visa", "ibm"], exclude=["visa"])
    assert report.words == {"ibm": "ibm"}
    assert report.counts == {"exact": 1, "excluded": 1}
    assert report.collisions == {}
    with pytest.raises(InputError, match="both excluded and given the alias"):
        match_names(["visa"], ["v"], aliases={"visa": "v"}, exclude=["visa"])


def test_duplicate_entities_are_refused_by_name():
    with pytest.raises(InputError, match="'a', 'b', 'c' and 1 more present more than once"):
        match_names(["a", "b", "c", "d", "a ", "b", "c", "d"], ["x"])


def test_no_match_at_all_is_refused_with_near_misses_and_the_levels():
    vocabulary = ["the", "thulia", "erbia", "Thulium", "unrelated"]
    report = match_names(["thulium", "erbium"], vocabulary, level="exact")
    with pytest.raises(InputError, match=r"'thulium' is near the word 'Thulium'.*'thulia'.*match="):
        report.require_matches()
    match_names(["thulium"], vocabulary).require_matches()
    with pytest.raises(InputError, match="No word begins like an entity"):
        match_names(["thulium"], ["zzz"]).require_matches()


def test_an_unknown_level_or_a_bare_string_is_refused():
    with pytest.raises(InputError, match="level='fuzzy'"):
        match_names(["a"], ["a"], level="fuzzy")
    with pytest.raises(InputError, match="one string"):
        match_names(["a"], "abc")
    with pytest.raises(InputError, match="one string"):
        match_names("abc", ["a"])


def test_the_report_is_plain_data_and_plain_text():
    name = "<script>alert('x')</script>" + "x" * 10_000
    report = match_names([name, "a\nb", "\u202eevil"], ["a b"])
    assert json.loads(json.dumps(report.to_dict()))["counts"] == {"loose": 1, "none": 2}
    page = report._repr_html_()
    assert "<script" not in page
    assert "&lt;script" in page
    assert len(str(report).splitlines()) == 5
    assert "\u202e" not in str(report)
    assert max(map(len, str(report).splitlines())) < 120


@given(names, words_of_any_kind, st.dictionaries(st.text(max_size=5), st.text(max_size=5)))
def test_whatever_is_passed_a_report_or_our_own_error_comes_back(entities, vocabulary, aliases):
    try:
        report = match_names(entities, vocabulary, aliases=aliases)
    except VecfillError:
        return
    assert isinstance(report, MatchReport)
    assert len(str(report)) > 0
    assert sum(report.counts.values()) == len(entities)


def test_company_names_of_the_paper_are_found_among_its_own_words(finance):
    table = read_table(finance / "sp500_tokens.csv")
    vocabulary = [word.lower() for word in table["nGram"].to_pylist()]
    report = match_names(table["Token"].to_pylist(), vocabulary)
    assert not report.unmatched
    assert not report.collisions
    assert report.counts["case"] > 200


@given(names, words_of_any_kind, st.integers(1, 5))
def test_the_word_that_is_matched_in_the_end_was_told_when_it_came_first(
    entities, vocabulary, size
):
    search = NameSearch(entities)
    told: dict[str, int] = {}
    for start in range(0, len(vocabulary), size):
        batch = vocabulary[start : start + size]
        for place in search.offer(batch):
            told.setdefault(batch[place], start + place)
    report = search.report()
    assert report == match_names(entities, vocabulary)
    for word in report.words.values():
        assert told[word] == vocabulary.index(word)
