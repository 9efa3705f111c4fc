"""How Parquet files of ours are written and read: with a checksum for every page, so that a flipped bit is an error.

Without them most flipped bits are another answer or another score, and nobody notices.
"""

from __future__ import annotations

from typing import Any

WRITING: dict[str, Any] = {"compression": "zstd", "write_page_checksum": True}
READING: dict[str, Any] = {"page_checksum_verification": True}
"""Files without checksums, of earlier versions and of others, are read as they are."""
