"""Two small tools for trying things out: a clock and a calculator. `lesson chat --tools` offers them to the model.

They are examples of what a tool should be: arguments are checked, work is bounded, an error says in one sentence what to do
better (the model reads it), and nothing in an argument is ever run as code.

What this file does not do: it registers nothing and knows no schema. tools.py makes the schema from the functions.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from decimal import ROUND_FLOOR, Context, Decimal, DecimalException, localcontext
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

MAX_EXPRESSION = 200

# 28 digits, and a bounded exponent: no expression can make a number that takes long or much room
_CONTEXT = Context(prec=28, Emin=-999, Emax=999)

_OPERATORS: dict[type[ast.operator], Callable[[Decimal, Decimal], Decimal]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: lambda a, b: (a / b).to_integral_value(ROUND_FLOOR),  # as everywhere in Python; Decimal's own rounds to 0
    ast.Mod: lambda a, b: a - b * (a / b).to_integral_value(ROUND_FLOOR),
    ast.Pow: operator.pow,
}


def clock(timezone: str = "UTC") -> str:
    """The current date and time.

    Args:
        timezone: An IANA name such as "Europe/Lisbon", or "UTC".
    """
    zone: tzinfo = UTC
    if timezone.upper() != "UTC":
        try:
            zone = ZoneInfo(timezone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError(
                f'no time zone {timezone[:60]!r} is known; use an IANA name such as "Asia/Tokyo", or "UTC"'
            ) from None
    now = datetime.now(zone)
    return f"{now:%A}, {now:%Y-%m-%d %H:%M} (UTC{now:%z})"


def calculator(expression: str) -> str:
    """The value of an arithmetic expression, to 28 digits.

    Args:
        expression: Numbers, + - * / // % ** and parentheses, for example "(3 + 4) * 12.5".
    """
    if len(expression) > MAX_EXPRESSION:
        raise ValueError(f"the expression is longer than {MAX_EXPRESSION} characters; calculate it in parts")
    try:
        tree = ast.parse(expression.strip(), mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise ValueError(f"{expression!r} is not an arithmetic expression") from None
    with localcontext(_CONTEXT):
        try:
            value = _value(tree.body)
        except DecimalException as error:
            raise ValueError(f"{expression!r} has no value here: {type(error).__name__}") from None
        return f"{value.normalize():f}" if abs(value.adjusted()) < _CONTEXT.prec else f"{value.normalize()}"


def _value(node: ast.expr) -> Decimal:
    match node:
        case ast.Constant(value=bool() | complex()):
            pass
        case ast.Constant(value=int() | float() as number) if math.isfinite(number):
            return +Decimal(repr(number))
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return +_value(operand)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_value(left), _value(right))
    raise ValueError(f"only numbers, + - * / // % ** and parentheses can be used, not {ast.unparse(node)!r}")
