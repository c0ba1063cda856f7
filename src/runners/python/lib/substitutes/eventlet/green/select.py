from select import *  # noqa: F401,F403
