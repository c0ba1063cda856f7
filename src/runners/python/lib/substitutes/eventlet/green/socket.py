from socket import *  # noqa: F401,F403
