/**
 * What is run on the other side, as programs for its `/bin/sh`.
 *
 * A program is not an argument but goes to the standard input of a shell, because other accounts of that machine can see
 * the arguments of a process: environment and passwords must not be among them. The command itself has nothing on its
 * standard input, and is to be seen there as it is on the machine of the server.
 */
import { randomUUID } from 'node:crypto'
import { quote } from '../../lib/process/index.ts'

/** What every login shell understands; the program comes on standard input. */
export const READ_PROGRAM = 'exec /bin/sh'

export interface RemoteCommand {
  /** Program and arguments, or a text for the shell that nobody may see among the arguments of a process. */
  run: { argv: readonly string[] } | { text: string }
  cwd: string
  env: Readonly<Record<string, string>>
  sudo: boolean
  sudoPassword: string | undefined
}

export interface RemoteProgram {
  text: string
  /** Stands at the beginning of the one line on stderr by which the program tells which process it is. */
  startMark: string
  /** What sudo asks with, when it was given a password. */
  sudoPrompt: string | undefined
}

/** One line, `<mark> <pid> <start time>`. The time is field 22 of `/proc/<pid>/stat`, or 0 where there is no such thing. */
function tellProcess(mark: string): string {
  return [
    's=',
    '[ -r "/proc/$$/stat" ] && read -r s <"/proc/$$/stat"',
    // shellcheck would ask for quotes; the words are wanted.
    'set -f; set -- ${s##*) }; set +f',
    `printf '%s %s %s\\n' ${quote(mark)} "$$" "\${20:-0}" >&2`,
    'set --; unset s',
  ].join('\n')
}

export function remoteProgram(command: RemoteCommand): RemoteProgram {
  const { sudo, sudoPassword } = command
  const startMark = `[start ${randomUUID()}]`
  const sudoPrompt = sudo && sudoPassword !== undefined ? `[sudo ${randomUUID()}]` : undefined
  const body = bodyOf(command)
  const text = `${tellProcess(startMark)}\n${sudo ? asRoot(body, sudoPassword, sudoPrompt ?? '') : body}`
  return { text, startMark, sudoPrompt }
}

/** In braces: a program that arrives in part, because the connection broke, is not carried out in part. */
function bodyOf({ run, cwd, env }: RemoteCommand): string {
  const lines = [
    '{',
    'exec </dev/null',
    `cd -- ${quote(cwd)} || exit 1`,
    ...Object.entries(env).map(([name, value]) => `export ${name}=${quote(value)}`),
    // The blank, because a text that begins with a dash is no option.
    'text' in run ? `eval ${quote(` ${run.text}`)}` : `exec ${run.argv.map(quote).join(' ')}`,
    'exit',
    '}',
  ]
  return `${lines.join('\n')}\n`
}

/** The program goes to a shell of root in the same way, behind the password where sudo asks for one. */
function asRoot(body: string, password: string | undefined, prompt: string): string {
  // printf is a part of the shell, so that its arguments are nowhere to be seen.
  const plain = `printf '%s' "$b" | sudo -E -- bash`
  // Where sudo does not ask, the shell would read the password as a command; -k: nor may an earlier answer count.
  const asked = (given: string): string[] => [
    'elif sudo -n -k -E -- bash -c : </dev/null >/dev/null 2>&1; then',
    plain,
    'else',
    `{ printf '%s\\n' ${quote(given)}; printf '%s' "$b"; } | sudo -k -S -p ${quote(prompt)} -E -- bash`,
  ]
  const lines = [
    '{',
    `b=${quote(body)}`,
    'if ! command -v sudo >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then',
    `printf '%s' "$b" | bash`,
    ...(password === undefined ? ['else', plain] : asked(password)),
    'fi',
    'exit $?',
    '}',
  ]
  return `${lines.join('\n')}\n`
}

export interface RemoteProcess {
  pid: number
  /** `0`: unknown. */
  startTime: string
}

export interface KillRequest {
  executionId: string
  process: RemoteProcess | undefined
  graceSeconds: number
  /** The command may have become root's. */
  sudo: boolean
  sudoPassword: string | undefined
}

/**
 * Ends a tree: TERM, then KILL when the grace is over, and again until nothing is left. To it belong the process that was
 * started, its group and session, all that descends from these, and on Linux whatever carries the execution's mark in its
 * environment, which nobody loses by leaving a session. Prints the pids of what could not be ended.
 */
export function killProgram({ executionId, process, graceSeconds, sudo, sudoPassword }: KillRequest): string {
  const kill = KILL_TREE.replace('@MARK@', `SVC_ACTION_EXECUTION_ID=${executionId}`)
    .replace('@PID@', process === undefined ? '' : String(process.pid))
    .replace('@START@', process?.startTime ?? '0')
    .replace('@GRACE@', String(graceSeconds))
  if (!sudo) return `{\n${kill}\n}\n`
  const start = `sh -c ${quote(kill)}`
  const password =
    sudoPassword === undefined ? [] : [`printf '%s\\n' ${quote(sudoPassword)} | sudo -k -S -p '' ${start} && exit`]
  return ['{', `sudo -n ${start} </dev/null && exit`, ...password, kill, '}', ''].join('\n')
}

const KILL_TREE = String.raw`m='@MARK@'; p='@PID@'; s='@START@'; g=@GRACE@
if [ -n "$p" ] && [ "$s" != 0 ] && [ -r "/proc/$p/stat" ]; then
  l=; read -r l <"/proc/$p/stat"
  set -f; set -- \${l##*) }; set +f
  # Its number may belong to somebody else by now.
  [ "\${20}" = "$s" ] || p=
fi
find_tree() {
  {
    grep -ls -- "$m" /proc/[0-9]*/environ 2>/dev/null | sed 's|^/proc/\([0-9]*\)/.*|m \1|'
    if [ -r /proc/self/status ]; then
      cat /proc/[0-9]*/status 2>/dev/null | awk '
        /^State:/ { state = $2 }
        /^Pid:/ { pid = $2; group = session = 0 }
        /^PPid:/ { parent = $2 }
        /^NSpgid:/ { group = $2 }
        /^NSsid:/ { session = $2; print "t", pid, parent, group, session, state }'
    else
      ps -A -o pid= -o ppid= -o pgid= -o stat= | awk '{ print "t", $1, $2, $3, $3, $4 }'
    fi
  } | awk -v root="$p" -v self="$$" '
    $1 == "m" { marked[$2] = 1; next }
    { parent[$2] = $3; group[$2] = $4; session[$2] = $5; state[$2] = $6 }
    END {
      if (root != "") { own[root] = 1; groups[root] = 1; sessions[root] = 1 }
      do {
        more = 0
        for (i in parent) {
          if ((i in own) || i + 0 <= 1 || i == self) continue
          if (!((i in marked) || (parent[i] in own) || (group[i] in groups) || (session[i] in sessions))) continue
          own[i] = 1; more = 1
          if (group[i] == i) groups[i] = 1
          if (session[i] == i) sessions[i] = 1
        }
      } while (more)
      for (i in own) if ((i in parent) && state[i] !~ /^[ZX]/) print i
    }'
}
pause() { sleep 0.1 2>/dev/null || sleep 1; }
end=$(( $(date +%s) + g ))
in_time() { [ "$(date +%s)" -le "$end" ]; }
told=
while l=$(find_tree); [ -n "$l" ]; do
  # Each is told once: many take a second TERM for an order to drop everything.
  new=$(echo "$l" | awk -v told="$told" '
    BEGIN { for (i = split(told, one); i > 0; i--) known[one[i]] = 1 }
    !($1 in known)')
  [ -z "$new" ] || kill -TERM $new 2>/dev/null
  # While that one lives it may start more all the time, and looking at all of them takes the time that is left.
  while [ -n "$p" ] && in_time && kill -0 "$p" 2>/dev/null; do pause; done
  in_time || break
  # One that starts others without end is not told of by name any more, but by their end.
  [ "\${#told}" -gt 60000 ] || told="$told "$(echo $new)
  pause
done
# First what may start more: these take longer to list the more there are.
case " "$(echo $l)" " in *" $p "*) kill -KILL "$p" "-$p" 2>/dev/null ;; esac
n=0
while l=$(find_tree); [ -n "$l" ]; do
  kill -KILL $l 2>/dev/null
  n=$((n + 1))
  if [ "$n" -gt 50 ]; then echo $l; exit 1; fi
  pause
done`.replaceAll('\\${', '${')

/** Removes a folder of our own making, also what the script made in it as root. */
export function removeProgram(folder: string, sudo: boolean): string {
  const remove = `rm -rf -- ${quote(folder)}`
  return `{ cd /\n${remove}${sudo ? ` 2>/dev/null || sudo -n ${remove}` : ''}\n}\n`
}
