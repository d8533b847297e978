"""Metrics as Prometheus reads them: promtool checks the text, the rules and the dashboard."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from costs import growth
from floodmark.checkpoint.model import StateOperator
from floodmark.connectors.behind import Behind, Lag, PartLag, SourceLag
from floodmark.metrics.checkpoint import (
    MOST_PARTS,
    CheckpointFacts,
    LastBatch,
    checkpoint_metrics,
)
from floodmark.metrics.exposition import MetricFamily, MetricSample, bounded, render
from floodmark.metrics.run import BUCKETS, RunFacts, phases_of, run_metrics

MONITORING = Path(__file__).parents[2] / "monitoring"
NASTY = 'a "quoted" \\ name\nwith <script> and \x1b[31m colour, half a pair \ud800'


def lag_of(parts: int, records: int | None = 3) -> Lag:
    found = tuple(PartLag(f"orders/{n}", 5, 8, 0, records, 1500, 7000, 0) for n in range(parts))
    source = SourceLag("0", "kafka", Behind(records, None, 1500), found, 7000, 0, "broker:9092")
    return Lag("cp", 3, None, 0, (source,))


def every_metric() -> str:
    full = CheckpointFacts(
        "held",
        True,
        "f81d4fae",
        7,
        6,
        True,
        1000,
        2000,
        20,
        4096,
        (StateOperator(0, None, "hdfs", 2, ("default",), None, 512),),
        {"error": 1, "warning": 0, "advice": 1},
        4,
        lag_of(2),
        last_batch=LastBatch(0.3, {"addBatch": 0.2}, 10, 4, 1, 7, 900),
    )
    run = RunFacts(
        "sales",
        True,
        2,
        30,
        1,
        (0, 1, 1, *(0,) * (len(BUCKETS) - 3)),
        0.6,
        {"addBatch": 0.5},
        7,
        10,
        {"addBatch": 0.25},
        0.3,
        1000.5,
        4,
        5,
        6.5,
        {"0": 9},
    )
    return render([*checkpoint_metrics(full), *run_metrics(run)])


def promtool(fetched: ModuleType, *arguments: str, text: str | None = None) -> str:
    done = subprocess.run(
        [str(fetched.promtool()), *arguments],
        input=text,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.services
def test_promtool_has_nothing_to_say_of_our_metrics(fetched: ModuleType) -> None:
    assert promtool(fetched, "check", "metrics", text=every_metric()) == ""
    facts = CheckpointFacts(NASTY, query_id=NASTY, lag=lag_of(1), labels={"flow": NASTY * 50})
    assert promtool(fetched, "check", "metrics", text=render(checkpoint_metrics(facts))) == ""


@pytest.mark.services
def test_promtool_finds_the_alert_rules_right_and_they_fire(fetched: ModuleType) -> None:
    assert "9 rules found" in promtool(fetched, "check", "rules", str(MONITORING / "alerts.yml"))
    assert "SUCCESS" in promtool(fetched, "test", "rules", str(MONITORING / "alerts_test.yml"))


def expressions() -> list[str]:
    dashboard = json.loads((MONITORING / "grafana-dashboard.json").read_text())
    return [one["expr"] for panel in dashboard["panels"] for one in panel.get("targets", ())]


@pytest.mark.services
def test_every_expression_of_the_dashboard_parses(fetched: ModuleType, tmp_path: Path) -> None:
    found = expressions()
    assert len(found) > 15
    rules = [
        {"record": f"panel:{number}", "expr": re.sub(r"\$__rate_interval", "5m", one)}
        for number, one in enumerate(found)
    ]
    file = tmp_path / "panels.json"  # JSON is YAML
    file.write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}))
    assert f"{len(found)} rules found" in promtool(fetched, "check", "rules", str(file))


def test_alerts_and_dashboard_name_metrics_that_there_are() -> None:
    text = (MONITORING / "alerts.yml").read_text() + "\n".join(expressions())
    used = set(re.findall(r"\bfloodmark_[a-z_]+", text))
    there = set(re.findall(r"^(floodmark_[a-z_]+)", every_metric(), re.M))
    assert len(used) > 15
    assert used - there == set()


def samples_of(text: str) -> dict[str, float]:
    return {
        line.rpartition(" ")[0]: float(line.rpartition(" ")[2])
        for line in text.splitlines()
        if not line.startswith("#")
    }


def test_what_a_checkpoint_tells() -> None:
    found = samples_of(every_metric())
    held = 'checkpoint="held"'
    assert found[f"floodmark_checkpoint_planned_batch{{{held}}}"] == 7
    assert found[f"floodmark_checkpoint_committed_batch{{{held}}}"] == 6
    assert found[f"floodmark_checkpoint_in_flight{{{held}}}"] == 1
    assert found[f'floodmark_checkpoint_findings{{{held},severity="error"}}'] == 1
    assert found[f'floodmark_checkpoint_findings{{{held},severity="warning"}}'] == 0
    assert found[f'floodmark_source_lag_seconds{{{held},source="0",kind="kafka"}}'] == 1.5
    assert found[f'floodmark_source_retention_left_seconds{{{held},source="0",kind="kafka"}}'] == 7
    part = f'{held},source="0",kind="kafka",partition="orders/1"'
    assert found[f"floodmark_partition_end{{{part}}}"] == 8
    # Kafka tells no bytes: no series, and not a zero.
    assert not any("lag_bytes" in name for name in found)


def test_a_histogram_counts_up_to_all_batches() -> None:
    found = samples_of(every_metric())
    buckets = [
        value
        for name, value in found.items()
        if name.startswith("floodmark_run_batch_duration_seconds_bucket")
    ]
    assert buckets == [0, 1, 2, *(2,) * (len(BUCKETS) - 2)]
    assert found['floodmark_run_batch_duration_seconds_count{pipeline="sales"}'] == 2
    assert found['floodmark_run_batch_duration_seconds_sum{pipeline="sales"}'] == 0.6


def test_phases_that_spark_may_add_are_bounded() -> None:
    found = phases_of({"addBatch": 500, "new1": 1, "new2": 2, "triggerExecution": 600})
    assert found == {"addBatch": 0.5, "other": 0.003}


def test_many_partitions_have_sums_only() -> None:
    few = render(checkpoint_metrics(CheckpointFacts("cp", lag=lag_of(MOST_PARTS))))
    many = render(checkpoint_metrics(CheckpointFacts("cp", lag=lag_of(MOST_PARTS + 1))))
    assert few.count("floodmark_partition_end{") == MOST_PARTS
    assert "floodmark_partition_end{" not in many
    assert 'floodmark_source_partitions{checkpoint="cp"' in many
    assert "floodmark_source_partition_lag_records_max" in many
    without = CheckpointFacts("cp", lag=lag_of(2), partitions=False)
    assert "floodmark_partition_end{" not in render(checkpoint_metrics(without))


def test_very_many_checkpoints_take_no_longer_than_prometheus_waits() -> None:
    """Ten times as many take some ten times as long, and not a hundred times."""
    facts = [CheckpointFacts(f"cp-{n}", lag=lag_of(20)) for n in range(500)]

    def rendered(count: int) -> str:
        return render(family for one in facts[:count] for family in checkpoint_metrics(one))

    assert growth(rendered, 50, 10) < 35


def test_labels_are_escaped_bounded_and_never_two_alike() -> None:
    assert len(bounded("x" * 10_000)) == 200
    assert bounded("x" * 10_000) != bounded("x" * 10_001)
    family = MetricFamily(
        "floodmark_x",
        "gauge",
        "Help\nwith a line.",
        (MetricSample(1, {"a": NASTY}), MetricSample(2, {"a": NASTY}), MetricSample(None)),
    )
    lines = render([family]).splitlines()
    assert len(lines) == 3
    assert lines[0] == r"# HELP floodmark_x Help\nwith a line."
    assert lines[2].endswith('"} 1')
    assert r"\"quoted\" \\ name" in lines[2]
    assert "\x1b" not in lines[2]
    lines[2].encode()


def test_families_of_many_checkpoints_become_one() -> None:
    families = [one for name in ("a", "b") for one in checkpoint_metrics(CheckpointFacts(name))]
    text = render(families)
    assert text.count("# TYPE floodmark_checkpoint_up gauge") == 1
    assert text.count("floodmark_checkpoint_up{") == 2
    assert text.endswith("\n")


@pytest.mark.parametrize(
    ("value", "shown"),
    [(True, "1"), (3, "3"), (0.5, "0.5"), (float("inf"), "+Inf"), (float("nan"), "NaN")],
)
def test_numbers_are_written_as_prometheus_reads_them(value: Any, shown: str) -> None:
    family = MetricFamily("m", "gauge", "h", (MetricSample(value),))
    assert render([family]).splitlines()[-1] == f"m {shown}"


def test_secrets_of_an_address_are_not_shown() -> None:
    text = render(checkpoint_metrics(CheckpointFacts("https://ann:pass1234@host/cp?sig=abcdef")))
    assert "pass1234" not in text
    assert "abcdef" not in text
