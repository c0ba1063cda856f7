"""A name that existing packs import `Action` by."""

from svc.action import Action

__all__ = ["Action"]
