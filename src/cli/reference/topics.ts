/** What belongs to no single command: shown by `svc help <topic>`, and part of the manual page and `docs/cli.md`. */
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
  summary: 'A server, a first action, a rule: what a session looks like.',
  blocks: [
    'Start a server. Until it is told otherwise it listens on this machine only, wants no login, and keeps everything in the folder `svc_data` below the one it is started in:',
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
    'Actions come in packs. One with examples comes with the program; `./web`, a git repository or an archive is installed in the same way:',
    {
      lines: `$ svc pack install examples
$ svc action list -p examples
$ svc run examples.greet -h`,
    },
    'A rule says what shall run when something happens. This one runs a command for each order that is sent to a webhook:',
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
Note: What comes of it: svc trigger-instance explain 6b03d495c3c30dd28b5fa6c1`,
    },
    'What came of it, or why nothing did; the ids are others each time:',
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
  summary: 'How values for an action are written, and which type they get.',
  blocks: [
    '`svc run <action> -h` shows which parameters an action has. They are written as words after its reference:',
    {
      header: ['Word', 'Meaning'],
      rows: [
        ['`name=value`', 'a parameter'],
        ['`@name=path`', 'a parameter whose value is the text of a file; `name=@value` is the text `@value`'],
        ['any other word', 'with all words after it, and blanks between them, the parameter `cmd`'],
      ],
    },
    'So options of `svc` stand before the command that is to be run: in `svc run -j core.local uname -a` only -j is for `svc`. After `--` nothing is an option of `svc` any more.',
    'Values are cast as the action declares its parameters:',
    {
      header: ['Declared type', 'Written as'],
      rows: [
        ['`integer`, `number`', '`timeout=60`, `ratio=0.5`'],
        ['`boolean`', '`force=true`, `force=False`'],
        [
          '`array`',
          '`hosts=a,b,c`, `hosts=\'["a", "b"]\'`, or `hosts=a hosts=b`; items of a declared type are cast too',
        ],
        ['`object`', '`env=A=1,B=2` (values are text), `env=\'{"A": 1}\'`, or `env=A=1 env=B=2`'],
        ['`string`, or none', 'as it is'],
      ],
    },
    'With --auto-dict, items such as `key:value` of a list become an object, one for each word: `hosts=name:a,port:22 hosts=name:b,port:2022`.',
    "Quotes belong to the shell: write `cmd='make test'` for a value with blanks, and single quotes around JSON. A secret is better kept out of the command line, where other users of the machine see it in the list of processes: put it into the datastore (`svc help key set`), or into a file that `@name=path` reads.",
  ],
}

const output: Topic = {
  name: 'output',
  title: 'Output',
  summary: 'Tables, JSON and YAML, which attributes and how many, and where everything is printed.',
  blocks: [
    {
      header: ['Option', 'Meaning'],
      rows: [
        ['`-j`, `--json`', 'JSON, four blanks of indentation, keys sorted; whole records unless attributes are named'],
        ['`-y`, `--yaml`', 'YAML, otherwise the same'],
        [
          '`-a`, `--attr <name...>`',
          'only these attributes, `all` for every one; dots lead inside, as in `action.ref`. Where something is run, -a means --async, and only --attr this',
        ],
        [
          '`-n`, `--last <count>`',
          'how many of a list, 50 when not given, -1 for all; a note tells when there are more',
        ],
        ['`-w`, `--width <columns...>`', 'widths of the columns of a list: one for all, or one each'],
      ],
    },
    'A list is a table, whose cells are wrapped to fit the terminal; those of executions and events end with the newest. A record is a table of its attributes, an execution lines of `name: value`.',
    'Results and lines that begin with `ERROR:` go to standard output; warnings, notes, progress and usage to standard error. So `svc execution list -j > file` has nothing but JSON in it when it ends with 0.',
    'Statuses are coloured on a terminal, unless `NO_COLOR` is set, and everywhere when `SVC_COLORIZE` is. Control characters are printed as escapes; only the output of actions (`svc execution tail`) comes as it is, with U+FFFD in place of what is not UTF-8.',
    'Times are printed in the time zone of the configuration file, UTC when it names none; JSON and YAML have them as the server sends them.',
  ],
}

const exitStatus: Topic = {
  name: 'exit-codes',
  title: 'Exit codes',
  manualTitle: 'Exit status',
  summary: 'What the program ends with, for scripts.',
  blocks: [
    {
      header: ['Code', 'When'],
      rows: [
        [String(exitCodes.ok), 'success; also a run that was canceled'],
        [
          String(exitCodes.failed),
          'an error, printed as `ERROR: ...`; a refused login; `svc whoami` without one (`Not authenticated`); a run that ended `failed`, `timeout` or `abandoned`; a cancellation that was refused; `svc rule test` of a rule that does not match',
        ],
        [
          String(exitCodes.usage),
          'wrong usage; something named does not exist; an API key, user, rule or other record that could not be made; a file that cannot be used',
        ],
        [String(exitCodes.configPrinted), '`svc --print-config`'],
        [String(exitCodes.config), '`svc serve`: a configuration that cannot be used'],
        [String(exitCodes.interrupted), 'Ctrl-C'],
        [String(exitCodes.outputClosed), 'whoever read the output closed it, as `head` does'],
      ],
    },
    '`svc execution get` and `svc execution tail` end with 0 whatever became of the execution: they did what they were asked.',
    'What a command itself has ended with is part of the result: `svc run -k return_code core.local make` prints it.',
  ],
}

const credentials: Topic = {
  name: 'credentials',
  title: 'Logging in',
  summary: 'Who is asking: logins, tokens, API keys, and which of them counts.',
  blocks: [
    'A server that wants to know who is asking takes a token or an API key. People log in:',
    {
      lines: `$ svc login alice
Password:
Logged in as alice

Note: The password was not saved; log in again when the token expires, on Sun, 22 Nov 2026 14:47:20 UTC.
With -w/--write-password it is kept in /home/alice/.svc/config, where whoever can read that file finds it.
$ svc whoami
Currently logged in as "alice".

Authentication method: authentication token
Authentication token expire time: Sun, 22 Nov 2026 14:47:20 UTC

RBAC:
 - Enabled: True
 - Roles: ops`,
    },
    'Scripts and services use an API key (`svc help apikey create`) or a token, in the environment rather than on the command line:',
    {
      lines: `export SVC_API_KEY=$(svc apikey create -k --expires 90d)
export SVC_AUTH_TOKEN=$(svc auth alice -t -l 3600 < password-file)`,
    },
    'One credential is sent: those of flags go before those of the environment, a token before an API key, and both before a login. The password for a proxy in front of the server (--basic-auth) is sent besides, except when a token is made.',
    {
      list: [
        'The token of a login is kept in `~/.svc/token-<user>` and sent only to the server that made it. 15 seconds before its end it counts as expired.',
        'A token that the server refuses is replaced once if the password is kept; otherwise the error names `svc login`. A damaged file is an error that names the file to delete.',
        'When the authentication service cannot be reached, a warning says so and the command goes on without a login.',
        'Where there is no home directory (`HOME`), as in some containers, nothing is read or kept: use `SVC_AUTH_TOKEN` or `SVC_API_KEY`.',
        'Files and folders that hold credentials are made for their owner alone (0700, 0600); the client warns when others can read them.',
      ],
    },
  ],
}

const rows: readonly SettingRow[] = settingRows

const configuration: Topic = {
  name: 'configuration',
  title: 'Configuration',
  summary: 'Where the server is, and what else the configuration file, environment and flags set.',
  blocks: [
    'A flag goes before the environment, that before the configuration file, that before the default. `svc --print-config` shows what is in effect and where it is from, secrets masked. The file is `~/.svc/config`, in sections:',
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
        'When only the API is named, the other two are taken to be behind the same address (`/auth`, `/stream/v1`), as they are with `svc serve` and behind a proxy.',
        'Without `cacert` an https server is believed unchecked, with a warning.',
        'The variables `http_proxy`, `https_proxy` and `no_proxy` are obeyed in either letter case, as curl reads them, from Node.js 22.21 on; what runs on this machine is never asked through a proxy.',
        'The file may hold credentials: `chmod 600 ~/.svc/config`. The client warns when other users can read it or its folder.',
        'The options of the server are another matter: `svc help serve`.',
      ],
    },
  ],
}

const environment: Topic = {
  name: 'environment',
  title: 'Environment',
  summary: 'The environment variables that the client reads.',
  blocks: [
    {
      header: ['Variable', 'Meaning'],
      rows: [
        ...[...rows, ...fileRows].flatMap(({ env, about }) => (env === undefined ? [] : [[`\`${env}\``, about]])),
        ['`SVC_COLORIZE`', 'colour statuses also where there is no terminal'],
        ['`NO_COLOR`', 'colour nothing'],
        ['`http_proxy`, `https_proxy`, `no_proxy`', 'proxies, and which hosts are asked without one'],
        ['`HOME`', 'where the folder `.svc` is'],
        ['`MANPAGER`, `PAGER`', 'what `svc manual` is shown with'],
      ],
    },
    'Empty variables count as not set. `svc help configuration` tells what goes before what.',
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
          'configuration of the server, the first that exists; svc.conf.example has every option with its default',
        ],
        ['`./svc_data`', 'everything the server keeps, unless `system.base_path` names another folder'],
      ],
    },
  ],
}

/** In the order they are listed. */
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
