/** What operators of the server's own machine use. */
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Scenario } from '../../helpers/scenarios.ts'
import type { TestApp } from '../../helpers/server.ts'

/** By the control socket. */
const here = { SVC_API_URL: '' }

export function serverScenarios(server: TestApp): Scenario[] {
  return [...statusScenarios(server), ...backupScenarios(server)]
}

function statusScenarios(server: TestApp): Scenario[] {
  const figures = [
    [/(?<=^version +)\S+/gm, '0.0.0'],
    [/(?<=^pid +)\d+/gm, '4711'],
    [/(?<=^started .* UTC, ).*(?= ago$)/gm, '5 s'],
    [/(?<=^(?:account|event loop|memory|database|disk|last clean-up) +).*/gm, '…'],
    [/^last clean-up .*\n/gm, ''],
    [/(?<=Recent warnings and errors:\n)(?:  .*\n?)*/g, '  …\n'],
  ] as const
  return [
    { command: 'status', args: () => ['status'], unstable: figures },
    { command: 'service-registry group list', args: () => ['service-registry', 'group', 'list'] },
    {
      command: 'service-registry member list',
      args: () => ['service-registry', 'member', 'list', '--group-id', 'actionrunner', '-a', 'group_id', '-j'],
    },
    {
      command: 'service-registry member list',
      about: 'of all',
      args: () => ['service-registry', 'member', 'list', '-a', 'group_id'],
    },
    {
      command: 'service-registry member list',
      about: 'unknown',
      args: () => ['service-registry', 'member', 'list', '--group-id', 'nope'],
    },
    {
      command: 'status',
      about: 'by the control socket',
      args: () => ['status', '--config-file', server.configFile],
      env: here,
      unstable: figures,
    },
    {
      command: 'status',
      about: 'no server',
      args: () => ['status', '--config-file', '/dev/null'],
      env: { ...here, SVC_SYSTEM__BASE_PATH: '/nowhere' },
    },
    {
      command: 'status',
      about: 'as JSON',
      args: () => ['status', '-j'],
      // Everything but what it consists of.
      unstable: [
        [/(?<=": )(?:-?\d[\d.e+-]*)/g, '0'],
        [/(?<="version": )".*"/g, '"0.0.0"'],
        [/(?<="problems": \[\n)[^]*?(?=\n    \])/g, '        …'],
        [/(?<="command_account": \{\n)[^}]*?(?=\n    \})/g, '        …'],
        [/(?<="gauges": \{\n)[^}]*?(?=\n    \})/g, '        …'],
      ],
    },
  ]
}

function backupScenarios(server: TestApp): Scenario[] {
  const stable = [
    [/\/\S+?(?=\/(?:backups|packs|configs|overrides|keys|restored|test\.conf)\b)/g, '/var/lib/svc'],
    [/(?<=svc-)\d{8}T\d{6}\.\d{3}(?=Z)/g, '20300101T100000.000'],
    [/(?<=\.before-restore-)\d{8}T\d{6}Z(?:-\d+)?/g, '20300101T100000Z'],
    [/\d+\.\d KiB/g, '550.0 KiB'],
    [/\b[0-9a-f]{64}\b/g, '0'.repeat(64)],
    [/\+-[+-]*-\+/g, '+-…-+'],
    [/(?<=[\S|]) {2,}/g, '  '],
  ] as const
  const newest = (): string => readdirSync(join(server.basePath, 'backups')).toSorted().at(-1) ?? ''
  /** Of a server that does not run. */
  const other = (): string => {
    const file = join(server.basePath, 'restored.conf')
    writeFileSync(file, `[system]\nbase_path = ${join(server.basePath, 'restored')}\n`)
    return file
  }
  const restore = (file: () => string, ...words: string[]) => ({
    command: 'restore',
    args: () => ['restore', file(), ...words, '--config-file', other()],
    unstable: stable,
    notAtTerminal: 'it looks the same there, and a whole database is read',
  })
  const copy = (): string => join(server.basePath, 'backups', newest())
  return [
    { command: 'backup list', about: 'none', args: () => ['backup', 'list'] },
    {
      command: 'backup create',
      about: 'without the word',
      args: () => ['backup', '--config-file', server.configFile],
      env: here,
      unstable: stable,
    },
    { command: 'backup create', args: () => ['backup', 'create'], unstable: stable },
    { command: 'backup list', args: () => ['backup', 'list'], unstable: stable },
    {
      ...restore(copy, '--dry-run'),
      about: 'only tried',
      before: () => rmSync(join(server.basePath, 'restored'), { recursive: true, force: true }),
    },
    {
      ...restore(copy),
      before() {
        mkdirSync(join(server.basePath, 'restored'), { recursive: true })
        writeFileSync(join(server.basePath, 'restored', 'svc.db'), 'damaged')
      },
    },
    { ...restore(() => other()), about: 'no database' },
    { ...restore(() => '/nowhere/svc.db'), about: 'no file' },
    {
      command: 'compact',
      args: () => ['compact', '--config-file', other()],
      unstable: stable,
      notAtTerminal: 'it shows how far it is only where that takes a while',
    },
    {
      command: 'compact',
      about: 'no database',
      args: () => ['compact', '--config-file', other()],
      before: () => rmSync(join(server.basePath, 'restored'), { recursive: true, force: true }),
      unstable: stable,
    },
    {
      command: 'compact',
      about: 'the server runs',
      args: () => ['compact', '--config-file', server.configFile],
      unstable: [[/\/\S+(?=\/svc\.db)/g, '/var/lib/svc']],
    },
    {
      command: 'restore',
      about: 'the server runs',
      args: () => ['restore', newest(), '--config-file', server.configFile],
      unstable: [[/\/\S+(?=\/svc\.db)/g, '/var/lib/svc']],
    },
  ]
}
