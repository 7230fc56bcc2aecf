"""`manage.py compilemessages`, without GNU gettext: .po files become .mo files by polib.

Only .po files are kept in git; `manage.py up` and `make test` compile those that are newer than their .mo.
With --check nothing is written, and a catalog that cannot be trusted fails: a broken file, an entry marked
fuzzy or left without translation, or a translation whose placeholders differ from the original's.
"""

import re
from pathlib import Path
from typing import Any

import polib
from django.conf import settings
from django.core.management import CommandError
from django.core.management.base import BaseCommand, CommandParser

PLACEHOLDER = re.compile(r"%\(\w+\)[a-z]|%[sd]|\{\w*\}")


class Command(BaseCommand):
    """Takes the place of Django's own command of this name, which calls `msgfmt`."""

    help = "Compile the .po files under LOCALE_PATHS, or only --check them."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        """One flag."""
        parser.add_argument("--check", action="store_true", help="write nothing; fail on any fault")

    def handle(self, *args: Any, **options: Any) -> None:
        """Every catalog of every language."""
        faults: list[str] = []
        for folder in settings.LOCALE_PATHS:
            for path in sorted(Path(folder).glob("*/LC_MESSAGES/*.po")):
                if not options["check"] and is_compiled(path):
                    continue
                try:
                    catalog = polib.pofile(str(path), check_for_duplicates=options["check"])
                except (OSError, ValueError) as error:
                    faults.append(str(error))
                    continue
                if options["check"]:
                    faults += faults_of(catalog, path)
                else:
                    catalog.save_as_mofile(str(path.with_suffix(".mo")))
        if faults:
            raise CommandError("\n".join(faults))


def is_compiled(path: Path) -> bool:
    """Whether the .mo file is as new as its .po file."""
    compiled = path.with_suffix(".mo")
    return compiled.exists() and compiled.stat().st_mtime >= path.stat().st_mtime


def faults_of(catalog: polib.POFile, path: Path) -> list[str]:
    """One line for each entry that should not be shipped."""
    faults = []
    language = path.parent.parent.name
    for entry in catalog:
        if entry.obsolete:
            continue
        plural = entry.msgid_plural
        texts = list(entry.msgstr_plural.values()) if plural else [entry.msgstr]
        where = f"{language}/{path.name}:{entry.linenum}: {entry.msgid!r}"
        if entry.fuzzy:
            faults.append(f"{where} is marked fuzzy; check the translation and remove the mark")
        elif not any(texts) and language == settings.LANGUAGE_CODE:
            continue  # the original is the translation
        elif not all(texts):
            faults.append(f"{where} has no translation")
        elif any(placeholders(text) != placeholders(plural or entry.msgid) for text in texts):
            faults.append(f"{where} and its translation differ in their placeholders")
    return faults


def placeholders(text: str) -> set[str]:
    """`%(name)s`, `%s`, `{name}`."""
    return set(PLACEHOLDER.findall(text))
