"""Forgetting a person, and checking what is stored."""

from roomlore.services.privacy.service import PrivacyService
from roomlore.services.privacy.verify import Verifier
from roomlore.services.privacy.verify_indexes import IndexChecks

__all__ = ["IndexChecks", "PrivacyService", "Verifier"]
