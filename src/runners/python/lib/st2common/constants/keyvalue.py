"""Scopes of keys. Those that begin with `st2kv.` are taken as those of svc."""

SYSTEM_SCOPE = "system"
USER_SCOPE = "user"
ALL_SCOPE = "all"
FULL_SYSTEM_SCOPE = "st2kv.system"
FULL_USER_SCOPE = "st2kv.user"
DATASTORE_PARENT_SCOPE = "st2kv"
DATASTORE_SCOPE_SEPARATOR = "."
USER_SEPARATOR = DATASTORE_KEY_SEPARATOR = ":"
ALLOWED_SCOPES = [SYSTEM_SCOPE, USER_SCOPE, FULL_SYSTEM_SCOPE, FULL_USER_SCOPE]
