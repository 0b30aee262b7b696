"""Access: finds out whose a bearer token is. The only part that knows token files, JWTs and the keys of issuers.

In the order a newcomer meets it: `opening` puts a doorkeeper together from settings; `doorkeeper` answers the gate of
the API and remembers what it found; `token_file` and `tokens` are the tokens of a file; `issuer` is what can be set
about an issuer of JWTs, `jwt` checks one, `keys` has what it is checked with, and `claims` makes a caller of what it
says. `certificates` looks at the files of TLS before they are used. Nothing of it is loaded unless it is configured.
"""
