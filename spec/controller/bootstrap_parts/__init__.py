"""Parts of the spec of bootstrap and format."""
