"""A small Flask application that stores reports in SQLite, for `tests.benchmarks.startup`.

It imports what an application of this kind needs: Flask, forms with CSRF protection, pydantic for
definitions and numpy for estimates.
"""

from __future__ import annotations

import sqlite3

import numpy as np
from flask import Flask, Response, request
from flask_wtf.csrf import CSRFProtect
from pydantic import BaseModel


class Report(BaseModel):
    """A report of randomized codes."""

    codes: list[int]


app = Flask(__name__)
app.config["SECRET_KEY"] = "peer"
CSRFProtect(app)


@app.get("/healthz")
def healthz() -> Response:
    """Answer the check of the benchmark."""
    return Response("ok\n", mimetype="text/plain")


@app.post("/reports")
def reports() -> Response:
    """Store a report."""
    codes = np.array(Report.model_validate_json(request.data).codes, np.uint8)
    with sqlite3.connect("file:peer?mode=memory&cache=shared", uri=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS report (codes BLOB)")
        connection.execute("INSERT INTO report VALUES (?)", [codes.tobytes()])
    return Response(status=201)
