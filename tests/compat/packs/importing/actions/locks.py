import subprocess
import sys
import threading

from st2common.runners.base_action import Action
from st2common.services import coordination

OTHER = (
    "import sys\nsys.path[:0] = {!r}\nfrom st2common.services import coordination\n"
    "one = coordination.get_coordinator().get_lock({!r})\nprint(one.acquire(blocking=False))\n"
)


class Locks(Action):
    def other(self, name):
        """Whether another process gets the lock."""
        program = OTHER.format(sys.path, name)
        return subprocess.check_output([sys.executable, "-c", program]).decode("ascii").strip()

    def run(self):
        coordinator = coordination.get_coordinator()
        name = "importing.{}".format(id(self))
        with coordinator.get_lock(name):
            found = [self.other(name), self.other(name + ".other")]
            thread = []
            one = threading.Thread(target=lambda: thread.append(coordinator.get_lock(name).acquire(blocking=False)))
            one.start()
            one.join()
            # Nested locks of other names do not free the first one.
            with coordinator.get_lock(name + ".inner"):
                pass
            found.append(self.other(name))
        return {"held": found, "thread": thread, "freed": self.other(name)}
