import os

import st2common.content.utils as content_utils
from st2common.constants.pack import MANIFEST_FILE_NAME, PACK_VERSION_SEPARATOR, SYSTEM_PACK_NAMES
from st2common.content import utils
from st2common.content.utils import get_pack_base_path, get_packs_base_paths
from st2common.runners.base_action import Action
from st2common.util.pack import get_pack_warnings
from st2common.util.pack_management import get_repo_url
from st2common.util.virtualenvs import setup_pack_virtualenv


class Content(Action):
    def run(self):
        folder = get_pack_base_path("importing")
        return {
            "folder": folder == os.getcwd() == utils.get_pack_directory("importing"),
            "manifest": os.path.isfile(os.path.join(folder, MANIFEST_FILE_NAME)),
            "paths": [path for path in get_packs_base_paths() if folder.startswith(path + os.sep)]
            == [os.path.dirname(folder)],
            "file": content_utils.get_pack_file_abs_path("importing", "pack.yaml") == os.path.join(folder, "pack.yaml"),
            "none": content_utils.get_pack_directory("importing_none"),
            "warnings": get_pack_warnings({"name": "x", "python_versions": ["2"]}),
            "repo": [get_repo_url("owner/name" + PACK_VERSION_SEPARATOR + "1.0"), get_repo_url("https://x/y.git")],
            "system": "core" in SYSTEM_PACK_NAMES,
            "virtualenv": setup_pack_virtualenv("importing"),
        }
