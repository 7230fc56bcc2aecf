"""What the training engine is given: everything resolved, and the checks that a cut must pass."""

from __future__ import annotations

from dataclasses import dataclass, replace

from simcore.catalog.types import Calibration, Chip, LlmArchitecture
from simcore.errors import InputError
from simcore.fabric.collectives import Interconnect
from simcore.parallelism import Parallelism
from simcore.training.spec import Training
from simcore.training.stacks import STACKS, TrainingStack
from simcore.why import Term, leaf

_PATH = "training"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingInputs:
    """A model, chips that are joined, and a spec whose degrees are numbers."""

    arch: LlmArchitecture
    chip: Chip
    calibration: Calibration
    network: Interconnect  # all chips; groups that skip ranks see a part of each domain
    spec: Training
    parallelism: Parallelism

    @property
    def stack(self) -> TrainingStack:
        return STACKS[self.spec.stack]

    @property
    def chip_count(self) -> int:
        return self.parallelism.dp * self.parallelism.rank_chip_count

    @property
    def micro_batch_count(self) -> int:
        """Micro-batches that each replica runs in one step."""
        spec = self.spec
        return spec.global_batch_tokens // (
            spec.sequence_length * spec.micro_batch_size * self.parallelism.dp
        )

    @property
    def expert_split(self) -> int:
        """Chips that share the experts of a layer: the expert group, or the tensor group where there is none."""
        return self.parallelism.ep if self.parallelism.ep > 1 else self.parallelism.tp_ranks

    @property
    def splits_sequence(self) -> bool:
        """Sequence parallelism means something only beside tensor parallelism."""
        return self.spec.sequence_parallel and self.parallelism.tp_ranks > 1

    @property
    def rank_tokens(self) -> Term:
        """Tokens of one micro-batch on one rank of its context group."""
        spec, cp = self.spec, self.parallelism.cp
        length = self.leaf("sequence_length", spec.sequence_length)
        tokens = self.leaf("micro_batch_size", spec.micro_batch_size) * length
        cut = tokens if cp == 1 else tokens / self.leaf("cp", cp, degree=True)
        return cut.named("micro_batch_tokens", "tokens")

    @property
    def scaled_network(self) -> Interconnect:
        """The network at the NIC rate that this stack's collectives were seen to reach."""
        share = self.stack.scaleout_fraction
        if share == 1.0:
            return self.network
        reached = leaf(share, "training_scaleout_fraction", kind="calibrated", source=self.stack.source)
        rate = (self.network.scaleout_bytes_per_s * reached).named("scaleout_bytes_per_s")
        return replace(self.network, scaleout_bytes_per_s=rate)

    def leaf(self, name: str, value: float, *, degree: bool = False) -> Term:
        path = f"{_PATH}.parallelism.{name}" if degree else f"{_PATH}.{name}"
        return leaf(value, name, path=path, dimension="")


def check_inputs(inputs: TrainingInputs, *, owned_chip_count: int | None = None) -> TrainingInputs:
    """The inputs, or an InputError that names the degree that cannot be."""
    _check_batch(inputs)
    _check_model(inputs)
    if owned_chip_count is not None and inputs.chip_count > owned_chip_count:
        raise InputError.at(
            f"{_PATH}.parallelism",
            "training.too_few_chips",
            "tp × pp × cp × dp = {needed:,} chips and {owned:,} are owned; own as many, or lower dp to {allowed}",
            needed=inputs.chip_count,
            owned=owned_chip_count,
            allowed=max(1, owned_chip_count // inputs.parallelism.rank_chip_count),
        )
    return inputs


def _check_batch(inputs: TrainingInputs) -> None:
    spec, parallelism = inputs.spec, inputs.parallelism
    each = spec.sequence_length * spec.micro_batch_size * parallelism.dp
    if spec.global_batch_tokens % each:
        lower = spec.global_batch_tokens // each * each
        raise InputError.at(
            f"{_PATH}.global_batch_tokens",
            "training.batch_does_not_divide",
            "got {got:,}, which is no multiple of sequence_length × micro_batch_size × dp = {each:,}; use {allowed}",
            got=spec.global_batch_tokens,
            each=each,
            allowed=" or ".join(f"{near:,}" for near in (lower, lower + each) if near),
        )
    if spec.sequence_length % parallelism.cp:
        raise InputError.at(
            f"{_PATH}.parallelism.cp",
            "training.sequence_does_not_divide",
            "got {got}, which does not divide the {length:,} tokens of a sequence; use a divisor of it",
            got=parallelism.cp,
            length=spec.sequence_length,
        )


def _check_model(inputs: TrainingInputs) -> None:
    arch, spec, parallelism = inputs.arch, inputs.spec, inputs.parallelism
    if arch.heads % parallelism.tp_ranks:
        raise InputError.at(
            f"{_PATH}.parallelism.tp",
            "tp.does_not_divide",
            "got {got}, which does not divide the {heads} attention heads of {model}; use one of {allowed}",
            got=parallelism.tp_ranks,
            heads=arch.heads,
            model=arch.name,
            allowed=", ".join(str(d) for d in range(1, min(arch.heads, 64) + 1) if arch.heads % d == 0),
        )
    # embedding and head may stand for a layer each, as where stages are balanced by hand
    chunks, most = parallelism.pp * spec.virtual_stages, arch.layers + 2
    if chunks > most or parallelism.pp > arch.layers:
        raise InputError.at(
            f"{_PATH}.virtual_stages" if spec.virtual_stages > 1 else f"{_PATH}.parallelism.pp",
            "training.too_many_stages",
            "pp × virtual_stages = {got} pieces for {layers} layers; use at most {layers}",
            got=chunks,
            layers=arch.layers,
        )
    if spec.virtual_stages > 1 and parallelism.pp == 1:
        raise InputError.at(
            f"{_PATH}.virtual_stages",
            "training.no_pipeline",
            "got {got} virtual stages without a pipeline; set parallelism.pp above 1 or virtual_stages to 1",
            got=spec.virtual_stages,
        )
    if parallelism.ep > 1:
        _check_experts(arch, parallelism)


def _check_experts(arch: LlmArchitecture, parallelism: Parallelism) -> None:
    path = f"{_PATH}.parallelism.ep"
    if not arch.is_moe:
        raise InputError.at(
            path,
            "ep.no_experts",
            "got {got}, and {model} has no experts to share out; use 1",
            got=parallelism.ep,
            model=arch.name,
        )
    ranks = parallelism.tp_ranks * parallelism.cp * parallelism.dp
    if arch.experts % parallelism.ep or ranks % parallelism.ep:
        raise InputError.at(
            path,
            "training.ep_does_not_divide",
            "got {got}; it must divide the {experts} experts of {model} and tp × cp × dp = {ranks:,}",
            got=parallelism.ep,
            experts=arch.experts,
            model=arch.name,
            ranks=ranks,
        )
