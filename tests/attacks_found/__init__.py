"""Attacks that were not noticed: each test is red until they are."""
