"""Forgetting a person."""

from roomlore.services.privacy.service import PrivacyService

__all__ = ["PrivacyService"]
