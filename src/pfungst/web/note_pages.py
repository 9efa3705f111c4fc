"""Notes and tags: writing them, listing them, and the tagged answers as a data set."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from pfungst.core import PfungstError
from pfungst.web.cards import card_of, told_apart
from pfungst.web.forms import Form
from pfungst.web.notes import LONGEST_NOTE, Note, parse_tags
from pfungst.web.runs import NotHere
from pfungst.web.tagged import tagged_lines
from pfungst.web.wanted import Place

if TYPE_CHECKING:
    from pfungst.web.app import Explorer


def routes(explorer: Explorer) -> list[Route]:
    site = explorer.site

    def listed(request: Request) -> Response:
        tag = request.query_params.get("tag", "")
        names = told_apart(card_of(site, run) for run in site.runs.all())
        return explorer.page(
            request, "notes.html", here="notes", notes=site.notes.all(tag), tags=site.notes.tags(), tag=tag, names=names
        )

    def write(form: Form) -> Response:
        place = Place(*(form.text(name) for name in ("run", "probe", "id", "variant")))
        run = site.runs.get(place.run)
        row = site.index.row(run, place)
        if row is None:
            raise NotHere("There is no such answer to write a note on.")
        site.notes.write(Note(place, form.text("note", LONGEST_NOTE), parse_tags(form.text("tags"))))
        return RedirectResponse(site.links("example", run=place.run, id=place.example_id, at=row["number"]), 303)

    def export(request: Request) -> Response:
        lines = tagged_lines(site, request.query_params.get("tag", ""))
        first = next(lines, None)
        if first is None:
            raise PfungstError("No tagged answer can be exported: tag some on the page of an example.")

        def whole() -> Iterator[str]:
            yield first
            yield from lines

        headers = {"content-disposition": 'attachment; filename="tagged.jsonl"'}
        return StreamingResponse(whole(), media_type="application/jsonl", headers=headers)

    return [
        Route("/notes", listed),
        Route("/notes/export", export),
        explorer.actions.action("/notes/write", write),
    ]
