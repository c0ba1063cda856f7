"""The index of packs, by way of the API."""

from svc.api import ServiceError, request

__all__ = ["get_pack_from_index", "search_pack_index"]


def get_pack_from_index(pack, proxy_config=None, allow_unhealthy=True):  # noqa: ARG001, callers give them
    """Returns what the index says of a pack, None if it has none of that name."""
    if not pack:
        raise ValueError("get_pack_from_index: give the name of a pack.")
    try:
        return request("POST", "/packs/index/search", body={"pack": pack}) or None
    except ServiceError as error:
        if error.status == 404:
            return None
        raise


def search_pack_index(query, exclude=None, priority=None, case_sensitive=True, proxy_config=None):  # noqa: ARG001
    """Returns the packs of the index that have the text in one of their properties.

    :param exclude: properties that do not count; `keywords` by default does
    """
    if not query:
        raise ValueError("search_pack_index: give a text.")
    return request(
        "POST", "/packs/index/search", body={"query": query, "case_sensitive": case_sensitive}
    )
