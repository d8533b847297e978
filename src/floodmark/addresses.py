"""Removes user, password, signatures and webhook paths from addresses.

The parts that distinguish two places stay: host, path, and parameters that are known to be
harmless. Everything else after a `?` or a `;` is hidden.
"""

from __future__ import annotations

import re

HIDDEN = "***"
# Here the part before @ is a container, or a user whose password comes from elsewhere.
_USER_KEPT = "abfs abfss wasb wasbs hdfs webhdfs swebhdfs viewfs sftp ssh ftp ftps smb adl"
_PARAMETERS_KEPT = (
    "versionid ssl sslmode usessl encrypt trustservercertificate database databasename db schema "
    "currentschema warehouse role region servertimezone charset characterencoding useunicode "
    "timezone sessiontimezone connecttimeout sockettimeout logintimeout applicationname "
    "rewritebatchedstatements createdatabaseifnotexist replicaset readpreference retrywrites "
    "authsource servicename"
)


def public_url(url: str) -> str:
    """Return the address in a form that may be shown and written down."""
    is_jdbc = url[:5].lower() == "jdbc:"
    if is_jdbc:
        url = re.sub(r"(?i)^(jdbc:oracle:\w+:)[^@\s]*@", r"\1@", url)
    schemes = re.match(r"(?:(?:[A-Za-z][\w+.-]*:)+//)+", url)  # k8s://https://… has two
    if schemes is None:
        return _public_parameters(url, is_jdbc)
    rest = url[schemes.end() :]
    kind = schemes[0][:-3].rpartition(":")[2].rpartition("/")[2].lower()
    rest = _without_user(kind, rest)
    if kind in ("http", "https"):
        rest = _without_web_secrets(rest)
    return f"{schemes[0]}{_public_parameters(rest, is_jdbc)}"


def has_secret(url: str) -> bool:
    """Whether the address contains something that must not be written down."""
    return "://" in url and public_url(url) != url


def _without_user(kind: str, rest: str) -> str:
    host = re.match(r"[^/?#@]*", rest)
    first = host[0] if host else ""
    # A host, perhaps with its port: an @ further on belongs to the path. Else the password
    # holds a slash, as keys of AWS do.
    if rest[len(first) : len(first) + 1] != "@" and not re.search(r":(?!\d*$)", first):
        return rest
    authority = rest if rest[len(first) : len(first) + 1] != "@" else re.split(r"[/?#]", rest)[0]
    user, sign, _ = authority.rpartition("@")
    if not sign or (kind in _USER_KEPT.split() and ":" not in user):
        return rest
    return rest[len(user) + 1 :]


def _without_web_secrets(rest: str) -> str:
    host, slash, path = rest.partition("/")
    if slash and ("hook" in rest.lower() or re.match(r"bot\d+:", path)):
        return f"{host}/{HIDDEN}"  # the path is the password
    place, mark, query = rest.partition("?")
    return f"{place}?{HIDDEN}" if mark and "=" not in query else rest


def _public_parameters(text: str, is_jdbc: bool) -> str:
    # A question mark without a name after it is a pattern of file names.
    signs, end = ("?&;#", "&;#") if is_jdbc else ("?&#", "&#")
    return re.sub(rf"([{signs}])([^=/{signs}]+)=(\{{[^}}]*\}}?|[^{end}]*)", _parameter, text)


def _parameter(match: re.Match[str]) -> str:
    sign, name, value = match.groups()
    kept = name.strip().lower() in _PARAMETERS_KEPT.split()
    return f"{sign}{name}={value if kept else HIDDEN}"
