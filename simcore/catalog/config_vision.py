"""Parameters of vision and audio towers: counted, held on the first stage, no work for text tokens.

A tower is counted as transformer layers, `4h² + m·h·width` each (m = 3 where the tower's MLP is gated),
its patch embedding, its position table and the merger or projector into the language model. What files of
a class leave out is its default. Limits: an estimate, good to a few per cent of the tower; a tower whose
shape is not understood is named and left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from simcore.catalog.config_reader import Config, Reader
from simcore.errors import InputError, Message

_TOWERS: Final = ("vision_config", "audio_config", "vision_tower_config", "speech_config")
# towers with gate, up and down matrices
_SMALL_TOWER: Final = {"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12}
_DEFAULTS: Final[Mapping[str, Mapping[str, int]]] = {
    "pixtral": {"hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24, "patch_size": 16},
    "siglip_vision_model": _SMALL_TOWER,
    "clip_vision_model": _SMALL_TOWER,
}
_MOST_RATIO: Final = 100
_INNER: Final = ("intermediate_size", "vt_intermediate_size", "encoder_ffn_dim")
_GATED: Final = ("qwen2_5_vl", "pixtral", "mistral", "glm", "deepseek_v41", "internlm", "moonvit_gated")


def tower_parameters(config: Config, hidden: int, path: str, messages: list[Message]) -> int:
    """All towers beside a language model of this hidden size."""
    found = [key for key in _TOWERS if isinstance(config.get(key), Mapping)]
    return sum(_tower(config, key, hidden, f"{path}.{key}", messages) for key in found)


def _tower(around: Config, key: str, hidden: int, path: str, messages: list[Message]) -> int:
    r = Reader(around[key], path)
    r.fill(_DEFAULTS.get(str(r.config.get("model_type")), {}))
    label = "audio" if "audio" in key or "speech" in key else "vision"
    try:
        width = r.number("embed_dim", "hidden_size", "vt_hidden_size", "d_model", "width")
        layers = r.number("num_hidden_layers", "depth", "vt_num_hidden_layers", "encoder_layers", "layers")
        layers += r.count("num_global_layers")
        attended = r.number("qkv_hidden_size", default=width)
        inner = r.count(*_INNER) or _inner(r, width)
        if _is_glm(r):
            inner = r.number("out_hidden_size", default=inner)
        count = layers * (4 * width * attended + (3 if _is_gated(r) else 2) * width * inner)
        count += _embedding(r, width) + _projector(r, width, hidden, Reader(around, path.rpartition(".")[0]))
    except InputError:
        messages.append(
            Message(
                code="config.vision_uncounted",
                template="the shape of the {tower} tower is not understood; its weights are not counted",
                params={"tower": label},
                path=path,
            )
        )
        return 0
    messages.append(
        Message(
            code="config.vision_estimated",
            template="the {tower} tower is counted as plain transformer layers ({count:.2f} billion parameters) "
            "and does no work for text tokens",
            params={"tower": label, "count": count / 1e9},
            path=path,
        )
    )
    return count


def _is_gated(r: Reader) -> bool:
    kind = r.config.get("model_type")
    return isinstance(kind, str) and kind.startswith(_GATED)


def _embedding(r: Reader, width: int) -> int:
    patch = r.number("patch_size", default=14)
    frames = r.number("temporal_patch_size", "patch_temporal", default=1)
    rows = r.count("num_position_embeddings", "position_embedding_size", "pos_emb_height")
    return 3 * frames * patch**2 * width + rows * width


def _is_glm(r: Reader) -> bool:
    """GLM-4V: its blocks are as wide as its output, and the width that it prints is its merger's."""
    kind = r.config.get("model_type")
    return isinstance(kind, str) and kind.startswith("glm4v")


def _inner(r: Reader, width: int) -> int:
    """MLP width from its ratio, which some files print as a fraction."""
    ratio = r.config.get("mlp_ratio")
    return round(width * ratio) if isinstance(ratio, int | float) and 0 < ratio < _MOST_RATIO else 4 * width


def _projector(r: Reader, width: int, hidden: int, around: Reader) -> int:
    """A merger of m × m patches and a map into the language model; one more for each deepstack level."""
    merge = r.first("spatial_merge_size", "merge_size", "merge_kernel_size")
    if not merge:
        return _plain_projector(r.number("vision_output_dim", default=width), hidden, around)
    joined = merge**2 * width
    out = r.number("out_hidden_size", "text_hidden_size", default=hidden)
    if _is_glm(r):  # a convolution, a map, and a gated MLP as wide as the file's intermediate size
        return int(joined * out + out**2 + 3 * out * r.count(*_INNER))
    return (1 + len(r.items("deepstack_visual_indexes"))) * (joined**2 + joined * out)


def _plain_projector(width: int, hidden: int, around: Reader) -> int:
    """One matrix or two, over patches that are joined first where the file says so."""
    ratio = around.config.get("downsample_ratio")
    factor = round(1 / ratio) if isinstance(ratio, float) and 1 / _MOST_RATIO < ratio <= 1 else 1
    if not isinstance(ratio, float):
        factor = around.number("downsample_factor", "scale_factor", default=1)
    joined = min(factor, _MOST_RATIO) ** 2 * width
    aligned = around.count("alignment_intermediate_size")  # a gated map (Aya Vision)
    if aligned:
        return joined * aligned + aligned // 2 * hidden
    two = isinstance(ratio, float) or around.has("projector_hidden_act")
    return joined * hidden + (hidden**2 if two else 0)
