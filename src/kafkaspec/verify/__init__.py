"""Everything that the project claims, established anew."""
