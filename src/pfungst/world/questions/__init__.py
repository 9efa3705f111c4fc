"""Questions about CLEVR scenes: templates, generation with balanced answers, rephrasing groups, choices, a report.

>>> questions = list(generate(scenes, per_scene=10, rephrasings=3, seed=0))
>>> print(report(questions))
"""

from pfungst.world.questions.generating import Question, Report, choices_for, generate, report
from pfungst.world.questions.loading import load_templates
from pfungst.world.questions.template import Phrasing, Template, TemplateSet

__all__ = [
    "Phrasing",
    "Question",
    "Report",
    "Template",
    "TemplateSet",
    "choices_for",
    "generate",
    "load_templates",
    "report",
]
