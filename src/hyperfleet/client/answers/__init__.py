"""The shapes of answers, one module for each subject. `hyperfleet.client` exports those that callers name."""
