class NoBase(object):
    def __init__(self, config, action_service=None):
        self.config = config
        self.action_service = action_service

    def run(self):
        return self.action_service.get_user_info()["username"]
