"""Provides `serve`: a page and JSON about every checkpoint below some roots. Read-only."""

from __future__ import annotations

import os
import shlex
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from floodmark.api.arguments import Storage, several_of
from floodmark.errors import CannotRead, NoAnswer, Refused, WrongUse
from floodmark.storage.files import Files, local_path, open_files

if TYPE_CHECKING:
    from floodmark.changes.apply import Change
    from floodmark.connectors.behind import Lag
    from floodmark.web.json_types import PlanAnswer

_Ask = Callable[..., "Lag"]
DEFAULT_PORT = 8460
_DAY_MS = 86_400_000
_DAY_SECONDS, _MOST_DAYS = 86_400, 3650
_SHORTEST_TOKEN = 16
_ROOT_SECONDS = 10.0
_PLAN_LINES = 400
_LAG_SECONDS = 5.0
LAG_EVERY = 20.0
"""Seconds between two requests to the sources of a stream."""


@dataclass(frozen=True)
class Served:
    """The information that `ready` gets when the server listens."""

    url: str
    roots: tuple[str, ...]
    history: str | None
    with_token: bool


def serve(
    roots: str | Iterable[str],
    *,
    host: str = "127.0.0.1",
    port: int = DEFAULT_PORT,
    token_file: str | None = None,
    allow_host: str | Iterable[str] = (),
    interval: float = 5.0,
    patience: float = 20.0,
    history: str | None = None,
    no_history: bool = False,
    keep_days: float = 14.0,
    notify: str | None = None,
    sources: bool = False,
    bootstrap_servers: str | None = None,
    kafka_config: str | None = None,
    commit_to_group: str | None = None,
    storage: Storage | None = None,
    ready: Callable[[Served], None] = lambda _: None,
    warn: Callable[[str], None] = lambda _: None,
    stop: Event | None = None,
) -> None:
    """Serve a page and JSON about every checkpoint below the roots, until it is stopped.

    The server listens only on this machine; another `host` needs a `token_file`. It changes
    nothing. With `sources` it asks the sources in the start notes how far each stream is behind;
    with `bootstrap_servers` it asks Kafka there, and with `commit_to_group` it writes each stream's
    committed offsets into a consumer group of Kafka, whose name contains `{name}` for the stream's.
    `ready` is called when the server listens; Ctrl-C stops it, or `stop` when it is set.
    """
    require_web_extra()
    token = _token(host, token_file)
    _check_times(interval, patience, keep_days)
    places = [_open_root(root, storage, warn) for root in dict.fromkeys(several_of(roots))]
    if not places:
        raise WrongUse("no root to serve", do="Name a folder: floodmark serve data/checkpoints")

    from floodmark.web.app import make_app
    from floodmark.web.fleet import Fleet
    from floodmark.web.guard import Keys
    from floodmark.web.history import History
    from floodmark.web.http_server import answer, listening, url_of
    from floodmark.web.notify import Notifier
    from floodmark.web.one_checkpoint import WatchOptions

    ask = _lag_asker(sources, bootstrap_servers, kafka_config, storage)
    if commit_to_group is not None:
        ask = _group_keeper(commit_to_group, bootstrap_servers, ask, [one.root for one in places])
    notifier = Notifier(notify, warn) if notify is not None else None
    kept_in = None if no_history else Path(history) if history else default_history()
    with listening(host, port) as listener:
        kept = History(kept_in, int(keep_days * _DAY_MS))
        fleet = Fleet(
            places,
            WatchOptions(interval, patience=patience, lag_every=LAG_EVERY),
            kept,
            notifier,
            ask,
        )
        names = (*several_of(allow_host), *_own_names(host))
        app = make_app(fleet, Keys(token), names, _plan_maker(storage), _version())
        fleet.start()
        try:
            answer(
                app,
                listener,
                stop,
                lambda: ready(
                    Served(
                        url_of(host, listener.getsockname()[1]),
                        tuple(place.root for place in places),
                        None if kept_in is None else str(kept_in),
                        token is not None,
                    )
                ),
            )
        finally:
            fleet.close()


def _check_times(interval: float, patience: float, keep_days: float) -> None:
    if not interval >= 0.5:
        raise WrongUse(f"--interval {interval:g}: too short", do="Give 0.5 seconds or more.")
    if not patience > 0:
        raise WrongUse(f"--patience {patience:g}: too short for an answer", do="Give 1 or more.")
    if not keep_days > 0:
        raise WrongUse(f"--keep-days {keep_days:g}: nothing would be kept", do="Give 1 or more.")
    for name, value, most, unit in (
        ("--interval", interval, _DAY_SECONDS, "seconds"),
        ("--patience", patience, _DAY_SECONDS, "seconds"),
        ("--keep-days", keep_days, _MOST_DAYS, "days"),
    ):
        if value > most:
            raise WrongUse(f"{name} {value:g}: too long", do=f"Give at most {most:,} {unit}.")


def require_web_extra() -> None:
    missing = [
        name for name in ("fastapi", "uvicorn", "jinja2", "plotly") if find_spec(name) is None
    ]
    if missing:
        raise WrongUse(
            f"serve needs {', '.join(missing)}",
            "These packages are heavy, so the base install leaves them out.",
            "Install them with: pip install 'floodmark[web]'",
        )


def default_history() -> Path:
    """Return the folder where programs of this user keep their data."""
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state) / "floodmark" / "serve.sqlite"


def _version() -> str:
    from importlib import import_module

    return str(import_module("floodmark").__version__)


def _token(host: str, token_file: str | None) -> str | None:
    if token_file is None:
        if not is_loopback(host):
            raise WrongUse(
                f"--host {host} needs a token: without one, the whole network reads these pages",
                "Checkpoints name topics, tables and folders.",
                "Add --token-file FILE with a long random text in FILE: "
                "`python3 -c 'import secrets; print(secrets.token_urlsafe(32))' > FILE`",
            )
        return None
    try:
        with Path(token_file).open(encoding="utf-8") as file:
            token = file.read(4096).strip()
    except (OSError, UnicodeDecodeError) as error:
        words = error.strerror if isinstance(error, OSError) else "it is not text"
        raise CannotRead(f"--token-file {token_file}: {words}", do="Check the path.") from None
    if len(token) < _SHORTEST_TOKEN or any(character.isspace() for character in token):
        raise WrongUse(
            f"--token-file {token_file}: the token is too short, or contains a space",
            f"It needs at least {_SHORTEST_TOKEN} characters, on one line.",
            "Write a longer one: openssl rand -hex 32 > FILE",
        )
    from floodmark.secret_text import remember

    remember("token", token)
    return token


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def _own_names(host: str) -> tuple[str, ...]:
    try:
        ip_address(host.strip("[]"))
    except ValueError:
        return (host,)
    return () if is_loopback(host) else (socket.gethostname(),)


def _open_root(root: str, storage: Storage | None, warn: Callable[[str], None]) -> Files:
    """Open a root; report a missing one at once, and do not wait for a slow one."""
    from concurrent.futures import ThreadPoolExecutor
    from concurrent.futures import TimeoutError as TookTooLong

    path = local_path(str(root))
    location = str(root) if path is None or not path else str(Path(path).absolute())
    place = open_files(location, storage)

    def look() -> None:
        level = place.level()
        if not level.folders and not level.files:
            place.list(most=1)  # this reports a wrong root, if it is not only empty

    pool = ThreadPoolExecutor(1)
    try:
        pool.submit(look).result(_ROOT_SECONDS)
    except TookTooLong:
        warn(f"{place.root} does not answer yet; it is shown as soon as it does")
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    return place


def _plan_maker(storage: Storage | None) -> Callable[[str, str], PlanAnswer]:
    """Return a function that plans as the verbs do, which change nothing without `execute`."""

    def make(verb: str, path: str) -> PlanAnswer:
        from floodmark.web.json_types import PlanAnswer

        change, command = _planned(verb, path, storage)
        plan = change.plan
        lines = [
            plan.title,
            *(f"{step.do:14} {step.path}  {step.why}" for step in plan.steps[:_PLAN_LINES]),
        ]
        if len(plan.steps) > _PLAN_LINES:
            lines.append(f"… and {len(plan.steps) - _PLAN_LINES:,} more steps")
        lines += [*plan.notes, *(f"{one.sink}: {one.words}" for one in plan.consequences)]
        lines += [f"first: {one.words}" for one in plan.preconditions]
        return PlanAnswer(verb, command, lines)

    return make


def _planned(verb: str, path: str, storage: Storage | None) -> tuple[Change, str]:
    from floodmark.api.repairing import compact, repair
    from floodmark.api.rewinding import rewind
    from floodmark.api.upgrading import upgrade
    from floodmark.fleet.next_steps import rewindable
    from floodmark.storage.load import load

    place = shlex.quote(path)
    if verb == "repair":
        return repair(path, storage=storage), f"floodmark repair {place} --execute"
    if verb == "compact":
        return compact(path, storage=storage), f"floodmark compact {place} --execute"
    if verb == "upgrade":
        new = path.rstrip("/") + "-new"
        change = upgrade(path, new, storage=storage)
        return change, f"floodmark upgrade {place} {shlex.quote(new)} --execute"
    batch = rewindable(load(open_files(path, storage)))
    if batch is None:
        raise NoAnswer(
            "there is no earlier batch to go back to",
            do="`floodmark batches CP` lists the batches that are logged.",
        )
    change = rewind(path, to_batch=batch, storage=storage)
    return change, f"floodmark rewind {place} --to-batch {batch} --execute"


def _lag_asker(
    sources: bool,
    bootstrap_servers: str | None,
    kafka_config: str | None,
    storage: Storage | None,
) -> _Ask | None:
    """Return a function that asks for lag; None: a checkpoint alone must not choose a server."""
    if not sources and bootstrap_servers is None:
        if kafka_config is not None:
            raise WrongUse(
                "--kafka-config: there is no Kafka to ask",
                do="Name it: --kafka HOST:PORT, or --sources.",
            )
        return None
    from floodmark.api.lagging import client_settings, lag

    config = client_settings(kafka_config)

    def ask(path: str, group: str | None = None) -> Lag:
        return lag(
            path,
            sources=sources,
            bootstrap_servers=bootstrap_servers,
            kafka_config=config,
            commit_to_group=group,
            timeout=_LAG_SECONDS,
            storage=storage,
        )

    return ask


def _group_keeper(
    pattern: str, bootstrap_servers: str | None, ask: _Ask | None, roots: list[str]
) -> _Ask:
    """Commit offsets with each question, which is much more often than a broker forgets."""
    from floodmark.fleet.card import name_of

    if ask is None or bootstrap_servers is None:
        raise WrongUse(
            "--commit-to-group needs the brokers that it writes to",
            do="Name them: --kafka HOST:PORT.",
        )
    if "{name}" not in pattern:
        raise WrongUse(
            f"--commit-to-group {pattern}: all streams would share one group",
            "A group holds one place for each partition of a topic.",
            "Put the stream's name into it: --commit-to-group 'spark-{name}'",
        )

    def committing(path: str) -> Lag:
        root = max((one for one in roots if path.startswith(one)), key=len, default="")
        group = pattern.replace("{name}", name_of(path, root))
        try:
            return ask(path, group)
        except (NoAnswer, Refused) as error:
            found = ask(path)
            note = f"No offsets were committed to {group}: {error.what}"
            return replace(
                found,
                sources=tuple(replace(one, notes=(*one.notes, note)) for one in found.sources),
            )

    return committing
