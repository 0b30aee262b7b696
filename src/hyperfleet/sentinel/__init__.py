"""The sentinel's decisions: which resource wants to be looked at, when, and for which rule.

In the order a newcomer meets it: `rules` are what a person configures, `rule_file` reads them from YAML; `schedule`
tells when a resource wants its next look (every write asks it) and which rules are due; `decision` evaluates the
conditions of due rules; `membership` shares resources among several sentinels. `go_files` and `go_decision` are for
configuration files of the Go sentinel.

Everything here is pure: `now` is an argument. Services store the plan and publish; the sentinel's loop is not here.
"""
