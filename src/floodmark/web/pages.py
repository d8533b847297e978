"""Fills the templates. Jinja escapes every value; a page contains no script of its own."""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined

from floodmark.fleet.card import FleetCard


class Pages:
    def __init__(self, version: str) -> None:
        self._environment = Environment(
            loader=PackageLoader("floodmark.web"), autoescape=True, undefined=StrictUndefined
        )
        self._version = version

    def fleet(self) -> str:
        return self._render("fleet.html")

    def checkpoint(self, card: FleetCard) -> str:
        return self._render("checkpoint.html", card=card)

    def gone(self) -> str:
        return self._render("gone.html")

    def login(self, wrong: bool) -> str:
        return self._render("login.html", wrong=wrong)

    def _render(self, name: str, **values: object) -> str:
        return self._environment.get_template(name).render(version=self._version, **values)
