"""How the modules of cones depend on each other: no cycles, and arrows that point one way.

Every import counts: at the top of a module, inside a function, and for types only.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import cones

ROOT = Path(cones.__file__).parent

# Packages and modules from the bottom to the top. Each may import what stands in a lower row, and itself.
ORDER: list[tuple[str, ...]] = [
    ("errors", "types"),
    ("files", "fields"),
    ("packed",),
    ("archive", "locks"),
    ("extras", "checks", "component", "kernels", "markup"),
    ("storage", "beliefs", "space", "result"),
    ("sampling", "divergences"),
    ("solvers", "estimators", "radius", "progress"),
    ("steps", "restarts"),
    ("optimizers",),
    ("handover", "integers"),
    ("iteration",),
    ("answers", "arrivals"),
    ("strategy",),
    ("incremental",),
    ("evolution", "baselines"),
    ("defaults", "evaluate"),
    ("composition",),
    ("relatives",),
    ("mixed",),
    ("methods",),
    ("run",),
    ("problems",),
    ("records",),
    ("plots",),
    ("rl",),
    ("experiments",),
    ("integrations",),
    ("cli",),
]
# The package itself gathers what is public; `__main__` calls the command line.
GATHERS = ("cones", "cones.__main__")


def module_name(path: Path) -> str:
    parts = ("cones", *path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(ROOT.rglob("*.py"))}


def imports_of(name: str) -> set[str]:
    """The modules of cones that a module imports, wherever in it and for whatever purpose."""
    found: set[str] = set()
    path = MODULES[name]
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {_module(alias.name) for alias in node.names if alias.name.split(".")[0] == "cones"}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *([node.module] if node.module else [])])
            if base.split(".")[0] != "cones":
                continue
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                found.add(inner if inner in MODULES else _module(base))
        elif (  # import_module("cones.x")
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and node.value in MODULES
            and "." in node.value
        ):
            found.add(node.value)
    return found - {name}


def _module(name: str) -> str:
    assert name in MODULES, f"{name} is imported and does not exist"
    return name


IMPORTS = {name: imports_of(name) for name in MODULES}


def components(graph: dict[str, set[str]]) -> list[list[str]]:
    """The strongly connected components (Tarjan), those of a single module left out."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in sorted(graph[name]):
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            members = []
            while True:
                members.append(stack.pop())
                if members[-1] == name:
                    break
            if len(members) > 1:
                found.append(sorted(members))

    for name in sorted(graph):
        if name not in index:
            visit(name)
    return found


def part_of(name: str) -> str:
    """The package or top-level module that a module belongs to."""
    return name.split(".")[1]


def test_cycles_are_found() -> None:
    assert components({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == [["b", "c"]]
    assert components({"a": {"b"}, "b": set()}) == []


def test_imports_are_seen_wherever_they_are() -> None:
    assert "cones.strategy" in IMPORTS["cones.incremental"]
    assert "cones.beliefs" in IMPORTS["cones.estimators.score_function"]
    assert len(MODULES) > 80
    assert sum(map(len, IMPORTS.values())) > 300


def test_no_module_imports_itself_by_way_of_others() -> None:
    # A package imports its modules to gather their names; importing the package from them is a cycle.
    graph = {name: found - set(GATHERS) for name, found in IMPORTS.items() if name not in GATHERS}
    assert components(graph) == []


def test_no_package_imports_itself_by_way_of_others() -> None:
    graph: dict[str, set[str]] = {}
    for name, found in IMPORTS.items():
        if name not in GATHERS:
            own = graph.setdefault(part_of(name), set())
            own |= {part_of(other) for other in found if other not in GATHERS} - {part_of(name)}
    assert components(graph) == []


def test_only_the_outermost_packages_import_the_package_itself() -> None:
    """`import cones` inside the core would be a cycle with everything."""
    importing = {part_of(name) for name, found in IMPORTS.items() if "cones" in found and name not in GATHERS}
    assert importing <= {"experiments", "integrations", "cli", "rl"}


def test_every_part_has_its_place_in_the_order() -> None:
    assert sorted(name for row in ORDER for name in row) == sorted(
        {part_of(name) for name in MODULES if name not in GATHERS}
    )


LEVEL = {name: level for level, row in enumerate(ORDER) for name in row}


@pytest.mark.parametrize("part", LEVEL)
def test_arrows_point_down(part: str) -> None:
    wrong = [
        f"{name} imports {other}"
        for name, found in IMPORTS.items()
        if name not in GATHERS and part_of(name) == part
        for other in sorted(found)
        if other not in GATHERS and part_of(other) != part and LEVEL[part_of(other)] >= LEVEL[part]
    ]
    assert wrong == []
