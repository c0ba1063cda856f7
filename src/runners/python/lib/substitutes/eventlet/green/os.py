from os import *  # noqa: F401,F403
