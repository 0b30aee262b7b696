"""Why a status is as it is, and which reports would help."""
