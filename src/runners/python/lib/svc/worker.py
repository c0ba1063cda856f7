"""Runs one action in this process, then exits.

The job is one JSON object on stdin, up to its end:

    pack, file   pack and entry point of the action; `path` lists further folders to import from
    parameters, config
    env          variables to set; `cwd` the working directory; `mark` see `_set_mark`
    log_level    name of the lowest level; `page_size`; `max_bytes` of the returned value
    packs_paths  folders that have packs in them, that for installed packs first

The reply goes to descriptor 3, separate from the output: a line `job` once the action is known, then one JSON object. It
has `result` and, if `run` returned it, `succeeded`; or `error`, the reason why there is no result.
"""

import io
import json
import os
import sys

from svc import action_service, log, places
from svc.config import PackConfigDict
from svc.result import json_or_text

REPLY_FD = 3
#: RLIMIT_RTTIME, which the module does not name. It limits no process, but marks those of the execution.
MARK_LIMIT = 15
INVALID_STATUS = 220


class Refused(Exception):
    """The action has no result; the text says why."""

    def __init__(self, message, code=1):
        super().__init__(message)
        self.code = code


def main():
    os.set_inheritable(REPLY_FD, False)
    text = _read_job()
    try:
        job = json.loads(text)
    except ValueError:
        # The server closed stdin without a job.
        os._exit(0)
    text = None
    prepare(job, log.ACTIONS)
    _reply(b"job\n")
    sys.exit(_carry_out(job))


def _read_job():
    pieces = []
    while True:
        piece = os.read(0, 1 << 16)
        if not piece:
            break
        pieces.append(piece)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return b"".join(pieces)


def prepare(job, root):
    """Attaches this process and its descendants to the execution, before any code of the pack runs."""
    os.environ.update(job["env"])
    _set_mark(job["mark"])
    # Unbuffered only if the execution asks for it, not because the server runs with that variable.
    is_buffered = not job["env"].get("PYTHONUNBUFFERED")
    sys.stdout = sys.__stdout__ = _line_by_line(sys.stdout, is_buffered)
    sys.stderr = sys.__stderr__ = _line_by_line(sys.stderr, is_buffered)
    log.set_up(job["log_level"], root)
    places.packs_paths = job["packs_paths"]
    if job.get("remark"):
        sys.stderr.write(job["remark"] + "\n")


def _line_by_line(stream, is_buffered):
    """Flushes per line, for live output, and escapes characters that cannot be encoded."""
    options = {"encoding": "utf-8", "errors": "backslashreplace", "line_buffering": True}
    if not is_buffered or not isinstance(stream.buffer, io.RawIOBase):
        stream.reconfigure(**options)
        return stream
    # Without a buffer a line and its end are two writes, between which another process or thread may write. A signal that
    # interrupts such a write loses the rest.
    made = io.TextIOWrapper(io.BufferedWriter(stream.detach()), **options)
    made.mode = "w"
    return made


def _set_mark(mark):
    if mark is None:
        return
    try:
        import resource

        resource.setrlimit(MARK_LIMIT, (int(mark), resource.getrlimit(MARK_LIMIT)[1]))
    except (ImportError, ValueError, OSError):
        # Without the mark, session and environment variable identify the process.
        pass


def _carry_out(job):
    """Returns the exit code."""
    own_pid = os.getpid()
    reply, code = None, 0
    try:
        reply = _outcome(job)
    except Refused as problem:
        reply, code = {"error": str(problem)}, problem.code
    except SystemExit as end:
        code = code_of(end)
    except BaseException as problem:
        import traceback

        traceback.print_exception(type(problem), problem, _frames_of_the_action(problem))
        _explain(problem, job)
        code = 1
    # A forked process that returns to this point has no result to report.
    if reply is not None and os.getpid() == own_pid:
        _reply(_encode(reply, job["max_bytes"]))
    return code


def _outcome(job):
    if job["cwd"]:
        os.chdir(job["cwd"])
    found = _find_class(load(job["file"], job["path"]), job["file"])
    service = action_service.ActionService(job["pack"], found.__name__, job["page_size"])
    value = _make(found, PackConfigDict(job["pack"], job["config"]), service).run(**job["parameters"])
    if not isinstance(value, tuple) or len(value) != 2:
        return {"result": value}
    succeeded, value = value
    if succeeded is None:
        return {"result": value}
    if not isinstance(succeeded, bool):
        raise Refused(
            "The status that the action returned must be a boolean, not {}: a returned tuple of two "
            "means (status, result).".format(type(succeeded).__name__),
            INVALID_STATUS,
        )
    return {"result": value, "succeeded": succeeded}


def load(file, path, kind="action"):
    from importlib import util

    if not os.path.isfile(file):
        raise Refused('The entry point "{}" of the {} does not exist.'.format(os.path.basename(file), kind))
    sys.argv = [file]
    name = os.path.splitext(os.path.basename(file))[0]
    if name in getattr(sys, "stdlib_module_names", ()):
        # Now, so that preloading makes no difference.
        try:
            __import__(name)
        except ImportError:
            pass
    # The folder of the action comes last: an action called copy.py or requests.py must not be in the way of others that
    # import the module of that name.
    own = os.path.dirname(file)
    sys.path[:] = path + [folder for folder in sys.path if folder not in path and folder != own] + [own]
    if name in sys.modules or not name.isidentifier():
        # An action called uuid.py must not shadow the module of that name.
        name = "svc_{}_{}".format(kind, name)
    spec = util.spec_from_file_location(name, file)
    if spec is None:
        raise Refused('The entry point "{}" of the {} is not a Python file.'.format(os.path.basename(file), kind))
    module = util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _find_class(module, file):
    """Returns the first class by name that has a method `run`; those that take no configuration come last."""
    named = [(name, value) for name, value in sorted(vars(module).items()) if isinstance(value, type)]
    own = {value: name for name, value in reversed(named) if value.__module__ == module.__name__}
    found = [one for one in reversed(list(own)) if _has_run(one)]
    if not found:
        why = 'The entry point "{}" defines no class with a method run'.format(os.path.basename(file))
        raise Refused("{}: {}.".format(why, ", ".join(own[one] for one in reversed(list(own)))) if own else why + ".")
    if len(found) > 1:
        found.sort(key=lambda one: not _takes_configuration(one))
        what = 'The entry point "%s" defines several classes with a method run: %s. The first by name is the action.'
        names = ", ".join(own[one] for one in found)
        log.get_logger(own[found[0]]).warning(what, os.path.basename(file), names)
    return found[0]


def _has_run(one):
    run = getattr(one, "run", None)
    return callable(run) and not getattr(run, "__isabstractmethod__", False)


def _takes_configuration(one):
    import inspect

    if inspect.isabstract(one):
        return False
    try:
        signature = inspect.signature(one)
    except (TypeError, ValueError):
        return True
    for arguments in ({"config": None, "action_service": None}, {"config": None}):
        try:
            signature.bind(**arguments)
            return True
        except TypeError:
            pass
    try:
        signature.bind(None)
        return True
    except TypeError:
        return False


def _make(found, config, service):
    action = None
    if found.__init__ is object.__init__ and found.__new__ is object.__new__:
        action = found()
        action.config = config
        action.logger = log.get_logger(found.__name__)
    else:
        try:
            action = found(config=config, action_service=service)
        except TypeError as problem:
            # Older classes lack the second parameter or use another name for the first.
            if not str(problem).endswith(("argument 'config'", "argument 'action_service'")):
                raise
        if action is None:
            action = found(config)
    if getattr(action, "action_service", None) is None:
        action.action_service = service
    return action


#: Modules of Python 2 alone that packs import.
OF_PYTHON_2 = {
    "BaseHTTPServer",
    "ConfigParser",
    "Cookie",
    "HTMLParser",
    "Queue",
    "SocketServer",
    "StringIO",
    "__builtin__",
    "cPickle",
    "cStringIO",
    "commands",
    "cookielib",
    "httplib",
    "sets",
    "thread",
    "urllib2",
    "urlparse",
    "xmlrpclib",
}

#: Modules whose package has another name.
PACKAGES = {"yaml": "PyYAML", "dateutil": "python-dateutil", "git": "GitPython", "winrm": "pywinrm", "bs4": "beautifulsoup4"}


def _explain(problem, job):
    """Says what to do about a module that the action does not find."""
    full = getattr(problem, "name", None) or ""
    name = full.split(".")[0]
    if not isinstance(problem, ModuleNotFoundError) or not name:
        return
    folder = os.path.join(job["cwd"] or "", "lib", name)
    if name.startswith("st2"):
        advice = "svc has no such module of StackStorm. Those that it has: docs/packs.md, What Python finds."
    elif name in OF_PYTHON_2:
        advice = "Only Python 2 has {}: this file of the pack was written for it. Take a newer version of the pack.".format(name)
    elif name in sys.modules:
        return
    elif job["cwd"] and (os.path.isdir(folder) or os.path.isfile(folder + ".py")):
        advice = "The pack has it in lib/: set enable_common_libs in [packs] of the configuration."
    else:
        package = PACKAGES.get(name, name)
        advice = "If it is of another package ({}), add that to the requirements.txt of the pack.".format(package)
    print(advice, file=sys.stderr)


def _frames_of_the_action(problem):
    """Drops the leading frames of the server and of the import system; None when no others are left."""
    frames = problem.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename.startswith((__file__, "<frozen importlib")):
        frames = frames.tb_next
    return frames


def code_of(end):
    if end.code is None:
        return 0
    if isinstance(end.code, int):
        return end.code & 0xFF
    print(end.code, file=sys.stderr)
    return 1


def _encode(reply, max_bytes):
    if "result" in reply:
        reply["result"] = json_or_text(reply["result"], str if "succeeded" in reply else repr)
    text = json.dumps(reply, allow_nan=False)
    if len(text) > max_bytes:
        what = "The value that the action returned takes {} bytes; actionrunner.max_result_bytes is {}."
        text = json.dumps({"error": what.format(len(text), max_bytes), "is_too_large": True})
    return text.encode("ascii")


def _reply(data):
    view = memoryview(data)
    while view:
        view = view[os.write(REPLY_FD, view) :]
