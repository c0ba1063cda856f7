"""Folders of packs."""

import os

from svc import places

__all__ = [
    "get_pack_base_path",
    "get_pack_directory",
    "get_pack_file_abs_path",
    "get_packs_base_paths",
    "get_system_packs_base_path",
]

def get_packs_base_paths():
    """Returns the folders that have packs in them."""
    return list(places.packs_paths)


def get_system_packs_base_path():
    """Returns the folder for packs that are installed."""
    return (get_packs_base_paths() or [None])[0]


def get_pack_base_path(pack_name, include_trailing_slash=False, use_pack_cache=False):
    """Returns the folder of a pack; where it would be when there is none.

    :param use_pack_cache: without effect
    """
    if not pack_name:
        return None
    paths = [os.path.join(path, pack_name) for path in get_packs_base_paths()]
    found = next((path for path in paths if os.path.isdir(path)), paths[0] if paths else None)
    return found + os.sep if found and include_trailing_slash else found


def get_pack_directory(pack_name):
    """Returns the folder of a pack, None without one."""
    found = get_pack_base_path(pack_name)
    return found if found and os.path.isdir(found) else None


def get_pack_file_abs_path(pack_ref, file_path, *_, **__):
    """Returns the path of a file in a pack. :raises ValueError: for a path that leaves the pack"""
    folder = get_pack_base_path(pack_ref)
    if folder is None:
        return None
    path = os.path.normpath(os.path.join(folder, file_path))
    if path != folder and not path.startswith(folder + os.sep):
        raise ValueError('The path "{}" leaves the pack "{}".'.format(file_path, pack_ref))
    return path
