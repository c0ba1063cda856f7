"""Names that packs import of the commands of a command line."""
