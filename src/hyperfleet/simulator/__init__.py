"""A simulated fleet: clusters with realistic adapters and troubles, played against a real server.

In the order a newcomer meets it: `planning.plan` yields everything that happens, from a seed; `stories` are the lives
that people give their clusters, `running` is an adapter at work, `timeline` the clockwork, `chance` the dice. All of
that is pure. `driving` carries a plan out through `hyperfleet.client`, at the pace of `pacing`, and `tally` counts what
came of it. Called by `hyperfleet sim` and `hyperfleet demo`, and by tests.
"""
