"""The Spark Connect server that the wheel brings, in a process of its own."""

from __future__ import annotations

from ports import free_port
from services.cluster import spark_class
from services.server import Server, answers


class ConnectServer(Server):
    name = "spark-connect"

    def __init__(self) -> None:
        super().__init__()
        self.port = free_port()

    def start(self) -> None:
        conf = {
            "spark.connect.grpc.binding.port": str(self.port),
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.master": "local[2]",
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.warehouse.dir": str(self.folder / "warehouse"),
        }
        settings = [part for pair in conf.items() for part in ("--conf", "=".join(pair))]
        command = spark_class(
            "org.apache.spark.deploy.SparkSubmit",
            *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
            *settings,
            "spark-internal",
            local=self.folder / "local",
            memory="700m",
        )
        self.launch(command, ready=lambda: answers(self.port))

    @property
    def url(self) -> str:
        return f"sc://127.0.0.1:{self.port}"
