"""JSON Schemas of what the verbs print with --json, made from the dataclasses that they print."""

from __future__ import annotations

import ast
import dataclasses
import enum
import functools
import importlib
import inspect
import itertools
import sys
import textwrap
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

Schema = dict[str, Any]
Shape = Any
"""A type, a dict of field names and shapes, a list of such a dict, or one of these `Described`."""


@dataclasses.dataclass(frozen=True)
class Described:
    shape: Shape
    words: str


def _named(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(f"floodmark.{module}"), name)


def _many(path: str, words: str) -> Described:
    return Described(list[_named(path)], words)  # type: ignore[misc]


def _shapes() -> dict[str, Shape]:
    """Document → what it is made of. A second document of a verb has the option in its name."""
    findings = {"findings": _many("rules.finding.Finding", "What the rules found, worst first.")}
    batch = _named("engine.proof.replay.ReplayedBatch")
    sink = _named("checkpoint.live_answers.SinkLog") | None
    inspection = _named("checkpoint.views.inspection.Inspection")
    return {
        "inspect": inspection,
        "inspect --schema": (
            inspection,
            {"schemas": _many("statestore.schema.StoreSchema", "What each store keeps.")},
        ),
        "inspect PIPELINE": _named("api.pipelines.PipelineFlows"),
        "batches": {"batches": _many("checkpoint.views.inspection.BatchSummary", "Oldest first.")},
        "offsets": _named("checkpoint.views.position.Position"),
        "files": {"files": _many("connectors.files.input_files.InputFile", "In order of the log.")},
        "state": {
            "operator": Described(int, "The stateful operator."),
            "store": Described(str, "Its store."),
            "batch": Described(int, "The state is that after this batch."),
            "key_schema": Described(str, "The key's columns, as DDL."),
            "value_schema": Described(str, "The value's columns, as DDL."),
            "rows": Described(list[dict[str, Any]], "Column → value, up to `--limit` rows."),
        },
        "state --stats": _named("statestore.key_counts.StateStats"),
        "state --changes": _named("statestore.diff.StateDiff"),
        "state --export": {
            "file": Described(str, "The file that was written."),
            "rows": Described(int, "How many rows it has."),
        },
        "diff": {
            "differences": _many(
                "checkpoint.views.differences.Difference", "What the logs differ in."
            ),
            "state": _many("statestore.compare.StateDifference", "What the state differs in."),
        },
        "scan": {"checkpoints": _many("checkpoint.views.inspection.ScanEntry", "Sorted by path.")},
        "lag": _named("connectors.behind.Lag"),
        "watch": _named("fleet.sighting.Sighting"),
        "run": _named("engine.run.stream.RunReport"),
        "run --bisect": _named("engine.bisect.bisect.BisectReport"),
        "demo": _named("engine.demo.story.Story"),
        "check": _named("rules.restarts.reason.Judgement"),
        "compare": _named("engine.proof.compare.CodeComparison"),
        "drill": _named("engine.drill.drill.Drill"),
        "replay": (batch, _replay()),
        "replay --batches": {
            "batches": Described(list[batch], "In order."),  # type: ignore[valid-type]
            "matches_checkpoint": Described(
                bool | None, "Every state is the checkpoint's; null where none can be compared."
            ),
            **_replay(),
        },
        "doctor": {
            **findings,
            "sink": Described(sink, "What `--sink` has; null without it."),
            "not_examined": Described(
                str | None,
                "What was not examined, so that its silence proves nothing; null where all was.",
            ),
        },
        "lint": findings,
        "explain": _rule(),
        "explain --all": {"rules": Described([_rule()], "Every rule, by its code.")},
        "a changing verb": {
            "plan": Described(_named("changes.plan.Plan"), "What is done, and why."),
            "executed": Described(bool, "It was carried out."),
        },
        "backup --list": {"snapshots": Described([_snapshot()], "Oldest first.")},
        "backup --check": {
            "snapshots": Described(int, "How many were read."),
            "damage": _many("storage.repository.Damage", "Contents that are not as they were."),
        },
    }


def _replay() -> dict[str, Shape]:
    said = field_words(_named("engine.proof.replay.Replay"))
    kinds: dict[str, Any] = {"checkpoint": str, "application": str, "same_code": bool | None}
    kinds["foreach_batch"] = str
    return {name: Described(kind, said[name]) for name, kind in kinds.items()}


def _rule() -> dict[str, Shape]:
    severity = _named("rules.finding.Severity")
    return {
        "code": Described(str, "The rule's code."),
        "rule": Described(str, "The rule's name, which `--allow` takes."),
        "severity": Described(severity, "Of its worst finding."),
        "finds": Described(str, "What it finds."),
        "why": Described(str, "Why it matters."),
        "restart": Described(str, "What Spark does when the query is started like this."),
        "do": Described(str, "What to do instead."),
        "repairable": Described(bool, "`floodmark repair` can mend it."),
    }


def _snapshot() -> dict[str, Shape]:
    return {
        "id": Described(str, "The snapshot's id, which `restore --snapshot` takes."),
        "made_ms": Described(int, "When it was made."),
        "location": Described(str, "The checkpoint that was backed up."),
        "query_id": Described(str | None, "The id by which sinks know the query."),
        "batch": Described(int | None, "The last committed batch in it."),
        "files": Described(int, "The number of its files."),
        "bytes": Described(int, "The total size of its files."),
    }


@functools.cache
def schemas() -> dict[str, Schema]:
    """Document → its JSON Schema."""
    return {name: _document(name, shape) for name, shape in _shapes().items()}


def _document(name: str, shape: Shape) -> Schema:
    known: dict[str, Schema] = {}
    body = _of(shape, known)
    if "$ref" in body:
        body = known[body["$ref"].rpartition("/")[2]]
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    used = {key: known[key] for key in sorted(known)}
    title = "floodmark VERB --json" if name.startswith("a ") else f"floodmark {name} --json"
    return {**head, "title": title, **body, **({"$defs": used} if used else {})}


_PLAIN: dict[Any, Schema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    Any: {},
    object: {},
}


def _of(shape: Shape, known: dict[str, Schema]) -> Schema:
    if isinstance(shape, Described):
        return {**_of(shape.shape, known), "description": shape.words}
    if isinstance(shape, dict):
        return _object({key: _of(item, known) for key, item in shape.items()}, shape)
    if isinstance(shape, list):
        return {"type": "array", "items": _of(shape[0], known)}
    if isinstance(shape, tuple):
        one, more = shape
        base = _of(one, known)
        body = known[base["$ref"].rpartition("/")[2]]
        extra = {key: _of(item, known) for key, item in more.items()}
        return _object({**body["properties"], **extra}, [*body["required"], *extra])
    if shape in _PLAIN:
        return dict(_PLAIN[shape])
    if isinstance(shape, type) and issubclass(shape, enum.Enum):
        return {"enum": [member.value for member in shape]}
    if dataclasses.is_dataclass(shape) and isinstance(shape, type):
        return _dataclass(shape, known)
    return _generic(shape, known)


def _object(
    properties: Mapping[str, Schema], required: Sequence[str] | Mapping[str, Any]
) -> Schema:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }


def _generic(shape: Shape, known: dict[str, Schema]) -> Schema:
    origin: Any = typing.get_origin(shape)
    arguments = typing.get_args(shape)
    if origin in (typing.Union, types.UnionType):
        return _either([_of(one, known) for one in arguments])
    if origin is typing.Literal:
        return {"enum": list(arguments)}
    if origin is tuple and arguments[-1] is not Ellipsis:
        items = [_of(one, known) for one in arguments]
        return {"type": "array", "prefixItems": items, "items": False}
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": _of(arguments[1], known)}
    if isinstance(origin, type) and issubclass(origin, (Sequence, AbstractSet)):
        return {"type": "array", "items": _of(arguments[0], known)}
    if shape in (dict, Mapping):
        return {"type": "object"}
    raise TypeError(f"no schema for {shape!r}")


def _either(ways: list[Schema]) -> Schema:
    if all(set(way) == {"type"} and isinstance(way["type"], str) for way in ways):
        return {"type": [way["type"] for way in ways]}
    return {"anyOf": ways}


def _dataclass(kind: type, known: dict[str, Schema]) -> Schema:
    name = kind.__name__
    if name not in known:
        known[name] = {}
        from floodmark.changes.plan.steps import Step

        known[name] = _steps(known) if kind is Step else _fields(kind, known)
    return {"$ref": f"#/$defs/{name}"}


def _fields(kind: type, known: dict[str, Schema]) -> Schema:
    hints, said = _hints(kind), field_words(kind)
    properties = {}
    for field in dataclasses.fields(kind):
        schema = _of(hints[field.name], known)
        if field.name in said:
            schema = {**schema, "description": said[field.name]}
        properties[field.name.rstrip("_")] = schema
    body = _object(properties, list(properties))
    words = _docstring(kind)
    return {"description": words, **body} if words else body


def _steps(known: dict[str, Schema]) -> Schema:
    """A step leaves out what it has nothing to say about."""
    from floodmark.changes.plan.steps import _KEYS, OPERATIONS

    properties: dict[str, Schema] = {
        "do": {"enum": sorted(OPERATIONS), "description": "What is done with the path."}
    }
    for kind in OPERATIONS.values():
        hints, said = _hints(kind), field_words(kind)
        for field in dataclasses.fields(kind):
            if field.name in _KEYS and field.name not in properties:
                schema = {} if field.name == "how" else _of(hints[field.name], known)
                words = said.get(field.name)
                properties[field.name] = {**schema, "description": words} if words else schema
    return _object(properties, ["do", "path", "why"])


def _hints(kind: type) -> dict[str, Any]:
    """The types of a dataclass' fields, also of those that are imported for type checkers alone."""
    found: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        if dataclasses.is_dataclass(base):
            names = {**vars(sys.modules[base.__module__]), **dict(_checked_imports(base))}
            for name, text in vars(base).get("__annotations__", {}).items():
                if "ClassVar" not in str(text):
                    found[name] = eval(text, names) if isinstance(text, str) else text
    return found


def _checked_imports(kind: type) -> Iterator[tuple[str, Any]]:
    tree = ast.parse(inspect.getsource(sys.modules[kind.__module__]))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for one in ast.walk(node):
                if isinstance(one, ast.ImportFrom) and one.module:
                    for alias in one.names:
                        value = getattr(importlib.import_module(one.module), alias.name)
                        yield alias.asname or alias.name, value


def field_words(kind: type) -> dict[str, str]:
    """Field → the text that stands below it in the source."""
    said: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if dataclasses.is_dataclass(base) and isinstance(base, type):
            body = ast.parse(textwrap.dedent(inspect.getsource(base)))
            for node in ast.walk(body):
                if isinstance(node, ast.ClassDef):
                    said.update(_pairs(node.body))
    return said


def enum_words(kind: type[enum.Enum]) -> dict[str, str]:
    """Value → the text that stands below it in the source."""
    [node] = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(node, ast.ClassDef)
    said: dict[str, str] = {}
    for one, after in itertools.pairwise(node.body):
        if isinstance(one, ast.Assign) and isinstance(after, ast.Expr):
            [name] = one.targets
            words = ast.literal_eval(after.value)
            said[ast.unparse(name)] = " ".join(str(words).split())
    return said


def _pairs(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    for one, after in itertools.pairwise(body):
        is_field = isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
        is_text = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        if is_field and is_text and isinstance(after.value.value, str):  # type: ignore[attr-defined]
            yield one.target.id, " ".join(after.value.value.split())  # type: ignore[attr-defined]


def _docstring(kind: type) -> str | None:
    words = inspect.getdoc(kind)
    made_by_dataclass = words is None or words.startswith(f"{kind.__name__}(")
    return None if made_by_dataclass else " ".join((words or "").split())


def rows(schema: Schema) -> Iterator[tuple[str, str, str]]:
    """Each field of a document: its path, its type, what it is. Lists end with []."""
    yield from _rows(schema, schema.get("$defs", {}), "", ())


def _rows(
    schema: Schema, defs: Mapping[str, Schema], path: str, above: tuple[str, ...]
) -> Iterator[tuple[str, str, str]]:
    for name, one in schema.get("properties", {}).items():
        here = f"{path}.{name}" if path else name
        words = one.get("description", "")
        inner = list(_inner(one))
        many = any(is_list for _, is_list in inner)
        yield here + ("[]" if many else ""), _type(one), words
        for reference, is_list in inner:
            if reference not in above:
                end = "[]" if is_list else ""
                yield from _rows(defs[reference], defs, here + end, (*above, reference))
        if "items" in one and "properties" in (one["items"] or {}):
            yield from _rows(one["items"], defs, here, above)


def _inner(schema: Schema, is_list: bool = False) -> Iterator[tuple[str, bool]]:
    if "$ref" in schema:
        yield schema["$ref"].rpartition("/")[2], is_list
    for way in schema.get("anyOf", ()):
        yield from _inner(way, is_list)
    if isinstance(schema.get("items"), dict):
        yield from _inner(schema["items"], True)
    if isinstance(schema.get("additionalProperties"), dict):
        yield from _inner(schema["additionalProperties"], is_list)


def _type(schema: Schema) -> str:
    if "$ref" in schema:
        return "object"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(way) for way in schema["anyOf"]))
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    kind = schema.get("type", "any JSON")
    return kind if isinstance(kind, str) else " or ".join(kind)
