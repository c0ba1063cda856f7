from svc.action import Action


class GreetAction(Action):
    def run(self, name):
        key = "greeted." + name
        count = int(self.action_service.get_value(key) or 0) + 1
        self.action_service.set_value(key, str(count))
        self.logger.info("%s has been greeted %d times", name, count)
        return {"text": "{}, {}!".format(self.config.get("greeting", "Hello"), name), "count": count}
