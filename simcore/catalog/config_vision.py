"""Parameters of vision and audio towers: counted, held on the first stage, no work for text tokens.

A tower is counted as transformer layers, `4h² + m·h·width` each (m = 3 where the tower's MLP is gated),
its patch embedding, its position table and the merger or projector into the language model. Limits: an
estimate, good to a few per cent of the tower; a tower whose shape is not understood is named and left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from simcore.catalog.config_reader import Config, Reader
from simcore.errors import InputError, Message

_TOWERS: Final = ("vision_config", "audio_config", "vision_tower_config", "speech_config")
# towers with gate, up and down matrices
_GATED: Final = ("qwen2_5_vl", "pixtral", "mistral", "glm", "deepseek_v41", "internlm", "moonvit_gated")


def tower_parameters(config: Config, hidden: int, path: str, messages: list[Message]) -> int:
    """All towers beside a language model of this hidden size."""
    found = [key for key in _TOWERS if isinstance(config.get(key), Mapping)]
    return sum(_tower(config[key], key, hidden, f"{path}.{key}", messages) for key in found)


def _tower(config: Config, key: str, hidden: int, path: str, messages: list[Message]) -> int:
    r = Reader(config, path)
    label = "audio" if "audio" in key or "speech" in key else "vision"
    try:
        width = r.number("hidden_size", "vt_hidden_size", "embed_dim", "d_model", "width")
        layers = r.number("num_hidden_layers", "depth", "vt_num_hidden_layers", "encoder_layers", "layers")
        inner = r.count("intermediate_size", "vt_intermediate_size", "encoder_ffn_dim") or 4 * width
        count = layers * (4 * width**2 + (3 if _is_gated(r) else 2) * width * inner)
        count += _embedding(r, width) + _projector(r, width, hidden)
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


def _projector(r: Reader, width: int, hidden: int) -> int:
    """A merger of m × m patches and a map into the language model; one more for each deepstack level."""
    merge = r.first("spatial_merge_size", "merge_size", "merge_kernel_size")
    if not merge:
        return width * hidden
    joined = merge**2 * width
    out = r.number("out_hidden_size", "text_hidden_size", default=hidden)
    return (1 + len(r.items("deepstack_visual_indexes"))) * (joined**2 + joined * out)
