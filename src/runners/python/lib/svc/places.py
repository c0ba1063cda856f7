"""Folders of the server."""

#: Folders that have packs in them, that for installed packs first.
packs_paths = []
