"""The dashboard, against the schemas that Grafana itself publishes for its panels."""

import copy
import json

import pytest


@pytest.fixture(scope="module")
def dashboard(top):
    return json.loads((top / "config/prometheus/httpdnsd.dashboard.json").read_text())


@pytest.fixture(scope="module")
def read():
    """The dashboard after a pass through Grafana's own types."""
    sdk = pytest.importorskip("grafana_foundation_sdk", reason="make container-test brings it")
    assert sdk
    from grafana_foundation_sdk.cog import encoder, plugins
    from grafana_foundation_sdk.models import dashboard as types
    plugins.register_default_plugins()
    return lambda given: json.loads(encoder.JSONEncoder().encode(types.Dashboard.from_json(given)))


def lost(given, kept, path=""):
    """The parts of the first that the second lacks."""
    if isinstance(given, dict) and isinstance(kept, dict):
        for key, value in given.items():
            yield from lost(value, kept[key], f"{path}.{key}") if key in kept else [f"{path}.{key}"]
    elif isinstance(given, list) and isinstance(kept, list) and len(given) == len(kept):
        for place, (one, other) in enumerate(zip(given, kept)):
            yield from lost(one, other, f"{path}[{place}]")
    elif given != kept:
        yield path


def test_grafana_knows_every_word_of_it(dashboard, read):
    assert list(lost(dashboard, read(dashboard))) == []


@pytest.mark.parametrize("spoil", [
    lambda board: board.update(tittle="x"),
    lambda board: board["panels"][1]["gridPos"].update(width=3),
    lambda board: board["panels"][1]["options"].update(colourMode="value"),
    lambda board: board["panels"][1]["targets"][0].update(expression="up"),
    lambda board: board["templating"]["list"][1].update(allowAll=True),
    lambda board: board["panels"][8]["fieldConfig"]["defaults"]["custom"].update(x=1),
], ids=["dashboard", "place", "options", "target", "variable", "custom"])
def test_the_schema_does_look(dashboard, read, spoil):
    spoiled = copy.deepcopy(dashboard)
    spoil(spoiled)
    assert len(list(lost(spoiled, read(spoiled)))) == 1
