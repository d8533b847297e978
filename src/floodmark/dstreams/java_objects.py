"""Reads Java's object serialization as data: classes and fields by their names.

No class is loaded and no method is called. The work is bounded by the stream's length: a stream
that nests without end, or that makes much of few bytes, ends with an error. The format is fixed by
Java's Object Serialization Specification, chapter 6.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from floodmark.errors import MalformedFile, OverLimit
from floodmark.state.files.javadata import DataReader, decode_utf

MAGIC = b"\xac\xed\x00\x05"
_FIRST_HANDLE = 0x7E0000
_DEEPEST = 5_000
"""The deepest nesting of objects. Java itself has no stack for more."""
_MOST_PARENTS = 100
_FREE_STEPS = 100_000
_STEPS_PER_BYTE = 1
"""The content that Spark writes takes at most a third of a step for a byte."""

_WRITE_METHOD, _SERIALIZABLE, _EXTERNALIZABLE, _BLOCK_DATA, _ENUM = 0x01, 0x02, 0x04, 0x08, 0x10
_PRIMITIVES = {
    "B": struct.Struct(">b"),
    "C": struct.Struct(">H"),
    "D": struct.Struct(">d"),
    "F": struct.Struct(">f"),
    "I": struct.Struct(">i"),
    "J": struct.Struct(">q"),
    "S": struct.Struct(">h"),
    "Z": struct.Struct(">?"),
}
_Steps = Generator[Any, Any, Any]
"""Reads a value with parts. It yields each part that it needs, and receives the part's value."""


@dataclass(frozen=True)
class JavaClass:
    """A class as the stream describes it: its name, its fields, the class that it extends."""

    name: str
    flags: int
    fields: tuple[tuple[str, str], ...]
    """(type code, name) of each field."""
    parent: JavaClass | None = None

    @cached_property
    def lineage(self) -> tuple[JavaClass, ...]:
        """The class and those that it extends, the nearest first."""
        found: list[JavaClass] = []
        one: JavaClass | None = self
        while one is not None:
            found.append(one)
            one = one.parent
        return tuple(found)


@dataclass(eq=False, repr=False)
class JavaObject:
    """An object: the fields of each of its classes, and the extra data that a class wrote."""

    java_class: JavaClass
    fields: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Class name → field name → value."""
    written: list[Any] = field(default_factory=list)
    """The data that `writeObject` methods added: values, and `bytes` for numbers."""

    @property
    def name(self) -> str:
        return self.java_class.name

    def get(self, name: str, of_class: str | None = None) -> Any:
        """Return a field's value, of the nearest class first; None if there is no such field."""
        for one in self.java_class.lineage:
            found = self.fields.get(one.name, {})
            if name in found and of_class in (None, one.name):
                return found[name]
        return None

    def extends(self, name: str) -> bool:
        return any(one.name == name for one in self.java_class.lineage)


@dataclass(eq=False, repr=False)
class JavaArray:
    java_class: JavaClass
    items: list[Any] | bytes
    """`bytes` for a `byte[]`."""


@dataclass(frozen=True)
class JavaEnum:
    java_class: JavaClass
    constant: str


def read_object(data: bytes) -> tuple[Any, list[JavaObject]]:
    """Return the first object of a stream, and all objects inside it, in the order of writing."""
    reading = _Reading(data)
    value = next(reading.top_level(), None)
    if value is None:
        raise MalformedFile("the stream holds no object", "The file's write was interrupted.")
    return value, reading.objects


def read_objects(data: bytes) -> Iterator[Any]:
    """Yield every object that was written to a stream, one after another."""
    return _Reading(data).top_level()


class _Reading:
    def __init__(self, data: bytes) -> None:
        if data[:4] != MAGIC:
            raise MalformedFile(
                f"a stream of Java objects does not begin with {data[:4].hex(' ') or 'nothing'}",
                "Java's serialization begins with ac ed 00 05.",
            )
        self._in = DataReader(data, len(MAGIC))
        self._handles: list[Any] = []
        self._steps = _FREE_STEPS + _STEPS_PER_BYTE * len(data)
        self.objects: list[JavaObject] = []
        self._kinds: dict[int, Callable[[], Any]] = {
            0x70: self._null,
            0x71: self._reference,
            0x72: self._class_description,
            0x73: self._object,
            0x74: lambda: self._string(">H"),
            0x75: self._array,
            0x76: self._class,
            0x77: lambda: self._block(">B"),
            0x7A: lambda: self._block(">i"),
            0x7C: lambda: self._string(">q"),
            0x7D: self._proxy_class,
            0x7E: self._enum,
        }

    def top_level(self) -> Iterator[Any]:
        while not self._in.at_end:
            if self._in.data[self._in.position] == 0x79:  # the writer forgot what it wrote
                self._in.position += 1
                self._handles.clear()
                self.objects.clear()
                continue
            yield self._run(self._content())

    def _run(self, content: Any) -> Any:
        """Return the value of a content; its parts are read on a separate stack, not on
        Python's.
        """
        if not isinstance(content, Generator):
            return content
        stack, value = [content], None
        while stack:
            self._spend(1)
            try:
                asked = stack[-1].send(value)
            except StopIteration as ended:
                stack.pop()
                value = ended.value
                continue
            if not isinstance(asked, Generator):
                value = asked
                continue
            stack.append(asked)
            value = None
            if len(stack) > 3 * _DEEPEST:
                raise OverLimit(
                    f"the objects are nested more than {_DEEPEST:,} levels deep",
                    "Java itself could not read them back.",
                    "Check the file: Spark does not write such an application.",
                )
        return value

    def _spend(self, steps: int) -> None:
        self._steps -= steps
        if self._steps < 0:
            raise OverLimit(
                "the stream needs more work than its size allows",
                "Somebody may have made it to keep its reader busy.",
                "Check the file: Spark does not write such a stream.",
            )

    def _content(self) -> Any:
        """Return the next value, or the steps that read it."""
        kind = self._in.take(1)[0]
        found = self._kinds.get(kind)
        if found is None:
            if kind == 0x7B:
                raise MalformedFile("the stream ends with an error of its writer")
            raise MalformedFile(
                f"byte {self._in.position - 1}: no Java value begins with {kind:#04x}"
            )
        return found()

    def _null(self) -> Any:
        return None

    def _reference(self) -> Any:
        at = self._in.int32() - _FIRST_HANDLE
        if not 0 <= at < len(self._handles):
            raise MalformedFile(f"byte {self._in.position - 4}: a reference to nothing")
        return self._handles[at]

    def _string(self, length: str) -> Any:
        text = decode_utf(self._in.take(self._in.number(length)))
        self._handles.append(text)
        return text

    def _block(self, length: str) -> Any:
        return self._in.take(self._in.number(length))

    def _class_description(self) -> _Steps:
        name = self._in.utf()
        self._in.take(8)
        at = len(self._handles)
        self._handles.append(None)
        flags = self._in.take(1)[0]
        count = self._in.number(">H")
        fields = []
        for _ in range(count):
            self._spend(1)
            code = chr(self._in.take(1)[0])
            field_name = self._in.utf()
            if code in "[L":
                yield self._content()
            elif code not in _PRIMITIVES:
                raise MalformedFile(f"{name}: a field of the unknown type {code!r}")
            fields.append((code, field_name))
        yield self._annotation()
        parent = yield self._content()
        if parent is not None and not isinstance(parent, JavaClass):
            raise MalformedFile(f"{name}: the stream names no class that it extends")
        described = JavaClass(name, flags, tuple(fields), parent)
        if len(described.lineage) > _MOST_PARENTS:
            raise OverLimit(f"{name} extends more than {_MOST_PARENTS} classes")
        self._handles[at] = described
        return described

    def _proxy_class(self) -> _Steps:
        at = len(self._handles)
        self._handles.append(None)
        count = self._in.int32()
        if count > 65535:
            raise MalformedFile("a proxy of more interfaces than Java allows")
        names = [self._in.utf() for _ in range(count)]
        yield self._annotation()
        parent = yield self._content()
        described = JavaClass(
            f"proxy of {', '.join(names)}",
            _SERIALIZABLE,
            (),
            parent if isinstance(parent, JavaClass) else None,
        )
        if len(described.lineage) > _MOST_PARENTS:
            raise OverLimit(f"{described.name} extends more than {_MOST_PARENTS} classes")
        self._handles[at] = described
        return described

    def _annotation(self) -> _Steps:
        """Return the extra data that a class wrote, up to the closing mark."""
        found = []
        while self._in.data[self._in.position : self._in.position + 1] != b"\x78":
            found.append((yield self._content()))
        self._in.position += 1
        return found

    def _described(self) -> _Steps:
        described = yield self._content()
        if not isinstance(described, JavaClass):
            raise MalformedFile(f"byte {self._in.position}: an object without a class")
        return described

    def _class(self) -> _Steps:
        described = yield self._described()
        self._handles.append(described)
        return described

    def _enum(self) -> _Steps:
        described = yield self._described()
        at = len(self._handles)
        self._handles.append(None)
        constant = yield self._content()
        self._handles[at] = JavaEnum(described, str(constant))
        return self._handles[at]

    def _object(self) -> _Steps:
        described = yield self._described()
        made = JavaObject(described)
        self._handles.append(made)
        self.objects.append(made)
        for one in reversed(described.lineage):
            self._spend(1)
            if one.flags & _SERIALIZABLE:
                yield self._fields(made, one)
                if one.flags & _WRITE_METHOD:
                    made.written += yield self._annotation()
            elif one.flags & _EXTERNALIZABLE:
                if not one.flags & _BLOCK_DATA:
                    raise MalformedFile(
                        f"{one.name} was written in a form that only this class can read"
                    )
                made.written += yield self._annotation()
        return made

    def _fields(self, made: JavaObject, of_class: JavaClass) -> _Steps:
        values = made.fields.setdefault(of_class.name, {})
        for code, name in of_class.fields:
            self._spend(1)
            values[name] = (yield self._content()) if code in "[L" else self._primitive(code)

    def _primitive(self, code: str) -> Any:
        layout = _PRIMITIVES[code]
        value = layout.unpack(self._in.take(layout.size))[0]
        return chr(value) if code == "C" else value

    def _array(self) -> _Steps:
        described = yield self._described()
        made = JavaArray(described, [])
        self._handles.append(made)
        size, code = self._in.int32(), described.name[1:2]
        layout = _PRIMITIVES.get(code)
        if code == "B":
            made.items = self._in.take(size)
        elif layout is not None:
            raw = self._in.take(size * layout.size)
            made.items = [value for (value,) in layout.iter_unpack(raw)]
        else:
            items: list[Any] = []
            made.items = items
            for _ in range(size):
                items.append((yield self._content()))
        return made
