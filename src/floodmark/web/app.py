"""Builds the FastAPI application: pages, JSON and files. Every route only reads."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from functools import partial
from importlib.resources import files as package_files
from pathlib import Path
from typing import Annotated, Any, TypeVar
from urllib.parse import parse_qs

from fastapi import FastAPI, HTTPException, Query, Request
from fastapi import Path as InPath
from fastapi.middleware.gzip import GZipMiddleware
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from fastapi.staticfiles import StaticFiles

from floodmark.checkpoint.model import Checkpoint
from floodmark.checkpoint.views.differences import Difference, diff_batches, diff_checkpoints
from floodmark.errors import FloodmarkError
from floodmark.fleet.anatomy import Anatomy
from floodmark.fleet.card import bounded
from floodmark.fleet.next_steps import PLANNED
from floodmark.fleet.stream_lag import shown_lag
from floodmark.metrics.exposition import CONTENT_TYPE
from floodmark.secret_text import redacted
from floodmark.storage.load import load
from floodmark.web.checkpoint_page import Reader, stamp_of
from floodmark.web.fleet import Fleet
from floodmark.web.guard import COOKIE, Guard, Keys
from floodmark.web.json_types import (
    CheckpointAnswer,
    DifferencesAnswer,
    FleetAnswer,
    HistoryAnswer,
    PageDifference,
    PlanAnswer,
    Problem,
    Up,
)
from floodmark.web.metrics import metrics_text
from floodmark.web.one_checkpoint import Watched
from floodmark.web.pages import Pages
from floodmark.wire import to_wire

_PAGE_SECONDS = 20.0
_PLAN_SECONDS = 60.0
_MOST_DIFFERENCES = 500
_LONGEST = 1000
_LONGEST_FORM = 8192
_YEAR = "public, max-age=31536000, immutable"
_Result = TypeVar("_Result")
_Route = TypeVar("_Route", bound=Callable[..., Any])
Id = Annotated[str, InPath(pattern="^[0-9a-f]{16}$", description="As /api/fleet gives it.")]
_PROBLEMS: dict[int | str, dict[str, Any]] = {
    404: {"model": Problem, "description": "No checkpoint of that id is watched."},
    409: {"model": Problem, "description": "The answer is no; the words say why."},
    503: {"model": Problem, "description": "The storage cannot be read now."},
    504: {"model": Problem, "description": "The storage did not answer in time."},
}
_TOKEN: dict[int | str, dict[str, Any]] = {
    400: {"model": Problem, "description": "The request cannot be read."},
    401: {"model": Problem, "description": "The token is missing or wrong."},
    421: {"model": Problem, "description": "The server does not answer to that host name."},
}

MakePlan = Callable[[str, str], PlanAnswer]
"""Returns the plan that a verb would make for a checkpoint's path."""


def make_app(
    fleet: Fleet, keys: Keys, hosts: tuple[str, ...], make_plan: MakePlan, version: str
) -> FastAPI:
    app = FastAPI(
        title="floodmark serve",
        version=version,
        summary="Every stream below the roots: read-only.",
        docs_url=None,  # they load scripts from another host
        redoc_url=None,
        responses=_TOKEN,
    )
    _add_fleet(app, fleet)
    _add_checkpoints(app, fleet, make_plan)
    _add_pages(app, fleet, keys, Pages(version))
    app.add_middleware(GZipMiddleware, minimum_size=2048, compresslevel=4)
    app.add_middleware(Guard, keys=keys, hosts=hosts)
    return app


def _add_fleet(app: FastAPI, fleet: Fleet) -> None:
    @app.get("/api/fleet", response_model=FleetAnswer, tags=["fleet"])
    def get_fleet(
        since: Annotated[int, Query(ge=0, le=1 << 53, description="A revision.")] = 0,
    ) -> Response:
        """List every checkpoint in short; with `since` only those that changed after it."""
        return _json(_fleet_answer(fleet, since))

    @app.get("/api/health", response_model=Up, tags=["fleet"])
    def get_health() -> Response:
        cards, _, revision = fleet.cards()
        return _json(Up(len(cards), revision, fleet.fault or fleet.history.problem))

    @app.get("/metrics", response_class=Response, tags=["fleet"])
    def get_metrics() -> Response:
        """Return metrics for Prometheus."""
        return Response(metrics_text(fleet), media_type=CONTENT_TYPE)


def _add_checkpoints(app: FastAPI, fleet: Fleet, make_plan: MakePlan) -> None:
    reader = Reader()

    def get(below: str, answer: type) -> Callable[[_Route], _Route]:
        path = f"/api/checkpoints/{{id}}{below}"
        return app.get(path, response_model=answer, responses=_PROBLEMS, tags=["checkpoint"])

    @get("", CheckpointAnswer)
    async def get_checkpoint(request: Request, id: Id) -> Response:
        """Return all that is known of one checkpoint. Its ETag changes when the checkpoint does."""
        one = _find(fleet, id)

        def answer() -> tuple[str, bytes]:
            fleet.refresh(one)
            stamp = stamp_of(one.files, one.glimpse)
            facts = (stamp, one.card.revision, one.lag and one.lag.time_ms, one.lag_problem)
            tag = f'"{hash(facts) & (1 << 64) - 1:x}"'
            if request.headers.get("if-none-match") == tag:
                return tag, b""
            found = reader.detail(one.id, one.files, stamp)
            now = int(time.time() * 1000)
            lag = one.lag and shown_lag(one.lag)
            body = CheckpointAnswer(now, one.card, found, lag, one.lag_problem, one.overtaken)
            return tag, _text(body)

        tag, body = await _in_pool(one, answer)
        headers = {"ETag": tag, "Cache-Control": "no-cache"}
        if not body:
            return Response(status_code=304, headers=headers)
        return Response(body, media_type="application/json", headers=headers)

    @get("/anatomy", Anatomy)
    async def get_anatomy(id: Id) -> Response:
        """List every file: what it is, and whether a restart reads it."""
        one = _find(fleet, id)

        def answer() -> Anatomy:
            return reader.anatomy(one.id, one.files, stamp_of(one.files, one.glimpse))

        return _json(await _in_pool(one, answer))

    @get("/history", HistoryAnswer)
    def get_history(
        id: Id,
        hours: Annotated[float, Query(gt=0, le=24 * 400)] = 24,
    ) -> Response:
        """Return the recorded history: lag, state and batches, also batches that are purged."""
        one = _find(fleet, id)
        since = int((time.time() - hours * 3600) * 1000)
        samples = list(fleet.history.samples(one.id, since))
        return _json(HistoryAnswer(samples, list(fleet.history.batches(one.id, since))))

    @get("/diff", DifferencesAnswer)
    async def get_diff(
        id: Id,
        left: Annotated[int | None, Query(ge=0, le=1 << 62)] = None,
        right: Annotated[int | None, Query(ge=0, le=1 << 62)] = None,
        other: Annotated[str | None, Query(pattern="^[0-9a-f]{16}$")] = None,
    ) -> Response:
        """Compare two batches (`left`, `right`), or this checkpoint with another one."""
        one = _find(fleet, id)
        if other is not None:
            against = _find(fleet, other)
            answer = await _in_pool(one, lambda: _diff_checkpoints(one, against))
        elif left is not None and right is not None:
            answer = await _in_pool(one, lambda: _diff_batches(one, left, right))
        else:
            raise HTTPException(409, "Give two batches, left and right, or another checkpoint.")
        return _json(answer)

    @get("/plans/{verb}", PlanAnswer)
    async def get_plan(
        id: Id, verb: Annotated[str, InPath(pattern=f"^({'|'.join(PLANNED)})$")]
    ) -> Response:
        """Return the plan that a changing verb would make. Nothing is executed."""
        one = _find(fleet, id)
        work = partial(make_plan, verb, one.files.root)
        return _json(await _in_pool(one, work, _PLAN_SECONDS))


def _fleet_answer(fleet: Fleet, since: int) -> FleetAnswer:
    cards, gone, revision = fleet.cards(since)
    return FleetAnswer(
        revision,
        int(time.time() * 1000),
        fleet.began,
        int(fleet.options.interval * 1000),
        fleet.asks_lag,
        fleet.roots(),
        cards,
        gone,
    )


def _find(fleet: Fleet, id_: str) -> Watched:
    found = fleet.find(id_)
    if found is None:
        raise HTTPException(404, "No checkpoint of that id is below the roots now.")
    return found


async def _in_pool(
    one: Watched, work: Callable[[], _Result], seconds: float = _PAGE_SECONDS
) -> _Result:
    """Answer in the root's own threads, so that slow storage delays no other root's pages."""
    loop = asyncio.get_running_loop()
    try:
        return await asyncio.wait_for(loop.run_in_executor(one.root.pool, work), seconds)
    except asyncio.TimeoutError:
        words = f"The storage did not answer within {seconds:.0f} seconds."
        raise HTTPException(504, words) from None
    except FloodmarkError as error:
        status = 503 if error.status == 3 else 409
        words = " ".join(filter(None, (error.what, error.why, error.do)))
        raise HTTPException(status, bounded(redacted(words), 4000)) from None
    except Exception as error:  # a driver's own complaint: this answer fails with it
        words = bounded(redacted(f"{type(error).__name__}: {error}"), 4000)
        raise HTTPException(503, words) from None


def _diff_batches(one: Watched, left: int, right: int) -> DifferencesAnswer:
    from floodmark.checkpoint.views.position import choose_batch

    checkpoint = load(one.files, batches=(left, right))
    for batch in (left, right):
        choose_batch(checkpoint, batch, None)
    found = diff_batches(checkpoint, left, right)
    return _differences(f"batch {left}", f"batch {right}", found)


def _diff_checkpoints(one: Watched, other: Watched) -> DifferencesAnswer:
    left: Checkpoint = load(one.files)
    return _differences(one.card.name, other.card.name, diff_checkpoints(left, load(other.files)))


def _differences(left: str, right: str, found: tuple[Difference, ...]) -> DifferencesAnswer:
    shown = [
        PageDifference(
            bounded(one.where), _value(one.where, one.left), _value(one.where, one.right)
        )
        for one in found[:_MOST_DIFFERENCES]
    ]
    return DifferencesAnswer(left, right, shown, max(len(found) - _MOST_DIFFERENCES, 0))


def _value(where: str, value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str) and where.startswith("conf"):
        from floodmark.redaction import noted_conf

        name = where.removeprefix("conf").strip(" .")
        return noted_conf({name: bounded(value, _LONGEST)})[name]
    text = value if isinstance(value, str) else json.dumps(to_wire(value), ensure_ascii=False)
    return bounded(redacted(text), _LONGEST)


def _add_pages(app: FastAPI, fleet: Fleet, keys: Keys, pages: Pages) -> None:
    static = Path(str(package_files("floodmark.web") / "static"))
    script = plotly_script()
    app.mount("/static/own", StaticFiles(directory=static), name="own")

    @app.get("/static/charts.js", include_in_schema=False)
    def get_charts() -> FileResponse:
        return FileResponse(script, media_type="text/javascript", headers={"Cache-Control": _YEAR})

    @app.get("/", response_class=HTMLResponse, include_in_schema=False)
    def get_fleet_page() -> str:
        return pages.fleet()

    @app.get("/checkpoints/{id}", response_class=HTMLResponse, include_in_schema=False)
    def get_checkpoint_page(id: str) -> HTMLResponse:
        one = fleet.find(id) if len(id) == 16 else None
        if one is None:
            return HTMLResponse(pages.gone(), 404)
        return HTMLResponse(pages.checkpoint(one.card))

    @app.get("/login", response_class=HTMLResponse, include_in_schema=False)
    def get_login() -> Response:
        if not keys.needed:
            return RedirectResponse("/", 303)
        return HTMLResponse(pages.login(wrong=False))

    @app.post("/login", include_in_schema=False)
    async def post_login(request: Request) -> Response:
        if not keys.fits(await _given_token(request)):
            await asyncio.sleep(0.5)
            return HTMLResponse(pages.login(wrong=True), 401)
        answer = RedirectResponse("/", 303)
        answer.set_cookie(COOKIE, keys.cookie, httponly=True, samesite="strict")
        return answer

    @app.get("/favicon.ico", include_in_schema=False)
    def get_icon() -> FileResponse:
        return FileResponse(static / "icon.svg", media_type="image/svg+xml")


async def _given_token(request: Request) -> str:
    """Read the token from a browser's form; a text longer than any token is not read."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _LONGEST_FORM:
            return ""
    fields = parse_qs(body.decode("latin-1"))
    return fields.get("token", [""])[0].strip()


def plotly_script() -> Path:
    """Return the path of the charts' script in the installed plotly package."""
    return Path(str(package_files("plotly"))) / "package_data" / "plotly.min.js"


def _json(value: object) -> Response:
    return Response(_text(value), media_type="application/json")


def _text(value: object) -> bytes:
    return json.dumps(to_wire(value), ensure_ascii=True, separators=(",", ":")).encode()
