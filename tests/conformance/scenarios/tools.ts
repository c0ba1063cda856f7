/** What the client does alone: help, completion, the manual, versions. */
import { ensureDebianPackage } from '../../helpers/apt.ts'
import type { Scenario } from '../../helpers/scenarios.ts'
import type { TestApp } from '../../helpers/server.ts'
import { scaffoldScenarios } from './scaffold.ts'

export function toolScenarios(server: TestApp): Scenario[] {
  return [
    ...helpScenarios(),
    ...manualScenarios(),
    ...flagScenarios(),
    ...completionScenarios(),
    ...serviceScenarios(),
    ...scaffoldScenarios(server),
  ]
}

function helpScenarios(): Scenario[] {
  const of = (about: string, ...words: string[]): Scenario => ({ command: 'help', about, args: () => words })
  return [
    { command: 'help', args: () => ['help'] },
    // What is listed is the same as above.
    { ...of('without arguments'), unstable: [[/(\n[^\n]*Server:)[^]*?(?=\n\nsvc help)/g, '$1\n…']] },
    of('a group', 'help', 'pack'),
    of('a command', 'rule', 'create', '--help'),
    of('a command under its other name', 'help', 'api-key', 'get'),
    of('a topic with a table', 'help', 'exit-codes'),
    of('a topic with a wide table', 'help', 'configuration'),
    of('mistyped topic', 'help', 'ouput'),
    of('mistyped command', 'help', 'execution', 'lst'),
    of('unknown option', 'execution', 'list', '--lats', '5'),
    of('missing argument', 'execution', 'cancel'),
  ]
}

function manualScenarios(): Scenario[] {
  // The rest of the page is in docs/svc.1.
  const onlyBeginning = [/(\.SH "COMMANDS"\n)[^]*(?=\.SH "SEE ALSO")/, '$1…\n'] as const
  // Bold, as it is printed on paper.
  const overstrike = [/(.)[\b]\1/g, '$1'] as const
  return [
    {
      command: 'manual',
      args: () => ['manual'],
      before: () => ensureDebianPackage('man-db', '/usr/bin/man'),
      env: { PAGER: 'head -n 16' },
      onlySpawned: 'man writes to the terminal itself',
      unstable: [onlyBeginning, overstrike],
    },
    {
      command: 'manual',
      about: 'without man',
      args: () => ['manual'],
      env: { PATH: '/nowhere' },
      unstable: [onlyBeginning],
    },
  ]
}

function flagScenarios(): Scenario[] {
  const version = [/\b\d+\.\d+\.\d+(?= |\n)/g, '0.0.0'] as const
  const nowhere = { SVC_API_URL: 'http://127.0.0.1:1/v1' }
  const home = [/\/[^ ]*(?=\/\.svc\/)/g, '/home/alice'] as const
  return [
    { command: '--version', args: () => ['--version'], unstable: [version] },
    { command: '--version', about: 'no server', args: () => ['--version'], env: nowhere, unstable: [version] },
    {
      command: '--print-config',
      args: () => ['--token', 'hidden', '--basic-auth', 'alice:hidden', '--cacert', 'true', '--print-config'],
      env: { SVC_API_KEY: 'hidden', SVC_STREAM_URL: 'https://stream.example.com' },
      unstable: [home],
    },
    { command: '--print-config', about: 'that cannot be used', args: () => ['--url', 'example.com', '--print-config'] },
  ]
}

/** What they do is in tests/packaging/binary.test.ts. */
function serviceScenarios(): Scenario[] {
  const links = [/(?:==> \S+: a link to svc <==\n)+/, '…\n'] as const
  // The rest is svc.conf.example.
  const onlyBeginning = [/(only if it does not exist\) <==\n(?:[^\n]*\n){3})[^]*/, '$1…\n'] as const
  return [
    { command: 'service install', args: () => ['service', 'install', '--dry-run'], unstable: [links, onlyBeginning] },
    { command: 'service install', about: 'not the single executable', args: () => ['service', 'install'] },
    {
      command: 'service uninstall',
      about: 'from a folder that is none',
      args: () => ['service', 'uninstall', '--root', '/nowhere'],
    },
  ]
}

function completionScenarios(): Scenario[] {
  const asked = (about: string, ...words: string[]): Scenario => ({
    command: '__complete',
    about,
    args: () => ['__complete', ...words],
  })
  const mistyped = (about: string, ...words: string[]): Scenario => ({ command: 'mistyped', about, args: () => words })
  const onlyBeginning = [/(?<=^words\n(?:[^\n]*\n){3})[^]*(?=\n$)/, '…'] as const
  return [
    { command: 'completion bash', args: () => ['completion', 'bash'] },
    { command: 'completion zsh', args: () => ['completion', 'zsh'] },
    { command: 'completion fish', args: () => ['completion', 'fish'] },
    { ...asked('by zsh', 'zsh', 'svc', 'run', 'core.'), unstable: [onlyBeginning] },
    asked('by zsh about parameters', 'zsh', 'svc', 'run', 'core.local', ''),
    asked('by fish inside a quote', 'fish', 'svc', 'run', '"core.loc'),
    asked('by bash behind a break', 'bash', 'svc trigger get core.svc.we', ' =:', '9', '80'),
    asked('by bash to list them', 'bash', 'svc role ', ' =:', '63', '40'),
    mistyped('plural', 'actions', 'list'),
    mistyped('other spelling', 'api_key'),
    mistyped('beginning', 'exec'),
    mistyped('letters', 'exection', 'list'),
    { ...mistyped('sub-command without its command', 'list'), unstable: [[/(?<=policy, ).*(?=;)/, '…']] },
    mistyped('words in the wrong order', 'list', 'actions'),
    mistyped('sub-command by another name', 'rule', 'rm', 'default.x'),
    mistyped('sub-command that nothing is like', 'role', 'frobnicate'),
    mistyped('option', 'run', '--asnyc', 'core.noop'),
    mistyped('escape sequence', '\u001b[2J'),
    mistyped('action', 'run', 'core.locl', 'date'),
    mistyped('action without its pack', 'run', 'local', 'date'),
    mistyped('action that nothing is like', 'run', 'core.nope'),
  ]
}
