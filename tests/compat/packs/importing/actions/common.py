from packlib.tool import TOOL
from st2common.runners.base_action import Action


class Common(Action):
    def run(self):
        return TOOL
