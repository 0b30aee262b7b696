"""A simulated fleet: clusters, people and adapters with realistic faults, driven against a real server.

Start with `planning.plan`: it yields everything that happens, from a seed. `lifecycles` decides when a cluster is
created, edited and deleted; `adapter_run` is one adapter at work; `timeline` schedules routines; `randomness` is the
only source of random numbers. All of that is pure. `driving` executes a plan through `hyperfleet.client`, at the speed
set by `pacing`, and `stats` counts the results. Called by `hyperfleet sim` and `hyperfleet demo`, and by tests.
"""
