/** Help topics: shown by `svc help <topic>`, and part of the manual page and `docs/cli.md`. */
import { onOrder } from './samples.ts'
import { exitCodes } from '../exit-codes.ts'
import { fileRows, settingRows, type SettingRow } from '../connection/setting-rows.ts'
import type { Block, Table } from './text.ts'

export interface Topic {
  /** As in `svc help <name>`. */
  name: string
  title: string
  /** One line, for lists of topics. */
  summary: string
  blocks: readonly Block[]
  /** Title of its section in the manual page, where there is a customary one. Default: the title. */
  manualTitle?: string
}

const firstSteps: Topic = {
  name: 'first-steps',
  title: 'First steps',
  summary: 'Start a server, run an action and create a rule.',
  blocks: [
    'Start a server. By default it listens on this machine only, needs no login and stores its data in `svc_data` in the current directory:',
    { lines: 'svc serve' },
    'In another terminal, run an action and see its result:',
    {
      lines: `$ svc run core.local date -R
id: 6b01aef89ced91c48c2e9dbe
action.ref: core.local
context.user: svc
parameters:
  cmd: date -R
status: succeeded (0s elapsed)
start_timestamp: Sat, 21 Nov 2026 14:47:20 UTC
end_timestamp: Sat, 21 Nov 2026 14:47:20 UTC
result:
  failed: false
  succeeded: true
  return_code: 0
  stdout: Sat, 21 Nov 2026 14:47:20 +0000
  stderr: ''`,
    },
    'Packs contain actions. Install the pack `examples`, which is part of svc; directories such as `./web`, git repositories and archives work the same way:',
    {
      lines: `$ svc pack install examples
$ svc action list -p examples
$ svc run examples.greet -h`,
    },
    'A rule runs an action when an event matches its criteria. This rule runs a command for each order that a webhook receives:',
    {
      lines: `$ cat > ${onOrder.name} <<'EOF'
${onOrder.text}
EOF
$ svc rule create on_order.yaml -a ref
+----------+------------------+
| Property | Value            |
+----------+------------------+
| ref      | default.on_order |
+----------+------------------+
$ svc webhook send orders '{"kind": "order", "id": 17}'
trace_id: 6b03d495c3c30ead9acd5d4e
trigger_instances:
- id: 6b03d495c3c30dd28b5fa6c1
Note: To see the outcome: svc trigger-instance explain 6b03d495c3c30dd28b5fa6c1`,
    },
    'Show the outcome of the event (your ids differ):',
    {
      lines: `$ svc trigger-instance explain 6b03d495c3c30dd28b5fa6c1
6b03d495c3c30dd28b5fa6c1 (core.8f56a92d-0aa4-49c7-87c2-d4f77df1b24c, Mon, 23 Nov 2026 05:52:21 UTC) is processed.
1 rule started an execution: default.on_order.

default.on_order matches:
  enforcement: 6b03d495c3eccc2bc145c67d
  execution: 6b03d495c3fe7e5ce811221f
$ svc execution tail 6b03d495c3fe7e5ce811221f
order 17

Execution 6b03d495c3fe7e5ce811221f has completed (status=succeeded).`,
    },
  ],
}

const parameters: Topic = {
  name: 'parameters',
  title: 'Parameters of actions',
  summary: 'How to write parameter values, and how svc converts them.',
  blocks: [
    '`svc run <action> -h` lists the parameters of an action. Write them after the reference of the action:',
    {
      header: ['Word', 'Meaning'],
      rows: [
        ['`name=value`', 'a parameter'],
        ['`@name=path`', 'a parameter with the content of a file as its value; `name=@value` is the text `@value`'],
        ['any other word', 'this word and all words after it form the parameter `cmd`'],
      ],
    },
    'Put options of `svc` before the command that the action runs: in `svc run -j core.local uname -a` only -j is an option of `svc`. Words after `--` are never options of `svc`.',
    'svc converts each value to the declared type of the parameter:',
    {
      header: ['Declared type', 'Examples'],
      rows: [
        ['`integer`, `number`', '`timeout=60`, `ratio=0.5`'],
        ['`boolean`', '`force=true`, `force=False`'],
        [
          '`array`',
          '`hosts=a,b,c`, `hosts=\'["a", "b"]\'`, or `hosts=a hosts=b`; items are converted to their declared type',
        ],
        ['`object`', '`env=A=1,B=2` (values are text), `env=\'{"A": 1}\'`, or `env=A=1 env=B=2`'],
        ['`string`, or none', 'unchanged text'],
      ],
    },
    'With --auto-dict, each word of `key:value` items becomes one object of a list: `hosts=name:a,port:22 hosts=name:b,port:2022`.',
    "Quote values for the shell: `cmd='make test'` for a value with blanks, and single quotes around JSON. Keep secrets out of the command line, because other users of the machine see it in the process list. Store them in the datastore (`svc help key set`) or in a file for `@name=path`.",
  ],
}

const output: Topic = {
  name: 'output',
  title: 'Output',
  summary: 'Tables, JSON and YAML; attributes and counts; standard output and standard error.',
  blocks: [
    {
      header: ['Option', 'Meaning'],
      rows: [
        [
          '`-j`, `--json`',
          'print JSON, indented by four blanks, keys sorted; whole records unless --attr names attributes',
        ],
        ['`-y`, `--yaml`', 'print YAML with the same content'],
        [
          '`-a`, `--attr <name...>`',
          'attributes to print, `all` for every attribute; a dot selects a nested attribute, as in `action.ref`. For commands that run actions, -a means --async; use --attr',
        ],
        [
          '`-n`, `--last <count>`',
          'number of list items to print (default: 50), -1 for all; a note says when there are more',
        ],
        [
          '`-w`, `--width <columns...>`',
          'column widths of a list in characters: one number for all columns, or one per column',
        ],
      ],
    },
    'svc prints a list as a table and wraps cells to fit the terminal. Lists of executions and events end with the newest item. A single record is a table of its attributes; an execution is lines of `name: value`.',
    'Results and lines that start with `ERROR:` go to standard output. Warnings, notes, progress and usage go to standard error. With exit code 0, the file of `svc execution list -j > file` contains only JSON.',
    'Statuses are colored on a terminal unless `NO_COLOR` is set, and everywhere if `SVC_COLORIZE` is set. svc escapes control characters, except in the output of actions (`svc execution tail`). Invalid UTF-8 becomes U+FFFD.',
    'Tables show times in the time zone of the configuration file (default: UTC). JSON and YAML contain the times of the server, in UTC.',
  ],
}

const exitStatus: Topic = {
  name: 'exit-codes',
  title: 'Exit codes',
  manualTitle: 'Exit status',
  summary: 'The exit codes of svc, for scripts.',
  blocks: [
    {
      header: ['Code', 'When'],
      rows: [
        [String(exitCodes.ok), 'success; also a run that was canceled'],
        [
          String(exitCodes.failed),
          'an error, printed as `ERROR: ...`; a refused login; `svc whoami` without a login (`Not authenticated`); a run with the status `failed`, `timeout` or `abandoned`; a refused cancellation; `svc rule test` of a rule that does not match',
        ],
        [
          String(exitCodes.usage),
          'wrong usage; an object that does not exist; an API key, user, rule or other record that could not be created; an invalid file',
        ],
        [String(exitCodes.configPrinted), '`svc --print-config`'],
        [String(exitCodes.config), '`svc serve`: invalid configuration'],
        [String(exitCodes.interrupted), 'Ctrl-C'],
        [String(exitCodes.outputClosed), 'the reader closed the output, as `head` does'],
      ],
    },
    '`svc execution get` and `svc execution tail` exit with 0 whatever the status of the execution.',
    'The exit code of the executed command is part of the result: `svc run -k return_code core.local make` prints it.',
  ],
}

const credentials: Topic = {
  name: 'credentials',
  title: 'Logging in',
  summary: 'Logins, tokens and API keys, and their precedence.',
  blocks: [
    'A server with authentication needs a token or an API key. Users log in:',
    {
      lines: `$ svc login alice
Password:
Logged in as alice

Note: The password was not saved; log in again when the token expires, on Sun, 22 Nov 2026 14:47:20 UTC.
-w/--write-password stores it in plain text in /home/alice/.svc/config.
$ svc whoami
Currently logged in as "alice".

Authentication method: authentication token
Authentication token expire time: Sun, 22 Nov 2026 14:47:20 UTC

RBAC:
 - Enabled: True
 - Roles: ops`,
    },
    'Scripts and services use an API key (`svc help apikey create`) or a token. Set it in the environment, not on the command line:',
    {
      lines: `export SVC_API_KEY=$(svc apikey create -k --expires 90d)
export SVC_AUTH_TOKEN=$(svc auth alice -t -l 3600 < password-file)`,
    },
    'svc sends one credential. Flags override the environment, a token overrides an API key, and both override a login. svc also sends the password for a proxy in front of the server (--basic-auth), except when it creates a token.',
    {
      list: [
        'svc stores the token of a login in `~/.svc/token-<user>` and sends it only to the server that created it. It treats the token as expired 15 seconds before the expiry time.',
        'If the server refuses the token and the password is stored, svc logs in again once. Without a stored password, the error suggests `svc login`. If the token file is damaged, the error names the file to delete.',
        'If the authentication service is unreachable, svc prints a warning and continues without a login.',
        'Without a home directory (`HOME`), as in some containers, svc reads and stores no login. Use `SVC_AUTH_TOKEN` or `SVC_API_KEY`.',
        'svc creates files and directories with credentials for the owner only (0600, 0700), and warns if others can read them.',
      ],
    },
  ],
}

const rows: readonly SettingRow[] = settingRows

const configuration: Topic = {
  name: 'configuration',
  title: 'Configuration',
  summary: 'Settings in the configuration file, the environment and flags.',
  blocks: [
    'Flags override the environment, the environment overrides the configuration file, and the file overrides the defaults. `svc --print-config` prints the effective settings with their sources, secrets masked. The configuration file is `~/.svc/config`:',
    {
      lines: `[general]
base_url = https://svc.example.com
cacert = true

[cli]
timezone = Europe/Berlin`,
    },
    settingsTable(),
    {
      list: [
        'If only the API address is set, svc uses the same address for authentication (`/auth`) and streams (`/stream/v1`). This works with `svc serve` and behind a proxy.',
        'Without `cacert`, svc does not verify the certificate of an https server, and prints a warning.',
        'svc uses `http_proxy`, `https_proxy` and `no_proxy` as curl does, in lower or upper case. This needs Node.js 22.21 or newer. It never uses a proxy for a server on this machine.',
        'The file can contain credentials: `chmod 600 ~/.svc/config`. svc warns if other users can read it or its directory.',
        'For the options of the server, see `svc help serve`.',
      ],
    },
  ],
}

const environment: Topic = {
  name: 'environment',
  title: 'Environment',
  summary: 'The environment variables of the client.',
  blocks: [
    {
      header: ['Variable', 'Meaning'],
      rows: [
        ...[...rows, ...fileRows].flatMap(({ env, about }) => (env === undefined ? [] : [[`\`${env}\``, about]])),
        ['`SVC_COLORIZE`', 'color statuses even without a terminal'],
        ['`NO_COLOR`', 'print without colors'],
        ['`http_proxy`, `https_proxy`, `no_proxy`', 'proxies, and hosts to reach without a proxy'],
        ['`HOME`', 'home directory, which contains the directory `.svc`'],
        ['`MANPAGER`, `PAGER`', 'pager for `svc manual`'],
      ],
    },
    'An empty variable counts as not set. For the order of precedence, see `svc help configuration`.',
  ],
}

const files: Topic = {
  name: 'files',
  title: 'Files',
  summary: 'The files of the client and of the server.',
  blocks: [
    {
      header: ['File', 'Meaning'],
      rows: [
        ['`~/.svc/config`', 'configuration of the client (`svc help configuration`)'],
        ['`~/.svc/token-<user>`', 'token of a login (`svc help credentials`)'],
        [
          '`./svc.conf`, `/etc/svc/svc.conf`',
          'configuration of the server: the first file that exists; svc.conf.example documents every option with its default',
        ],
        ['`./svc_data`', 'data of the server (option `system.base_path`)'],
      ],
    },
  ],
}

/** In display order. */
export const topics: readonly Topic[] = [
  firstSteps,
  parameters,
  output,
  exitStatus,
  credentials,
  configuration,
  environment,
  files,
]

function settingsTable(): Table {
  const code = (text: string | undefined): string => (text === undefined ? '' : `\`${text}\``)
  const rowOf = (name: string | undefined, row: Omit<SettingRow, 'section' | 'name'>): string[] => [
    code(name ?? row.term),
    name === undefined ? '' : code(row.term),
    code(row.env),
    code(row.defaultText ?? row.default),
    row.about,
  ]
  return {
    header: ['Setting', 'Flag', 'Environment', 'Default', 'Meaning'],
    rows: [
      ...rows.map((row) => rowOf(row.notInFile === true ? undefined : `[${row.section}] ${row.name}`, row)),
      ...fileRows.map((row) => rowOf(undefined, row)),
    ],
  }
}
