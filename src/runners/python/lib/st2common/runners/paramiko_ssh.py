"""Commands on other hosts are the server's work."""

raise ImportError(
    "st2common.runners.paramiko_ssh is unavailable in svc. Run core.remote or core.remote_sudo (POST /v1/executions, "
    "st2client.client.Client().executions.create), an action with the runner remote-shell-cmd, or add paramiko to the "
    "requirements.txt of the pack."
)
