"""What a user sees: the report card in the terminal and report.html."""

from pfungst.report.card import card_rows, format_finding
from pfungst.report.html import add_looks, add_prompts, write_report

__all__ = ["add_looks", "add_prompts", "card_rows", "format_finding", "write_report"]
