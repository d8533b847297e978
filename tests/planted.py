"""Thirty-odd kinds of secrets, each as its user would write it, with a part that must not show."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

_numbers = itertools.count(1001)


@dataclass(frozen=True)
class Planted:
    kind: str
    option: str
    """The name under which a source, a sink or a session is given it."""
    value: str
    canary: str
    """What is grepped for."""

    @property
    def said(self) -> str:
        """How an exception's message may quote it."""
        return f"cannot connect: {self.option}={self.value}"


def _planted(kind: str, option: str, template: str = "{}") -> Planted:
    canary = f"Hu5h{next(_numbers)}qZ"
    return Planted(kind, option, template.format(canary), canary)


KINDS = (
    _planted("a password", "password"),
    _planted("a truststore's password", "kafka.ssl.truststore.password"),
    _planted("a token", "token"),
    _planted(
        "JAAS",
        "kafka.sasl.jaas.config",
        'org.apache.kafka.common.security.plain.PlainLoginModule required username="me" '
        'password="{}";',
    ),
    _planted(
        "a key in PEM",
        "kafka.ssl.keystore.key",
        "-----BEGIN PRIVATE KEY-----\nMIIEvQ{}\n-----END PRIVATE KEY-----",
    ),
    _planted(
        "Event Hubs",
        "eventhubs.connectionString",
        "Endpoint=sb://ns.servicebus.windows.net/;SharedAccessKeyName=all;SharedAccessKey={}=;"
        "EntityPath=orders",
    ),
    _planted(
        "Service Bus",
        "serviceBus",
        "Endpoint=sb://ns.servicebus.windows.net/;SharedAccessKeyName=all;SharedAccessKey={}",
    ),
    _planted("JDBC, by user info", "url", "jdbc:postgresql://me:{}@db/orders"),
    _planted("JDBC, by query", "url", "jdbc:mysql://db/orders?useSSL=true&user=me&password={}"),
    _planted(
        "JDBC, by properties", "url", "jdbc:sqlserver://db;databaseName=o;user=me;password={}"
    ),
    _planted("JDBC of Oracle", "url", "jdbc:oracle:thin:scott/{}@//db:1521/orders"),
    _planted("MongoDB", "spark.mongodb.connection.uri", "mongodb+srv://me:{}@cluster/db"),
    _planted("SAS in an address", "path", "wasbs://c@a.blob.core.windows.net/x?sv=2024&sig={}"),
    _planted("a SAS token", "fs.azure.sas.token", "?sv=2024-01-01&ss=b&sig={}"),
    _planted("an AWS access key", "accessKey", "AKIA{}EXAMPLE"),
    _planted("an AWS secret key", "awsSecretKey"),
    _planted("an AWS session token", "sessionToken", "FwoGZXIvYXdz{}"),
    _planted("an Azure account key", "fs.azure.account.key.acc.dfs.core.windows.net", "{}=="),
    _planted("an API key", "apiKey"),
    _planted("a private key", "privateKey"),
    _planted("an authorization header", "headers", "Authorization: Basic {}"),
    _planted("a bearer", "httpHeader", "Authorization: Bearer {}"),
    _planted("user info in an address", "endpoint", "https://me:{}@host/x"),
    _planted("a token as the user of an address", "repository", "https://{}@host/x"),
    _planted("a signed address", "source.address", "https://host/x?X-Amz-Signature={}&x=1"),
    _planted("a key of S3 with a slash", "path", "s3a://AKIAX:ab/{}@bucket/orders"),
    _planted("an aes key", "decryptionKey"),
    _planted("a webhook", "notify", "https://hooks.slack.com/services/T0/B0/{}"),
    _planted("a JWT", "session", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIi{}.sig"),
    _planted("a connection string under an innocent name", "target", "AccountKey={};x=y"),
    _planted("a password under an innocent name", "com.acme.opener"),
    _planted("a passphrase", "sf.pem_private_key"),
    _planted("brokers with a user", "kafka.bootstrap.servers", "me:{}@broker:9092,b2:9092"),
    _planted("a Telegram bot", "bot", "https://api.telegram.org/bot123:{}/sendMessage"),
    _planted("a GitHub token", "gh", "ghp_{}aaaaaaaaaaaaaaaaaaaaaaaaaa"),
)
