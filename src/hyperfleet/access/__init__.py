"""Access: authenticates callers. The only package that knows token files, JWTs and the keys of issuers.

In the order a newcomer meets it: `factory` builds an authenticator from settings; `authenticator` answers the gate of
the API and caches the result; `token_file` and `tokens` handle the tokens of a file; `issuer` has the settings of an
issuer of JWTs, `jwt` verifies one, `keys` holds its keys, and `claims` turns the claims into a caller. `certificates`
checks TLS files before they are used. Nothing is loaded unless it is configured.
"""
