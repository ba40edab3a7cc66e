"""What a spec is written in: clauses, state machines, known deviations, recordings; and where each clause is stated."""
