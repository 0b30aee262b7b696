"""The values everything else speaks of: immutable, without behaviour that needs a clock or the outside."""
