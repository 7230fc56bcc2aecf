"""`--speculative-config` of a vllm serve line becomes the scenario's section."""

import pytest

from simcore.catalog import default_catalog
from simcore.errors import InputError
from simcore.scenario import Scenario
from simcore.scenario.imports import document_from_text
from simcore.scenario.speculation import read_speculation


@pytest.mark.parametrize(
    ("config", "kind"),
    [
        ('{"method": "ngram", "num_speculative_tokens": 5, "prompt_lookup_max": 4}', "ngram"),
        ('{"method": "eagle", "model": "yuhuili/EAGLE-LLaMA3.1-Instruct-8B"}', "eagle"),
        ('{"method": "eagle3", "model": "some/head"}', "eagle3"),
        ('{"method": "deepseek_mtp", "num_speculative_tokens": 1}', "mtp"),
        ('{"method": "draft_model", "model": "Qwen/Qwen3-0.6B"}', "draft_model"),
        # As vLLM guesses where no method is given:
        ('{"model": "Qwen/Qwen3-0.6B", "num_speculative_tokens": 3}', "draft_model"),
        ('{"model": "some/EAGLE3-head"}', "eagle3"),
        ('{"model": "[ngram]"}', "ngram"),
    ],
)
def test_methods_are_told_as_vllm_tells_them(config: str, kind: str) -> None:
    section, left_out = read_speculation(config, default_catalog())
    assert section is not None
    assert section["kind"] == kind
    assert left_out == []


@pytest.mark.parametrize(
    "config",
    ['{"method": "suffix"}', '{"method": "draft_model", "model": "nobody/knows-this"}'],
)
def test_what_is_not_modelled_is_left_out_and_said(config: str) -> None:
    section, left_out = read_speculation(config, default_catalog())
    assert section is None
    assert [one.code for one in left_out] == ["vllm.ignored"]


def test_a_key_that_is_not_read_is_named() -> None:
    _section, (message,) = read_speculation(
        '{"method": "ngram", "rejection_sample_method": "strict"}', default_catalog()
    )
    assert "rejection_sample_method" in message.text


@pytest.mark.parametrize("config", ["eagle", "[1]", "{"])
def test_what_is_no_json_object_is_refused_with_an_example(config: str) -> None:
    with pytest.raises(InputError, match="num_speculative_tokens"):
        read_speculation(config, default_catalog())


def test_a_line_and_a_yaml_file_are_read_alike() -> None:
    line = (
        "vllm serve Qwen/Qwen3-32B -tp 4 --speculative-config "
        """'{"method": "draft_model", "model": "Qwen/Qwen3-0.6B", "num_speculative_tokens": 4}'"""
    )
    file = (
        "model: Qwen/Qwen3-32B\ntensor-parallel-size: 4\nspeculative-config:\n  method: draft_model\n"
        "  model: Qwen/Qwen3-0.6B\n  num_speculative_tokens: 4\n"
    )
    for text in (line, file):
        document, _warnings = document_from_text(text, default_catalog())
        drafts = Scenario.parse(document).serving.speculative
        assert (drafts.kind, drafts.model, drafts.num_speculative_tokens) == ("draft_model", "qwen3-0.6b", 4)
