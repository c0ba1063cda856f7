"""Triggers live in the store of the server."""

from svc.elsewhere import unavailable

cleanup_trigger_db_for_rule = unavailable(
    "st2common.services.triggers.cleanup_trigger_db_for_rule", "nothing: svc deletes triggers that no rule uses"
)
