"""Sixty calls, every field; `python tests/golden.py` writes them anew."""

import json
import math

import numpy as np
import pytest
from golden import CALLS, STORED, run

RTOL = 1e-9  # of the largest number of a field


def differences(found, known, where="", size=0.0):
    "Places where two results differ."
    if isinstance(known, dict) and isinstance(found, dict):
        if found.keys() != known.keys():
            return [f"{where}: fields {sorted(found.keys() ^ known.keys())}"]
        parts = [(found[k], known[k], f"{where}.{k}") for k in known]
        return [line for part in parts for line in differences(*part)]
    if isinstance(known, list) and isinstance(found, list):
        if len(found) != len(known):
            return [f"{where}: {len(found)} in place of {len(known)}"]
        numbers = [abs(x) for x in known if type(x) in (int, float) and math.isfinite(x)]
        size = max(numbers, default=0.0)
        parts = [
            (x, y, f"{where}[{k}]", size) for k, (x, y) in enumerate(zip(found, known))
        ]
        return [line for part in parts for line in differences(*part)]
    if type(known) is float and type(found) in (int, float):
        same = np.isclose(found, known, rtol=RTOL, atol=RTOL * size, equal_nan=True)
    else:
        same = found == known
    return [] if same else [f"{where}: {found!r} in place of {known!r}"]


GOLDEN = json.loads(STORED.read_text(encoding="utf-8")) if STORED.exists() else {}


@pytest.mark.parametrize("name", CALLS)
def test_nothing_changes(name):
    assert differences(run(name), GOLDEN[name], name) == []


def test_all_calls_are_stored_and_a_change_is_seen():
    assert [*GOLDEN] == [*CALLS] and len(CALLS) == 60
    plain = GOLDEN["plain"]
    doubled = plain | {"stderr": [2 * x for x in plain["stderr"]]}
    assert len(differences(doubled, plain)) == 4
    assert differences(plain | {"notes": ["new"]}, plain)
    moved = plain | {"values": [x * (1 + 1e-8) for x in plain["values"]]}
    assert differences(moved, plain)
