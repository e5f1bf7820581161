"""One reader per source layout. A reader yields `(config, split, table)` chunks; the writer puts them into Parquet.

InputError: a source is missing, incomplete or damaged; the sentence names the file, and the line if there is one.
"""

from collections.abc import Iterator

import pyarrow as pa

Chunk = tuple[str, str, pa.Table]
Chunks = Iterator[Chunk]
