"""Documents are read safely: bounded, without bombs, with line and column."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simcore.errors import InputError
from simcore.scenario.documents import MAX_DOCUMENT_BYTES, dump_document, load_document

BOMB = "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\nname: bomb\n"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (BOMB, "document.alias"),
        ("name: x\n" + " " * MAX_DOCUMENT_BYTES, "document.too_large"),
        ("[" * 5000, "document.too_deep"),
        ('{"a":' * 3000, "document.too_deep"),
        ("- just\n- a list", "document.not_mapping"),
        ("name: [unclosed", "document.unreadable"),
        ("name: a\nname: b", "document.unreadable"),
        ("!!python/object/apply:os.system ['true']", "document.unreadable"),
        ("name: !!bool x", "document.unreadable"),
        ("? [name]\n: a", "document.unreadable"),
        (b"\xff\xfe\x00", "document.not_text"),
        ("", "document.not_mapping"),
    ],
)
def test_bad_documents_get_one_clear_message(text, code):
    with pytest.raises(InputError) as caught:
        load_document(text)
    assert caught.value.message.code == code


def test_an_unreadable_document_names_line_and_column():
    with pytest.raises(InputError, match="line 2, column 12: mapping values are not allowed"):
        load_document("name: x\nhardware: a: b")


def test_yaml_and_json_give_the_same():
    assert load_document('{"name": "x", "run": {"seed": 3}}') == load_document("name: x\nrun: {seed: 3}")


def test_dates_stay_text():
    assert load_document("name: 2026-11-30")["name"] == "2026-11-30"


# What people type; the C1 controls and Unicode's own line breaks are folded to blanks by YAML itself.
PRINTABLE = st.text(
    st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"], include_characters="\n"), max_size=20
)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), PRINTABLE),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(PRINTABLE, inner, max_size=3)),
    max_leaves=8,
)


@given(st.dictionaries(PRINTABLE, VALUES, max_size=5))
def test_what_is_written_reads_back(document):
    assert load_document(dump_document(document)) == document


@pytest.mark.parametrize(
    ("text", "value"), [("1e12", 1e12), ("15.6e12", 15.6e12), ("-1.5E-3", -1.5e-3), (".5e3", 500.0), ("8", 8)]
)
def test_scientific_notation_is_a_number_as_in_json(text, value):
    assert load_document(f"n: {text}") == {"n": value}


@pytest.mark.parametrize("text", ["'1e5'", "1e5 tokens", "e5", "3.35e12 B/s"])
def test_other_texts_stay_texts(text):
    assert load_document(f"n: {text}") == {"n": text.strip("'")}


def test_a_text_that_looks_like_a_number_is_quoted_when_written():
    assert load_document(dump_document({"name": "1e5"})) == {"name": "1e5"}
