"""The client without a HyperFleet server: its flows against a world that the test makes up, and rogue servers."""
