"""A remembered function is asked once for equal values and for the very same unhashable object."""

from dataclasses import dataclass

from simcore.remembered import remembered


@dataclass(frozen=True)
class Entry:
    figures: dict[str, float]


def test_values_are_told_apart_by_value_and_entries_by_identity() -> None:
    asked: list[tuple[float, float]] = []

    @remembered
    def weight(entry: Entry, *, factor: float) -> float:
        asked.append((entry.figures["kg"], factor))
        return entry.figures["kg"] * factor

    one, twin = Entry({"kg": 2.0}), Entry({"kg": 3.0})
    assert [weight(one, factor=2.0), weight(one, factor=2.0), weight(one, factor=3.0)] == [4.0, 4.0, 6.0]
    assert weight(twin, factor=2.0) == 6.0
    assert asked == [(2.0, 2.0), (2.0, 3.0), (3.0, 2.0)]


def test_an_entry_that_is_gone_leaves_no_answer_for_a_new_one_at_its_place() -> None:
    @remembered
    def weight(entry: Entry) -> float:
        return entry.figures["kg"]

    assert [weight(Entry({"kg": float(number)})) for number in range(1000)] == list(range(1000))
