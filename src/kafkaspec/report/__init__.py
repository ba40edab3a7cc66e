"""What people and machines read of a result: tables on a terminal, a page, JSON, drawings for the documents."""
