"""A web service around a saved model: post the facts about an entity, get its vector.

    pip install fastapi uvicorn
    vecfill impute items.vec items.csv -o enriched.vec --save shop.vecfill
    MODEL=shop.vecfill uvicorn service:app

FastAPI is needed by this example only, not by vecfill.
"""

from __future__ import annotations

import os
from typing import Any

from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

import vecfill as vf


class Entity(BaseModel):
    """An entity and what is known about it, by column."""

    name: str
    facts: dict[str, Any]


def service(path: str) -> FastAPI:
    """Return the service of one model."""
    model = vf.load(path, check=True)
    app = FastAPI(title="vecfill")

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
