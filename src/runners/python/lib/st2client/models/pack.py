"""Packs and their configurations."""

from st2client.models.core import Resource, ResourceManager
from st2client.utils.httpclient import path_of

__all__ = ["Config", "ConfigSchema", "Pack"]


class Pack(Resource):
    _repr_attributes = ["ref", "name", "description", "version"]


class Config(Resource):
    _repr_attributes = ["pack", "values"]


class ConfigSchema(Resource):
    _url_path = "config_schemas"
    _plural = "ConfigSchema"
    _repr_attributes = ["pack", "attributes"]


class PackManager(ResourceManager):
    def install(self, packs, force=False, skip_dependencies=False, **kwargs):
        """Installs packs. Returns the execution that does it, with `execution_id`."""
        body = {"packs": packs, "force": force, "skip_dependencies": skip_dependencies}
        return self._made(self.client.post("/packs/install", body, **kwargs))

    def remove(self, packs, **kwargs):
        return self._made(self.client.post("/packs/uninstall", {"packs": packs}, **kwargs))

    uninstall = remove

    def register(self, packs=None, types=None, **kwargs):
        """Registers the content of packs. Returns how much of each kind."""
        body = {name: value for name, value in (("packs", packs), ("types", types)) if value}
        return self._made(self.client.post("/packs/register", body, **kwargs))

    def search(self, args, ignore_errors=False, **kwargs):
        """Searches the index of packs.

        :param args: has `query`, or `pack`
        """
        query, pack = getattr(args, "query", None), getattr(args, "pack", None)
        body = {"query": query} if query else {"pack": pack}
        try:
            found = self.answer_of(self.client.post("/packs/index/search", body, **kwargs))
        except Exception:
            if ignore_errors:
                return None
            raise
        if isinstance(found, list):
            return [self.resource.deserialize(one) for one in found]
        return self.resource.deserialize(found) if found else None


class ConfigManager(ResourceManager):
    def update(self, instance, **kwargs):
        """Replaces the configuration of a pack by `instance.values`."""
        url = path_of("configs", instance.pack)
        return self._made(self.client.put(url, instance.values, **kwargs))

    def _key_of(self, instance):
        return instance.pack
