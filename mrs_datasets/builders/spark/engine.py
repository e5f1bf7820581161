"""Spark as an engine of the build: one session, quiet, whose jobs are shown as a bar (docs/spark.md)."""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from mrs_datasets.builders.pipeline.stages import Bar, Shard, ShardCounts
from mrs_datasets.builders.pipeline.work_folder import note
from mrs_datasets.builders.spark.rows import Row, counts_row, sentence_of, source
from mrs_suggest.common.errors import InputError, MissingExtraError, MrsError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Show = Callable[[int, int], None]  # numbers of tasks: done, and in all
POLL_SECONDS = 0.5
MARK = "spark: "  # begins each line of `LOG4J`
SCRATCH = "spark"  # in the scratch folder: Spark's own spilled data
LOG4J = Path(__file__).with_name("log4j2.properties")
# Of a session that is made here and runs on this machine; a cluster has its own (spark-submit, spark-defaults.conf).
# The second, C1 alone: Java only moves compressed tables; it saved 10 CPU-seconds in a build of 20,000 comments.
QUIET = {
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.extraJavaOptions": f"-XX:TieredStopAtLevel=1 -Dlog4j2.configurationFile={LOG4J.as_uri()}",
}
PARTITIONS = "spark.sql.shuffle.partitions"
MOST_TASKS = 4096  # of a shuffle on a cluster, unless PARTITIONS says otherwise
LOCAL = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1", "spark.ui.enabled": "false"}
LOCAL_MASTER = "local[*,4]"  # a task is tried four times, as on a cluster: local[*] would give up at the first
# Of SQL in the session of a build: rows hold whole tables, and the number of partitions is known.
SQL = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(32 << 20),
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
}


class SparkEngine:
    """Runs the work of a build on Spark; begin the session with `open`, end it with `close`.

    Args:
        master: of Spark; None: that of a session which runs already, of spark-submit or of spark-defaults.conf, else
            `LOCAL_MASTER`.
        settings: more of Spark's settings.

    A session that runs already is used, and stays open.

    Raises:
        InputError: there is no Java.
        MissingExtraError: PySpark is not installed.
    """

    def __init__(self, master: str | None = None, settings: Mapping[str, str] | None = None) -> None:
        self._master, self._settings = master, dict(settings or {})
        self._session: SparkSession | None = None
        self._own = False
        self._jobs = 0
        require_spark()

    def __enter__(self) -> SparkEngine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def session(self) -> SparkSession:
        """The session, after `open`."""
        assert self._session is not None
        return self._session

    def open(self, scratch: Path) -> None:
        """Begin the session, if it has not begun.

        Args:
            scratch: a local folder, for what Spark spills on this machine if nothing else is configured.

        Raises:
            InputError: Spark does not start.
        """
        if self._session is not None:
            return
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)  # none is used
        from pyspark import SparkContext
        from pyspark.sql import SparkSession

        self._own = SparkContext._active_spark_context is None
        running = self._begin(scratch) if self._own else SparkSession.builder.getOrCreate()
        self._session = running.newSession()  # its SQL settings are ours alone
        for name, value in SQL.items():
            self._session.conf.set(name, value)

    def close(self) -> None:
        """End the session, unless it ran before."""
        if self._session is not None and self._own:
            self._session.stop()
        self._session = None

    def share(self, file: Path) -> None:
        """Send a file to the machines of the executors, where a task finds it with `pairs.model_here`."""
        if not self._is_local():
            self.session.sparkContext.addFile(str(file))

    def tasks(self, groups: int) -> int:
        """In how many tasks so many groups are done, one after the other in each: as `PARTITIONS` says; else four per
        core of this machine, or on a cluster each in its own."""
        context = self.session.sparkContext
        configured = context.getConf().get(PARTITIONS)
        most = 4 * context.defaultParallelism if self._is_local() else MOST_TASKS
        return max(1, min(groups, int(configured) if configured else most))

    def _is_local(self) -> bool:
        return str(self.session.sparkContext.master).startswith("local")

    def about(self) -> dict[str, str]:
        """Its parts and their versions, for the report."""
        import pyspark

        context = self.session.sparkContext
        java = context._jvm.java.lang.System.getProperty("java.version")  # type: ignore[union-attr]
        return {"spark": context.version, "pyspark": pyspark.__version__, "java": str(java)}

    def do(self, shards: Sequence[Shard], bar: Bar) -> Iterator[tuple[Shard, ShardCounts]]:
        """As `Engine.do`: a shard is a task, which notes that it is done.

        Raises:
            InputError: as the shards, when all others are done.
        """
        if not shards:
            return

        def work(number: int) -> Iterator[Row]:
            shard = shards[number]
            try:
                counts = shard.work(lambda _: None)
            except MrsError as error:  # not raised: the other tasks go on, and nothing is tried again
                yield number, 1, str(error).encode()
                return
            note(shard.output.parent, shard.name, counts)
            yield counts_row(number, counts)

        begun, size = bar.n, sum(shard.size for shard in shards)

        def show(done: int, tasks: int) -> None:
            bar.update(begun + size * done // max(tasks, 1) - bar.n)

        failed: list[str] = []
        for number, place, data in self.collect(source(self.session, len(shards), work), show):
            if place:
                failed.append(bytes(data).decode())
                continue
            yield shards[number], json.loads(bytes(data))
        if failed:
            raise InputError(failed[0])

    def collect_under_bar(self, frame: DataFrame, name: str) -> list[Row]:
        """As `collect`, under a bar of the job's tasks."""
        with tqdm(desc=name, unit=" tasks") as bar:

            def show(done: int, tasks: int) -> None:
                bar.total = tasks
                bar.update(done - bar.n)

            return self.collect(frame, show)

    def collect(self, frame: DataFrame, show: Show) -> list[Row]:
        """Run a job; its rows, which must be few.

        Args:
            show: called with the number of its tasks that are done, and of all that are known.

        Raises:
            InputError: an error of the input in a task, or tasks that were killed too often.
        """
        self._jobs += 1
        group = f"mrs-{os.getpid()}-{self._jobs}"
        context = self.session.sparkContext
        context.setJobGroup(group, "mrs data build", interruptOnCancel=True)
        try:
            with _watched(self.session, group, show):
                return sorted((row.key, row.place, row.data) for row in frame.collect())
        except Exception as error:
            known = sentence_of(error)
            if known is None:
                raise
            raise known from None

    def _begin(self, scratch: Path) -> SparkSession:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession

        submitted = "PYSPARK_GATEWAY_PORT" in os.environ  # by spark-submit, which has a master
        master = self._master or (None if submitted or _configured("spark.master") else LOCAL_MASTER)
        builder: Any = SparkSession.builder.appName("mrs data build")
        if master is not None:
            builder = builder.master(master)
        settings = dict(QUIET)
        if master is not None and master.startswith("local"):
            place = scratch / SCRATCH
            shutil.rmtree(place, ignore_errors=True)  # of a build that was killed
            place.mkdir(parents=True)
            settings |= {**LOCAL, "spark.local.dir": str(place)}
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


def require_spark() -> None:
    """Refuse a machine without PySpark or Java.

    Raises:
        MissingExtraError: there is no PySpark.
        InputError: there is no Java.
    """
    try:
        import pyspark
    except ImportError:
        raise MissingExtraError("pyspark", "spark", "--engine spark") from None
    assert pyspark
    home = os.environ.get("JAVA_HOME")
    if not shutil.which("java", path=os.path.join(home, "bin") if home else None):
        where = f"in JAVA_HOME ({home})" if home else "here"
        raise InputError(
            f"--engine spark: there is no Java {where}; install 17 or later (Debian: default-jre-headless), or set "
            "JAVA_HOME."
        )


def _configured(name: str) -> bool:
    """Whether spark-defaults.conf has a setting."""
    folder = os.environ.get("SPARK_CONF_DIR") or os.path.join(os.environ.get("SPARK_HOME", ""), "conf")
    try:
        lines = (Path(folder) / "spark-defaults.conf").read_text(encoding="utf-8").splitlines()
    except OSError:
        return False
    return any(line.split("=")[0].split()[:1] == [name] for line in lines if line.strip())


@contextmanager
def _watched(session: SparkSession, group: str, show: Show) -> Iterator[None]:
    """Show the progress of a group of jobs, in the block."""
    tracker = session.sparkContext.statusTracker()
    ended = threading.Event()

    def look() -> tuple[int, int]:
        stages: set[int] = set()
        for job in tracker.getJobIdsForGroup(group):
            info = tracker.getJobInfo(job)
            stages.update(info.stageIds if info else ())
        facts = [found for stage in stages if (found := tracker.getStageInfo(stage)) is not None]
        return sum(found.numCompletedTasks for found in facts), sum(found.numTasks for found in facts)

    def watch() -> None:
        while not ended.wait(POLL_SECONDS):
            with suppress(Exception):  # the session may have ended
                show(*look())

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
        ended.set()
        thread.join()
        show(*look())
    finally:
        ended.set()
        thread.join()


@contextmanager
def _filtered_stderr(dropped: deque[str]) -> Iterator[None]:
    """Of what a Java process that is started in the block ever writes to stderr, let pass what `LOG4J` lets pass.

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
