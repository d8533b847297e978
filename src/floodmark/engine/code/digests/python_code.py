"""Digests a Python function by what it does, not by where it is written.

A plan holds a function as pickled bytes, which change with line numbers and file names. This
digest ignores comments, docstrings, empty lines and names of variables. It includes closures,
defaults, the globals that the function uses, the methods and values of objects that it holds,
and the modules that it imports. Names of parameters count where a call passes arguments by name.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import json
import re
import sys
import types
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from floodmark.engine.code.digests.python_modules import (
    imported_name,
    is_installed,
    is_package,
    is_users,
    module_code,
)
from floodmark.rules.restarts.difference_words import NOT_COMPARED

_PLAIN = (type(None), bool, int, float, complex, str, bytes)
_DEEPEST = 100
Seen = dict[int, tuple[int, Any]]
"""Objects by their id; each is kept alive, so that no other object gets the same id."""
_BUILT_IN = (
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.MethodWrapperType,
    types.ClassMethodDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
)
_CACHED = functools._lru_cache_wrapper
_OF_A_MODULE = ("LOAD_ATTR", "LOAD_METHOD")
_BY_TEXT = frozenset({"import_module", "__import__"})
_TAKES_ANY = 0x04 | 0x08  # *args and **kwargs
_CALLED_BY_NAME = {"KW_NAMES", "CALL_KW", "CALL_FUNCTION_KW", "CALL_FUNCTION_EX"}
_PARAMETERS, _NOT_FOUND = "parameters: ", "no module "
_OF_EVERY_CLASS = {
    *("__module__", "__qualname__", "__doc__", "__dict__", "__weakref__", "__annotations__"),
    *("__slots__", "__slotnames__", "__firstlineno__", "__static_attributes__", "__hash__"),
    *("__abstractmethods__", "__orig_bases__", "__parameters__", "__type_params__"),
    "__match_args__",
}
"""What Python itself keeps in a class; what of it matters stands in the methods as well."""


def function_digest(function: Any, by_name: bool = False) -> str:
    """Return a digest such as `3.11:5f3a…`: byte code differs between Python's minor releases.

    `by_name`: the query passes arguments to it by name.
    """
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    said = list(_said(function, {}, 0))
    missing = sorted({one for one in said if one.startswith(_NOT_FOUND)})
    if missing:  # the digest is random, so that it never equals another
        return f"{version}:{NOT_COMPARED}{', '.join(missing)} is found here ({uuid.uuid4()})"
    if not by_name and _CALLED_BY_NAME.isdisjoint(said):
        said = [one for one in said if not one.startswith(_PARAMETERS)]
    return f"{version}:{hashlib.sha256(json.dumps(said).encode()).hexdigest()}"


def _said(value: Any, seen: Seen, depth: int) -> Iterator[str]:
    if isinstance(value, _PLAIN):
        yield repr(value)
        if type(value) not in _PLAIN and is_users(type(value).__module__):  # it may have methods
            yield from _said(type(value), seen, depth + 1)
        return
    if id(value) in seen or depth > _DEEPEST:
        yield f"again {type(value).__name__} {seen.get(id(value), (None,))[0]}"
        return
    seen[id(value)] = (len(seen), value)
    yield type(value).__name__
    if isinstance(value, types.MethodType):
        yield from _said(value.__func__, seen, depth + 1)
        yield from _said(value.__self__, seen, depth + 1)
    elif isinstance(value, types.FunctionType):
        yield from _function(value, seen, depth)
    elif type(value) is dict:  # in its order, which may decide which entry is used
        for key, inner in value.items():
            yield from _said(key, seen, depth + 1)
            yield from _said(inner, seen, depth + 1)
    elif type(value) in (list, tuple):
        for one in value:
            yield from _said(one, seen, depth + 1)
    elif type(value) in (set, frozenset):
        yield from sorted(_member(one, seen, depth) for one in value)
    elif isinstance(value, property):
        for accessor in (value.fget, value.fset, value.fdel):
            yield from _said(accessor, seen, depth + 1)
    elif isinstance(value, types.MappingProxyType):
        yield from _said(dict(value), seen, depth + 1)
    elif isinstance(value, _BUILT_IN):
        yield f"{getattr(value, '__module__', None)}.{value.__qualname__}"
        owner = getattr(value, "__self__", None)
        if not isinstance(owner, types.ModuleType):
            yield from _said(owner, seen, depth + 1)
    elif isinstance(value, types.CodeType):
        yield from _code(value, {}, seen, depth + 1)
    elif isinstance(value, type):
        yield from _class(value, seen, depth)
    elif isinstance(value, types.ModuleType):
        yield from _module(value.__name__, seen, depth)
    else:
        yield from _object(value, seen, depth)


def _member(value: Any, seen: Seen, depth: int) -> str:
    """Return one text for a member of a set; the text of an object may have its address in it."""
    parts = value if type(value) is tuple else (value,)
    if all(isinstance(one, _PLAIN) for one in parts):
        return repr(value)
    return json.dumps(list(_said(value, dict(seen), depth + 1)))


def _function(function: types.FunctionType, seen: Seen, depth: int) -> Iterator[str]:
    if not is_users(function.__module__):
        yield f"{function.__module__}.{function.__qualname__}"
        # A wrapper of Spark holds the user's function in its closure.
        for cell in function.__closure__ or ():
            yield from _cell(cell, seen, depth)
        return
    yield from _code(function.__code__, function.__globals__, seen, depth)
    yield from _said(function.__defaults__, seen, depth + 1)
    yield from _said(function.__kwdefaults__, seen, depth + 1)
    for name, value in sorted(vars(function).items()):  # attributes that code gave it
        if not name.startswith("__"):
            yield name
            yield from _said(value, seen, depth + 1)
    for cell in function.__closure__ or ():
        yield from _cell(cell, seen, depth)


def _cell(cell: Any, seen: Seen, depth: int) -> Iterator[str]:
    try:
        yield from _said(cell.cell_contents, seen, depth + 1)
    except ValueError:
        yield "empty"


def _code(code: types.CodeType, names: Mapping[str, Any], seen: Seen, depth: int) -> Iterator[str]:
    """Yield the steps of the code: variables by number, globals and constants by value."""
    yield f"{code.co_argcount} {code.co_posonlyargcount} {code.co_kwonlyargcount}"
    yield f"{code.co_flags & _TAKES_ANY} {getattr(code, 'co_exceptiontable', b'').hex()}"
    taken = code.co_argcount + code.co_kwonlyargcount
    yield f"{_PARAMETERS}{' '.join(code.co_varnames[:taken])}"
    if not _BY_TEXT.isdisjoint(code.co_names):
        for text in code.co_consts:
            if isinstance(text, str) and is_users(text) and module_code(text) is not None:
                yield from _module(text, seen, depth)
    module: Any = None
    steps = list(dis.get_instructions(code))
    for at, step in enumerate(steps):
        yield step.opname
        before, module = module, None
        if isinstance(step.argval, types.CodeType):
            yield from _code(step.argval, names, seen, depth + 1)
        elif step.opcode in dis.hasconst:
            yield from _said(step.argval, seen, depth + 1)
        elif step.opname in ("LOAD_GLOBAL", "LOAD_NAME") and step.argval in names:
            module = names[step.argval]
            if _is_users_module(module) and steps[at + 1].opname in _OF_A_MODULE:
                yield module.__name__
            else:
                yield from _said(module, seen, depth + 1)
        elif step.opname == "IMPORT_NAME":
            yield from _imported(steps, at, names, seen, depth)
        elif step.opname in _OF_A_MODULE and _is_users_module(before):
            # Only what the function uses of the module counts, not the rest of the module.
            inner = getattr(before, str(step.argval), None)
            yield str(step.argval)
            if not _is_users_module(inner) or steps[at + 1].opname not in _OF_A_MODULE:
                yield from _said(inner, seen, depth + 1)
            module = inner
        elif step.opcode in dis.hasname:
            yield str(step.argval)
        else:
            yield str(step.arg)


def _imported(
    steps: list[dis.Instruction], at: int, names: Mapping[str, Any], seen: Seen, depth: int
) -> Iterator[str]:
    """Yield what is imported, with all modules that `from package import module` names."""
    level = steps[at - 2].argval if at > 1 else 0
    package = names.get("__package__")
    name = imported_name(str(steps[at].argval), level if isinstance(level, int) else 0, package)
    if module_code(name) is None and is_users(name) and is_installed(str(names.get("__name__"))):
        # An installed package does without it, or finds another: of a newer Python, say.
        yield f"absent: {name}"
        return
    yield from _module(name, seen, depth)
    for step in steps[at + 1 :]:
        if step.opname == "IMPORT_FROM" and module_code(f"{name}.{step.argval}") is not None:
            yield from _module(f"{name}.{step.argval}", seen, depth)
        elif step.opname not in ("IMPORT_FROM", "STORE_FAST", "STORE_NAME", "STORE_DEREF"):
            return


def _module(name: str, seen: Seen, depth: int) -> Iterator[str]:
    """Yield the whole code of a user's module; for Python's and Spark's modules only the name."""
    yield name
    key = hash(name)
    if not is_users(name) or key in seen or depth > _DEEPEST:
        return
    seen[key] = (len(seen), name)
    found = module_code(name)
    if isinstance(found, types.CodeType):
        package = name if is_package(name) else name.rpartition(".")[0]
        yield from _code(found, {"__package__": package}, seen, depth + 1)
    elif found is not None:
        yield found
    elif name in sys.modules:  # made at run time, or compiled to machine code
        members = sorted(vars(sys.modules[name]).items())
        yield from _said({k: v for k, v in members if not k.startswith("__")}, seen, depth + 1)
    else:
        yield f"{_NOT_FOUND}{name}"


def _class(kind: type, seen: Seen, depth: int) -> Iterator[str]:
    yield kind.__name__
    if not is_users(kind.__module__):
        yield str(kind.__module__)
        return
    for base in kind.__bases__:
        yield from _said(base, seen, depth + 1)
    made_by = type(kind)  # a metaclass gives a class attributes of its own
    if isinstance(made_by.__module__, str) and is_users(made_by.__module__):
        yield from _said(made_by, seen, depth + 1)
    for name, member in sorted(vars(kind).items()):
        if name == "_abc_impl" or name in _OF_EVERY_CLASS:
            continue  # `_abc_impl` is Python's own record of an abstract class
        if name.startswith("__") and name.endswith("__") and not _is_given(member):
            continue
        yield name
        inner = getattr(member, "__func__", member)
        yield from _said(inner, seen, depth + 1)


def _is_given(member: Any) -> bool:
    """Whether a class has this from its author: a method, or a value made of plain ones.

    Libraries keep records of their own under such names, which may differ in each process.
    """
    if isinstance(member, dict):
        return all(_is_given(one) for pair in member.items() for one in pair)
    if isinstance(member, (tuple, list, set, frozenset)):
        return all(_is_given(one) for one in member)
    return isinstance(member, (*_PLAIN, classmethod, staticmethod, property)) or callable(member)


def _object(value: Any, seen: Seen, depth: int) -> Iterator[str]:
    """Yield what pickle would keep of an object: a pattern's text, an array's numbers, slots."""
    yield from _said(type(value), seen, depth + 1)
    if isinstance(value, _CACHED):  # pickle keeps its name alone
        yield from _said(value.__wrapped__, seen, depth + 1)
    try:
        kept = value.__reduce_ex__(4) if type(value) is not re.Pattern else _pattern(value)
    except Exception:
        kept = getattr(value, "__dict__", None)  # a lock or a client cannot be pickled
    if isinstance(kept, tuple):
        # Pickle gives the items of lists and dicts as iterators.
        kept = [list(one) if isinstance(one, Iterator) else one for one in kept]
        kept = [_sorted(one) if at == 2 else one for at, one in enumerate(kept)]
    yield from _said(kept if not isinstance(kept, dict) else _sorted(kept), seen, depth + 1)


def _pattern(value: re.Pattern[Any]) -> tuple[Any, ...]:
    return value.pattern, value.flags


def _sorted(attributes: Any) -> Any:
    """Sort attributes by name: the order in which an object got them has no meaning."""
    return dict(sorted(attributes.items())) if type(attributes) is dict else attributes


def _is_users_module(value: Any) -> bool:
    return isinstance(value, types.ModuleType) and is_users(value.__name__)
