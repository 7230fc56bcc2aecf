"""Measured rows from a browser, fitted within one request: bounded, and the rows are not kept.

Rows are CSV as `simcore.compute.fit_rows` and `simcore.validation.step_rows` read it, or what nccl-tests
printed. A mapping of column names makes other tools' files readable without an edit.
"""

from __future__ import annotations

import csv
import io
import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Final

from django.core import signing

from explorer.models.calibration import Fit
from simcore.catalog import default_catalog
from simcore.errors import InputError
from simcore.measurements import as_csv, read_nccl_tests
from simcore.validation.calibrate import Outcome, calibrate
from simcore.validation.calibration_file import calibration_text, outcome_dict
from simcore.validation.own_fit import own, row_count
from simcore.validation.step_rows import holds_steps

MAX_BYTES: Final = 500_000
MAX_ROWS: Final = 2_000
MAX_STEP_ROWS: Final = 200  # rows of served models build a table each
MAX_AGE_S: Final = 86_400  # how long a fit waits to be kept
_SALT: Final = "explorer.calibration"


def fit(raw: bytes, chip: str, *, columns: str = "", fitted_on: str) -> Outcome:
    """The calibration of a chip with these rows in it."""
    catalog = default_catalog()
    found = catalog.chip(chip, path="chip")
    text = renamed(_csv_text(raw), mapping(columns))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        path.write_text(text, encoding="utf-8")
        try:
            outcome = calibrate([path], found, catalog, fitted_on=fitted_on)
        except KeyError as error:
            raise InputError.at(
                "rows",
                "calibrate.column_missing",
                "column {column} is missing; add it, or name yours in the mapping",
                column=str(error.args[0]),
            ) from None
        except (ValueError, TypeError, ArithmeticError, IndexError, AttributeError, csv.Error):
            raise InputError.at(
                "rows",
                "calibrate.no_fit",
                "no fit comes out of these rows: too few of one kind, or a number that cannot be read; give at "
                "least a dozen rows of one operator",
            ) from None
    if not outcome.regimes:
        raise InputError.at(
            "rows",
            "calibrate.none_used",
            "no row could be used; left out: {reasons}",
            reasons="; ".join(f"{count} × {reason}" for reason, count in outcome.rejected.items()),
        )
    return outcome


def fit_of(outcome: Outcome, chip: str, *, by: str) -> Fit:
    """The fit as its owner's, with its report: what is left of the rows."""
    catalog = default_catalog()
    found = catalog.chip(chip, path="chip")
    text = calibration_text(
        own(
            outcome,
            catalog.calibration_for(found),
            name=f"{found.name}, {by}".rstrip(", "),
            chip=found,
            by=by,
        )
    )
    return Fit(chip=chip, text=text, row_count=row_count(outcome), report=outcome_dict(outcome))


def sealed(fit: Fit) -> str:
    """The fit for a form's hidden field: whoever posts it back cannot have changed it."""
    return signing.dumps(asdict(fit), salt=_SALT, compress=True)


def unsealed(text: str) -> Fit:
    """The fit that this site sealed within a day."""
    try:
        return Fit(**signing.loads(text, salt=_SALT, max_age=MAX_AGE_S))
    except signing.BadSignature:
        raise InputError.at(
            "", "calibrate.expired", "this fit is no longer at hand; fit the rows again, then keep it"
        ) from None


def mapping(text: str) -> dict[str, str]:
    """`measured_us = time (us)`, one a line: our name of a column, and the file's."""
    found = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        ours, equals, theirs = line.partition("=")
        if not equals or not ours.strip() or not theirs.strip():
            raise InputError.at(
                "columns",
                "calibrate.mapping",
                "line {number} of the mapping reads {got!r}; write our name = your name, such as measured_us = time",
                number=number,
                got=line.strip()[:80],
            )
        found[theirs.strip()] = ours.strip()
    return found


def renamed(text: str, names: Mapping[str, str]) -> str:
    """The CSV with its header in our names. Says where it is empty or has too many rows."""
    lines = text.splitlines()
    head = next(csv.reader(lines[:1]), [])
    rows = len(lines) - 1
    if not head or rows < 1:
        raise InputError.at(
            "rows",
            "calibrate.empty",
            "there are no rows; paste a header line and the measurements below it",
        )
    unknown = sorted(set(names) - set(head))
    if unknown:
        raise InputError.at(
            "columns",
            "calibrate.mapping_unknown",
            "the file has no column {got}; it has {allowed}",
            got=", ".join(unknown)[:120],
            allowed=", ".join(head)[:300],
        )
    head = [names.get(name, name) for name in head]
    limit = MAX_STEP_ROWS if holds_steps(head) else MAX_ROWS
    if rows > limit:
        raise InputError.at(
            "rows",
            "calibrate.too_many",
            "{got:,} rows, and this page fits at most {allowed:,}; send fewer, or fit all of them with `trimtab "
            "calibrate`",
            got=rows,
            allowed=limit,
        )
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(head)
    return out.getvalue() + "\n".join(lines[1:]) + "\n"


def _csv_text(raw: bytes) -> str:
    if len(raw) > MAX_BYTES:
        raise InputError.at(
            "rows",
            "calibrate.too_large",
            "the rows are larger than {allowed:,} bytes; send fewer, or fit all of them with `trimtab calibrate`",
            allowed=MAX_BYTES,
        )
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError.at(
            "rows", "calibrate.encoding", "the rows are not text in UTF-8; export them as CSV"
        ) from None
    if text.lstrip().startswith("#") or "nccl-tests" in text[:2000]:
        return as_csv(read_nccl_tests(raw, path="rows"))
    return text.strip("\n\r ").replace("\0", "")
