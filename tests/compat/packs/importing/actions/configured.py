import copy
import json
import pickle

from st2common.runners.base_action import Action


class Configured(Action):
    """The pack has no configuration."""

    def run(self):
        caught = []
        for kind in (KeyError, ValueError):
            try:
                self.config["nope"]
            except kind as problem:
                caught.append(kind.__name__)
                message = str(problem)
        config = self.config
        usual = [type(config).__name__, config.get("nope"), "nope" in config, dict(**config), json.loads(json.dumps(config))]
        copied = pickle.loads(pickle.dumps(copy.deepcopy(config)))
        config["more"] = 1
        copied["more"] = 2
        try:
            copied["nope"]
        except KeyError as problem:
            return {
                "missing": message,
                "caught": caught,
                "usual": usual,
                "changed": config,
                "copies": [str(problem), copied["more"]],
            }
