from st2common.bootstrap.sensorsregistrar import register_sensors
from st2common.exceptions.db import StackStormDBObjectNotFoundError
from st2common.models.db import db_setup
from st2common.persistence.pack import Pack
from st2common.persistence.rule import Rule
from st2common.runners.base_action import Action
from st2common.script_setup import setup
from st2common.services.triggers import cleanup_trigger_db_for_rule
from st2common.util.pack_management import download_pack


class Elsewhere(Action):
    def run(self):
        said = []
        for use in (
            lambda: Rule.get_by_ref("a.b"),
            lambda: Pack.get_all(),
            lambda: db_setup(),
            lambda: setup(None),
            lambda: register_sensors(),
            lambda: download_pack("x"),
            lambda: cleanup_trigger_db_for_rule(None),
        ):
            try:
                use()
            except StackStormDBObjectNotFoundError:
                said.append("not found")
            except RuntimeError as problem:
                said.append(str(problem))
        try:
            from st2common.runners.paramiko_ssh import ParamikoSSHClient  # noqa: F401
        except ImportError as problem:
            said.append(str(problem))
        return said
