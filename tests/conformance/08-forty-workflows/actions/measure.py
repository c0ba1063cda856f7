from svc.action import Action


class Measure(Action):
    def run(self, numbers):
        if not numbers:
            return (False, "there are no numbers")
        return {"mean": sum(numbers) / len(numbers), "sorted": sorted(numbers)}
