"""The documentation as a site: it is built without a warning and complete, and needs no network to be read."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Annotated, TypedDict

import pytest
from blocks import ROOT, pages, run_by_the_site
from browser import BROWSER, cut_off

import cones
from cones.component import settings_of

DOCS = ROOT / "docs"
LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)(?:#[^)]*)?\)")


class Loaded(HTMLParser):
    """What a page loads by itself: scripts, styles, images."""

    def __init__(self) -> None:
        super().__init__()
        self.places: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        known = dict(attributes)
        if tag in ("script", "img", "iframe"):
            self.places.append(known.get("src") or "")
        elif tag == "link" and known.get("rel") in ("stylesheet", "icon", "preload"):
            self.places.append(known.get("href") or "")


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", str(DOCS), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    built = {path.relative_to(tmp_path).with_suffix(".md").as_posix() for path in tmp_path.rglob("*.html")}
    assert {path.relative_to(DOCS).as_posix() for path in pages() if path.is_relative_to(DOCS)} <= built
    for path in tmp_path.rglob("*.html"):
        loaded = Loaded()
        loaded.feed(path.read_text())
        assert [place for place in loaded.places if "//" in place] == [], path
    problem = (tmp_path / "mathematics" / "problem.html").read_text()
    assert "<math" in problem
    assert "kl_ball-light.svg" in problem
    assert "kl_ball-dark.svg" in problem
    results = (tmp_path / "archive" / "records" / "functions.html").read_text()
    assert 'href="../../functions-report.html"' in results
    assert (tmp_path / "functions-report.html").exists()
    for page in run_by_the_site():
        text = (tmp_path / page.relative_to(DOCS).with_suffix(".html")).read_text()
        assert 'class="output' in text or "what the code above draws" in text, page
    if BROWSER:
        for width, dark in ((390, True), (1280, False), (1280, True)):
            cut = cut_off(tmp_path, width, dark)
            assert len(cut) > 50
            assert {page: what for page, what in cut.items() if what} == {}, (width, dark)


@pytest.mark.skipif(BROWSER is None, reason="needs chromium")
def test_what_is_cut_off_is_found(tmp_path: Path) -> None:
    long = "x" * 200
    (tmp_path / "good.html").write_text(f"<article><pre style='overflow-x: auto'>{long}</pre></article>")
    (tmp_path / "bad.html").write_text(f"<article><pre style='overflow: hidden'>{long}</pre></article>")
    (tmp_path / "wide.html").write_text(f"<article><p>{long}</p></article>")
    found = cut_off(tmp_path, 390)
    assert found["good.html"] == []
    assert found["bad.html"]
    assert found["wide.html"]


def test_all_public_names_are_in_the_reference() -> None:
    text = "".join(path.read_text() for path in (DOCS / "api").glob("*.md"))
    documented = set(re.findall(r"auto(?:function|class):: cones\.(\w+)$", text, re.MULTILINE))
    assert "automodule:: cones.errors" in text
    errors = {name for name in cones.__all__ if name.endswith("Error")}
    assert "automodule:: cones.radius" in text
    assert set(cones.__all__) - {"__version__", "radius"} - errors <= documented


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    """Sphinx looks after links within the site; the README is read elsewhere."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    missing = [link for link in LINK.findall(text) if not (page.parent / link).exists()]
    assert missing == []


@pytest.fixture
def extension(monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("sphinx")
    monkeypatch.setattr(sys, "path", [str(DOCS / "_ext"), *sys.path])
    return importlib.import_module


def test_results_that_are_not_there_are_left_out(extension, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = extension("results")
    monkeypatch.setattr(results, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(results, "COPIED", tmp_path / "copied")
    assert results.folders("*") == []
    half = tmp_path / "results" / "half"
    (half / "figures").mkdir(parents=True)
    (half / "experiment.json").write_text('{"name": "half"}')
    assert results.folders("*") == []  # begun, but nothing to show yet
    (half / "figures" / "reward.png").write_bytes(b"")
    assert results.folders("*") == [half]
    assert "0 records" in results.page(half)
    assert "Reward of the mean policy" in results.page(half)
    assert "Interactive report" not in results.page(half)


def test_every_folder_of_results_is_on_one_page_of_the_archive(extension) -> None:
    results = extension("results")
    texts = [path.read_text() for path in (DOCS / "archive" / "records").glob("*.md")]
    shown = [
        folder
        for text in texts
        for named in re.findall(r"{results} (.+)", text)
        for folder in results.folders(*named.split())
    ]
    assert sorted(shown) == results.folders("*")


def test_docstrings_keep_their_equations(extension) -> None:
    docstrings = extension("docstrings")
    lines = [
        "The step of |x|.",
        "",
        "    a = b",
        "",
        "where `|a|` is",
        "- an item",
        "  that goes on",
        "",
        "Args:",
        "    x: |y|",
    ]
    docstrings.literal_blocks(None, "function", "f", None, None, lines)
    assert lines[:4] == [r"The step of \|x\|.", "", "::", ""]
    assert lines[4] == "        a = b"
    assert "where `|a|` is" in lines
    assert lines[-1] == "    x: |y|"  # sections are napoleon's


class Keywords(TypedDict):
    a: Annotated[int, "A number."]


def test_declared_settings_become_arguments(extension) -> None:
    for kind, declared in (
        (Keywords, ["    a: A number."]),
        (cones.radius.Fixed, [f"    value: {settings_of(cones.radius.Fixed)['value']}"]),
    ):
        lines = ["Summary.", "", "Example:", "    >>> 1"]
        extension("docstrings").literal_blocks(None, "class", "Known", kind, None, lines)
        assert [line for line in lines if line] == ["Summary.", "Args:", *declared, "Example:", "    >>> 1"]


def test_a_formula_that_cannot_be_drawn_is_a_warning(extension, monkeypatch: pytest.MonkeyPatch) -> None:
    from docutils import nodes

    mathml = extension("mathml")
    assert "<math" in mathml.mathml(nodes.math("", r"\epsilon^2"), block=False)
    said = []
    log = type("Log", (), {"warning": lambda self, *words, **_: said.append(words)})()
    monkeypatch.setattr(mathml, "logger", log)
    assert mathml.mathml(nodes.math("", r"\unheardof"), block=False) == ""
    assert len(said) == 1
    mathml.mathml(nodes.math("", r"\frac12 p"), block=False)
    assert len(said) == 2


def test_a_formula_is_parted_where_it_may_be_folded(extension) -> None:
    parts = extension("mathml").parts
    assert parts(r"a = b \qquad c = d") == ["a = b ", " c = d"]
    assert parts(r"a \qquad\qquad b") == ["a ", " b"]
    assert parts(r"\text{a \qquad b}") == [r"\text{a \qquad b}"]
    assert parts(r"\begin{aligned} a \qquad b \end{aligned}") == [r"\begin{aligned} a \qquad b \end{aligned}"]
