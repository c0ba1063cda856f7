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

    :param exclude: properties that do not count
    :param priority: properties whose packs come first, in this order
    """
    if not query:
        raise ValueError("search_pack_index: give a text.")
    first = list(priority or [])
    found = []
    for pack in request("GET", "/packs/index")["index"].values():
        ranks = [
            first.index(name) if name in first else len(first)
            for name, value in pack.items()
            if name not in (exclude or []) and _has(value, query, case_sensitive)
        ]
        if ranks:
            found.append((min(ranks), pack))
    return [pack for _, pack in sorted(found, key=lambda one: one[0])]


def _has(value, query, case_sensitive):
    """Whether a text has the query in it, a list as one of its items."""
    texts = value if isinstance(value, list) else str(value)
    if case_sensitive:
        return query in texts
    query = query.lower()
    return query in ([str(one).lower() for one in texts] if isinstance(texts, list) else texts.lower())
