import copy
import uuid

import beside
import deeper
import lib.values
import tools.hammer
from deeper.inner import INNER
from lib import values as again
from lib.base import Base
from lib.deeper.inner import INNER as SAME
from tools import hammer


class Siblings(Base):
    def run(self):
        return [
            lib.values.VALUE,
            again.VALUE,
            beside.VALUE,
            tools.hammer.NAME,
            hammer.NAME,
            INNER,
            SAME,
            deeper.__name__,
            self.greeting,
            # Those of Python, though actions are called so.
            copy.deepcopy([1]),
            str(uuid.UUID(int=1)),
        ]
