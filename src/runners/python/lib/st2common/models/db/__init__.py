"""StackStorm's database."""

from svc.elsewhere import unavailable

db_setup = unavailable(
    "st2common.models.db.db_setup", "the API, such as st2client.client.Client(): svc has no such database"
)
db_teardown = unavailable("st2common.models.db.db_teardown", "nothing: svc has no such database")
