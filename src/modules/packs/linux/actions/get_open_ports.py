import ipaddress
import subprocess
from xml.etree import ElementTree

from svc.action import Action


class GetOpenPorts(Action):
    """An object {port: {state, service, protocol}} for each of the ports that nmap knows best."""

    def run(self, ip_address):
        # nmap also takes names and whole networks: those are not looked at by mistake.
        address = ipaddress.ip_address(ip_address)
        command = ["nmap", "-sT", "--min-parallelism", "100", "-oX", "-"]
        if address.version == 6:
            command.append("-6")
        try:
            done = subprocess.run(
                command + ["--", str(address)], stdin=subprocess.DEVNULL, capture_output=True, universal_newlines=True
            )
        except FileNotFoundError:
            raise RuntimeError("The program nmap is missing on this machine. Install nmap.")
        if done.returncode != 0:
            raise RuntimeError("nmap failed with exit code %d: %s" % (done.returncode, done.stderr.strip()))
        found = []
        for port in ElementTree.fromstring(done.stdout).iter("port"):
            state, service = port.find("state"), port.find("service")
            details = {
                "state": state.get("state"),
                "service": "" if service is None else service.get("name"),
                "protocol": port.get("protocol"),
            }
            found.append({port.get("portid"): details})
        return found
