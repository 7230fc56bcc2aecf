"""Three-layer attribution: which layer of a change earned the gain, when several changed at once.

What differs between two scenarios is grouped: *physical* (hardware, topology, reliability), *data* (KV cache,
attention, number formats), *task* (scheduler, router, parallelism, replicas and all other knobs). What differs in
model, workload, economics and seed is *demand*: it is set on both sides first, and its own effect stands apart. Then
every subset S of the layers that changed is run, with the worth v(S) of `yardsticks`:

    whole = v(all) / v(none)
    earned by i = Π over S without i of (v(S + i) / v(S)) ^ (|S|! (n − |S| − 1)! / n!)   (Shapley 1953, in logs)
    alone i = v(i) / v(none)          together T = Π over S ⊆ T of v(S) ^ (−1)^(|T| − |S|)   (Harsanyi 1963)

so what the layers earned multiplies to the whole, and so do all `alone` and `together`. A layer that changes nothing
earns 1. A subset that cannot be built is worth as little as the worst that can, and names the layers that block it:
those whose change makes it possible. Where one of the two ends cannot be built there is no ratio, only the reason.

Limits: layers are groups of inputs, not of causes (chips that are added count as physical, the replicas on them as
task); one seed for all runs, so a difference is of design, not of luck.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations
from math import comb
from typing import Any, Final, Literal, TypeAlias

from simcore import glossary
from simcore.analysis.compare import InputRow, input_rows
from simcore.analysis.yardsticks import Done, Metrics, Yardstick, yardstick
from simcore.catalog import default_catalog
from simcore.errors import Message, TrimtabError
from simcore.plan import Plan, plan
from simcore.scenario import Scenario
from simcore.simulate import simulate
from simcore.why import Term, constant, power, product

Layer = Literal["physical", "data", "task"]
Subset: TypeAlias = frozenset[Layer]
Planner: TypeAlias = Callable[[Mapping[str, Any]], Plan]
Recall: TypeAlias = Callable[[str], Metrics | None]
Worth: TypeAlias = Mapping[Subset, Term]
LAYERS: Final[tuple[Layer, ...]] = ("physical", "data", "task")
_PHYSICAL: Final = ("hardware", "topology", "reliability")
_DEMAND: Final = ("model", "workload", "economics", "run")
_DATA: Final[Mapping[str, tuple[str, ...]]] = {
    "serving": ("kv", "attention", "weights_dtype", "kv_cache_memory_bytes", "num_gpu_blocks_override"),
    "training": ("dtype",),
}
_ENGINE: Final[Mapping[str, str]] = {"serving": "serving", "training": "training"}  # section by kind of work


@dataclass(frozen=True, slots=True, kw_only=True)
class Combination:
    """One subset of the changed layers, as it came out."""

    layers: tuple[Layer, ...]
    worth: Term | None  # None: cannot be built
    error: Message | None = None
    blocked_by: tuple[Layer, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What one layer did: by its change alone, and in the mean over all orders of changing them."""

    layer: Layer
    alone: Term
    earned: Term


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribution:
    """What differs, what every subset of it came to, and which layer earned what; ratios multiply."""

    yardstick: Yardstick
    changes: Mapping[str, tuple[InputRow, ...]]  # by layer, and of the demand
    combinations: tuple[Combination, ...]
    whole: Term | None = None  # None where an end cannot be built
    shares: tuple[Share, ...] = ()
    together: Mapping[tuple[Layer, ...], Term] = field(default_factory=dict)  # beyond what each brings alone
    demand: Term | None = None  # what the demand alone does to the first; None where it does not differ

    @property
    def changed(self) -> tuple[Layer, ...]:
        return tuple(layer for layer in LAYERS if self.changes[layer])

    @property
    def beyond(self) -> float:
        """All that exists only because layers changed together, as one ratio; 1 where each stands for itself."""
        ratio = 1.0
        for term in self.together.values():
            ratio *= term.value
        return ratio

    def as_dict(self) -> dict[str, Any]:
        return {
            "measure": self.yardstick.slug,
            "label": self.yardstick.said.text,
            "whole_ratio": None if self.whole is None else self.whole.value,
            "beyond_ratio": self.beyond,
            "demand_ratio": None if self.demand is None else self.demand.value,
            "changes": {group: [row.path for row in rows] for group, rows in self.changes.items()},
            "layers": [
                {"layer": one.layer, "alone_ratio": one.alone.value, "earned_ratio": one.earned.value}
                for one in self.shares
            ],
            "together": [
                {"layers": list(layers), "ratio": term.value} for layers, term in self.together.items()
            ],
            "combinations": [
                {
                    "layers": list(one.layers),
                    "worth": None if one.worth is None else one.worth.value,
                    "error": None if one.error is None else one.error.as_dict(),
                    "blocked_by": list(one.blocked_by),
                }
                for one in self.combinations
            ],
        }


def attribution(
    before: Scenario,
    after: Scenario,
    *,
    planner: Planner | None = None,
    recall: Recall | None = None,
) -> Attribution:
    """Which layer earned what on the way from `before` to `after`, by one run of each subset of the changed layers.

    `planner` plans a document, with other catalogs or traces than those at hand; `recall` may know the metrics of a
    plan's digest, which is then not run.
    """
    changes = changes_by_layer(before, after)
    subsets = _subsets([layer for layer in LAYERS if changes[layer]])
    means = _Means(planner=planner or _planned, recall=recall)
    ran = {subset: means.run(mixed(before, after, subset)) for subset in subsets}
    judged = yardstick(after.workload.kind, [done for done in ran.values() if isinstance(done, Done)])
    own: Done | Message | None = None
    if changes["demand"] and before.workload.kind == after.workload.kind:
        own = means.run(before.model_dump(mode="json"))
    return _attributed(judged, changes, _combinations(judged, ran), own)


def changes_by_layer(before: Scenario, after: Scenario) -> dict[str, tuple[InputRow, ...]]:
    """Inputs that differ, by layer and `demand`; those of engines that do not run are left out."""
    rows, _ = input_rows([before.model_dump(mode="json"), after.model_dump(mode="json")])
    engine = _ENGINE.get(after.workload.kind, "")
    found: dict[str, list[InputRow]] = {name: [] for name in (*LAYERS, "demand")}
    for row in rows:
        section = row.path.split(".")[0]
        if section in _ENGINE and section != engine:
            continue
        found[layer_of(row.path)].append(row)
    return {name: tuple(rows) for name, rows in found.items()}


def layer_of(path: str) -> Layer | Literal["demand"]:
    """The layer of an input.

    >>> layer_of("serving.kv.block_size"), layer_of("serving.router.kind"), layer_of("model.name")
    ('data', 'task', 'demand')
    """
    section, _, rest = path.partition(".")
    if section in _PHYSICAL:
        return "physical"
    if section in _DEMAND:
        return "demand"
    return "data" if rest.split(".")[0] in _DATA.get(section, ()) else "task"


def mixed(before: Scenario, after: Scenario, layers: Subset) -> dict[str, Any]:
    """The first scenario under the demand of the second, with some layers as in the second, as a document."""
    document, other = before.model_dump(mode="json"), after.model_dump(mode="json")
    for section in (*_DEMAND, *(_PHYSICAL if "physical" in layers else ())):
        document[section] = other[section]
    for section, data in _DATA.items():
        for key in document[section]:
            if ("data" if key in data else "task") in layers:
                document[section][key] = other[section][key]
    return document


@dataclass(frozen=True, slots=True, kw_only=True)
class _Means:
    """How scenarios are planned, and results that are known."""

    planner: Planner
    recall: Recall | None

    def run(self, document: Mapping[str, Any]) -> Done | Message:
        """What a scenario comes to; one that is refused or does not fit is an answer too."""
        try:
            planned = self.planner(document)
            known = self.recall(planned.digest) if self.recall else None
            metrics = simulate(planned).metrics if known is None else known
        except TrimtabError as error:
            return error.message
        return Done(metrics=metrics, digest=planned.digest, chip_count=planned.fabric.chip_count)


def _planned(document: Mapping[str, Any]) -> Plan:
    return plan(Scenario.parse(document), default_catalog())


def _subsets(layers: Sequence[Layer]) -> list[Subset]:
    """All subsets, the empty one first, the whole last."""
    return [
        frozenset(some)
        for some in chain.from_iterable(combinations(layers, size) for size in range(len(layers) + 1))
    ]


def _combinations(judged: Yardstick, ran: Mapping[Subset, Done | Message]) -> dict[Subset, Combination]:
    return {
        subset: Combination(
            layers=in_order(subset),
            worth=judged.worth(done) if isinstance(done, Done) else None,
            error=done if isinstance(done, Message) else None,
            blocked_by=() if isinstance(done, Done) else _blockers(subset, ran),
        )
        for subset, done in ran.items()
    }


def in_order(layers: Iterable[Layer]) -> tuple[Layer, ...]:
    return tuple(layer for layer in LAYERS if layer in set(layers))


def _blockers(subset: Subset, ran: Mapping[Subset, Done | Message]) -> tuple[Layer, ...]:
    """The layers whose change, on top of these, makes it possible: one of them, else all that are left."""
    left = in_order({layer for some in ran for layer in some if layer not in subset})
    single = tuple(layer for layer in left if isinstance(ran[subset | {layer}], Done))
    return single or left


def _attributed(
    judged: Yardstick,
    changes: Mapping[str, tuple[InputRow, ...]],
    found: Mapping[Subset, Combination],
    own: Done | Message | None,
) -> Attribution:
    changed = in_order({layer for subset in found for layer in subset})
    first, last = found[frozenset()].worth, found[frozenset(changed)].worth
    common: dict[str, Any] = {"yardstick": judged, "changes": changes, "combinations": tuple(found.values())}
    if isinstance(own, Done) and first is not None:
        common["demand"] = (first / judged.worth(own)).named("demand_ratio")
    if first is None or last is None:
        return Attribution(**common)
    worth = worths({subset: one.worth for subset, one in found.items()})
    return Attribution(
        whole=(last / first).named("whole_ratio"),
        shares=tuple(shares(changed, worth)),
        together=together(changed, worth),
        **common,
    )


def worths(found: Mapping[Subset, Term | None]) -> Worth:
    """The worth of each subset; one that cannot be built is worth as little as the worst that can."""
    least = min((worth for worth in found.values() if worth is not None), key=float)
    return {subset: least if worth is None else worth for subset, worth in found.items()}


def shares(layers: Sequence[Layer], worth: Worth) -> list[Share]:
    """What each layer brings alone, and what it earned in the mean over all orders (Shapley)."""
    return [
        Share(
            layer=layer,
            alone=(worth[frozenset({layer})] / worth[frozenset()]).named("alone_ratio"),
            earned=_earned(layer, layers, worth),
        )
        for layer in layers
    ]


def _earned(layer: Layer, layers: Sequence[Layer], worth: Worth) -> Term:
    others = [one for one in layers if one != layer]
    steps = [
        power(
            (worth[some | {layer}] / worth[some]).named("step_ratio"),
            constant(1 / (len(layers) * comb(len(others), len(some)))),
        )
        for some in _subsets(others)
    ]
    return product(*steps).named("earned_ratio")


def together(layers: Sequence[Layer], worth: Worth) -> dict[tuple[Layer, ...], Term]:
    """For each two or three layers, the ratio that none of its parts accounts for (1: they do not meet)."""
    found: dict[tuple[Layer, ...], Term] = {}
    for subset in _subsets(layers):
        names = in_order(subset)
        if len(names) < 2:
            continue
        signed: dict[int, list[Term]] = {0: [], 1: []}
        for some in _subsets(names):
            signed[(len(names) - len(some)) % 2].append(worth[some])
        found[names] = (product(*signed[0]) / product(*signed[1])).named("together_ratio")
    return found


def what_changed(rows: Sequence[InputRow], *, most: int = 3) -> str:
    """The labels of what changed, in one line; of a part of another kind only the part."""
    parts = [row.path.removesuffix("kind") for row in rows if row.path.endswith(".kind")]
    told = [row for row in rows if row.path.endswith(".kind") or not row.path.startswith(tuple(parts))]
    labels = list(dict.fromkeys(glossary.label(row.path) for row in told))
    return ", ".join([*labels[:most], *(["…"] if len(labels) > most else [])])
