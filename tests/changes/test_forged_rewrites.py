"""A forged description of rewritten state: every field of real plans, changed in many ways."""

from __future__ import annotations

import copy
import itertools
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from carried import GO
from changes.test_migrate import WIDER, golden, planned
from floodmark import api
from floodmark.changes.plan import Plan, digest_of, plan_to_json
from floodmark.errors import FloodmarkError

REFUSED = (2, 3, 4)
GONE = object()
ODD: tuple[Any, ...] = (
    *(None, True, -1, 7, 2**31, 10**15, 10**40, 1.5, float("inf")),
    *("", "x", "1", "../../home", "/etc/passwd", "\x1b[2J", "lz4", "hdfs", "rocksdb"),
    *([], [[]], ["../home"], {}, {"a": {"b": [1]}}, {"../x": 1}, GONE),
)
PLANS: dict[str, Callable[[str, str], Plan]] = {
    "repartition-hdfs": lambda old, new: api.repartition(old, new, partitions=3).plan,
    "repartition-rocksdb": lambda old, new: api.repartition(old, new, partitions=3).plan,
    "repartition-join": lambda old, new: api.repartition(old, new, partitions=3).plan,
    "convert": lambda old, new: api.convert(old, new, provider="rocksdb").plan,
    "convert-ids": lambda old, new: api.convert(old, new, provider="rocksdb", state_format=2).plan,
    "migrate": lambda old, new: planned(old, new, WIDER),
}
CHECKPOINTS = {
    "repartition-rocksdb": "4.2/sales-rocksdb",
    "repartition-join": "4.2/join",
}


def ways(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every field, and to the first item of every list."""
    yield at
    if isinstance(value, dict):
        for key in value:
            yield from ways(value[key], (*at, key))
    elif isinstance(value, list) and value:
        yield from ways(value[0], (*at, 0))


def with_odd(value: Any, way: tuple[Any, ...], odd: Any) -> Any:
    made = copy.deepcopy(value)
    inside = made
    for key in way[:-1]:
        inside = inside[key]
    if odd is GONE:
        del inside[way[-1]]
    else:
        inside[way[-1]] = odd
    return made


def forged(plan: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    at = next(i for i, step in enumerate(plan["steps"]) if step["do"] == "rewrite-state")
    for way in ways(plan["steps"][at]):
        if not way:
            continue
        for odd in ODD:
            made = with_odd(plan, ("steps", at, *way), odd)
            if made != plan:
                yield f"{way} {odd!r:.20}", made


def seen(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("name", PLANS)
def test_a_forged_target_is_refused_and_nothing_is_written(name: str, tmp_path: Path) -> None:
    _try(name, tmp_path, 7)


@pytest.mark.soak
@pytest.mark.parametrize("name", PLANS)
def test_every_forged_target_is_refused(name: str, tmp_path: Path) -> None:
    _try(name, tmp_path, 1)


def _try(name: str, tmp_path: Path, one_in: int) -> None:
    old = golden(CHECKPOINTS.get(name, "4.2/sales-hdfs"), tmp_path)
    new, saved = tmp_path / "new", tmp_path / "plan.json"
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.txt").write_text("mine")
    plan = plan_to_json(PLANS[name](old, str(new)))
    before = seen(tmp_path)
    refused = done = 0
    wrong = []
    for what, made in itertools.islice(forged(plan), 0, None, one_in):
        made["digest"] = digest_of(made)
        saved.write_text(json.dumps(made))
        status = status_of(saved)
        if status == 0:
            done += 1  # still a plan that can be carried out: for another reason, say
            shutil.rmtree(new)
        else:
            refused += 1
        saved.unlink()
        if status not in (0, *REFUSED) or seen(tmp_path) != before:
            wrong.append((what, status))
            shutil.rmtree(new, ignore_errors=True)
    print(f"\n{name}: {refused} refused, {done} carried out")
    assert wrong == []
    assert refused > 5 * done


def status_of(saved: Path) -> int | str:
    try:
        assert api.apply(str(saved), carrying=GO).executed
    except FloodmarkError as error:
        return error.status if error.do else f"no way out: {error}"
    return 0
