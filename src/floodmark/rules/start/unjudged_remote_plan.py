"""Finds a Spark Connect query that differs from the one of the last start."""

from __future__ import annotations

from collections.abc import Iterator

from floodmark.rules.finding import Finding, Rule, Severity
from floodmark.rules.start_inputs.situation import Situation

RULE = Rule(
    "FM419",
    "unjudged-remote-plan",
    Severity.WARNING,
    finds="A query of a Spark Connect session that differs from the one of the last start.",
    matters="Spark Connect does not give a query's analysed plan to its client. floodmark sees "
    "that the plan is another one, and which sources, sink and output mode it names, but cannot "
    "tell what the change means for the state.",
    restart="Spark starts wherever the types of the state fit, with a state that may mean "
    "something else.",
    instead="Let `floodmark check CP APP.py` judge the code with a session of the classic API, "
    "or `floodmark migrate` carry the state over. If you intend the change and it is "
    "harmless: `floodmark.start(…, allow=['unjudged-remote-plan'])`. From then on this plan "
    "is known.",
)


def check(situation: Situation) -> Iterator[Finding]:
    if situation.remote_changes:
        yield RULE.finding(
            situation.location,
            f"the query is not the one of the last start: {', '.join(situation.remote_changes)}. "
            "Through Spark Connect floodmark cannot know what that means for the state",
        )
