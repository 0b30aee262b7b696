"""The chart's files, as far as they can be checked without helm: values, schema, names of settings and variables."""

from __future__ import annotations

import re
from pathlib import Path

import jsonschema
import pytest

from docs import generate
from hyperfleet import __version__
from hyperfleet.settings import CONFIG_VARIABLE, SETTINGS, Settings
from tests.deploy.chart import CHART, WAYS, Values, lay_over, read_defaults, read_schema, read_yaml

TEMPLATES = sorted((CHART / "templates").iterdir())
ACTION = re.compile(r"\{\{.*?\}\}", re.DOTALL)
OPENING = re.compile(r"\{\{-?\s*(?:if|with|range|define|block)\b")
CLOSING = re.compile(r"\{\{-?\s*end\b")

KEYS = {setting.key for setting in SETTINGS}


def is_fine(values: Values) -> bool:
    """Tell whether the schema has nothing against some values on top of the defaults."""
    return bool(jsonschema.Draft202012Validator(read_schema()).is_valid(lay_over(read_defaults(), values)))


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(read_schema())


def test_the_schemas_settings_are_current() -> None:
    assert generate.CHART_SCHEMA.read_text("utf-8") == generate.chart_schema_text(), "run `make docs`"


@pytest.mark.parametrize("way", ["defaults", *WAYS])
def test_good_values_fit_the_schema(way: str) -> None:
    jsonschema.Draft202012Validator(read_schema()).validate(lay_over(read_defaults(), WAYS.get(way, {})))


@pytest.mark.parametrize(
    ("values", "because"),
    [
        ({"replicas": 3}, "an unknown key is a mistake: it is called replicaCount"),
        ({"settings": {"logLevel": "loud"}}, "settings are checked by the server's own schema"),
        ({"settings": {"limits": {"maxdepth": 3}}}, "also deeper down"),
        ({"settings": {"listen": "127.0.0.1:1"}}, "what the chart sets itself cannot be set twice"),
        ({"settings": {"drainTimeout": "1h"}}, "the grace period would not follow: it is drainSeconds"),
        ({"settings": {"database": "postgresql://a:b@c/d"}}, "a password belongs in a Secret"),
        ({"insecureListen": "yes"}, "a text is true to a template, whatever it says"),
        ({"image": {"digest": "1234"}}, "a digest has its algorithm in front"),
        ({"auth": {"issuers": [{"url": "https://id.example.com"}]}}, "issuers are checked by the server's own schema"),
        ({"auth": {"settings": {}}}, "auth has keys of its own"),
        ({"tls": {"minVersion": "ssl3"}}, "too old"),
        ({"settings": {"metrics": {"public": "yes"}}}, "a text is true to a template"),
        ({"containerPort": 80}, "whoever is not root cannot listen below 1024"),
        ({"specSchemas": {"Machine": {}}}, "there is no such kind"),
        ({"podDisruptionBudget": {"maxUnavailable": 0}}, "no node could ever be drained"),
        ({"database": {"existingSecret": "postgresql://a:b@c/d"}}, "the name of a Secret, not its content"),
    ],
)
def test_bad_values_do_not(values: Values, because: str) -> None:
    assert not is_fine(values), because


@pytest.mark.parametrize("copy", generate.CHART_COPIES, ids=lambda path: path.name)
def test_what_the_chart_carries_is_current(copy: Path) -> None:
    assert copy.read_bytes() == generate.CHART_COPIES[copy].read_bytes(), "run `make docs`"


def test_every_value_has_a_default_and_every_default_a_rule() -> None:
    assert set(read_defaults()) | {"global"} == set(read_schema()["properties"])


def test_the_chart_is_of_this_version() -> None:
    (chart,) = read_yaml((CHART / "Chart.yaml").read_text("utf-8"))
    assert chart["appVersion"] == __version__


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_what_a_template_opens_it_closes(template: Path) -> None:
    text = template.read_text("utf-8")
    assert text.count("{{") == text.count("}}") == len(ACTION.findall(text))
    assert len(OPENING.findall(text)) == len(CLOSING.findall(text))


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_templates_use_only_values_and_names_that_there_are(template: Path) -> None:
    text, defaults = template.read_text("utf-8"), read_defaults()
    defaults["settings"] = dict.fromkeys(KEYS)  # what is not given there is the server's default
    defined = {name for each in TEMPLATES for name in re.findall(r'define "([^"]+)"', each.read_text("utf-8"))}
    assert set(re.findall(r'include "([^"]+)"', text)) <= defined
    for path in re.findall(r"\.Values\.([\w.]+)", text):
        value: object = defaults
        for key in path.split("."):
            assert isinstance(value, dict), path
            assert key in value, path
            value = value[key]


def list_written_settings() -> set[str]:
    """Return the keys that the template of the ConfigMap writes into the settings file itself; of a group, its keys."""
    text = (CHART / "templates/configmap.yaml").read_text("utf-8")
    (body,) = re.findall(r"^  settings\.yaml: \|\n(.*?)^  \S", text, re.DOTALL | re.MULTILINE)
    keys: list[str] = []
    for indent, key in re.findall(r"^( {4}| {6})(\w+):", body, re.MULTILINE):
        if len(indent) == 6:
            group = keys[-1].partition(".")[0]
            keys = [each for each in keys if each != group] + [f"{group}.{key}"]
        else:
            keys.append(key)
    return set(keys)


def test_the_settings_file_has_settings_that_there_are() -> None:
    assert list_written_settings() <= KEYS


def test_what_the_chart_sets_cannot_be_given_beside_it() -> None:
    assert {key.partition(".")[0] for key in list_written_settings()} == set(generate.CHART_OWNS)


def test_variables_are_settings() -> None:
    known = {CONFIG_VARIABLE, *(setting.variable for setting in SETTINGS)}
    text = "".join(template.read_text("utf-8") for template in TEMPLATES)
    named = set(re.findall(r"HYPERFLEET_\w+", text))
    assert {CONFIG_VARIABLE, "HYPERFLEET_DATABASE"} <= named <= known


def test_defaults_that_the_chart_repeats_are_the_servers() -> None:
    values, settings = read_defaults(), Settings()
    assert values["drainSeconds"] == settings.drain_timeout.total_seconds()
    assert settings.listen.endswith(f":{values['containerPort']}")
