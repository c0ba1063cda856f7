"""The names of StackStorm's server modules that packs import.

They work where the API of svc or the machine can do what callers want. The others can be imported, and say on use what
to use instead.
"""

__version__ = "3.9.0"
