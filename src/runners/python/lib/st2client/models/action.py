"""Actions, runners and executions."""

from svc.api import ServiceError

from st2client.models.core import Resource, ResourceManager
from st2client.utils.httpclient import path_of

__all__ = ["Action", "ActionManager", "Execution", "ExecutionManager", "LiveAction", "RunnerType"]


class RunnerType(Resource):
    _alias = "Runner"
    _display_name = "Runner"
    _plural_display_name = "Runners"
    _repr_attributes = ["name", "enabled", "description"]


class Action(Resource):
    _repr_attributes = ["name", "pack", "enabled", "runner_type"]


class Execution(Resource):
    """A run of an action: `action` (reference) and `parameters` for a new one."""

    _display_name = "Action Execution"
    _url_path = "executions"
    _plural = "ActionExecutions"
    _plural_display_name = "Action executions"
    _repr_attributes = ["status", "action", "start_timestamp", "end_timestamp", "parameters"]


#: Name of old releases.
LiveAction = Execution


class ActionManager(ResourceManager):
    def get_entrypoint(self, ref_or_id, **kwargs):
        """Returns the text of the file that an action runs."""
        answer = self._get(path_of("actions", "views", "entry_point", ref_or_id), kwargs)
        self.check(answer)
        return answer.text

    def clone(self, source_ref, dest_pack, dest_action, overwrite, **kwargs):
        """Copies an action."""
        body = {"dest_pack": dest_pack, "dest_action": dest_action, "overwrite": overwrite}
        return self._made(self.client.post(path_of("actions", source_ref, "clone"), body, **kwargs))

    def delete_action(self, instance, remove_files, **kwargs):
        """Deletes an action, with its files if that is asked for."""
        return self.delete(instance, remove_files=remove_files, **kwargs)


class ExecutionManager(ResourceManager):
    def re_run(self, execution_id, parameters=None, tasks=None, no_reset=None, delay=0, **kwargs):
        """Runs an execution again.

        :param parameters: replace those of the first run
        :param tasks: of a workflow, to run again; of those in `no_reset`, items that succeeded do not run again
        :param delay: milliseconds
        """
        tasks = tasks or []
        kept = no_reset or []
        if set(kept) - set(tasks):
            raise ValueError("re_run: no_reset has tasks that are not in tasks: {}".format(sorted(set(kept) - set(tasks))))
        body = {
            "parameters": parameters or {},
            "tasks": tasks,
            "reset": [task for task in tasks if task not in kept],
            "delay": delay,
        }
        return self._made(self.client.post(path_of("executions", execution_id, "re_run"), body, **kwargs))

    def get_output(self, execution_id, output_type=None, **kwargs):
        """Returns the output so far, as text. `output_type`: `stdout`, `stderr`, `other`."""
        query = dict(kwargs, output_format="raw")
        if output_type:
            query["output_type"] = output_type
        answer = self._get(path_of("executions", execution_id, "output"), query)
        self.check(answer)
        return answer.text

    def pause(self, execution_id, **kwargs):
        return self._set_status(execution_id, "pausing", kwargs)

    def resume(self, execution_id, **kwargs):
        return self._set_status(execution_id, "resuming", kwargs)

    def cancel(self, execution_id, **kwargs):
        return self.delete_by_id(execution_id, **kwargs)

    def get_children(self, execution_id, **kwargs):
        """Returns the executions that this one has started."""
        return self._many(self._get(path_of("executions", execution_id, "children"), kwargs))

    def wait(self, execution_id, seconds):
        """Returns the execution when it has ended. :raises ServiceError: when it has not in that time"""
        import time

        from st2client.commands.action import LIVEACTION_COMPLETED_STATES

        end = time.monotonic() + seconds
        while True:
            found = self.get_by_id(execution_id)
            if found is None:
                raise ServiceError('There is no execution "{}".'.format(execution_id), 404)
            if found.status in LIVEACTION_COMPLETED_STATES:
                return found
            if time.monotonic() >= end:
                raise ServiceError('The execution "{}" is {} after {} seconds.'.format(execution_id, found.status, seconds))
            time.sleep(0.2)

    def _set_status(self, execution_id, status, kwargs):
        return self._made(self.client.put(path_of("executions", execution_id), {"status": status}, **kwargs))
