"""A web service around a saved model: post the facts about an entity, get its vector.

    pip install fastapi uvicorn
    vecfill impute items.vec items.csv -o enriched.vec --save shop.vecfill
    MODEL=shop.vecfill USERS=users.vec uvicorn service:app

With vectors of users (USERS), a new item is answered with the ten users who should see it.

FastAPI is needed by this example only, not by vecfill.
"""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
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


N_SHOWN = 10


def service(path: str, users: str | None = None) -> FastAPI:
    """Return the service of one model, and of a file with vectors of users if there is one."""
    model = vf.load(path, check=True)
    audience = None if users is None else vf.read_embedding(users)
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
            "users": [] if audience is None else top(audience, added.embedding.vectors[0]),
            "notes": list(added.notes),
            "reasons": added.explain(entity.name, n_reasons).to_dict()["contributors"],
        }

    return app


def top(users: vf.Embedding, item: np.ndarray) -> list[dict[str, Any]]:
    """Return the users with the largest inner products, as recommenders order them."""
    scores = users.vectors @ item
    places = np.argsort(-scores, kind="stable")[:N_SHOWN]
    return [{"user": users.words[place], "score": float(scores[place])} for place in places]


if "MODEL" in os.environ:
    app = service(os.environ["MODEL"], os.environ.get("USERS"))
