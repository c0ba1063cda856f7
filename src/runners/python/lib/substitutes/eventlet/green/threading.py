from threading import *  # noqa: F401,F403
