"""Pages for the people who run a study: progress, results, downloads. They need the admin token; a worker's is none."""

from __future__ import annotations

import hmac
import time
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from pfungst.core.files import jsonable
from pfungst.report.card import format_cell
from pfungst.study.results import answers_csv, payments_csv, study_results
from pfungst.web.forms import Form
from pfungst.web.security import Refused

if TYPE_CHECKING:
    from pfungst.study.app import Pages


def routes(pages: Pages) -> list[Route]:
    def allowed(request: Request) -> None:
        if not request.state.session.may_write:
            raise Refused(403, "Sign in first, at /admin/sign-in.")

    def overview(request: Request) -> Response:
        if not request.state.session.may_write:
            return RedirectResponse("/admin/sign-in", 303)
        results = study_results(pages.study)
        tables = [
            (table, [[format_cell(jsonable(cell)) for cell in row] for row in table.rows]) for table in results.tables
        ]
        workers = [(one.code, pages.address(one)) for one in pages.book.workers()]
        return pages.page(
            request.state.session, "admin.html", results=results, tables=tables, workers=workers,
            join=f"/join/{pages.study.keys.join}?worker=CODE",
        )  # fmt: skip

    def download(request: Request) -> Response:
        allowed(request)
        results = study_results(pages.study)
        name = request.path_params["name"]
        if name == "answers.csv":
            content = answers_csv(results)
        elif name == "payments.csv":
            content = payments_csv(results, pages.study.settings.currency)
        else:
            raise Refused(404, "There is no such file.")
        headers = {"content-disposition": f'attachment; filename="{name}"'}
        return Response(content, media_type="text/csv", headers=headers)

    def sign_in(form: Form) -> Response:
        pages.signing.check("")
        if not hmac.compare_digest(form.text("token").encode(), pages.study.keys.admin.encode()):
            time.sleep(0.5)
            raise Refused(403, "This is not the admin token of this study.")
        # A new session: one that somebody may have planted before gets no rights.
        answer = RedirectResponse("/admin", 303)
        answer.headers["set-cookie"] = pages.sessions.header(pages.sessions.new(may_write=True), False)
        return answer

    return [
        Route("/admin", overview),
        Route("/admin/sign-in", lambda request: pages.page(request.state.session, "sign_in.html")),
        Route("/admin/{name}", download),
        pages.actions.action("/admin/sign-in", sign_in, open_to_all=True),
    ]
