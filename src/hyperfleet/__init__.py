"""HyperFleet knows and tells the status of a fleet of Kubernetes clusters."""

__version__ = "0.1.0"
