"""Pictures by matplotlib, without a display; a file appears whole or not at all."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mrs_suggest.common.errors import InputError

DPI = 120  # ours: readable on a page, some 50 kB


@contextmanager
def drawing(path: Path, rows: int = 1, columns: int = 1, **options: Any) -> Iterator[tuple[Any, Any]]:
    """A figure and its axes as `pyplot.subplots` gives them; when the block ends, they are the file at `path`.

    Raises:
        InputError: the file cannot be written, or its format is not supported.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    if path.suffix.removeprefix(".") not in FigureCanvasAgg.get_supported_filetypes() or path.is_dir():
        raise InputError(f"{path}: unsupported format; choose a file that ends in .png, .pdf or .svg.")
    figure, axes = plt.subplots(rows, columns, **{"layout": "constrained", **options})
    partial = path.with_name(f".partial-{path.name}")
    try:
        yield figure, axes
        try:
            figure.savefig(partial, dpi=DPI)
            partial.replace(path)
        except (OSError, ValueError) as error:
            raise InputError(f"{path}: cannot be written ({error}); choose another file that ends in .png.") from None
    finally:
        partial.unlink(missing_ok=True)
        plt.close(figure)
