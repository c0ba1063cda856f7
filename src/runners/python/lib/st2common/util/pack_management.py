"""Installing packs."""

import re

from svc.elsewhere import unavailable

from st2common.constants.pack import PACK_VERSION_SEPARATOR

__all__ = ["download_pack", "get_repo_url"]

download_pack = unavailable(
    "st2common.util.pack_management.download_pack",
    'the action packs.install, or st2client.client.Client().packs.install(["name"]) (POST /v1/packs/install)',
)


def get_repo_url(pack, proxy_config=None):  # noqa: ARG001, callers give it
    """Returns the address of a pack's repository, and the version asked for or None.

    :param pack: name in the index, `owner/name` of GitHub, or an address; `=version` may follow
    """
    name, _, version = pack.partition(PACK_VERSION_SEPARATOR)
    if re.match(r"(https?|ssh|git|file)://|git@|/", name):
        return name, version or None
    if "/" in name:
        return "https://github.com/{}".format(name[:-4] if name.endswith(".git") else name), version or None
    from st2common.services.packs import get_pack_from_index

    found = get_pack_from_index(name)
    if not found:
        raise Exception('The index has no pack "{}".'.format(name))
    return found["repo_url"], version or None
