"""`trimtab report` writes a decision memo in the format that the ending says."""

import pytest

from simcore.cli import main

SCENARIO = (
    "name: {name}\nworkload: {{kind: none}}\nhardware: {{chip: nvidia-h100-sxm, chip_count: {count}}}\n"
)


@pytest.fixture
def two(tmp_path):
    files = [tmp_path / "small.yaml", tmp_path / "large.yaml"]
    for file, count in zip(files, (64, 128), strict=True):
        file.write_text(SCENARIO.format(name=file.stem, count=count))
    return [str(file) for file in files]


@pytest.mark.parametrize(
    ("ending", "magic"), [("pdf", b"%PDF"), ("xlsx", b"PK"), ("md", b"*"), ("odd", b"*")]
)
def test_report_writes_what_the_ending_says(two, tmp_path, ending, magic):
    target = tmp_path / f"memo.{ending}"
    assert main(["report", *two, "-o", str(target)]) == 0
    assert target.read_bytes().startswith(magic)


def test_report_says_what_its_author_recommends(two, capsysbinary):
    assert main(["report", *two, "--recommend", two[0], "--title", "How many?"]) == 0
    assert b"# How many?" in capsysbinary.readouterr().out
    assert main(["report", *two, "--recommend", "third.yaml"]) == 2
    assert b"must be one of the files" in capsysbinary.readouterr().err
