/**
 * The programs that svc runs on other hosts, written for `/bin/sh`.
 *
 * The program is not an argument but standard input of a shell: other accounts of that machine can read the arguments
 * of a process, and environment and passwords must not be among them. The command itself has an empty standard input.
 * Its arguments are visible there as they are for a local command.
 */
import { randomUUID } from 'node:crypto'
import { quote } from '../../lib/process/index.ts'

/** Every login shell understands it; the program follows on standard input. */
export const READ_PROGRAM = 'exec /bin/sh'

export interface RemoteCommand {
  /** Program and arguments, or shell text that must not appear among the arguments of a process. */
  run: { argv: readonly string[] } | { text: string }
  cwd: string
  env: Readonly<Record<string, string>>
  sudo: boolean
  sudoPassword: string | undefined
}

export interface RemoteProgram {
  text: string
  /** Prefix of the one line on stderr in which the program reports its pid. */
  startMark: string
  /** The prompt that sudo prints, when it was given a password. */
  sudoPrompt: string | undefined
}

/** Prints `<mark> <pid> <start time>`. The time is field 22 of `/proc/<pid>/stat`, or 0 where that file is missing. */
function tellProcess(mark: string): string {
  return [
    's=',
    '[ -r "/proc/$$/stat" ] && read -r s <"/proc/$$/stat"',
    // shellcheck would ask for quotes; word splitting is intended.
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

/** In braces, so that the shell runs nothing of a program cut short by a broken connection. */
function bodyOf({ run, cwd, env }: RemoteCommand): string {
  const lines = [
    '{',
    'exec </dev/null',
    `cd -- ${quote(cwd)} || exit 1`,
    ...Object.entries(env).map(([name, value]) => `export ${name}=${quote(value)}`),
    // The leading space keeps a text that begins with a dash from being an option.
    'text' in run ? `eval ${quote(` ${run.text}`)}` : `exec ${run.argv.map(quote).join(' ')}`,
    'exit',
    '}',
  ]
  return `${lines.join('\n')}\n`
}

/** Passes the program to a root shell the same way, after the password where sudo asks for one. */
function asRoot(body: string, password: string | undefined, prompt: string): string {
  // printf is a shell builtin, so its arguments appear in no process list.
  const plain = `printf '%s' "$b" | sudo -E -- bash`
  // Without a prompt the shell would read the password as a command; -k also ignores cached credentials.
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
  /** `0` means unknown. */
  startTime: string
}

export interface KillRequest {
  executionId: string
  process: RemoteProcess | undefined
  graceSeconds: number
  /** The command may run as root. */
  sudo: boolean
  sudoPassword: string | undefined
}

/**
 * Stops a process tree: TERM, then KILL when the grace period is over, repeated until no process is left. The tree
 * consists of the started process, its group and session, and all their descendants. On Linux it also includes every
 * process with the execution's marker in its environment, whatever its session. Prints the pids of survivors.
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
  # The pid may belong to another process by now.
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
  # Each process gets TERM once: many treat a second TERM as an order to exit at once.
  new=$(echo "$l" | awk -v told="$told" '
    BEGIN { for (i = split(told, one); i > 0; i--) known[one[i]] = 1 }
    !($1 in known)')
  [ -z "$new" ] || kill -TERM $new 2>/dev/null
  # While the root lives it may keep starting processes, and listing them all would use up the grace period.
  while [ -n "$p" ] && in_time && kill -0 "$p" 2>/dev/null; do pause; done
  in_time || break
  # The list is bounded; processes beyond it are signalled again until they exit.
  [ "\${#told}" -gt 60000 ] || told="$told "$(echo $new)
  pause
done
# First the root, which may start more: listing takes longer the more processes there are.
case " "$(echo $l)" " in *" $p "*) kill -KILL "$p" "-$p" 2>/dev/null ;; esac
n=0
while l=$(find_tree); [ -n "$l" ]; do
  kill -KILL $l 2>/dev/null
  n=$((n + 1))
  if [ "$n" -gt 50 ]; then echo $l; exit 1; fi
  pause
done`.replaceAll('\\${', '${')

/** Removes a folder that svc made, including files that the script created in it as root. */
export function removeProgram(folder: string, sudo: boolean): string {
  const remove = `rm -rf -- ${quote(folder)}`
  return `{ cd /\n${remove}${sudo ? ` 2>/dev/null || sudo -n ${remove}` : ''}\n}\n`
}
