"""Kafka's ids: 16 bytes, written in URL-safe base64."""

from __future__ import annotations

import base64
import re

ID_BYTES = 16
ID_CHARACTERS = 22


def id_bytes(text: str) -> bytes | None:
    """The 16 bytes of an id, with its padding or without; None if it is none."""
    bare = text.removesuffix("==")
    return base64.urlsafe_b64decode(f"{bare}==") if re.fullmatch(r"[A-Za-z0-9_-]{22}", bare) else None


def id_text(id: bytes) -> str:
    """An id in 22 characters."""
    return base64.urlsafe_b64encode(id).decode()[:ID_CHARACTERS]
