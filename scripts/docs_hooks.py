"""What mkdocs fills in while it builds the pages: the commands, as they are."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import click
import typer

MARK = "<!-- every command -->"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by mkdocs for every page."""
    return markdown.replace(MARK, "\n".join(commands())) if MARK in markdown else markdown


def commands() -> Iterator[str]:
    """Every command with its help, arguments and options, in Markdown."""
    from pfungst.cli.app import app

    for words, command in leaves(typer.main.get_command(app)):
        context = click.Context(command, info_name=" ".join(("pfungst", *words)))
        usage = " ".join(context.command.collect_usage_pieces(context))
        yield f"## pfungst {' '.join(words)}\n"
        yield f"    pfungst {' '.join(words)} {usage}\n"
        yield f"{inspect.cleandoc(command.help or '')}\n"
        rows = [row for parameter in command.get_params(context) if (row := _row(parameter, context))]
        yield from ("| | |\n|---|---|", *rows, "")


def leaves(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command that does something, with the words that name it."""
    if not hasattr(command, "list_commands"):
        yield words, command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        yield from leaves(command.get_command(context, name), (*words, name))


def _row(parameter: Any, context: click.Context) -> str:
    if parameter.name == "help":
        return ""
    record = parameter.get_help_record(context)
    if record is None:
        return ""
    name, text = (" ".join(part.replace("|", "\\|").split()) for part in record)
    return f"| `{name}` | {text} |"
