"""Translations compile without GNU gettext, and a catalog that cannot be trusted is refused."""

import gettext
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from pytest_django.fixtures import Settings

HEADER = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n'


def catalog(settings: Settings, folder: Path, entries: str, *, language: str = "zh_Hans") -> Path:
    path = folder / language / "LC_MESSAGES" / "django.po"
    path.parent.mkdir(parents=True)
    path.write_text(HEADER + entries)
    settings.LOCALE_PATHS = [folder]
    return path


def test_a_catalog_compiles_to_what_gettext_reads(settings: Settings, tmp_path: Path) -> None:
    path = catalog(settings, tmp_path, 'msgid "Fork %(name)s"\nmsgstr "复制 %(name)s"\n')
    call_command("compilemessages", check=True)
    assert not path.with_suffix(".mo").exists()
    call_command("compilemessages")
    with path.with_suffix(".mo").open("rb") as file:
        assert gettext.GNUTranslations(file).gettext("Fork %(name)s") == "复制 %(name)s"


@pytest.mark.parametrize(
    ("entries", "fault"),
    [
        ('#, fuzzy\nmsgid "Fork"\nmsgstr "复制"\n', "marked fuzzy"),
        ('msgid "Fork"\nmsgstr ""\n', "has no translation"),
        ('msgid "Fork %(name)s"\nmsgstr "复制"\n', "placeholders"),
        ('msgid "{got} is odd"\nmsgstr "{gat} 是奇数"\n', "placeholders"),
        ('msgid "Fork"\nmsgstr "复制"\n\nmsgid "Fork"\nmsgstr "复制"\n', "already exists"),
        ("Fork\n", "yntax error"),
    ],
)
def test_a_fault_is_named(settings: Settings, tmp_path: Path, entries: str, fault: str) -> None:
    catalog(settings, tmp_path, entries)
    with pytest.raises(CommandError, match=fault):
        call_command("compilemessages", check=True)


def test_the_language_of_the_originals_needs_no_translation(settings: Settings, tmp_path: Path) -> None:
    catalog(settings, tmp_path, 'msgid "Fork"\nmsgstr ""\n', language="en")
    call_command("compilemessages", check=True)


def test_a_plural_may_leave_the_number_out_only_where_the_original_does(
    settings: Settings, tmp_path: Path
) -> None:
    entries = 'msgid "one run"\nmsgid_plural "%(count)s runs"\nmsgstr[0] "%(count)s 次运行"\n'
    catalog(settings, tmp_path, entries)
    call_command("compilemessages", check=True)
