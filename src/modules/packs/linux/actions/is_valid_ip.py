import ipaddress

from svc.action import Action

FACTS = (
    "version",
    "is_private",
    "is_link_local",
    "is_unspecified",
    "reverse_pointer",
    "is_multicast",
    "is_reserved",
    "is_loopback",
)


class IsValidIp(Action):
    """What is known of an address; fails for a text that is none, and for one that is not wanted."""

    def run(self, ip_address, no_loopback=False, only_v4=False, only_v6=False):
        address = ipaddress.ip_address(ip_address)
        wanted = 4 if only_v4 else 6 if only_v6 else address.version
        if address.version != wanted:
            raise ValueError("%s is an IPv%d address, not one of IPv%d" % (address, address.version, wanted))
        if no_loopback and address.is_loopback:
            raise ValueError("%s is an address of loopback" % address)
        return {name: getattr(address, name) for name in FACTS}
