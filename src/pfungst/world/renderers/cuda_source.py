"""The kernels in CUDA C++, translated from their Python source.

The kernels of `geometry`, `light`, `shade` and `frame` use a small part of Python: numbers, tuples of numbers, flat
arrays, `if`, `for ... in range(...)`, and calls of each other with annotated signatures. That part has a plain meaning
in C++, so that a GPU can run the very formulas that numba compiles for the CPU.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

_SCALARS = {"float": "double", "int": "i64", "bool": "bool", "None": "void"}
_ARRAYS = {"Floats": "double*", "Ints": "i64*", "npt.NDArray[np.int16]": "short*"}
_VECTOR = ("double", "double", "double")
_RANK = {"bool": 0, "short": 1, "i64": 2, "double": 3}
_MATH = {"sqrt", "sin", "cos", "atan2", "copysign", "floor", "ceil"}
_OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Mod: "%",
    ast.FloorDiv: "/",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}

PRELUDE = """\
typedef long long i64;
#ifdef __CUDACC__
#define FUNCTION static __device__
#define APART __noinline__
#define TABLE static __constant__
#define INFINITE __longlong_as_double(0x7ff0000000000000LL)
#define ENTRY extern "C" __global__ void
#define EACH(index, total) i64 index = (i64)blockIdx.x * blockDim.x + threadIdx.x; if (index < (total))
#else
#include <math.h>
#define FUNCTION static
#define APART
#define TABLE static const
#define INFINITE ((double)INFINITY)
#define ENTRY extern "C" void
#define EACH(index, total) for (i64 index = 0; index < (total); ++index)
#endif
FUNCTION double least(double a, double b) { return b < a ? b : a; }
FUNCTION double most(double a, double b) { return b > a ? b : a; }
FUNCTION i64 least(i64 a, i64 b) { return b < a ? b : a; }
FUNCTION i64 most(i64 a, i64 b) { return b > a ? b : a; }
"""


class Untranslatable(Exception):
    """A kernel uses something that has no plain meaning in C++ here."""


Type = Any  # "double", "i64", "bool", "short", an array type such as "double*", or a tuple of types


def translate(entries: Iterable[Callable[..., Any]], apart: Iterable[str] = ()) -> str:
    """C++ source of these kernels and of all that they call, without main or __global__ functions.

    Functions named in `apart` stay functions in the machine code, which is compiled much quicker then.
    """
    unit = _Unit(frozenset(apart))
    for function in entries:
        unit.add(function)
    return "\n".join([PRELUDE, *unit.structs.values(), *unit.tables.values(), *unit.prototypes, *unit.bodies])


def type_name(kind: Type) -> str:
    if isinstance(kind, tuple):
        return "S_" + "_".join(type_name(one).replace("*", "p") for one in kind) + "_"
    return str(kind)


@dataclass
class _Unit:
    """What has been translated so far."""

    apart: frozenset[str]
    signatures: dict[str, tuple[list[Type], Type]] = field(default_factory=dict)
    structs: dict[Type, str] = field(default_factory=dict)
    tables: dict[str, str] = field(default_factory=dict)
    prototypes: list[str] = field(default_factory=list)
    bodies: list[str] = field(default_factory=list)

    def add(self, function: Callable[..., Any]) -> None:
        function = getattr(function, "py_func", function)
        if function.__name__ in self.signatures:
            return
        tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
        assert isinstance(tree, ast.FunctionDef)
        arguments = [self.annotated(one.annotation) for one in tree.args.args]
        result = self.annotated(tree.returns)
        self.signatures[tree.name] = arguments, result
        names = [one.arg for one in tree.args.args]
        writer = _Writer(self, function.__globals__, dict(zip(names, arguments, strict=True)), result)
        listed = ", ".join(f"{type_name(kind)} v_{name}" for name, kind in zip(names, arguments, strict=True))
        head = f"{'APART ' if tree.name in self.apart else ''}FUNCTION {type_name(result)} {tree.name}({listed})"
        body = writer.function(tree)
        self.prototypes.append(head + ";")
        self.bodies.append(head + " {\n" + body + "}\n")

    def annotated(self, node: ast.expr | None) -> Type:
        text = "None" if node is None else ast.unparse(node)
        if text in _SCALARS:
            return _SCALARS[text]
        if text in _ARRAYS:
            return _ARRAYS[text]
        if text == "Vec":
            return self.struct(_VECTOR)
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "tuple":
            assert isinstance(node.slice, ast.Tuple)
            return self.struct(tuple(self.annotated(one) for one in node.slice.elts))
        raise Untranslatable(f"the annotation {text}")

    def struct(self, kinds: tuple[Type, ...]) -> tuple[Type, ...]:
        if kinds not in self.structs:
            members = " ".join(f"{type_name(kind)} f{i};" for i, kind in enumerate(kinds))
            self.structs[kinds] = f"struct {type_name(kinds)} {{ {members} }};"
        return kinds

    def table(self, name: str, values: np.ndarray[Any, Any]) -> None:
        """A constant array; modules must not use one name for two of them."""
        numbers = ", ".join(_number(value) for value in values.ravel().tolist())
        size = "".join(f"[{one}]" for one in values.shape)
        line = f"TABLE double {name}{size} = {{ {numbers} }};"
        if self.tables.setdefault(name, line) != line:
            raise Untranslatable(f"two tables named {name}")


@dataclass
class _Writer:
    """Translates one function."""

    unit: _Unit
    globals: dict[str, Any]
    variables: dict[str, Type]
    result: Type
    temporaries: int = 0

    def function(self, tree: ast.FunctionDef) -> str:
        arguments = set(self.variables)
        # A variable may turn out a float only after its first use as an integer: repeat until nothing changes.
        while True:
            before = dict(self.variables)
            self.temporaries = 0
            text = self.block(tree.body, 1)
            if before == self.variables:
                break
        declared = "".join(
            f"  {type_name(kind)} v_{name};\n" for name, kind in self.variables.items() if name not in arguments
        )
        return declared + text

    def block(self, statements: list[ast.stmt], depth: int) -> str:
        return "".join(self.statement(one, "  " * depth, depth) for one in statements)

    def statement(self, node: ast.stmt, pad: str, depth: int) -> str:
        if isinstance(node, ast.Expr):
            return "" if isinstance(node.value, ast.Constant) else f"{pad}{self.value(node.value)[0]};\n"
        if isinstance(node, ast.Assign):
            return self.assign(node.targets[0], node.value, pad)
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            return self.assign(node.target, node.value, pad)
        if isinstance(node, ast.AugAssign):
            return self.assign(node.target, ast.BinOp(_read(node.target), node.op, node.value), pad)
        if isinstance(node, ast.Return):
            return f"{pad}return {'' if node.value is None else self.cast(self.value(node.value), self.result)};\n"
        if isinstance(node, ast.If):
            text = f"{pad}if ({self.value(node.test)[0]}) {{\n{self.block(node.body, depth + 1)}{pad}}}\n"
            return text + (f"{pad}else {{\n{self.block(node.orelse, depth + 1)}{pad}}}\n" if node.orelse else "")
        if isinstance(node, ast.For):
            return self.loop(node, pad, depth)
        if isinstance(node, (ast.Continue, ast.Break)):
            return f"{pad}{type(node).__name__.lower()};\n"
        raise Untranslatable(ast.unparse(node))

    def loop(self, node: ast.For, pad: str, depth: int) -> str:
        call = node.iter
        if not (isinstance(call, ast.Call) and isinstance(node.target, ast.Name) and ast.unparse(call.func) == "range"):
            raise Untranslatable(ast.unparse(node.iter))
        name = node.target.id
        bounds = [self.value(one)[0] for one in call.args]
        first, last, step = ["0", *bounds, "1"] if len(bounds) == 1 else [*bounds, "1"][:3]
        self.assigned(name, "i64")
        head = f"{pad}for (v_{name} = {first}; v_{name} < {last}; v_{name} += {step}) {{\n"
        return head + self.block(node.body, depth + 1) + f"{pad}}}\n"

    def assign(self, target: ast.expr, value: ast.expr, pad: str) -> str:
        if not isinstance(target, ast.Tuple):
            return pad + self.store(target, self.value(value)) + "\n"
        # All of the right side is computed before anything on the left changes.
        lines, parts = [], []
        if isinstance(value, ast.Tuple):
            for one in value.elts:
                code, kind = self.value(one)
                parts.append((self.temporary(), kind))
                lines.append(f"{type_name(kind)} {parts[-1][0]} = {code};")
        else:
            code, kind = self.value(value)
            whole = self.temporary()
            lines.append(f"{type_name(kind)} {whole} = {code};")
            parts = [(f"{whole}.f{i}", one) for i, one in enumerate(kind)]
        for one, part in zip(target.elts, parts, strict=True):
            if not (isinstance(one, ast.Name) and one.id == "_"):
                lines.append(self.store(one, part))
        return "".join(f"{pad}{line}\n" for line in lines)

    def store(self, target: ast.expr, value: tuple[str, Type]) -> str:
        if isinstance(target, ast.Name):
            self.assigned(target.id, value[1])
            return f"v_{target.id} = {self.cast(value, self.variables[target.id])};"
        return f"{self.value(target)[0]} = {value[0]};"

    def assigned(self, name: str, kind: Type) -> None:
        known = self.variables.get(name)
        self.variables[name] = kind if known is None or known == kind else _wider(known, kind)

    def temporary(self) -> str:
        self.temporaries += 1
        return f"t_{self.temporaries}"

    def cast(self, value: tuple[str, Type], kind: Type) -> str:
        return value[0] if value[1] == kind or isinstance(kind, tuple) else f"({type_name(kind)})({value[0]})"

    def value(self, node: ast.expr) -> tuple[str, Type]:
        method = getattr(self, "value_" + type(node).__name__.lower(), None)
        if method is None:
            raise Untranslatable(ast.unparse(node))
        code, kind = method(node)
        return code, kind

    def value_constant(self, node: ast.Constant) -> tuple[str, Type]:
        return self.known(node.value, repr(node.value))

    def known(self, value: Any, name: str) -> tuple[str, Type]:
        if isinstance(value, bool):
            return str(value).lower(), "bool"
        if isinstance(value, (int, np.integer)):
            return f"{int(value)}LL", "i64"
        if isinstance(value, (float, np.floating)):
            return _number(float(value)), "double"
        if isinstance(value, tuple):
            parts = [self.known(one, name) for one in value]
            kind = self.unit.struct(tuple(one[1] for one in parts))
            return f"{type_name(kind)}{{{', '.join(one[0] for one in parts)}}}", kind
        raise Untranslatable(f"the constant {name}")

    def value_name(self, node: ast.Name) -> tuple[str, Type]:
        if node.id in self.variables:
            # Prefixed, since a variable may be called as a function is.
            return f"v_{node.id}", self.variables[node.id]
        return self.known(self.globals[node.id], node.id)

    def value_attribute(self, node: ast.Attribute) -> tuple[str, Type]:
        return self.known(getattr(self.globals[ast.unparse(node.value)], node.attr), ast.unparse(node))

    def value_tuple(self, node: ast.Tuple) -> tuple[str, Type]:
        parts = [self.value(one) for one in node.elts]
        # Whole numbers among the parts of a vector are meant as floats.
        kinds = tuple("double" if kind == "i64" and len(parts) == 3 else kind for _, kind in parts)
        kind = self.unit.struct(kinds)
        cast = (self.cast(part, one) for part, one in zip(parts, kinds, strict=True))
        return f"{type_name(kind)}{{{', '.join(cast)}}}", kind

    def value_subscript(self, node: ast.Subscript) -> tuple[str, Type]:
        index = node.slice
        if isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
            table = self.globals[ast.unparse(node.value.value)]
            assert isinstance(index, ast.Constant)
            return self.known(table.shape[index.value], ast.unparse(node))
        if isinstance(node.value, ast.Name) and node.value.id not in self.variables:
            self.unit.table(node.value.id, np.asarray(self.globals[node.value.id], dtype=np.float64))
            places = index.elts if isinstance(index, ast.Tuple) else [index]
            return node.value.id + "".join(f"[{self.value(one)[0]}]" for one in places), "double"
        code, kind = self.value(node.value)
        if isinstance(kind, tuple):
            assert isinstance(index, ast.Constant) and isinstance(index.value, int)
            return f"{code}.f{index.value}", kind[index.value]
        element = kind.removesuffix("*")
        return f"{code}[{self.value(index)[0]}]", element

    def value_unaryop(self, node: ast.UnaryOp) -> tuple[str, Type]:
        code, kind = self.value(node.operand)
        return (f"(!{code})", "bool") if isinstance(node.op, ast.Not) else (f"(-{code})", kind)

    def value_binop(self, node: ast.BinOp) -> tuple[str, Type]:
        (a, first), (b, second) = self.value(node.left), self.value(node.right)
        if isinstance(node.op, ast.Div):
            return f"((double)({a}) / (double)({b}))", "double"
        if isinstance(node.op, ast.Pow):
            if ast.unparse(node.right) != "2":
                raise Untranslatable(ast.unparse(node))
            return f"(({a}) * ({a}))", first
        return f"({a} {_OPERATORS[type(node.op)]} {b})", _wider(first, second)

    def value_compare(self, node: ast.Compare) -> tuple[str, Type]:
        sides = [self.value(one)[0] for one in (node.left, *node.comparators)]
        signs = [_OPERATORS[type(one)] for one in node.ops]
        parts = [f"({a} {sign} {b})" for a, sign, b in zip(sides, signs, sides[1:])]
        return f"({' && '.join(parts)})", "bool"

    def value_boolop(self, node: ast.BoolOp) -> tuple[str, Type]:
        sign = " && " if isinstance(node.op, ast.And) else " || "
        return f"({sign.join(self.value(one)[0] for one in node.values)})", "bool"

    def value_ifexp(self, node: ast.IfExp) -> tuple[str, Type]:
        yes, no = self.value(node.body), self.value(node.orelse)
        kind = _wider(yes[1], no[1])
        return f"({self.value(node.test)[0]} ? {self.cast(yes, kind)} : {self.cast(no, kind)})", kind

    def value_call(self, node: ast.Call) -> tuple[str, Type]:
        name = ast.unparse(node.func)
        values = [self.value(one) for one in node.args]
        codes = [code for code, _ in values]
        if name in ("min", "max"):
            kind = _wider(values[0][1], values[1][1])
            kind = "i64" if kind in ("short", "bool") else kind
            word = "least" if name == "min" else "most"
            return f"{word}({', '.join(self.cast(one, kind) for one in values)})", kind
        if name == "abs":
            return f"fabs({codes[0]})", "double"
        if name in ("int", "float"):
            kind = _SCALARS[name]
            return f"({kind})({codes[0]})", kind
        if name.startswith("math.") and name[5:] in _MATH:
            return f"{name[5:]}({', '.join(f'(double)({code})' for code in codes)})", "double"
        self.unit.add(self.globals[name])
        arguments, result = self.unit.signatures[name]
        return f"{name}({', '.join(self.cast(v, kind) for v, kind in zip(values, arguments, strict=True))})", result


def _wider(first: Type, second: Type) -> Type:
    if first == second:
        return first
    if isinstance(first, tuple) or isinstance(second, tuple):
        raise Untranslatable(f"a value that is {first} here and {second} there")
    return first if _RANK[first] >= _RANK[second] else second


def _read(target: ast.expr) -> ast.expr:
    """The target of an assignment as a value."""
    return ast.parse(ast.unparse(target), mode="eval").body


def _number(value: float) -> str:
    if value == float("inf"):
        return "INFINITE"
    if value == float("-inf"):
        return "(-INFINITE)"
    return repr(float(value))
