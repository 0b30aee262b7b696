"""Kubernetes clusters: `api_server` is a real one over HTTPS, `dry_run` one in memory.

`access` says how to reach a cluster; `kubeconfig` and `service_account` read it from files, `credentials` uses it.
"""
