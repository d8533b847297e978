"""What is kept of options, settings, parameters, addresses and free text."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from costs import growth
from floodmark import redaction, secret_text
from floodmark.addresses import has_secret, public_url
from floodmark.checkpoint.start_note import last_start
from floodmark.errors import WrongUse
from floodmark.redaction import HIDDEN, Redaction, noted_options
from floodmark.rules.restarts.comparison import change_words, option_changes
from floodmark.secret_text import redacted
from planted import KINDS, Planted

SALT = Redaction("5a17")


def _kinds() -> list[object]:
    return [pytest.param(one, id=one.kind) for one in KINDS]


@pytest.mark.parametrize("secret", _kinds())
def test_an_option_never_keeps_a_secret(secret: Planted) -> None:
    found = SALT.options({secret.option: secret.value, secret.option.lower(): secret.value})
    assert secret.canary not in json.dumps(found)
    assert secret.canary not in json.dumps(noted_options({secret.option: secret.value}))


@pytest.mark.parametrize("secret", _kinds())
def test_a_setting_never_keeps_a_secret(secret: Planted) -> None:
    prefixes = ("", "spark.sql.catalog.db.", "spark.sql.streaming.", "spark.hadoop.fs.")
    found = SALT.conf({f"{prefix}{secret.option}": secret.value for prefix in prefixes})
    assert secret.canary not in json.dumps(found)


@pytest.mark.parametrize("secret", _kinds())
def test_a_parameter_never_keeps_a_secret(secret: Planted) -> None:
    assert secret.canary not in json.dumps(SALT.parameters({"x": secret.value}))


@pytest.mark.parametrize("secret", _kinds())
def test_an_error_never_quotes_a_secret_that_was_given(secret: Planted) -> None:
    SALT.options({secret.option: secret.value})
    error = WrongUse(secret.said, f"[{secret.value}]", f"Map({secret.option} -> {secret.value})")
    assert secret.canary not in str(error)


# Of these nothing tells but the name, and here there is none.
BARE = ("a password under an innocent name",)


@pytest.mark.parametrize("secret", _kinds())
def test_an_error_that_labels_a_secret_hides_it_unknown(secret: Planted) -> None:
    if secret.kind in BARE:
        assert secret.canary in redacted(secret.said)  # so that the list is as long as it must be
    else:
        assert secret.canary not in redacted(secret.said)


def test_what_is_needed_is_kept() -> None:
    kept = {
        "path": "abfss://container@account.dfs.core.windows.net/orders/year=2026/part-?.csv",
        "subscribe": "orders,payments",
        "startingoffsets": '{"orders":{"0":5}}',
        "maxfilespertrigger": "10",
        "header": "true",
        "kafka.bootstrap.servers": "broker:9092,other:9092",
        "checkpointlocation": "hdfs://nn:8020/user/me@corp.com/checkpoint",
        "url": "jdbc:postgresql://db:5432/orders?sslmode=require",
        "includeheaders": "true",
    }
    assert SALT.options(kept) == kept
    conf = {
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.state.RocksDBProvider",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.session.timeZone": "Europe/Berlin",
        "spark.sql.files.maxPartitionBytes": "128MB",
    }
    assert SALT.conf(conf) == conf
    values = {"rate": 5, "quick": True, "since": "2026-01-01", "none": None}
    assert SALT.parameters(values) == {key: str(value) for key, value in values.items()}
    assert SALT.parameters({"pin": 1234})["pin"].startswith(HIDDEN)


def test_a_hidden_value_tells_whether_it_changed_and_no_more() -> None:
    before, same, other = (SALT.options({"x": value}) for value in ("abc", "abc", "abd"))
    assert before == same
    assert before != other
    assert Redaction.fresh().options({"x": "abc"}) != before
    assert SALT.options({"y": "abc"})["y"] != before["x"]
    assert SALT.options(before) == before  # hidden once is hidden


def test_the_next_start_sees_that_a_hidden_option_changed() -> None:
    redacting = Redaction.fresh()
    note = {
        "salt": redacting.salt,
        "sink": "custom",
        "sink_options": redacting.options({"opener": "old", "door": "left", "path": "/out"}),
    }
    last = last_start(json.loads(json.dumps(note)))
    assert last is not None
    now = last.redaction.options({"opener": "new", "door": "left", "path": "/out"})
    ((key, old, new),) = option_changes(last.sink_options, now)
    assert key == "opener"
    assert change_words(key, old, new) == "opener has another value, which is hidden"


def test_what_an_old_note_hid_without_a_digest_is_not_compared() -> None:
    last = last_start({"sink": "x", "sink_options": {"opener": HIDDEN, "plain": "left"}})
    assert last is not None
    assert last.sink_options == {"opener": HIDDEN, "plain": HIDDEN}
    assert (
        option_changes(last.sink_options, last.redaction.options({"opener": "a", "plain": "b"}))
        == []
    )


def test_guessing_costs_and_a_strangers_note_does_not() -> None:
    begun = time.process_time()
    SALT.options({"x": "never hashed before, take one"})
    one = time.process_time() - begun
    assert one > 0.01  # seconds: a million guesses take hours
    begun = time.process_time()
    last_start({"sink": "x", "sink_options": {str(n): "x" for n in range(20_000)}, "salt": "s"})
    assert time.process_time() - begun < 2_000 * one  # not a guess for each


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("s3://bucket/a@b/c", "s3://bucket/a@b/c"),
        ("sftp://me@host/x", "sftp://me@host/x"),
        ("sftp://me:pw@host/x", "sftp://host/x"),
        ("sftp://me:p@w@host/x", "sftp://host/x"),
        ("k8s://https://me:pw@host:443", "k8s://https://host:443"),
        ("https://host/x?versionId=3", "https://host/x?versionId=3"),
        ("https://host/x?abc", "https://host/x?***"),
        ("https://host/x#access_token=abc", "https://host/x#access_token=***"),
        ("file:///data/a", "file:///data/a"),
        ("/data/a", "/data/a"),
        ("webhdfs://nn:9870/user/me", "webhdfs://nn:9870/user/me"),
        ("jdbc:sqlserver://h;password={a;b};ssl=true", "jdbc:sqlserver://h;password=***;ssl=true"),
    ],
)
def test_addresses(address: str, public: str) -> None:
    assert public_url(address) == public
    assert has_secret(address) == (address != public)
    assert redacted(f"cannot open '{address}'") == f"cannot open '{public}'"
    assert public_url(public) == public


def test_ordinary_errors_stay_as_they_are() -> None:
    for text in (
        "data/ck/offsets/3 is not there",
        "s3://bucket/secret: permission denied",
        "the state's key schema is struct<a:int>, value: struct<b:string>",
        "[UNSUPPORTED_FEATURE] java.lang.IllegalArgumentException: no such region: eu-1",
        "Try: floodmark upgrade CP NEW --map-topic OLD=NEW --from-batch 5",
        "orders/0:5 → 9, host:9092, 10:20:30",
    ):
        assert redacted(text) == text


def test_a_common_word_is_no_secret_to_blot_out() -> None:
    secret_text.remember("secret", "floodmark")
    secret_text.remember("password", "s")
    assert redacted("floodmark undo CP") == "floodmark undo CP"


def test_ordinary_values_of_parameters_stay_readable() -> None:
    ordinary = {
        "topic": "orders2026",
        "table": "main.sales_v2.totals-2026",
        "path": "/data/a1b2c3/x9",
        "place": "s3a://bucket-1a2b/x",
        "max_tokens": "5000",
        "since": "2026-11-15T10:00:00Z",
        "memory": "128MB",
        "provider": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    }
    secret_text.remember_all(ordinary)
    text = " ".join(ordinary.values())
    assert redacted(text) == text
    secret_text.remember("x", "k3yAb9zQ")
    assert redacted("k3yAb9zQ") == "***"


def test_the_environments_secrets_are_known() -> None:
    secret_text.remember_environment({"AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI", "HOME": "/home/me"})
    assert redacted("403 for wJalrXUtnFEMI in /home/me") == "403 for *** in /home/me"
    secret_text.remember_environment({"PWD": "/srv/streams", "OLDPWD": "/srv/other"})
    assert redacted("/srv/streams/cp and /srv/other/cp") == "/srv/streams/cp and /srv/other/cp"


def test_a_password_that_is_a_topics_name_does_not_change_the_topic() -> None:
    """Hidden from text, and still the topic that a note is compared by."""
    secret_text.remember("db_password", "orders")
    assert redacted("no answer for orders") == "no answer for ***"
    assert SALT.options({"subscribe": "orders-15"}) == {"subscribe": "orders-15"}
    secret_text.remember("db_token", "k3yAb9zQ")
    assert SALT.options({"path": "/in/k3yAb9zQ"}) == {"path": "/in/***"}


def test_only_the_secret_of_a_connection_string_is_one() -> None:
    secret_text.remember("dsn", "host=db-main dbname=orders user=reporting password=correcthorse")
    assert redacted("orders of reporting on db-main") == "orders of reporting on db-main"
    assert redacted("no: correcthorse") == "no: ***"


@given(st.text())
@example("jdbc:")
@example("://")
@example("a" * 5000 + ":")
def test_any_text_can_be_redacted(text: str) -> None:
    once = redacted(text)
    assert isinstance(once, str)
    assert public_url(text) is not None
    redaction.noted_options({text: text})


def test_redaction_is_not_slow_on_long_text() -> None:
    for piece in ("a", "password", "a:", "x=", "://"):
        assert redacted(piece * 60_000 + "=")
        # Ten times the text takes some ten times as long, and not a hundred times.
        assert growth(lambda count, piece=piece: redacted(piece * count + "="), 10_000, 10) < 35


def test_passwords_with_signs_in_them() -> None:
    found = SALT.options(
        {
            "url": "jdbc:postgresql://db/x?user=me&password=one two",
            "kafka.bootstrap.servers": "me:one,two@broker:9092,SSL://other:9093,[::1]:9092",
        }
    )
    assert found == {
        "url": "jdbc:postgresql://db/x?user=***&password=***",
        "kafka.bootstrap.servers": "broker:9092,SSL://other:9093,[::1]:9092",
    }
    assert (
        redacted("no answer of postgres://me:o'ne@db/x yet") == "no answer of postgres://db/x yet"
    )


def test_a_known_secret_is_hidden_however_it_is_quoted() -> None:
    secret_text.remember("password", 'one $"two\n')
    for form in ("one%20%24%22two%0A", "one+%24%22two%0A", 'one $\\"two\\n', 'one $"two\\n'):
        assert redacted(f"not {form} there") == "not *** there"
    secret_text.remember("ssl.keystore.key", "-----BEGIN X-----\nMIIEvQIBADANBg\nkqhkiG9w0BAQ==")
    assert redacted("bad base64: kqhkiG9w0BAQ==") == "bad base64: ***"


def test_an_error_that_quotes_a_huge_file_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before its secrets are looked for: that would take long."""
    searched: list[int] = []
    monkeypatch.setattr(
        secret_text, "redacted", lambda text: searched.append(len(text)) or redacted(text)
    )
    error = WrongUse("x" * 50_000_000)
    assert len(str(error)) < 30_000
    assert 0 < max(searched) < 30_000
