from st2common.runners.base_action import Action

from lib.values import VALUE


class Base(Action):
    def __init__(self, config):
        super(Base, self).__init__(config)
        self.greeting = "hello " + VALUE
