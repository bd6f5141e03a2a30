"""The names, texts and operators that a module of the client uses, read from its syntax tree."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import NamedTuple

import tree_sitter_javascript
from tree_sitter import Language, Node, Parser

MODULE = "(module)"
"""Heading of the statements outside functions, classes and variables in the list."""

KINDS = ("browser", "module", "members", "syntax")
"""Names of the browser and of JavaScript; names of this and other modules; members and texts;
numbers, operators and other syntax."""

SYNTAX = frozenset(
    re.findall(
        r"\w+",
        """arguments array array_pattern arrow_function assignment_expression assignment_pattern
    augmented_assignment_expression await_expression binary_expression call_expression catch_clause
    class_body class_declaration class_heritage comment continue_statement else_clause
    empty_statement escape_sequence export_statement expression_statement false finally_clause
    for_in_statement for_statement formal_parameters function_declaration identifier if_statement
    import_clause import_specifier import_statement lexical_declaration member_expression
    method_definition named_imports new_expression null number object object_assignment_pattern
    object_pattern optional_chain pair pair_pattern parenthesized_expression program
    property_identifier regex regex_flags regex_pattern rest_pattern return_statement
    sequence_expression shorthand_property_identifier shorthand_property_identifier_pattern
    spread_element statement_block string string_fragment subscript_expression super switch_body
    switch_case switch_default switch_statement template_string template_substitution
    ternary_expression this throw_statement true try_statement unary_expression undefined
    variable_declarator while_statement""",
    )
)
"""The only allowed kinds of syntax. This excludes `import()`, `import.meta`, labels, generators,
static blocks, private members, setters, and HTML-like comments, which parsers treat differently.
"""

LISTED_SYNTAX: Mapping[str, str] = {
    # The minifier rewrites some loops, branches and comparisons as others of their kind.
    **dict.fromkeys(("for_statement", "for_in_statement", "while_statement"), "loop"),
    **dict.fromkeys(("if_statement", "ternary_expression", "&&", "||"), "branch"),
    **dict.fromkeys(("&&=", "||=", "switch_case"), "branch"),
    "==": "==",
    "===": "==",
    "!=": "!=",
    "!==": "!=",
    **{name: name for name in ("<", "<=", ">", ">=", "instanceof", "in", "typeof", "??", "??=")},
    **{name: name for name in ("+", "+=", "-", "-=", "/", "/=", "%", "%=", "!", "&", "&=")},
    **{name: name for name in ("|", "|=", "^", "^=", "~", ">>", ">>=", ">>>", ">>>=", "void")},
    **{name: name for name in ("delete", "get", "this", "super", "true", "false", "null")},
    **{name: name for name in ("throw", "try", "await", "=>", "...")},
    # The list uses an asterisk for the number of uses.
    "*": "product",
    "*=": "product=",
    "**": "power",
    "**=": "power",
    **dict.fromkeys(("<<", "<<="), "shift"),
    **dict.fromkeys(("assignment_pattern", "object_assignment_pattern"), "default"),
    "optional_chain": "?.",
    "assignment_expression": "=",
    "call_expression": "call",
}
"""Syntax that is listed: a changed comparison, sign or constant breaks a promise without any new
name, and an added loop, power, shift or branch can take time that depends on an answer."""

FORBIDDEN = frozenset({"__proto__", "constructor", "prototype", "eval", "arguments"})
"""Names that give indirect access to other objects or code; no list can allow them."""

FORBIDDEN_WORDS = frozenset({"set", "static", "yield", "var", "with", "debugger"})

FUNCTIONS = frozenset({"function_declaration", "arrow_function", "method_definition"})
BLOCKS = frozenset(
    {"statement_block", "for_statement", "for_in_statement", "switch_body", "catch_clause"}
)


class Use(NamedTuple):
    """One use of a name or text from outside a function."""

    kind: str
    """One of `KINDS`."""
    name: str
    function: str
    row: int
    column: int


class Refusal(NamedTuple):
    """Syntax or a name that no list can allow."""

    reason: str
    row: int
    column: int


@dataclass
class Scope:
    """The names that a function or block declares."""

    parent: Scope | None
    names: set[str] = field(default_factory=set)

    def declares(self, name: str) -> bool:
        """Return whether this scope or one around it, except the module's, declares a name."""
        scope: Scope | None = self
        while scope and scope.parent:
            if name in scope.names:
                return True
            scope = scope.parent
        return False


@cache
def _parser() -> Parser:
    return Parser(Language(tree_sitter_javascript.language()))


class Module:
    """The uses of outside names in one module, and the code in it that no list can allow."""

    def __init__(self, source: bytes) -> None:
        self.uses: list[Use] = []
        self.refusals: list[Refusal] = []
        self.assignments: list[Use] = []
        self.imported: list[str] = []
        self.exported: set[str] = set()
        self._function = MODULE
        self._top = Scope(None)
        root = _parser().parse(source).root_node
        self._refuse_bytes(source)
        if root.has_error:
            self._refuse(next(_errors(root)), "not readable as a module")
            return
        _declare_all(root, self._top)
        for child in root.children:
            if child.type == "export_statement":
                self.exported.update(name for _, name in _declarations(child))
            for part, self._function in _declarations(child):
                self._visit(part, self._top)

    @property
    def declared(self) -> frozenset[str]:
        """The names that the module declares and does not import."""
        return frozenset(self._top.names.difference(self.imported))

    def _refuse_bytes(self, source: bytes) -> None:
        # Parsers disagree on whether these characters end a line.
        for mark in ("\u2028", "\u2029", "\ufeff"):
            if (at := source.find(mark.encode("utf-8"))) >= 0:
                row = source.count(b"\n", 0, at)
                self.refusals.append(Refusal(f"the character {mark!a}", row + 1, 1))

    def _refuse(self, node: Node, reason: str) -> None:
        row, column = node.start_point
        self.refusals.append(Refusal(reason, row + 1, column + 1))

    def _use(self, node: Node, kind: str, name: str) -> None:
        row, column = node.start_point
        # A class may define a constructor, but code must not read one from an object.
        if name.strip('.:"') in FORBIDDEN:
            self._refuse(node, f"the name {name}")
        self.uses.append(Use(kind, name, self._function, row + 1, column + 1))

    def _name(self, node: Node) -> str:
        """Return an identifier; refuse escapes and forbidden names."""
        name = _text(node)
        if "\\" in name or name in FORBIDDEN:
            self._refuse(node, f"the name {name}")
        return name

    def _visit(self, node: Node, scope: Scope) -> None:
        if node.is_named and node.type not in SYNTAX:
            self._refuse(node, f"the syntax {node.type.replace('_', ' ')}: {_text(node)[:40]}")
            return
        if not node.is_named and node.type in FORBIDDEN_WORDS:
            self._refuse(node, f"the word {node.type}")
        if node.type in LISTED_SYNTAX:
            self._use(node, "syntax", LISTED_SYNTAX[node.type])
        if node.type in FUNCTIONS:
            self._visit_function(node, scope)
            return
        if node.type in BLOCKS:
            scope = Scope(scope)
            _declare_block(node, scope)
        handler = _HANDLERS.get(node.type)
        if handler is not None and not handler(self, node, scope):
            return
        for child in node.children:
            self._visit(child, scope)

    def _visit_function(self, node: Node, scope: Scope) -> None:
        inner = Scope(scope)
        parameters = node.child_by_field_name("parameters") or node.child_by_field_name("parameter")
        if parameters is not None:
            inner.names.update(_pattern_names(parameters))
        for child in node.children:
            if child == node.child_by_field_name("name"):
                if node.type == "method_definition":
                    self._use(child, "members", f"{_text(child)}()")
                continue
            if child == parameters and child.type == "identifier":
                continue
            self._visit(child, inner)

    def _identifier(self, node: Node, scope: Scope) -> bool:
        name = self._name(node)
        if scope.declares(name):
            return False
        if _is_assigned(node):
            row, column = node.start_point
            self.assignments.append(Use("module", name, self._function, row + 1, column + 1))
        if name in self._top.names:
            if not _is_own_declaration(node):
                self._use(node, "module", name)
        else:
            self._use(node, "browser", name)
        return False

    def _shorthand(self, node: Node, scope: Scope) -> bool:
        self._use(node, "members", f"{_text(node)}:")
        return self._identifier(node, scope)

    def _shorthand_pattern(self, node: Node, scope: Scope) -> bool:
        self._use(node, "members", f".{_text(node)}")
        return self._identifier(node, scope)

    def _property(self, node: Node, _scope: Scope) -> bool:
        parent = node.parent
        is_key = parent is not None and parent.type == "pair"
        name = self._name(node)
        self._use(node, "members", f"{name}:" if is_key else f".{name}")
        return False

    def _subscript(self, node: Node, _scope: Scope) -> bool:
        # The minifier writes `0[0]` for undefined.
        is_undefined = _text(node) == "0[0]"
        if not is_undefined:
            self._use(node, "members", "[]")
        return not is_undefined

    def _string(self, node: Node, _scope: Scope) -> bool:
        parent = node.parent
        is_key = (
            parent is not None
            and parent.type in ("pair", "pair_pattern")
            and parent.child_by_field_name("key") == node
        )
        if is_key and parent is not None:
            name = self._name(node)[1:-1]
            self._use(node, "members", f"{name}:" if parent.type == "pair" else f".{name}")
        elif parent is not None and parent.type != "import_statement":
            self._listed_text(node, _unescaped(_text(node)[1:-1]))
        return False

    def _template(self, node: Node, _scope: Scope) -> bool:
        for child in node.children:
            if child.type == "string_fragment":
                self._listed_text(child, _unescaped(_text(child)))
        return True

    def _listed_text(self, node: Node, text: str) -> None:
        self._use(node, "members", json.dumps(text, ensure_ascii=False))

    def _regex(self, node: Node, _scope: Scope) -> bool:
        self._use(node, "members", json.dumps(_text(node), ensure_ascii=False))
        return False

    def _call(self, node: Node, _scope: Scope) -> bool:
        arguments = node.child_by_field_name("arguments")
        if arguments is not None and arguments.type != "arguments":
            self._refuse(node, "a tagged template")
        return True

    def _import(self, node: Node, _scope: Scope) -> bool:
        source = node.child_by_field_name("source")
        if source is None:
            return True
        for specifier in _descendants(node, "import_specifier"):
            name = specifier.child_by_field_name("name")
            if name is None or specifier.child_by_field_name("alias") is not None:
                self._refuse(specifier, "an import under another name")
                continue
            self._use(specifier, "module", f"{_text(source)[1:-1]}:{_text(name)}")
            self.imported.append(_text(name))
        if not _descendants(node, "import_specifier"):
            self._refuse(node, "an import without names")
        return False

    def _export(self, node: Node, _scope: Scope) -> bool:
        if node.child_by_field_name("declaration") is None:
            self._refuse(node, "an export without its declaration")
        return True

    def _number(self, node: Node, _scope: Scope) -> bool:
        self._use(node, "syntax", _number_name(_text(node)))
        return False

    def _unary(self, node: Node, _scope: Scope) -> bool:
        # The minifier writes `!0` for true and `!1` for false.
        boolean = {"!0": "true", "!1": "false"}.get(_text(node))
        if boolean:
            self._use(node, "syntax", boolean)
        return not boolean


_HANDLERS: Mapping[str, Callable[[Module, Node, Scope], bool]] = {
    "identifier": Module._identifier,
    "shorthand_property_identifier": Module._shorthand,
    "shorthand_property_identifier_pattern": Module._shorthand_pattern,
    "property_identifier": Module._property,
    "subscript_expression": Module._subscript,
    "string": Module._string,
    "template_string": Module._template,
    "regex": Module._regex,
    "call_expression": Module._call,
    "import_statement": Module._import,
    "export_statement": Module._export,
    "number": Module._number,
    "unary_expression": Module._unary,
}


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8")


def _unescaped(text: str) -> str:
    """Decode the escapes that the sources use; leave others as they are.

    >>> _unescaped(r"\\u0041\\n")
    'A\\n'
    """
    plain = re.sub(r"\\u([0-9a-fA-F]{4})", lambda code: chr(int(code[1], 16)), text)
    return plain.replace("\\n", "\n").replace('\\"', '"').replace("\\0", "\0")


def _number_name(text: str) -> str:
    """Return the shortest spelling of a number's value, because the minifier changes spellings.

    >>> _number_name("1_000"), _number_name("1e3"), _number_name("0xff"), _number_name("10n")
    ('1000', '1000', '255', '10n')
    """
    digits = text.replace("_", "").lower()
    try:
        if digits.endswith("n"):
            return f"{int(digits[:-1], 0)}n"
        if not re.fullmatch(r"[\d.]+(e[+-]?\d+)?", digits):
            return str(int(digits, 0))
        value = float(digits)
        return str(int(value) if value.is_integer() else value)
    except ValueError:  # Python reads integers of up to 4,300 digits.
        return digits


def _errors(node: Node) -> Iterator[Node]:
    """Yield the nodes that the parser could not read, the innermost first."""
    for child in node.children:
        if child.has_error or child.is_missing:
            yield from _errors(child)
    if node.is_error or node.is_missing:
        yield node


def _descendants(node: Node, kind: str) -> list[Node]:
    nodes = [node] if node.type == kind else []
    return nodes + [inner for child in node.children for inner in _descendants(child, kind)]


def _declaration(node: Node) -> Node:
    """Return the declaration that an export contains, or the node itself."""
    return node.child_by_field_name("declaration") or node


def _declarations(node: Node) -> Iterator[tuple[Node, str]]:
    """Yield the parts of a top-level statement with their names in the list."""
    declared = _declaration(node)
    if declared.type in ("function_declaration", "class_declaration"):
        yield node, _declared_name(declared)
    elif declared.type == "lexical_declaration":
        for part in declared.children:
            yield part, _declared_name(part) if part.type == "variable_declarator" else MODULE
    else:
        yield node, MODULE


def _declared_name(node: Node) -> str:
    name = node.child_by_field_name("name")
    return _text(name) if name is not None and name.type == "identifier" else MODULE


def _is_own_declaration(node: Node) -> bool:
    parent = node.parent
    return (
        parent is not None
        and parent.type in ("function_declaration", "class_declaration", "variable_declarator")
        and parent.child_by_field_name("name") == node
    )


ASSIGNMENTS = frozenset(
    {"assignment_expression", "augmented_assignment_expression", "for_in_statement"}
)
PATTERNS = frozenset(
    {"array_pattern", "object_pattern", "pair_pattern", "rest_pattern", "assignment_pattern"}
    | {"object_assignment_pattern", "parenthesized_expression"}
)


def _is_assigned(node: Node) -> bool:
    """Return whether an assignment or loop changes the variable, perhaps within a pattern."""
    parent = node.parent
    while parent is not None and parent.type in PATTERNS:
        node, parent = parent, parent.parent
    return (
        parent is not None
        and parent.type in ASSIGNMENTS
        and parent.child_by_field_name("left") == node
    )


def _declare_all(node: Node, scope: Scope) -> None:
    """Add the names that a list of statements declares."""
    for child in node.children:
        declared = _declaration(child)
        if declared.type in ("function_declaration", "class_declaration"):
            name = declared.child_by_field_name("name")
            scope.names.update([_text(name)] if name is not None else [])
        elif declared.type == "lexical_declaration":
            for declarator in declared.children:
                if declarator.type == "variable_declarator":
                    name = declarator.child_by_field_name("name")
                    scope.names.update(_pattern_names(name) if name is not None else [])
        elif declared.type == "import_statement":
            for specifier in _descendants(declared, "import_specifier"):
                name = specifier.child_by_field_name("name")
                scope.names.update([_text(name)] if name is not None else [])


def _declare_block(node: Node, scope: Scope) -> None:
    """Add the names that a block, loop, switch or catch clause declares."""
    if node.type == "catch_clause":
        parameter = node.child_by_field_name("parameter")
        scope.names.update(_pattern_names(parameter) if parameter is not None else [])
    elif node.type == "for_in_statement":
        left = node.child_by_field_name("left")
        if node.child_by_field_name("kind") is not None and left is not None:
            scope.names.update(_pattern_names(left))
    elif node.type == "switch_body":
        for case in node.children:
            _declare_all(case, scope)
    else:
        _declare_all(node, scope)


def _pattern_names(node: Node) -> Iterator[str]:
    """Yield the names that a pattern declares; default values and keys declare none."""
    match node.type:
        case "identifier" | "shorthand_property_identifier_pattern":
            yield _text(node)
        case "assignment_pattern" | "object_assignment_pattern":
            left = node.child_by_field_name("left")
            yield from _pattern_names(left) if left is not None else ()
        case "pair_pattern":
            value = node.child_by_field_name("value")
            yield from _pattern_names(value) if value is not None else ()
        case "formal_parameters" | "object_pattern" | "array_pattern" | "rest_pattern":
            for child in node.children:
                yield from _pattern_names(child)


@lru_cache(maxsize=256)
def parse_module(source: bytes) -> Module:
    """Parse a module; the cache saves time with identical modules."""
    return Module(source)
