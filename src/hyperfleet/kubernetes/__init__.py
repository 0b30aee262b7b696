"""Objects of Kubernetes clusters: the port through which they are read and written, and informers that follow them.

`port` first; `informer` is built on it. The backends are `hyperfleet.backends.kubernetes`: a real API server, and a dry
run in memory. Both pass the same contract tests.
"""
