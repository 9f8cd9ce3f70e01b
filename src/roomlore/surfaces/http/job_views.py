"""Durable work as it is answered."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, Field


class JobView(BaseModel):
    """A piece of work that is done behind the calls."""

    job_id: str
    kind: str = Field(examples=["extraction"])
    room_id: str = Field(description="The room it is about; empty where it is about none.")
    status: Literal["waiting", "running", "done", "failed", "cancelled"]
    attempts: int = Field(description="How often it was begun.")
    progress: str = Field(description="What it last said of itself.")
    error: str = Field(description="Why it failed; empty unless it did.")
    created_at: datetime
    updated_at: datetime


class JobPage(BaseModel):
    jobs: list[JobView]
    next: int | None = Field(description="The `after` of the next page; null at the end.")
