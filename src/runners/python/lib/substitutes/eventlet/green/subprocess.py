from subprocess import *  # noqa: F401,F403
