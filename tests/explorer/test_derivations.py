"""A derivation reads in the reader's language: every name, every formula, every sentence of a source."""

import re
from collections.abc import Iterator

import pytest
from django.template import Context, Template
from django.utils import translation

from explorer import wording
from explorer.templatetags.derivations import formula_words, node_name, source_words
from simcore.errors import Message, Phrases
from simcore.plan import plan
from simcore.scenario import Scenario
from simcore.scenario.stories import stories
from simcore.term_names import term_label
from simcore.why import Term, as_dict, constant, leaf, simulated

CHINESE = re.compile(r"[\u4e00-\u9fff]")
# Acronyms and symbols that Chinese readers know as they are.
AS_IT_IS = {"TCO", "PUE", "MFU", "HFU", "TTFT", "TPOT", "ITL", "TDP"}
AS_IT_IS |= {"All-reduce", "All-gather", "Reduce-scatter", "All-to-all"}


def _step() -> Term:
    moved = leaf(16e9, "weight_bytes_read", kind="catalog", source="shape of the model")
    rate = leaf(3.35e12, "hbm_bytes_per_s", kind="catalog", source="datasheet, recalled: 3.35 TB/s")
    return (moved / rate + constant(2.0) * constant(0.001, "loss_s")).named("qkv_s_per_layer")


def _terms(term: Term, seen: set[int]) -> Iterator[Term]:
    if id(term) not in seen:
        seen.add(id(term))
        yield term
        for arg in term.args:
            yield from _terms(arg, seen)


@pytest.fixture(scope="module")
def told() -> list[Term]:
    """Every node of every tree of every story."""
    seen: set[int] = set()
    plans = [
        plan(Scenario.parse(one)) for story in stories().values() for one in (story.baseline, story.variant)
    ]
    return [node for planned in plans for term in planned.why.values() for node in _terms(term, seen)]


def test_a_formula_has_the_labels_of_its_names() -> None:
    tree = as_dict(_step())
    assert node_name(tree) == "Q, K and V time per layer"
    assert formula_words(tree) == "(weight bytes read / HBM bandwidth) + (2 × loss time)"
    with translation.override("zh-hans"):
        assert formula_words(tree) == "(读取的权重字节 / HBM 带宽) + (2 × 损失计算时间)"


def test_a_constant_with_a_name_has_a_line_and_a_plain_number_has_none() -> None:
    page = Template('{% include "explorer/_why_node.html" with node=node level=0 %}')
    shown = page.render(Context({"node": as_dict(_step())}))
    assert "Loss time" in shown
    assert shown.count('class="node"') == 6  # the whole, a sum's two parts, two leaves and the constant


def test_every_name_in_a_derivation_is_chinese_for_a_chinese_reader(told: list[Term]) -> None:
    names = {term.name for term in told if term.name and (term.kind != "constant" or term_label(term.name))}
    with translation.override("zh-hans"):
        english = {
            name: wording.term_name(name) for name in names if not CHINESE.search(wording.term_name(name))
        }
    assert set(english.values()) <= AS_IT_IS, english


def test_every_sentence_of_a_source_is_chinese_for_a_chinese_reader(told: list[Term]) -> None:
    kinds = ("derived", "calibrated", "input", "simulated")
    sources = {term.source for term in told if term.op == "leaf" and term.kind in kinds and term.source}
    with translation.override("zh-hans"):
        english = {text for text in sources if not CHINESE.search(source_words({"source": text}))}
    # a paper, a table or a file that is named and no more
    assert all(re.search(r"arXiv|NCCL|src/|, [12]\d{3}", text) for text in english), english


def test_a_simulated_leaf_says_its_run_in_chinese() -> None:
    mean = simulated(0.2, "serving.ttft_s.p95", statistic="p95", count=10_000, seed=7)
    whole = simulated(3.0, "serving.preemption_count", statistic="", count=10_000, seed=7)
    with translation.override("zh-hans"):
        assert source_words({"source": mean.source}) == "10,000 个仿真请求的 p95，种子 7"
        assert source_words({"source": whole.source}) == "10,000 个仿真请求的运行，种子 7"


def test_messages_inside_a_message_are_translated_one_by_one() -> None:
    reasons = Phrases(
        (
            Message(
                code="beyond.batch",
                template="{got:,.0f} sequences, measured up to {most:,.0f}",
                params={"got": 320, "most": 64},
            ),
            Message(code="beyond.no_steps", template="no served model was measured on this chip"),
        )
    )
    warning = Message(
        code="compute.extrapolated",
        template="Step times are extrapolated: {reasons}; their error bands are wider",
        params={"reasons": reasons},
    )
    for said in (warning, warning.as_dict()):
        with translation.override("zh-hans"):
            text = wording.translated(said)
        assert "320 个序列，测量到 64 为止；此芯片上没有测量过在线服务的模型" in text
        assert wording.translated(said) == warning.text
