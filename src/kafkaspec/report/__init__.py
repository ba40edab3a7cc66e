"""What people and machines read of a result: tables on a terminal, a page, JSON, drawings for the documents."""

from kafkaspec.report.html import html
from kafkaspec.report.json import to_json
from kafkaspec.report.junit import junit
from kafkaspec.report.sequence import sequence_svg
from kafkaspec.report.table import table, trace_table

__all__ = ["html", "junit", "sequence_svg", "table", "to_json", "trace_table"]
