"""What every component must do, whatever its kind: declare itself, be stored, be named in text."""

from __future__ import annotations

import dataclasses
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from conformance.variants import BELIEFS, INTERFACES, SETTINGS, assert_same, make, through_a_file

from cones import InputError
from cones.component import changed, component_from, components, identifier, settings_of
from cones.progress import Descent

EVERY = [
    pytest.param(kind, name, settings, id=f"{kind}-{name}-{index}")
    for kind in SETTINGS
    for name in components(kind)
    for index, settings in enumerate(SETTINGS[kind].get(name, []))
]
every_component = pytest.mark.parametrize(("kind", "name", "settings"), EVERY)
every_class = pytest.mark.parametrize(
    ("kind", "name"), [pytest.param(kind, name, id=f"{kind}-{name}") for kind in SETTINGS for name in components(kind)]
)


def test_the_tables_of_this_suite_are_complete() -> None:
    """A new interface or a new component needs an entry, and then all suites test it."""
    assert set(INTERFACES) == {"belief", *SETTINGS}
    for kind, table in SETTINGS.items():
        assert set(table) == set(components(kind)), kind
        assert all(table.values()), kind
    assert set(BELIEFS) == set(components("belief"))


@pytest.mark.parametrize("kind", INTERFACES)
def test_names_are_those_of_the_classes(kind: str) -> None:
    assert components(kind)
    for name, component in components(kind).items():
        assert component.name == name
        assert component.kind == kind
        assert issubclass(component, INTERFACES[kind])
        assert component.__doc__, name
        module, _, qualified = identifier(component).partition(":")
        assert module.startswith("cones.")
        assert qualified == component.__name__


@every_class
def test_every_setting_has_a_sentence(kind: str, name: str) -> None:
    component = components(kind)[name]
    assert dataclasses.is_dataclass(component)
    for setting, sentence in settings_of(component).items():
        assert sentence.endswith("."), f"{name}.{setting}"
        assert len(sentence.split()) >= 2, f"{name}.{setting}"


@every_component
def test_settings_are_kept_and_cannot_be_changed(kind: str, name: str, settings: dict[str, Any]) -> None:
    component = make(kind, name, settings)
    for setting in settings:
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(component, setting, 1.0)
    assert component == make(kind, name, settings)
    assert hash(component) == hash(make(kind, name, settings))
    if settings:
        assert repr(next(iter(settings))).strip("'") in repr(component)


@every_component
def test_a_file_and_a_pickle_give_an_equal_object(
    kind: str, name: str, settings: dict[str, Any], tmp_path: Path
) -> None:
    component = make(kind, name, settings)
    assert through_a_file(component, tmp_path) == component
    assert pickle.loads(pickle.dumps(component)) == component
    assert_same(
        through_a_file({"it": [component, (component, None)]}, tmp_path), {"it": [component, (component, None)]}
    )


@every_component
def test_text_a_table_and_the_object_itself_give_the_component(kind: str, name: str, settings: dict[str, Any]) -> None:
    component = make(kind, name, settings)
    text = ",".join([name, *(f"{key}={json.dumps(value)}" for key, value in settings.items())])
    assert component_from(kind, text) == component
    assert component_from(kind, text.replace('"', "")) == component  # words need no quotes
    assert component_from(kind, {"name": name, **settings}) == component
    assert component_from(kind, component) is component
    by_path = ",".join([identifier(type(component)), *text.split(",")[1:]])
    assert component_from(kind, by_path) == component


@every_class
def test_unknown_settings_are_refused_with_what_was_meant(kind: str, name: str) -> None:
    known = settings_of(components(kind)[name])
    with pytest.raises(InputError, match=rf"{kind}\.nothing_like_it: unknown setting of \w+; expected one of"):
        component_from(kind, f"{name},nothing_like_it=1")
    for setting in known:
        with pytest.raises(InputError, match=rf"did you mean {setting}\?"):
            component_from(kind, {"name": name, setting + "x": 1})
    with pytest.raises(InputError, match=rf"{kind}: expected setting=value after the name, got 'word'"):
        component_from(kind, f"{name},word")


@every_class
def test_a_misspelt_name_is_refused_with_what_was_meant(kind: str, name: str) -> None:
    with pytest.raises(InputError, match=rf"{kind}: expected .*'{name}'.* got '{name}x'; did you mean {name}\?"):
        component_from(kind, name + "x")


@pytest.mark.parametrize("kind", SETTINGS)
@pytest.mark.parametrize("wrong", [None, 3, [], {"name": None}, {}, int, "json:loads", "cones:no_such"])
def test_what_is_no_component_is_refused(kind: str, wrong: object) -> None:
    with pytest.raises(InputError, match=rf"^{kind}: "):
        component_from(kind, wrong)


def test_a_component_of_another_kind_is_refused() -> None:
    with pytest.raises(InputError, match=r"optimizer: expected one of 'adam'.* or an object of class Optimizer, got"):
        component_from("optimizer", "cones.steps.plain:Plain")


def test_a_required_setting_that_is_missing_is_named() -> None:
    with pytest.raises(InputError, match=r"step: cannot create Convex: .*radius"):
        component_from("step", "convex")


def test_changed_is_replace_and_knows_the_fields() -> None:
    descent = Descent(best=1.0, improved=3)
    assert changed(descent, best=0.5) == dataclasses.replace(descent, best=0.5)
    assert descent.best == 1.0
    with pytest.raises(TypeError, match="unknown fields"):
        changed(descent, bset=0.5)
