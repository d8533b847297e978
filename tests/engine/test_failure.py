"""The cause of a failure, in one line, and whether it is the same again."""

from __future__ import annotations

import pytest

from floodmark.engine.run.failure import Failure, FailureKind, is_outage, python_cause
from floodmark.engine.run.restart_policy import GiveUp, RestartPolicy, decide, may_pass
from floodmark.errors import (
    CannotRead,
    FileGone,
    FloodmarkError,
    NotReachable,
    Refused,
    WrongUse,
)

CALLBACK = """An exception was raised by the Python Proxy. Return Message: \
Traceback (most recent call last):
  File "clientserver.py", line 644, in _call_proxy
    return_value = getattr(self.pool[obj_id], method)(*params)
  File "app.py", line 12, in write
    raise ValueError("no such region: eu")
ValueError: no such region: eu
 SQLSTATE: 39000
"""
CHAINED = (
    CALLBACK
    + """
During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "app.py", line 14, in write
    close()
KeyError
"""
)


def test_the_users_own_error_is_found_inside_javas() -> None:
    assert python_cause(CALLBACK) == "ValueError: no such region: eu"
    assert python_cause(CHAINED) == "KeyError"


def test_what_java_says_below_a_python_call_is_the_cause() -> None:
    """A foreachBatch that writes with Spark: a full disk is an outage there, too."""
    trace = (
        "Traceback (most recent call last):\n"
        '  File "app.py", line 9, in write\n    writer.save(path)\n'
        "py4j.protocol.Py4JJavaError: An error occurred while calling o439.save.\n"
        ": org.apache.spark.SparkException: Job aborted.\n"
        "\tat org.apache.spark.sql.X.y(X.scala:1)\n"
        "Caused by: java.io.IOException: No space left on device\n"
        "\t... 42 more\n"
    )
    assert python_cause(trace) == "IOException: No space left on device"
    assert is_outage(str(python_cause(trace)))
    only = trace.partition("Caused by")[0]
    assert python_cause(only) == "SparkException: Job aborted."


def test_a_java_error_has_no_python_cause() -> None:
    assert python_cause("Job aborted due to stage failure: Task 3 failed") is None


def test_a_failure_is_the_same_whatever_the_numbers_of_its_tasks() -> None:
    first = Failure(4, (), "SparkException: Task 0 in stage 3.0 failed (TID 17)")
    again = Failure(4, (), "SparkException: Task 0 in stage 9.0 failed (TID 32)")
    assert first.signature == again.signature
    assert first.signature != Failure(5, (), first.cause).signature
    assert first.signature != Failure(4, (), "SparkException: no space left").signature


def test_waits_grow_to_a_limit() -> None:
    policy = RestartPolicy(True)
    assert [policy.wait(failures) for failures in (1, 2, 3, 4)] == [1.0, 2.0, 4.0, 8.0]
    assert policy.wait(30) == 60.0


@pytest.mark.parametrize(
    ("first", "again"),
    [
        ("KeyError: <Client object at 0x7f3a5c>", "KeyError: <Client object at 0x7fdb10>"),
        ("IOError: 10.0.0.7:45123 went away", "IOError: 10.0.0.7:51877 went away"),
        ("Error: request 3f9c2a1e-aa, 2026-11-15T10:00:00Z", "Error: request b7-01, 2026-11-16Z"),
    ],
)
def test_addresses_ports_ids_and_times_make_no_new_failure(first: str, again: str) -> None:
    assert Failure(4, (), first).signature == Failure(4, (), again).signature


@pytest.mark.parametrize(
    "words",
    [
        "TimeoutException: Timed out waiting for a node assignment. Call: describeTopics",
        "OperationalError: (psycopg.OperationalError) connection failed: connection to server at "
        '"127.0.0.1", port 5432 failed: Connection refused',
        "AdminShutdown: terminating connection due to administrator command",
        "IOException: No space left on device",
        "FileSystemException: /ck/offsets/.7.tmp: Read-only file system",
        "UnknownHostException: namenode",
    ],
)
def test_an_outage_is_known_by_its_kind(words: str) -> None:
    assert is_outage(words)


@pytest.mark.parametrize(
    "words",
    [
        "ValueError: no such region",
        "OperationalError: (sqlite3.OperationalError) no such table: orders",
        "SparkException: [FAILED_EXECUTE_UDF] User defined function failed",
    ],
)
def test_a_failure_of_the_code_is_no_outage(words: str) -> None:
    assert not is_outage(words)


def test_an_outage_is_tried_until_the_restarts_are_used_up() -> None:
    policy = RestartPolicy(True, most=10)
    outage = Failure(3, (), "TimeoutException: no broker", FailureKind.OUTAGE)
    assert decide(policy, [outage] * 10) == 60.0
    assert decide(policy, [outage] * 11) == GiveUp("failed 11 times in a row", for_good=False)


def test_a_batch_that_fails_alike_three_times_fails_for_good() -> None:
    policy = RestartPolicy(True, most=10)
    failure = Failure(3, (), "ValueError: no such region")
    assert decide(policy, [failure] * 2) == 2.0
    assert decide(policy, [failure] * 3) == GiveUp("failed 3 times in the same way", for_good=True)
    assert decide(RestartPolicy(), [failure]) == GiveUp("failed", for_good=False)


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (NotReachable("Kafka at b:9092 is not reachable"), True),
        (CannotRead("s3a://b/ck: the storage answered with SdkClientException"), True),
        (WrongUse("pipeline sales fails before it starts: ConnectException: refused"), True),
        (FileGone("offsets/3 is not there"), False),
        (Refused("Kafka no longer has orders, partition 0 from offset 3 on"), False),
        (WrongUse("Spark refuses the query", "a column is missing"), False),
    ],
)
def test_which_refusals_may_pass(error: FloodmarkError, passes: bool) -> None:
    assert may_pass(error) is passes
