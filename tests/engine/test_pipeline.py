"""Declaring pipelines and their parameters."""

from __future__ import annotations

import subprocess
import sys
from typing import Any, Optional

import pytest

from floodmark.api.arguments import parse_settings
from floodmark.engine.pipelines.decorator import (
    Pipeline,
    connectors_named,
    connectors_reached,
    pipeline,
)
from floodmark.engine.pipelines.parameters import refuse_unknown
from floodmark.errors import WrongUse


def declare(function: Any, **options: Any) -> Pipeline:
    return pipeline(checkpoint="data/ck", **options)(function)


def test_a_pipeline_is_named_after_its_function_unless_told_otherwise() -> None:
    def sales(spark: Any, start: Any) -> None: ...

    assert declare(sales).name == "sales"
    assert declare(sales, name="eu").name == "eu"


def test_a_pipeline_can_still_be_called_as_the_function_it_is() -> None:
    def sales(spark: Any, start: Any, *, region: str = "eu") -> str:
        return f"{spark} {start} {region}"

    assert declare(sales)("s", "t", region="us") == "s t us"


def test_parameters_are_converted_to_the_type_of_their_annotation_or_default() -> None:
    def sales(
        spark: Any,
        start: Any,
        *,
        rate: int = 5,
        share: float = 0.5,
        quick: bool = False,
        region="eu",  # type: ignore[no-untyped-def]
        most: Optional[int] = None,  # noqa: UP045
    ) -> None: ...

    found = declare(sales).settle(
        {"rate": "7", "share": "0.25", "quick": "yes", "region": "7", "most": "3"}
    )
    assert found == {"rate": 7, "share": 0.25, "quick": True, "region": "7", "most": 3}
    assert declare(sales).settle({})["rate"] == 5


@pytest.mark.parametrize(
    ("given", "words"),
    [({"rate": "many"}, "not a whole number"), ({"quick": "perhaps"}, "neither true nor false")],
)
def test_a_value_of_the_wrong_type_is_refused(given: dict[str, str], words: str) -> None:
    def sales(spark: Any, start: Any, *, rate: int = 1, quick: bool = True) -> None: ...

    with pytest.raises(WrongUse, match=words):
        declare(sales).settle(given)


def test_a_parameter_without_a_default_must_be_given() -> None:
    def sales(spark: Any, start: Any, *, topic: str) -> None: ...

    with pytest.raises(WrongUse) as error:
        declare(sales).settle({})
    assert "--set topic=VALUE" in error.value.do


def test_an_unknown_parameter_is_a_misspelling() -> None:
    def sales(spark: Any, start: Any, *, topic: str = "orders") -> None: ...

    with pytest.raises(WrongUse, match="topik"):
        refuse_unknown({"sales": declare(sales).parameters}, {"topik": "x"})


@pytest.mark.parametrize("text", ["topic", "=orders"])
def test_a_setting_is_a_name_and_a_value(text: str) -> None:
    with pytest.raises(WrongUse):
        parse_settings((text,))
    assert parse_settings(("a=b=c", "d=")) == {"a": "b=c", "d": ""}


def test_the_checkpoint_may_use_parameters() -> None:
    def sales(spark: Any, start: Any, *, region: str = "eu") -> None: ...

    found = pipeline(checkpoint="data/{region}/ck")(sales)
    assert found.checkpoint_for(found.settle({"region": "us"})) == "data/us/ck"
    with pytest.raises(WrongUse, match="names a parameter"):
        pipeline(checkpoint="data/{land}/ck")(sales).checkpoint_for({"region": "eu"})


def test_a_function_that_takes_no_session_is_refused() -> None:
    def sales() -> None: ...

    with pytest.raises(WrongUse) as error:
        declare(sales)
    assert "def sales(spark, start)" in error.value.do


def test_the_decorator_without_a_checkpoint_is_refused() -> None:
    with pytest.raises(WrongUse, match="no checkpoint"):

        @pipeline  # type: ignore[arg-type]
        def sales(spark: Any, start: Any) -> None: ...


def test_connectors_are_told_from_the_source_code() -> None:
    # This very file names them all, in the assertions below.
    def sales(spark: Any, start: Any) -> None: ...

    assert declare(sales).needs == ("kafka", "delta", "s3")
    assert declare(sales, needs=["delta"]).needs == ("delta",)
    assert declare(sales, needs=()).needs == ()
    with pytest.raises(WrongUse, match="pulsar"):
        declare(sales, needs=["pulsar"])


def test_an_address_on_s3_needs_the_jars_for_it() -> None:
    assert connectors_named('spark.readStream.json(f"s3a://lake/{day}")') == ("s3",)
    assert connectors_named('x = "s3"; y = z.s3') == ()
    assert connectors_reached(["--out=s3a://lake/out", "a"]) == ("s3",)
    assert connectors_reached(["/data/s3a", "hdfs://host/ck"]) == ()


def test_settings_of_spark_are_texts_as_spark_writes_them() -> None:
    def sales(spark: Any, start: Any) -> None: ...

    conf = declare(sales, conf={"spark.ui.enabled": False, "spark.sql.shuffle.partitions": 4}).conf
    assert conf == {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "4"}


def test_declaring_a_pipeline_does_not_load_pyspark() -> None:
    code = (
        "import sys\n"
        "from floodmark.engine.pipelines.decorator import pipeline\n"
        "from floodmark.engine.pipelines.application import load_application\n"
        "@pipeline(checkpoint='x')\n"
        "def sales(spark, start): ...\n"
        "assert not [name for name in sys.modules if name.startswith(('pyspark', 'py4j'))]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
