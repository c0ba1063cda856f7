from st2common.runners.base_action import Action


class Copy(Action):
    def run(self):
        import copy
        import shutil

        return [copy.copy([2]), shutil.which("sh") is not None]
