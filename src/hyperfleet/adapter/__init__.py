"""The adapter framework: an adapter is a YAML file.

In the order a newcomer meets it: `documents` are the types of the YAML, `loading` reads files and reports every problem
of them, `compiling` turns their texts into templates and expressions, and `config` is the result, an adapter that is
ready to run. Then one event: `reconcile` is its story, `params` and `preconditions` are its first steps, `objects`
decides what to do in the cluster and `object_step` does it, `payloads` and `reporting` build the report, and
`post_actions` sends it. `runs` is the value that goes from step to step; `dry_run` shows it.

Pure pieces: `templates` renders texts and manifests, `field_paths` finds values in API answers, `operators` has the
structured conditions, `dialect` evaluates the expressions of the contract's status block, `expressions` puts CEL beside
it, and `faults` is how all of them report what is wrong and where. None of them reads a clock or does I/O: `now` is an
argument. Ports: `api_calls` (`api_http`, and `api_recorded` for dry-runs) and `params.TextReader` (`text_reading`).
"""
