"""Reads settings of Kafka's client from a file, as Kafka's tools do with --command-config. Pure.

The client is librdkafka. The usual Java names that differ from its own are translated.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from floodmark.errors import WrongUse

_LOGIN = re.compile(r"""\b(username|password)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)')""")
_OURS = ("bootstrap.servers", "group.id", "enable.auto.commit", "log_level", "debug")


def parse_client_config(text: str, origin: str) -> dict[str, str]:
    """Parse `key=value` lines, without blank ones and those that begin with # or !."""
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip()
        if not bare or bare[0] in "#!":
            continue
        key, equals, value = bare.partition("=")
        if not equals or not key.strip():
            raise WrongUse(
                f"{origin}, line {number}: not KEY=VALUE",
                do="Write one setting a line, such as security.protocol=SASL_SSL.",
            )
        found[key.strip()] = value.strip()
    return client_config(found)


def client_config(settings: Mapping[str, str]) -> dict[str, str]:
    config = {key: value for key, value in settings.items() if key not in _OURS}
    jaas = config.pop("sasl.jaas.config", None)
    if jaas is not None:
        for name, quoted, plain in _LOGIN.findall(jaas):
            config.setdefault(f"sasl.{name}", quoted.replace('\\"', '"') or plain)
    return config
