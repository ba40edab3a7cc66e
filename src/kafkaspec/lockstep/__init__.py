"""Spec machines, and everything that walks them beside something else."""
