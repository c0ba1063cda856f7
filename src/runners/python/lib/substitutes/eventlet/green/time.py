from time import *  # noqa: F401,F403
