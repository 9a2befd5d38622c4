"""A web service around a saved model: post the facts about an entity, get its vector.

    pip install fastapi uvicorn
    vecfill impute items.vec items.csv -o enriched.vec --save shop.vecfill
    MODEL=shop.vecfill uvicorn service:app

FastAPI is needed by this example only, not by vecfill.
"""

from __future__ import annotations

import json
import os
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, field_validator

import vecfill as vf


class Entity(BaseModel):
    """An entity and what is known about it, by column."""

    name: str
    facts: dict[str, Any]

    @field_validator("*")
    @classmethod
    def is_text(cls, value: Any) -> Any:
        """Refuse half a surrogate pair, which JSON can hold and UTF-8 cannot."""
        json.dumps(value, ensure_ascii=False).encode()
        return value


def service(path: str) -> FastAPI:
    """Return the service of one model."""
    model = vf.load(path, check=True)
    app = FastAPI(title="vecfill")

    @app.exception_handler(RequestValidationError)
    def refused(_request: Request, error: RequestValidationError) -> JSONResponse:
        # What was posted is not repeated: it may be what no answer can hold.
        problems = [{name: each[name] for name in ("loc", "msg")} for each in error.errors()]
        return JSONResponse({"detail": problems}, 422)

    @app.get("/")
    def about() -> dict[str, Any]:
        method = str(model.predictor)
        return {
            "entities": len(model.names),
            "method": method,
            "schema": model.schema,
            **model.about,
        }

    @app.post("/entities")
    def add(entity: Entity, n_reasons: int = 5, missing: str = "refuse") -> dict[str, Any]:
        try:
            # A fact that is not known is null; one that is not there at all may be misspelt.
            added = model.add({entity.name: entity.facts}, missing=missing)
        except vf.VecfillError as error:
            raise HTTPException(422, str(error)) from error
        if not len(added.embedding):
            raise HTTPException(409, f"{entity.name!r} has a vector already, or no known facts.")
        return {
            **added.to_dict()["added"][0],
            "vector": added.embedding.vectors[0].tolist(),
            "notes": list(added.notes),
            "reasons": added.explain(entity.name, n_reasons).to_dict()["contributors"],
        }

    return app


if "MODEL" in os.environ:
    app = service(os.environ["MODEL"])
