"""A story's page: live results, what to look at, sources, and a copy of one's own to edit."""

import html
import re

import pytest
from django.test import Client

from explorer.models import SavedScenario
from simcore.scenario.stories import stories

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "slug", ["s2-double-hbm", "s4-paged-kv", "s6-nvlink-pcie", "s7-flash-attention", "s10-moe-all-to-all"]
)
def test_a_story_says_what_to_look_at_and_where_it_is_from(slug: str, as_nobody: Client) -> None:
    answer = as_nobody.post(f"/stories/{slug}/")
    page = html.unescape(as_nobody.get(answer["Location"]).content.decode()).replace("\u00a0", " ")
    told = stories()[slug]
    assert all(text in page for text in told.look_at)
    assert all(source["title"] in page and source["url"] in page for source in told.sources)
    scenario = SavedScenario.objects.get()
    edited = as_nobody.post(f"/s/{scenario.pk}/edit/", {"hardware.chip_count": "16"})
    assert edited.status_code == 302


def test_every_finding_on_home_is_chinese_for_a_chinese_reader(as_nobody: Client) -> None:
    as_nobody.cookies["django_language"] = "zh-hans"
    page = html.unescape(as_nobody.get("/").content.decode())
    findings = re.findall(r'<span class="a">(.*?)</span>', page)
    assert len(findings) == len(stories())
    assert all(re.search(r"[\u4e00-\u9fff]{4}", text) for text in findings), findings


def test_what_is_no_story_has_no_such_section(as_nobody: Client) -> None:
    answer = as_nobody.post("/start/", {"text": "Qwen/Qwen3-8B"})
    assert 'id="story"' not in as_nobody.get(answer["Location"]).content.decode()
