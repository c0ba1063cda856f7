"""The names under which packs use the API of StackStorm from Python, over the API of svc.

See `st2client.client.Client`. Programs that parse the incumbent's version find one that has all of these methods.
"""

__version__ = "3.9.0"
