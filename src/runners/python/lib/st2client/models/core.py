"""Records and their managers."""

import json

from svc.api import ServiceError

from st2client.utils.httpclient import HTTPClient, path_of

__all__ = ["Resource", "ResourceManager", "add_auth_token_to_kwargs_from_env"]

#: Arguments of a request that are not parts of the query.
OPTIONS = ("params", "headers", "token", "api_key", "auth")


def add_auth_token_to_kwargs_from_env(func):
    """Kept for callers that decorate with it: a client sends its token by itself."""
    return func


class Resource(object):
    """A record; its properties are attributes."""

    #: Last part of the address of such records.
    _url_path = None
    _alias = None
    _display_name = None
    _plural = None
    _plural_display_name = None
    _repr_attributes = ["id", "name"]
    #: Properties that the API returns and does not take.
    _read_only = ()

    def __init__(self, *_, **kwargs):
        for name, value in kwargs.items():
            setattr(self, name, value)

    @classmethod
    def get_alias(cls):
        return cls._alias or cls.__name__

    @classmethod
    def get_display_name(cls):
        return cls._display_name or cls.__name__

    @classmethod
    def get_plural_name(cls):
        return cls._plural or cls.__name__ + "s"

    @classmethod
    def get_plural_display_name(cls):
        return cls._plural_display_name or cls._plural or cls.__name__ + "s"

    @classmethod
    def get_url_path_name(cls):
        return cls._url_path or cls.get_plural_name().lower()

    def serialize(self):
        """Returns the body of a request."""
        return {
            name: value
            for name, value in vars(self).items()
            if not name.startswith("_") and name not in self._read_only
        }

    def to_dict(self, exclude_attributes=None):
        """Returns the properties, without those that are excluded."""
        excluded = exclude_attributes or []
        return {name: value for name, value in vars(self).items() if name not in excluded}

    @classmethod
    def deserialize(cls, doc):
        """Makes a record of a dictionary or its JSON text."""
        return cls(**(doc if isinstance(doc, dict) else json.loads(doc)))

    def __repr__(self):
        shown = ["{}={}".format(name, getattr(self, name, None)) for name in self._repr_attributes]
        return "<{} {}>".format(type(self).__name__, ",".join(shown))

    __str__ = __repr__


class ResourceManager(object):
    """Records of one kind.

    Keyword arguments of each method are parts of the query; `params` is a dictionary of more of them, `headers`,
    `token` and `api_key` replace those of the client.
    """

    def __init__(self, resource, endpoint, cacert=None, debug=False, token=None, api_key=None, auth=None):
        self.resource = resource
        self.debug = debug
        self.endpoint = endpoint
        self.cacert = cacert
        self.client = HTTPClient(endpoint, cacert=cacert, debug=debug, token=token, api_key=api_key, auth=auth)

    def get_all(self, **kwargs):
        """Returns the records; `limit`: how many, -1: all that the server returns at once."""
        return self._many(self._get(path_of(self._path()), kwargs))

    def query(self, **kwargs):
        """Returns the records that these filters find."""
        if not kwargs:
            raise Exception("query: give at least one filter, such as name='x'. get_all() returns all records.")
        return self.get_all(**kwargs)

    def query_with_count(self, **kwargs):
        """Returns the records that these filters find, and how many there are."""
        answer = self._get(path_of(self._path()), kwargs)
        count = answer.headers.get("X-Total-Count")
        return self._many(answer), None if count is None else int(count)

    def get_by_id(self, id, **kwargs):  # noqa: A002, callers name it
        """Returns a record, None if there is none."""
        answer = self._get(path_of(self._path(), id), kwargs)
        return None if answer.status_code == 404 else self.resource.deserialize(self.answer_of(answer))

    def get_by_name(self, name, **kwargs):
        """Returns the record of that name, None if there is none."""
        found = self.query(name=name, **kwargs)
        if found and len(found) > 1:
            raise Exception('There are {} {} named "{}".'.format(len(found), self.resource.get_plural_name(), name))
        return found[0] if found else None

    def get_by_ref_or_id(self, ref_or_id, **kwargs):
        """Returns the record with that reference or id, None if there is none."""
        return self.get_by_id(id=ref_or_id, **kwargs)

    def get_property(self, id_, property_name, self_deserialize=True, **kwargs):
        """Returns what belongs to a record, below its address: a list."""
        answer = self._get(path_of(self._path(), id_, property_name), kwargs)
        if answer.status_code == 404:
            return None
        found = self.answer_of(answer)
        if not self_deserialize:
            return found
        return [self.resource.deserialize(one) for one in (found if isinstance(found, list) else [found])]

    def create(self, instance, **kwargs):
        """Creates a record; returns it as it was stored."""
        return self._made(self.client.post(path_of(self._path()), instance.serialize(), **_options(kwargs)))

    def update(self, instance, **kwargs):
        """Replaces a record; returns it as it was stored."""
        url = path_of(self._path(), self._key_of(instance))
        return self._made(self.client.put(url, instance.serialize(), **_options(kwargs)))

    def delete(self, instance, **kwargs):
        """Deletes a record. Returns True, also if it did not exist."""
        self.delete_by_id(self._key_of(instance), **kwargs)
        return True

    def delete_by_id(self, instance_id, **kwargs):
        """Deletes a record. Returns what the server says, else True, also if it did not exist."""
        answer = self.client.delete(path_of(self._path(), instance_id), **_options(kwargs))
        if answer.status_code != 404:
            self.check(answer)
        try:
            return answer.json() or True if answer.status_code == 200 else True
        except ValueError:
            return True

    def answer_of(self, answer):
        """Returns the decoded body. :raises ServiceError: when the server refused"""
        self.check(answer)
        try:
            return answer.json() if answer.content else None
        except ValueError:
            raise ServiceError("The response is not JSON.") from None

    @staticmethod
    def check(answer):
        """:raises ServiceError: when the server refused; `requests.exceptions.HTTPError` too if packs have it"""
        if 200 <= answer.status_code < 300:
            return
        text = "{} {}\nMESSAGE: {}".format(answer.status_code, answer.reason, answer.fault())
        problem = _error_class()(text, answer.status_code)
        problem.response = answer
        raise problem

    handle_error = check

    def _path(self):
        return self.resource.get_url_path_name()

    def _key_of(self, instance):
        return instance.id

    def _get(self, url, kwargs):
        answer = self.client.get(url, **_options(kwargs))
        if answer.status_code != 404:
            self.check(answer)
        return answer

    def _many(self, answer):
        return [self.resource.deserialize(one) for one in self.answer_of(answer)]

    def _made(self, answer):
        return self.resource.deserialize(self.answer_of(answer))


def _options(kwargs):
    """Tells the query from the options of a request."""
    options = {name: value for name, value in kwargs.items() if name in OPTIONS}
    query = {name: value for name, value in kwargs.items() if name not in OPTIONS and value is not None}
    query.update(options.get("params") or {})
    if "scope" in query:
        from svc.api import full_scope

        query["scope"] = full_scope(query["scope"])
    # Python writes True, the API true.
    options["params"] = {
        name: str(value).lower() if isinstance(value, bool) else value for name, value in query.items()
    }
    return options


_made_error = []


def _error_class():
    """An error that callers catch as they do at StackStorm, where it is one of the library `requests`."""
    if not _made_error:
        try:
            from requests.exceptions import HTTPError

            _made_error.append(type("ApiError", (ServiceError, HTTPError), {}))
        except ImportError:
            _made_error.append(type("ApiError", (ServiceError,), {}))
    return _made_error[0]
