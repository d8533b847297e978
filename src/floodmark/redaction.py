"""Decides which options, settings and parameters may be written down: only those needed.

A list has the names that are kept. The value of any other name is hidden, and leaves a digest that
shows whether it has changed. The digest is salted, so that equal values of two notes do not show,
and expensive to compute, so that nobody can find a short password by trying.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from floodmark.addresses import HIDDEN as HIDDEN
from floodmark.addresses import public_url
from floodmark.secret_text import names_secret, redacted, remember

# scrypt with 16 MiB: about 40 ms a value here, and for whoever guesses.
_COST, _BLOCK = 2**14, 8
_DIGEST = re.compile(re.escape(HIDDEN) + r" [0-9a-f]{24}")

_FILES = """path basepath header sep delimiter encoding charset quote escape multiline mode linesep
 comment nullvalue dateformat timestampformat timestampntzformat locale inferschema prefersdate
 samplingratio ignoreleadingwhitespace ignoretrailingwhitespace enforceschema rowtag wholetext
 maxfilespertrigger maxbytespertrigger latestfirst maxfileage filenameonly cleansource
 sourcearchivedir maxcachedfiles discardcachedinputratio pathglobfilter recursivefilelookup
 modifiedbefore modifiedafter mergeschema datetimerebasemode int96rebasemode compression
 columnnameofcorruptrecord maxrecordsperfile avroschema ignoremissingfiles ignorecorruptfiles
 allowsinglequotes allowcomments allowunquotedfieldnames primitivesasstring"""
_KAFKA = """kafka.bootstrap.servers subscribe subscribepattern assign topic startingoffsets
 endingoffsets startingtimestamp endingtimestamp startingoffsetsbytimestamp
 endingoffsetsbytimestamp startingoffsetsbytimestampstrategy failondataloss
 kafkaconsumer.polltimeoutms fetchoffset.numretries fetchoffset.retryintervalms
 maxoffsetspertrigger minoffsetspertrigger maxtriggerdelay minpartitions maxrecordsperpartition
 groupidprefix kafka.group.id includeheaders kafka.security.protocol kafka.sasl.mechanism
 kafka.acks kafka.compression.type kafka.session.timeout.ms kafka.request.timeout.ms
 kafka.max.poll.records kafka.fetch.max.bytes kafka.max.partition.fetch.bytes
 kafka.isolation.level kafka.client.id kafka.linger.ms kafka.batch.size kafka.max.request.size"""
_TABLES = """table dbtable database collection startingversion ignoredeletes ignorechanges
 skipchangecommits readchangefeed readchangedata excluderegex schematrackinglocation
 allowsourcecolumnrename overwriteschema txnappid txnversion partitionoverwritemode
 dataskippingnumindexedcols stream-from-timestamp streaming-skip-overwrite-snapshots
 streaming-skip-delete-snapshots streaming-max-files-per-micro-batch
 streaming-max-rows-per-micro-batch fanout-enabled numpartitions batchsize fetchsize driver"""
_OTHERS = """rowspersecond rowsperbatch rampuptime starttimestamp advancemillispermicrobatch host
 port includetimestamp numrows truncate checkpointlocation queryname outputmode partitionby
 asyncprogresstrackingenabled asyncprogresstrackingcheckpointintervalms streamname region
 endpointurl initialposition awsregion eventhubs.consumergroup eventhubs.maxeventspertrigger"""
OPTIONS_KEPT = frozenset(f"{_FILES} {_KAFKA} {_TABLES} {_OTHERS}".split())

_CONF = """spark.sql.extensions spark.sql.warehouse.dir spark.sql.session.timeZone
 spark.sql.streaming.checkpointLocation spark.sql.streaming.stateStore.providerClass
 spark.sql.streaming.stateStore.compression.codec spark.sql.streaming.stateStore.encodingFormat
 spark.sql.streaming.multipleWatermarkPolicy spark.sql.streaming.checkpointFileManagerClass
 spark.sql.streaming.stateStore.rocksdb.compression spark.sql.sources.default
 spark.sql.sources.partitionOverwriteMode spark.sql.parquet.outputTimestampType
 spark.sql.parquet.compression.codec spark.sql.storeAssignmentPolicy
 spark.sql.legacy.timeParserPolicy spark.sql.codegen.factoryMode spark.sql.mapKeyDedupPolicy
 spark.sql.timestampType spark.sql.catalogImplementation spark.sql.defaultCatalog
 spark.sql.csv.parser.columnPruning.enabled spark.sql.json.enableExactStringParsing
 spark.sql.parquet.datetimeRebaseModeInRead spark.sql.parquet.int96RebaseModeInRead
 spark.sql.avro.datetimeRebaseModeInRead"""
CONF_KEPT = frozenset(_CONF.split())
# Spark's own families: a switch, a number or a size of them says nothing to a stranger.
_PLAIN_CONF = re.compile(
    r"spark\.sql\.(?:streaming|shuffle|adaptive|files|session|ansi|legacy|sources|parquet|orc|avro"
    r"|execution|optimizer|codegen|join|caseSensitive|autoBroadcastJoinThreshold|statistics"
    r"|requireAllClusterKeys\w*|stateStore|cbo|inMemoryColumnarStorage)\b.*"
)
_SPARKS_OWN = re.compile(r"spark\.")
_FROM_OUTSIDE = re.compile(
    r"spark\.(?:hadoop|executorEnv|yarn\.appMasterEnv|kubernetes\.driverEnv|sql\.catalog)\."
    r"|.*[jJ]avaOptions"
)
_HOST = re.compile(r"(?:[A-Za-z_]+://)?(?:[\w.-]+|\[[0-9A-Fa-f:.]+\])(?::\d*)?")
_CATALOG_CLASS = re.compile(r"spark\.sql\.catalog\.[\w-]+")
_CLASS = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_$][\w$]*){2,}")
_PLAIN_VALUE = re.compile(
    r"true|false|-?\d{1,12}(?:\.\d{1,6})?\s?(?:[kmgt]?b?|ms|s|min|h|d)?", re.I
)
_MOMENT = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)?"
)


@dataclass(frozen=True)
class Redaction:
    """Hides values with one salt: values that were hidden with the same salt can be compared."""

    salt: str

    @staticmethod
    def fresh() -> Redaction:
        import secrets

        return Redaction(secrets.token_hex(16))

    @staticmethod
    def about(subject: str) -> Redaction:
        """Return the same redaction for the same subject, for results that must repeat."""
        import hashlib

        return Redaction(
            hashlib.blake2b(subject.encode(errors="replace"), digest_size=16).hexdigest()
        )

    def options(self, options: Mapping[str, str]) -> dict[str, str]:
        """Redact the options of a source or a sink; names are in lower case."""
        return {name: self._or_hidden(name, value, _kept_option) for name, value in options.items()}

    def conf(self, conf: Mapping[str, str]) -> dict[str, str]:
        """Redact the settings of a session."""
        return {name: self._or_hidden(name, value, _kept_setting) for name, value in conf.items()}

    def parameters(self, values: Mapping[str, Any]) -> dict[str, str]:
        """Redact a pipeline's parameters: keep numbers, switches and dates, but no text."""
        return {name: self._parameter(name, value) for name, value in values.items()}

    def _or_hidden(self, name: str, value: str, kept: Callable[[str, str], str | None]) -> str:
        shown = kept(name, value)
        return self.hidden(name, value) if shown is None else shown

    def _parameter(self, name: str, value: Any) -> str:
        text = str(value)
        is_plain = isinstance(value, (bool, int, float)) or _MOMENT.fullmatch(text)
        if value is None or (is_plain and not names_secret(name)):
            return text
        return self.hidden(name, text)

    def hidden(self, name: str, value: str) -> str:
        """Return `*** ` and a digest; a hidden value stays as it is."""
        if value == HIDDEN or _DIGEST.fullmatch(value):
            return value
        remember(name, value)
        return f"{HIDDEN} {_digest(self.salt, name.lower(), value)}"


def noted_options(options: Mapping[str, str]) -> dict[str, str]:
    """Redact options from a note without computing digests, as a stranger may have written it."""
    return {name: _noted(value, _kept_option(name, value)) for name, value in options.items()}


def noted_conf(conf: Mapping[str, str]) -> dict[str, str]:
    return {name: _noted(value, _kept_setting(name, value)) for name, value in conf.items()}


def recorded_conf(conf: Mapping[str, str]) -> dict[str, str]:
    """Redact an application's whole configuration, which a stranger may have written.

    A setting of Spark's own is shown unless its name or its value looks secret; of Hadoop's
    settings, the environment's and all others only numbers and switches are shown. the
    environment's and all others only numbers and switches.
    """
    return {name: _recorded(name, value) for name, value in conf.items()}


def _recorded(name: str, value: str) -> str:
    if names_secret(name) and not _PLAIN_VALUE.fullmatch(value):
        return HIDDEN
    is_sparks = _SPARKS_OWN.match(name) and not _FROM_OUTSIDE.match(name)
    if not is_sparks and not _PLAIN_VALUE.fullmatch(value):
        return HIDDEN
    return _public(name, value)


def _noted(value: str, kept: str | None) -> str:
    return kept if kept is not None else value if _DIGEST.fullmatch(value) else HIDDEN


def _kept_option(name: str, value: str) -> str | None:
    lowered = name.lower()
    if lowered in OPTIONS_KEPT or value.lower() in ("true", "false"):
        return _public(lowered, value)
    is_jdbc = lowered == "url" and value.lower().startswith("jdbc:")
    return _public(lowered, value) if is_jdbc else None


def _kept_setting(name: str, value: str) -> str | None:
    plain = _PLAIN_CONF.fullmatch(name) and _PLAIN_VALUE.fullmatch(value)
    named = _CATALOG_CLASS.fullmatch(name) and _CLASS.fullmatch(value)
    if name in CONF_KEPT or (plain and not names_secret(name)) or named:
        return _public(name, value)
    return None


def is_plain_setting(name: str, value: str) -> bool:
    """Whether a setting of the session may be written down unchanged."""
    return _kept_setting(name, value) == value


def is_hidden(value: str | None) -> bool:
    return value is not None and value.startswith(HIDDEN)


def _public(name: str, value: str) -> str:
    if name == "kafka.bootstrap.servers":
        return public_servers(value)
    # A JDBC address may contain spaces, and is not in the middle of a text here.
    address = public_url(value) if value[:5].lower() == "jdbc:" else value
    return redacted(address, keep_words=True)


def shown_servers(servers: str | None) -> str | None:
    return None if servers is None else public_servers(servers)


def public_servers(servers: str) -> str:
    """Return brokers as hosts and ports, without a user; a password may contain a comma."""
    hosts = (one.strip() for one in servers.rpartition("@")[2].split(","))
    return ",".join(one if _HOST.fullmatch(one) else HIDDEN for one in hosts)


@lru_cache(maxsize=1024)
def _digest(salt: str, name: str, value: str) -> str:
    import hashlib

    # The digest includes the name, so that one password under two names does not show.
    text = f"{name}\0{value}".encode(errors="surrogatepass")
    found = hashlib.scrypt(
        text, salt=salt.encode(errors="replace"), n=_COST, r=_BLOCK, p=1, dklen=12
    )
    return found.hex()
