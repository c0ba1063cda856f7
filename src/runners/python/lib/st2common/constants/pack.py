"""Names of packs and their files."""

MANIFEST_FILE_NAME = "pack.yaml"
CONFIG_SCHEMA_FILE_NAME = "config.schema.yaml"

SYSTEM_PACK_NAME = "core"
DEFAULT_PACK_NAME = "default"
PACKS_PACK_NAME = "packs"
CHATOPS_PACK_NAME = "chatops"
LINUX_PACK_NAME = "linux"
#: Packs that come with the server.
SYSTEM_PACK_NAMES = (CHATOPS_PACK_NAME, SYSTEM_PACK_NAME, LINUX_PACK_NAME, PACKS_PACK_NAME)
USER_PACK_NAME_BLACKLIST = [SYSTEM_PACK_NAME, PACKS_PACK_NAME]

#: Between the name of a pack and its version.
PACK_VERSION_SEPARATOR = "="
PACK_RESERVED_CHARACTERS = ["."]
PACK_REF_WHITELIST_REGEX = r"^[a-z0-9_]+$"
