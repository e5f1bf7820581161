"""The checks of a machine before Spark is started."""

import sys
from pathlib import Path

import pytest

from mrs_datasets.builders.pipeline.spark import SparkEngine, _has_default_master
from mrs_suggest.common.errors import InputError, MissingExtraError


def test_no_pyspark_names_the_extra(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(MissingExtraError) as error:
        SparkEngine()
    assert ".[spark]" in str(error.value)


@pytest.mark.parametrize("variable", ["PATH", "JAVA_HOME"])
def test_no_java_names_the_package(monkeypatch, tmp_path: Path, variable: str) -> None:
    pytest.importorskip("pyspark")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv(variable, str(tmp_path))
    with pytest.raises(InputError) as error:
        SparkEngine()
    assert "default-jre-headless" in str(error.value)
    assert (str(tmp_path) in str(error.value)) == (variable == "JAVA_HOME")


def test_a_master_that_is_configured_is_seen(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert not _has_default_master()
    (tmp_path / "spark-defaults.conf").write_text("# spark.master x\nspark.app.name a\nspark.master  spark://a:7077\n")
    assert _has_default_master()
