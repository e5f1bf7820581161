"""The columns passed between the stages."""

from __future__ import annotations

import pyarrow as pa

# One comment per row. Strings are valid UTF-8 without surrogates. No column holds an author: whether the author is a
# bot is decided while reading, and the name goes no further.
COMMENTS = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),  # without the prefix t1_
        pa.field("parent_id", pa.string(), nullable=False),  # t1_ID: a comment, t3_ID: the post, which is not a message
        pa.field("link_id", pa.string(), nullable=False),  # t3_ID of the post: the thread
        pa.field("body", pa.string(), nullable=False),  # Markdown; the dumps write & < > as &amp; &lt; &gt;
        pa.field("score", pa.int32()),  # null if the dump does not give it
        pa.field("is_bot", pa.bool_(), nullable=False),
        pa.field("deleted_later", pa.bool_(), nullable=False),  # newer dumps mark what was deleted after the crawl
        pa.field("created", pa.int64(), nullable=False),  # seconds since 1970, UTC
    ]
)
COMMENT_PREFIX = "t1_"
POST_PREFIX = "t3_"
