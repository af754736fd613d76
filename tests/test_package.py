"""What a user meets before any mathematics: imports, metadata, the names that are public."""

import json
import subprocess
import sys
from importlib.metadata import requires, version
from pathlib import Path

import jsonschema
import pytest
import yaml

import cones

ROOT = Path(__file__).parent.parent


def test_import_brings_in_nothing_heavy() -> None:
    """cvxpy alone takes seconds. Time itself is a matter for benchmarks/."""
    code = "import sys, cones; print(*sorted(m for m in sys.modules if '.' not in m))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "cones" in loaded
    assert not {"cvxpy", "clarabel", "cma", "matplotlib", "pandas", "torch", "jax", "optuna", "nevergrad"} & set(loaded)


def test_packages_are_there_when_they_are_used() -> None:
    code = (
        "import sys, cones; assert 'cones.rl' not in sys.modules; cones.rl.load_policy; cones.problems.Sphere; "
        "cones.experiments; cones.integrations; assert not hasattr(cones, 'nothing')"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_core_needs_numpy_and_scipy_only() -> None:
    core = [line for line in requires("cones") or [] if "extra ==" not in line]
    assert sorted(line.split(">")[0] for line in core) == ["numpy", "scipy"]


def test_public_names_exist_and_are_documented() -> None:
    assert cones.__version__ == version("cones")
    for name in cones.__all__:
        thing = getattr(cones, name)
        assert name == "__version__" or thing.__doc__, f"{name} has no docstring"


def test_types_are_shipped() -> None:
    assert (Path(cones.__file__).parent / "py.typed").exists()


def test_citation_names_the_paper_and_the_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    schema = json.loads((ROOT / "tests" / "citation" / "cff-1.2.0.schema.json").read_text())
    jsonschema.validate(citation, schema, format_checker=jsonschema.FormatChecker())
    with pytest.raises(jsonschema.ValidationError):  # the schema is one that can refuse
        jsonschema.validate({**citation, "licence": "Apache-2.0"}, schema)
    assert citation["version"] == cones.__version__
    assert f"## {cones.__version__}" in (ROOT / "CHANGELOG.md").read_text()
    paper = citation["preferred-citation"]
    assert [author["family-names"] for author in paper["authors"]] == ["Veer", "Majumdar"]
    assert paper["identifiers"][0]["value"] == "arXiv:2007.08601"


def test_issue_templates_ask_for_what_is_needed() -> None:
    """Each is a form with a name, and its questions have names of their own; a bug comes with `cones doctor`."""
    forms = {path.stem: yaml.safe_load(path.read_text()) for path in (ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml")}
    assert not forms.pop("config")["blank_issues_enabled"]
    assert set(forms) == {"bug", "idea"}
    for form in forms.values():
        assert {"name", "description", "body"} <= form.keys()
        questions = [part for part in form["body"] if part["type"] != "markdown"]
        assert {part["type"] for part in questions} <= {"input", "textarea", "dropdown", "checkboxes"}
        assert len({part["id"] for part in questions}) == len(questions)
        assert all(part["attributes"]["label"] for part in questions)
    assert "cones doctor" in str(forms["bug"])
