import os
import subprocess
import tempfile
import time

from svc.action import Action

CONNECT_SECONDS = 20


class WaitForSsh(Action):
    """True when a login has succeeded; fails after the last attempt."""

    def run(self, hostname, port=22, username=None, password=None, keyfile=None, ssh_timeout=30, retries=10):
        if hostname.startswith("-"):
            raise ValueError('hostname must not begin with "-"')
        options = {
            "ConnectTimeout": CONNECT_SECONDS,
            "StrictHostKeyChecking": "accept-new",
            "NumberOfPasswordPrompts": 1,
            "BatchMode": "no" if password else "yes",
        }
        if username:
            options["User"] = username
        command = ["ssh", "-p", str(port)]
        for name, value in options.items():
            command += ["-o", "%s=%s" % (name, value)]
        if keyfile:
            command += ["-i", keyfile, "-o", "IdentitiesOnly=yes"]
        with tempfile.TemporaryDirectory() as folder:
            # The password is in the environment alone: others see the arguments of a process.
            env = dict(os.environ)
            if password:
                answer = os.path.join(folder, "answer")
                with open(answer, "w") as file:
                    file.write('#!/bin/sh\nprintf "%s\\n" "$SVC_SSH_PASSWORD"\n')
                os.chmod(answer, 0o700)
                env.update(SSH_ASKPASS=answer, SSH_ASKPASS_REQUIRE="force", DISPLAY="none", SVC_SSH_PASSWORD=password)
            for attempt in range(1, retries + 1):
                done = subprocess.run(
                    command + ["--", hostname, "true"],
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    universal_newlines=True,
                    env=env,
                )
                if done.returncode == 0:
                    return True
                reason = (done.stderr.strip().splitlines() or ["exit code %d" % done.returncode])[-1]
                self.logger.info("Attempt %d of %d: %s", attempt, retries, reason)
                if attempt < retries:
                    time.sleep(ssh_timeout)
        raise RuntimeError("No login to %s:%d after %d attempts: %s" % (hostname, port, retries, reason))
