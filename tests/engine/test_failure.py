"""The cause of a failure, in one line, and whether it is the same again."""

from __future__ import annotations

from floodmark.engine.failure import Failure, python_cause
from floodmark.engine.runtime import RestartPolicy

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
