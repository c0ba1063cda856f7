"""The Python environments of packs, which the server makes."""

from svc.api import run_action
from svc.elsewhere import unavailable

__all__ = ["install_requirement", "setup_pack_virtualenv"]


def setup_pack_virtualenv(pack_name, update=False, logger=None, **_):
    """Makes or updates the environment of a pack, by the action packs.setup_virtualenv. Waits for its end."""
    execution = run_action("packs.setup_virtualenv", {"packs": [pack_name], "update": bool(update)})
    if logger is not None:
        logger.debug("Set up the environment of the pack %s: execution %s", pack_name, execution["id"])


install_requirement = unavailable(
    "st2common.util.virtualenvs.install_requirement", "the requirements.txt of the pack and packs.setup_virtualenv"
)
