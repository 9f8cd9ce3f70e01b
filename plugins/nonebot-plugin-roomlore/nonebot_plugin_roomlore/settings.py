"""The settings of the plugin, in NoneBot's .env."""

from pydantic import BaseModel, Field


class Settings(BaseModel):
    """The part of NoneBot's configuration that is about roomlore."""

    roomlore_database_url: str | None = None
    """The database; roomlore's own setting if left out."""
    roomlore_context_tokens: int = Field(default=1500, ge=0)
    roomlore_memory_tokens: int = Field(default=600, ge=0)
    roomlore_timeout_seconds: float = Field(default=5.0, gt=0)
    """How long an answer waits for what matters; after that it is given without."""
    roomlore_record_private: bool = True
    roomlore_rooms_left_out: set[str] = Field(default_factory=set)
    """Numbers of groups, or `private:` and the number of a person."""
    roomlore_ask_members: bool = True
    """Ask the platform who is in a group. Without it a group is shown only what was said in it or in public."""
