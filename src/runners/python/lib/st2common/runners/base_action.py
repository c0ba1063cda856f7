"""Existing packs import `Action` from this module."""

from svc.action import Action

__all__ = ["Action"]
