"""A common design for receiving forms: FastAPI and asyncpg, with one INSERT per request.

`tests.benchmarks.ingestion` compares the server with this application. It checks the keys and types
of each report, but neither its codes nor its survey. PostgreSQL commits each row durably.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
from fastapi import FastAPI, Request, Response
from pydantic import BaseModel, ConfigDict

DATABASE = "PEER_DATABASE"
"""The variable of the environment with the URL of the peer's database."""

TABLE = "CREATE TABLE report (id text PRIMARY KEY, stratum text, codes integer[])"
INSERT = "INSERT INTO report (id, stratum, codes) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING"


class Report(BaseModel):
    """The body of a report in the wire format."""

    model_config = ConfigDict(extra="forbid")

    definition: str
    report_id: str
    stratum: str
    codes: list[int]
    invitation: str
    pad: str


@asynccontextmanager
async def open_pool(app: FastAPI) -> AsyncIterator[None]:
    """Keep connections to the database open while the application runs."""
    async with asyncpg.create_pool(os.environ[DATABASE]) as pool:
        app.state.pool = pool
        yield


app = FastAPI(lifespan=open_pool)


@app.get("/healthz")
async def healthz() -> Response:
    return Response("ok\n", media_type="text/plain")


@app.post("/s/load/reports")
async def receive(report: Report, request: Request) -> Response:
    await request.app.state.pool.execute(INSERT, report.report_id, report.stratum, report.codes)
    return Response(status_code=201)
