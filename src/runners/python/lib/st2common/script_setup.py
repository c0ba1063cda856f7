"""Scripts that work on StackStorm's database."""

from svc.elsewhere import unavailable

setup = unavailable("st2common.script_setup.setup", "the API, such as st2client.client.Client()")
teardown = unavailable("st2common.script_setup.teardown", "nothing: there is no database to close")
