"""Link loads: dots by layer from the histogram, and the hottest links by name."""

import pytest

from explorer.charts import link_loads

LAYER = {"layer": "leaf → spine", "medium": "optical"}
RESULT = {
    "tables": {
        "traffic_period": [{"per": "step", "s": 2.0, "routing": "ecmp"}],
        "link_loads": [
            {
                "layer": "chip → scale-up",
                "medium": "scaleup",
                "low_fraction": 0.1,
                "high_fraction": 0.2,
                "link_count": 8,
            },
            {**LAYER, "low_fraction": 0.0, "high_fraction": 0.0, "link_count": 25},
            {**LAYER, "low_fraction": 0.3, "high_fraction": 0.4, "link_count": 75},
        ],
        "hottest_links": [
            {
                **LAYER,
                "link": "leaf 12 → spine 3",
                "alike_count": 75,
                "load_fraction": 0.34,
                "moved_bytes": 34e9,
                "capacity_bytes_per_s": 50e9,
                "core_bytes": 17e9,
                "inter_domain_bytes": 17e9,
                "management_bytes": 0.0,
            }
        ],
    }
}


def overloaded(ratio):
    hot = {**RESULT["tables"]["hottest_links"][0], "load_fraction": ratio}
    return {"tables": {**RESULT["tables"], "hottest_links": [hot]}}


def test_the_title_names_the_busiest_link():
    chart = link_loads.histogram(RESULT)
    assert chart.title == "The busiest link, leaf 12 → spine 3, is busy for 34.0 % of the time"
    assert "even ECMP" in chart.source
    assert "training step" in chart.axis


def test_a_link_that_is_asked_for_too_much_is_said_to_be():
    assert "asked for 2.3 times what it carries" in link_loads.histogram(overloaded(2.3)).title


def test_a_dot_is_as_large_as_its_share_of_the_layer():
    scaleup, scaleout = link_loads.histogram(RESULT).body["data"]
    assert scaleup["y"] == ["chip → scale-up"]
    assert scaleout["x"] == [0.0, 35.0]
    few, many = scaleout["marker"]["size"]
    assert many**2 / few**2 == pytest.approx(3)
    assert scaleout["customdata"][1] == ["75", "100", "75.0 %"]


def test_the_table_counts_every_link():
    cells = [[cell.text for cell in row] for row in link_loads.histogram(RESULT).table.rows]
    assert cells[-1] == ["leaf → spine", "75", "30.0 %", "40.0 %"]


def test_the_hottest_links_say_how_many_are_like_them():
    chart = link_loads.hottest(RESULT)
    assert chart.title == "75 links are the hottest, leaf 12 → spine 3 among them"
    name, *numbers = (cell.text for cell in chart.table.rows[0])
    assert name == "leaf\N{NO-BREAK SPACE}12\N{NO-BREAK SPACE}→ spine\N{NO-BREAK SPACE}3"
    assert numbers == ["75", "34.0 %", "34", "50.0 %", "50"]


def test_without_traffic_there_is_no_chart():
    assert link_loads.histogram({"tables": {}}) is None
    assert link_loads.hottest({"tables": {"link_loads": [], "hottest_links": []}}) is None


def test_the_line_of_a_full_link_is_drawn_where_loads_come_near_it():
    near = {**RESULT["tables"]["link_loads"][2], "low_fraction": 0.7, "high_fraction": 0.8}
    busy = {"tables": {**RESULT["tables"], "link_loads": [near]}}
    assert link_loads.histogram(RESULT).body["layout"]["shapes"] == []
    assert link_loads.histogram(busy).body["layout"]["shapes"][0]["x0"] == 100
