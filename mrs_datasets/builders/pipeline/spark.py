"""Spark as an engine of the build: one session, quiet, in which each shard is a job of one task (docs/spark.md)."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import warnings
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from mrs_datasets.builders.pipeline.stages import Shard, ShardCounts, settle
from mrs_datasets.builders.pipeline.work_folder import RESUME
from mrs_suggest.common.errors import InputError, MrsError, extra_needed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AT_ONCE = 256  # jobs, each of which waits for a core
MARK = "spark: "  # begins each line of `LOG4J`
LOG4J = Path(__file__).with_name("log4j2.properties")
# Of a session that is made here and runs on this machine; a cluster has its own (spark-submit, spark-defaults.conf).
# C1 alone: Java only passes counts on; it saved 10 CPU-seconds in a build of 20,000 comments.
QUIET = {
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.extraJavaOptions": f"-XX:TieredStopAtLevel=1 -Dlog4j2.configurationFile={LOG4J.as_uri()}",
}
LOCAL = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1", "spark.ui.enabled": "false"}
LOCAL_MASTER = "local[*,4]"  # a task is tried four times, as on a cluster: local[*] would give up at the first
LOST = ("ExecutorLostFailure", "Python worker exited unexpectedly")  # in Spark's report of a failed job


class SparkEngine(AbstractContextManager["SparkEngine"]):
    """Runs the shards of a build on Spark, in a session that begins and ends with the block.

    Args:
        master: of Spark; None: that of a session which runs already, of spark-submit or of spark-defaults.conf, else
            `LOCAL_MASTER`.

    A session that runs already is used, and stays open.

    Raises:
        InputError: Java is not installed, or Spark does not start.
        MissingExtraError: PySpark is not installed.
    """

    def __init__(self, master: str | None = None, settings: Mapping[str, str] | None = None) -> None:
        with extra_needed("pyspark", "spark", "--engine spark"):
            import pyspark  # noqa: F401
        home = os.environ.get("JAVA_HOME")
        if not shutil.which("java", path=os.path.join(home, "bin") if home else None):
            where = f"in JAVA_HOME ({home})" if home else "on this machine"
            raise InputError(
                f"--engine spark: Java was not found {where}; install 17 or later (Debian: default-jre-headless), or "
                "set JAVA_HOME."
            )
        self._master, self._settings = master, dict(settings or {})
        self._session: SparkSession | None = None
        self._own = False

    def __exit__(self, *error: object) -> None:
        """End the session, unless it ran before."""
        if self._session is not None and self._own:
            self._session.stop()
        self._session = None

    @property
    def session(self) -> SparkSession:
        """The session, begun when it is first needed; InputError if Spark does not start."""
        if self._session is None:
            from pyspark import SparkContext
            from pyspark.sql import SparkSession

            warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)  # not used
            self._own = SparkContext._active_spark_context is None
            self._session = self._begin() if self._own else SparkSession.builder.getOrCreate()
        return self._session

    def about(self) -> dict[str, str]:
        """Versions for the report."""
        import pyspark

        context = self.session.sparkContext
        java = context._jvm.java.lang.System.getProperty("java.version")  # type: ignore[union-attr]
        return {"spark": context.version, "pyspark": pyspark.__version__, "java": str(java)}

    def do(self, shards: Sequence[Shard], bar: tqdm[Any]) -> Iterator[tuple[Shard, ShardCounts]]:
        """See `Engine.do`; other shards are finished before an error is raised."""
        if not shards:
            return
        context = self.session.sparkContext

        def run(shard: Shard) -> tuple[str, ShardCounts]:
            problem, counts = context.parallelize([shard], 1).map(_done).collect()[0]
            return problem, counts

        failed = ""
        with ThreadPoolExecutor(min(AT_ONCE, len(shards))) as threads:
            jobs = {threads.submit(run, shard): shard for shard in shards}
            try:
                for job in as_completed(jobs):
                    problem, counts = job.result()
                    bar.update(jobs[job].size)
                    failed = failed or problem
                    if not problem:
                        yield jobs[job], counts
            except BaseException as error:
                threads.shutdown(wait=False, cancel_futures=True)
                context.cancelAllJobs()
                if any(lost in str(error) for lost in LOST):
                    raise InputError(
                        "Spark lost the same task too often (its executor was killed, perhaps for lack of memory); "
                        f"{RESUME}, with a larger spark.executor.memoryOverhead if memory was the reason."
                    ) from None
                raise
        if failed:
            raise InputError(failed)

    def _begin(self) -> SparkSession:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession

        submitted = "PYSPARK_GATEWAY_PORT" in os.environ  # by spark-submit, which has a master
        master = self._master or (None if submitted or _has_default_master() else LOCAL_MASTER)
        builder: Any = SparkSession.builder.appName("mrs data build")
        settings = dict(QUIET)
        if master is not None:
            builder = builder.master(master)
            if master.startswith("local"):
                settings |= LOCAL
                os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        for key, value in {**settings, **self._settings}.items():
            builder = builder.config(key, value)
        said: deque[str] = deque(maxlen=99)
        try:
            with _filtered_stderr(said):
                session: SparkSession = builder.getOrCreate()
            if submitted:  # its Java runs already, with its own settings
                session.sparkContext.setLogLevel("ERROR")
            return session
        except (PySparkException, Py4JError, OSError, RuntimeError) as error:
            lines = [line.strip() for line in [*str(error).splitlines(), *said]]
            reasons = [line for line in lines if line.startswith(("Error: ", ": ", "Exception in "))] or lines
            reason = reasons[0].removeprefix("Error: ").removeprefix(": ").rstrip(".")
            raise InputError(f"--engine spark: does not start ({reason}); check --master and Java.") from None


def _done(shard: Shard) -> tuple[str, ShardCounts]:
    """Do a shard in a task: the sentence of an error of the input, which Spark should not try again, and the counts."""
    settle()
    try:
        return "", shard.work(lambda _: None)
    except MrsError as error:
        return str(error), {}


def _has_default_master() -> bool:
    """Whether spark-defaults.conf has a master."""
    folder = os.environ.get("SPARK_CONF_DIR") or os.path.join(os.environ.get("SPARK_HOME", ""), "conf")
    try:
        lines: Iterable[str] = (Path(folder) / "spark-defaults.conf").read_text(encoding="utf-8").splitlines()
    except OSError:
        return False
    return any(line.split("=")[0].split()[:1] == ["spark.master"] for line in lines)


@contextmanager
def _filtered_stderr(dropped: deque[str]) -> Iterator[None]:
    """Show only what `LOG4J` marks of the stderr of a Java process that is started in the block, as long as it lives.

    The rest is notices of the launcher and of the executors' Python, which no setting turns off.

    Args:
        dropped: gets the other lines; complete after the block, if the process has ended.
    """
    stderr = os.dup(2)
    out, into = os.pipe()
    os.dup2(into, 2)
    os.close(into)

    def forward() -> None:
        with os.fdopen(out, errors="replace") as lines:
            for line in lines:
                if line.startswith(MARK):
                    print(line, end="", file=sys.stderr)
                else:
                    dropped.append(line)

    thread = threading.Thread(target=forward, daemon=True)
    try:
        thread.start()
        yield
    except BaseException:
        os.dup2(stderr, 2)
        thread.join(5)
        raise
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
