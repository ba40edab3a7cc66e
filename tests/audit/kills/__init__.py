"""Who audits the audit: every comparison of its rules is made wrong, one at a time, and small directories must show it.

`faults` makes the faults of a module's text, `write` writes small directories down in a line or two, `cases` has them,
`harness` runs the rules over them, sound or with a fault, and `measure` keeps in docs/measured what it found.
"""
