"""What people and machines read of a result: tables on a terminal, a page, JSON."""

from kafkaspec.report.table import table, trace_table

verdict_table = table

__all__ = ["table", "trace_table", "verdict_table"]
