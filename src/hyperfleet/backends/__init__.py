"""The outer ring: stores and clocks. Services use them through `hyperfleet.ports`; `bootstrap` picks one."""
