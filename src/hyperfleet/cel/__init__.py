"""CEL expressions: compile once with every error placed, evaluate many times within a budget.

    environment = CelEnvironment({"resource": "any", "age": "duration"}, HELPERS)
    program = environment.compile('resource.spec.?tier.orValue("") == "gold" && age > duration("5m")', "bool").program
    outcome = program.evaluate(environment.activate({"resource": {...}, "age": timedelta(minutes=7)}, now))

The sentinel evaluates its rules with this, and adapters will. The engine is Google's, behind these modules:
`environment` declares variables and compiles, `program` evaluates, `functions` has the functions of the Go programs,
`values` converts what goes in and comes out, `faults` reads the errors of the engine, and `guard` refuses what would
crash it. Everything is pure: `now` is an argument. Neither an expression nor a value raises: faults and failures are
results.

The engine is loaded with the first environment, as that takes 20 ms.
"""

from hyperfleet.cel.environment import RESERVED_NAMES, CelEnvironment, CelType, Compiled
from hyperfleet.cel.faults import CelFault, place_faults
from hyperfleet.cel.functions import HELPERS, LISTS, CelFunction
from hyperfleet.cel.program import Activation, CelFailure, Outcome, Program
from hyperfleet.cel.tree import VariableReference

__all__ = [
    "HELPERS",
    "LISTS",
    "RESERVED_NAMES",
    "Activation",
    "CelEnvironment",
    "CelFailure",
    "CelFault",
    "CelFunction",
    "CelType",
    "Compiled",
    "Outcome",
    "Program",
    "VariableReference",
    "place_faults",
]
