"""Parts of the spec of the replica manager."""
