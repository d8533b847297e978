"""Hides secrets in free text: error messages, and what Spark and drivers say.

It hides values that this process got as secrets, values after a name of a secret (`password=`),
and text in a secret's form: a private key, a user in an address. Free text can always contain
another one, so what is written down goes through `redaction`, which keeps only what it knows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from floodmark.addresses import HIDDEN, public_url

_MASTER = "spark.master"  # local[2] looks like a key, but is none
# Shorter values also occur in ordinary words.
_SHORTEST = 4
_SHORTEST_NUMBER = 6
_RANDOM_FROM = 8
_LINE = 12
_NAMES = (
    r"passw|passphrase|pwd|secret|token|jaas|credential|keytab|authori[sz]|authentic|bearer"
    r"|signature|cookie|webhook|conn(?:ection)?[-_. ]?str|service[-_. ]?account"
    r"|(?<![a-z])(?:pass|pw|creds?|auth|sas|sig|dsn|pin|otp|pem|jwt)(?![a-z])"
    r"|(?:api|access|account|shared|private|encryption|decryption|master|storage|signing|session"
    r"|service|client|subscription|function|ssh|aes|hmac|crypto|licen[cs]e|ssl|keystore"
    r"|truststore)[-_. ]?(?:key|cert)"
)
# orders2026, v2, T10, 500, 128MB
_ORDINARY = re.compile(r"(?:\d{0,14}[A-Za-z]{0,2}\d{0,4}|[A-Za-z]*\d{0,8}|[^A-Za-z0-9]*|[^\W\d]*)")
# Everybody knows these passwords: hiding them would only hide ordinary words.
_COMMON = (
    "true false none null admin anonymous changeit changeme default floodmark guest kafka "
    "localhost minio minioadmin password postgres public root secret spark test token user"
)
# The shell's name for its current folder.
_FOLDERS = ("PWD", "OLDPWD")
_known: dict[str, None] = {}


@lru_cache(maxsize=1)
def _signs() -> re.Pattern[str]:
    """Return a pattern for signs of a secret; most texts have none of them."""
    return re.compile(
        r"[=@?]|:(?!//)|->|-----BEGIN|earer |asic |crypt\(|hook|[A-Z0-9]{16}|[\w-]{20}"
    )


@lru_cache(maxsize=1)
def _names() -> re.Pattern[str]:
    return re.compile(_NAMES, re.IGNORECASE)


@dataclass(frozen=True)
class _Patterns:
    pem: re.Pattern[str]
    address: re.Pattern[str]
    user: re.Pattern[str]
    scheme: re.Pattern[str]
    cipher: re.Pattern[str]
    labelled: re.Pattern[str]
    shapes: re.Pattern[str]


@lru_cache(maxsize=1)
def _patterns() -> _Patterns:
    """Compile the patterns when the first text needs them: most commands end before."""
    compiled = re.compile
    return _Patterns(
        compiled(r"-----BEGIN[^-\n]{0,40}-----.*?(?:-----END[^-\n]{0,40}-----|\Z)", re.DOTALL),
        compiled(r"(?:\bjdbc:|\b[A-Za-z][A-Za-z0-9+.-]{0,30}://(?:[^\s/@]{0,200}@)?)[^\s\"'<>`]*"),
        compiled(r"(?<![\w/@])[\w.%+$-]{1,64}:(?!//)[^\s@/,;:'\"]+@(?=[\w\[])"),
        compiled(r"\b((?:Bearer|Basic|Negotiate|Digest|SharedKey|Token)\s+)[\w.~+/=:-]{6,}", re.I),
        compiled(r"((?:aes_(?:en|de)crypt|hmac)\([^,()]{0,200},).*", re.I),
        compiled(
            rf"(?<![\w./\\-])([\"']?(?:[\w.-]{{0,60}}?)(?:{_NAMES})[\w.-]{{0,40}}(?<!Exception)"
            r"(?<!Error)[\"'\]]?\s{0,3}(?:=>|->|=|:)\s{0,3})"
            r"(\"(?:[^\"\\]|\\.)*\"?|'(?:[^'\\]|\\.)*'?|[^\s,;&)}\]]+)",
            re.IGNORECASE,
        ),
        compiled(
            r"\b(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{12,}|\beyJ[\w-]{8,}\.[\w-]{4,}(?:\.[\w-]*)?"
            r"|\bgh[pousr]_\w{16,}|\bgithub_pat_\w{16,}|\bglpat-[\w-]{16,}|\bxox[a-z]-[\w-]{8,}"
            r"|\bAIza[\w-]{30,}|\bdapi[0-9a-f]{16,}|\bsk[-_](?:live_|test_|ant-)?[\w-]{16,}"
            r"|\bya29\.[\w-]{16,}|\bnpm_\w{20,}|\bhvs\.[\w-]{16,}|\bSG\.[\w-]{16,}\.[\w-]{16,}"
        ),
    )


def names_secret(name: str) -> bool:
    """Whether a name means a secret: kafka.ssl.keystore.password, apiKey, authorization."""
    return _names().search(name) is not None


def remember(name: str, value: object) -> None:
    """Remember a value that this process got under a name, so that texts hide it from now on.

    Only likely secrets are remembered, so that ordinary words stay readable.
    """
    text = str(value)
    shortest = _SHORTEST_NUMBER if text.isdecimal() else _SHORTEST
    if len(text) < shortest or text in _known or text.lower() in _COMMON.split():
        return
    if names_secret(name):
        # A connection string, a JAAS entry or a PEM key may be quoted in parts. Its user, its host
        # and its database are no secrets, and occur in many ordinary texts.
        parts = [
            part
            for label, part in re.findall(r"([\w.-]*)\s*=\s*[\"']?([^\s\"';&]{6,})", text)
            if names_secret(label) or _looks_random(part)
        ]
        lines = [line.strip() for line in text.splitlines()[1:] if len(line.strip()) >= _LINE]
        _know(text, *parts, *lines)
    elif name != _MASTER and _looks_random(text):
        _know(text)
    _known_values.cache_clear()


def _know(*values: str) -> None:
    from urllib.parse import quote, quote_plus

    for value in values:
        # The forms in which drivers quote it: in an address, in JSON, in Python.
        forms = (
            quote(value, safe=""),
            quote_plus(value),
            json.dumps(value)[1:-1],
            repr(value)[1:-1],
        )
        _known.update(dict.fromkeys((value, *forms)))


def remember_all(values: Mapping[str, object]) -> None:
    for name, value in values.items():
        if isinstance(value, Mapping):
            remember_all({f"{name}.{key}": item for key, item in value.items()})
        elif value is not None:
            remember(name, value)


def remember_environment(variables: Mapping[str, str]) -> None:
    """Remember variables whose names mean secrets; others are folders, hosts and so on."""
    remember_all(
        {
            name: value
            for name, value in variables.items()
            if names_secret(name) and name not in _FOLDERS
        }
    )


def redacted(text: str, *, keep_words: bool = False) -> str:
    """Return the text with `***` in place of its secrets.

    With `keep_words` a known secret that looks like a word stays, for values that are compared
    later: a password that is also a topic's name must not change the topic.
    """
    known = _known_values(keep_words)
    if known is not None:
        text = known.sub(HIDDEN, text)
    if _signs().search(text) is None:
        return text
    patterns = _patterns()
    text = patterns.pem.sub(HIDDEN, text)
    text = patterns.address.sub(lambda match: public_url(match[0]), text)
    text = patterns.user.sub("", text)
    text = patterns.scheme.sub(rf"\g<1>{HIDDEN}", text)
    text = patterns.cipher.sub(rf"\g<1> {HIDDEN}", text)
    text = patterns.labelled.sub(_hide_value, text)
    return patterns.shapes.sub(HIDDEN, text)


def _hide_value(match: re.Match[str]) -> str:
    value = match[2]
    if value.startswith(HIDDEN):
        return match[0]
    quote = value[0] if value[0] in "\"'" else ""
    return f"{match[1]}{quote}{HIDDEN}{quote}"


@lru_cache(maxsize=2)
def _known_values(keep_words: bool) -> re.Pattern[str] | None:
    values = [value for value in _known if not keep_words or _looks_random(value)]
    longest_first = sorted(values, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first))) if values else None


def _looks_random(text: str) -> bool:
    """Whether a text mixes letters and digits, and is no word, version, date, path or address."""
    if len(text) < _RANDOM_FROM or re.search(r"\s|^[/.]|://", text):
        return False
    return any(not _ORDINARY.fullmatch(part) for part in re.split(r"[-_.,:+/=@]+", text))
