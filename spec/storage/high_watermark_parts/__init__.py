"""Parts of the spec of the high watermark."""
