"""Every sentence that a page can show has a translation.

Sentences are collected where they are written: `_("…")` in explorer, the tags of the templates, the glossary,
the stories, and the templates of the core's messages. `msgids()` is also what `python -m
tests.explorer.test_locale` prints as an empty catalog of what is missing.
"""

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polib
import pytest
from django.utils.translation.template import templatize

from explorer.forms import outline
from simcore import term_names
from simcore.catalog import default_catalog
from simcore.glossary import _RESOURCES, ENTRIES
from simcore.scenario.overrides import union_members
from simcore.scenario.stories import stories

ROOT = Path(__file__).resolve().parent.parent.parent
CATALOG = ROOT / "explorer" / "locale" / "zh_Hans" / "LC_MESSAGES" / "django.po"
CATALOG_PATHS = {
    "hardware.chip",
    "hardware.server",
    "hardware.calibration",
    "model.name",
    "topology.price_book",
    "economics.price_book",
}
GETTEXT = {"_", "gettext", "gettext_lazy", "gettext_noop", "ngettext"}
ERRORS = {"InputError", "InfeasibleError"}
# What only the author of a data file, or the reader of a terminal, is told.
UNSEEN = (
    "explorer/migrations",
    "explorer/management",
    "explorer/embedded",
    "simcore/catalog/loader",
    "simcore/cli",
    "simcore/bench",
    "simcore/validation",
)


def msgids() -> set[str]:
    """Everything that the product can say."""
    found = set(_in_python(ROOT / "explorer", _gettext_calls)) | set(_in_python(ROOT / "simcore", _messages))
    for path in sorted((ROOT / "templates").rglob("*.html")):
        found |= set(_in_template(path))
    for entry in ENTRIES.values():
        found |= {entry.label, entry.help}
    found |= set(_RESOURCES.values()) | term_names.messages()
    found |= {book.name for book in default_catalog().price_books.values()}
    for story in stories().values():
        found |= {story.title, story.finding, *story.look_at}
    found |= set(_choices())
    return {text for text in found if re.search(r"[A-Za-z]{2}|^[:;] $", text)}


def _choices() -> Iterator[str]:
    """What a select of the form offers, but for names of the catalog and of number formats."""
    documents: list[dict[str, Any]] = [{"name": "x"}, {"name": "x", "workload": {"kind": "training"}}]
    documents.append({"name": "x", "reliability": {"life": {"kind": "queue"}}})
    documents += [{"name": "x", "topology": {"kind": kind.default}} for kind in _kinds("topology")]
    for document in documents:
        for field in outline(document).fields:
            if field.path not in CATALOG_PATHS:
                yield from (
                    value.replace("_", " ")
                    for value, _ in field.choices
                    if not re.search(r"\d|true|false", value)
                )


def _kinds(section: str) -> list[Any]:
    return [model.model_fields["kind"] for model in union_members(section) if "kind" in model.model_fields]


def _in_python(folder: Path, collect: Callable[[ast.Call], Iterator[str]]) -> Iterator[str]:
    for path in sorted(folder.rglob("*.py")):
        if not path.relative_to(ROOT).as_posix().startswith(UNSEEN):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call):
                    yield from collect(node)


def _gettext_calls(call: ast.Call) -> Iterator[str]:
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    if name in GETTEXT:
        yield from (text for argument in call.args if (text := _text(argument)))
    yield from _messages(call)


def _messages(call: ast.Call) -> Iterator[str]:
    """The template of a Message and the source of a leaf, by keyword, and what `InputError.at` says, by place."""
    texts = [_text(keyword.value) for keyword in call.keywords if keyword.arg in ("template", "source")]
    if isinstance(call.func, ast.Attribute) and call.func.attr == "at" and len(call.args) > 2:
        of = call.func.value
        if isinstance(of, ast.Name) and of.id in ERRORS:
            texts.append(_text(call.args[2]))
    for text in texts:
        if re.search(r"[A-Za-z]{2}", re.sub(r"\{[^}]*\}", "", text)):
            yield text


def _text(node: ast.expr) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _in_template(path: Path) -> Iterator[str]:
    """Django turns a template into pseudo-Python for its own extraction; the calls in it are the sentences."""
    for line in templatize(path.read_text()).splitlines():
        for call in re.findall(r"\bn?gettext\(u?(.+?)\)(?= |$)", line):
            for text in re.findall(r"""u?("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')""", call):
                yield ast.literal_eval(text)


@pytest.fixture(scope="module")
def catalog() -> polib.POFile:
    return polib.pofile(str(CATALOG))


def test_it_translates_every_sentence(catalog: polib.POFile) -> None:
    known = {entry.msgid for entry in catalog if entry.translated()}
    known |= {entry.msgid_plural for entry in catalog if entry.msgid_plural}
    missing = sorted(msgids() - known)
    assert not missing, f"{len(missing)} sentences have no translation: {missing[:10]}"


def test_it_keeps_no_sentence_that_nobody_says(catalog: polib.POFile) -> None:
    said = msgids()
    stale = sorted(entry.msgid for entry in catalog if entry.msgid not in said and not entry.obsolete)
    assert not stale, f"{len(stale)} translations are never shown: {stale[:10]}"


def test_it_repeats_each_placeholder(catalog: polib.POFile) -> None:
    def names(text: str) -> set[str]:
        return set(re.findall(r"%\((\w+)\)|\{(\w+)", text))  # type: ignore[arg-type]

    wrong = [e.msgid for e in catalog if e.msgstr and names(e.msgid) != names(e.msgstr)]
    assert not wrong


if __name__ == "__main__":
    import os

    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "explorer.settings")
    django.setup()
    known = {entry.msgid for entry in polib.pofile(str(CATALOG))} if CATALOG.exists() else set()
    for text in sorted(msgids() - known):
        print(repr(text))  # noqa: T201
