"""Everything that the project claims, established again."""
