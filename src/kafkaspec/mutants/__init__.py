"""Mutation testing: faults, written and generated, and which detector notices which."""
