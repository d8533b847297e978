"""Lists the jars with which Spark reaches S3: Hadoop's client, and parts of Amazon's SDK.

Amazon's SDK as one jar has 600 MB; these parts have 16. Hadoop's client fits one release of
Hadoop, so each line of Spark has a list. `spark-hadoop-cloud` brings the checkpoint file manager
for S3.
"""

from __future__ import annotations

_HADOOP = {(4, 2): "3.5.0", (4, 3): "3.5.0"}
# Not every registry has the newest release; its class is the same since 4.1.
_CLOUD = {(4, 2): "4.1.2", (4, 3): "4.1.2"}
_KIT = "2.35.4"
LINES = tuple(_HADOOP)
_PARTS = (
    "annotations",
    "apache-client",
    "arns",
    "auth",
    "aws-core",
    "aws-query-protocol",
    "aws-xml-protocol",
    "checksums-spi",
    "checksums",
    "crt-core",
    "endpoints-spi",
    "http-auth-aws-eventstream",
    "http-auth-aws",
    "http-auth-spi",
    "http-auth",
    "http-client-spi",
    "identity-spi",
    "json-utils",
    "metrics-spi",
    "netty-nio-client",
    "profiles",
    "protocol-core",
    "regions",
    "retries-spi",
    "retries",
    "s3-transfer-manager",
    "s3",
    "sdk-core",
    "sts",
    "third-party-jackson-core",
    "utils-lite",
    "utils",
)
_BESIDE = (
    "commons-logging:commons-logging:1.2",
    "org.apache.httpcomponents:httpclient:4.5.13",
    "org.apache.httpcomponents:httpcore:4.4.16",
    "org.reactivestreams:reactive-streams:1.0.4",
    "software.amazon.eventstream:eventstream:1.0.1",
    "software.amazon.s3.analyticsaccelerator:analyticsaccelerator-s3:1.3.1",
)


def s3_coordinates(line: tuple[int, int], scala: str) -> tuple[str, ...]:
    return (
        f"org.apache.hadoop:hadoop-aws:{_HADOOP[line]}",
        f"org.apache.spark:spark-hadoop-cloud_{scala}:{_CLOUD[line]}",
        *(f"software.amazon.awssdk:{part}:{_KIT}" for part in _PARTS),
        *_BESIDE,
    )
