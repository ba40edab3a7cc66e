"""The explicit reading of a model: every reachable state at given sizes, or long random walks through them."""
