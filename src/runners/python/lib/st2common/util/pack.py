"""Manifests of packs. They need the package `PyYAML` in the requirements.txt of the pack."""

import os

from st2common.constants.pack import MANIFEST_FILE_NAME

__all__ = ["get_pack_metadata", "get_pack_ref_from_metadata", "get_pack_warnings"]


def import_yaml():
    try:
        import yaml
    except ImportError:
        raise ImportError("Reading YAML needs PyYAML: add it to the requirements.txt of the pack.") from None
    return yaml


def get_pack_metadata(pack_dir):
    """Returns the manifest of the pack in a folder. :raises ValueError: without one"""
    path = os.path.join(pack_dir, MANIFEST_FILE_NAME)
    if not os.path.isfile(path):
        raise ValueError('The folder "{}" has no {}.'.format(pack_dir, MANIFEST_FILE_NAME))
    with open(path, encoding="utf-8") as file:
        found = import_yaml().safe_load(file)
    if not found:
        raise ValueError('The file "{}" is empty.'.format(path))
    return found


def get_pack_ref_from_metadata(metadata, pack_directory_name=None):
    """Returns the name that a pack is referred to by: `ref`, its folder, or its name if that is one."""
    import re

    from st2common.constants.pack import PACK_REF_WHITELIST_REGEX

    for found in (metadata.get("ref"), pack_directory_name, metadata["name"]):
        if found and (found == metadata.get("ref") or re.match(PACK_REF_WHITELIST_REGEX, found)):
            return found
    raise ValueError('The pack "{}" needs a ref in its pack.yaml.'.format(metadata["name"]))


def get_pack_warnings(pack_metadata):
    """Returns what speaks against installing a pack, None if nothing does."""
    versions = [str(version) for version in pack_metadata.get("python_versions") or []]
    if "2" in versions and "3" not in versions:
        return 'The pack "{}" says that it is for Python 2 only.'.format(pack_metadata.get("name"))
    return None
