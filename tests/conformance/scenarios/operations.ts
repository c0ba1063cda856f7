/**
 * What operators do: purging by the address of a server, starting and stopping one of their own. The control socket is in
 * `10-control-socket`, `svcctl` in `10-svcctl`.
 */
import { chmodSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { runCli } from '../../helpers/cli.ts'
import type { Scenario } from '../../helpers/scenarios.ts'
import { runToEnd, type TestApp } from '../../helpers/server.ts'

export function operationScenarios(server: TestApp): Scenario[] {
  return [
    ...purgeScenarios(server),
    ...controlScenarios(server),
    ...validateScenarios(server),
    ...migrateScenarios(server),
  ]
}

/** Of a second server, in the folder of the first; the last one stops it. */
function controlScenarios(server: TestApp): Scenario[] {
  const file = (): string => {
    const folder = join(server.basePath, 'second')
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    const ports = ['auth', 'api', 'stream'].map((section) => `[${section}]\nport = 0\n`)
    writeFileSync(join(folder, 'svc.conf'), `[system]\nbase_path = ${folder}\n${ports.join('')}`)
    return join(folder, 'svc.conf')
  }
  const svc =
    (...words: string[]) =>
    () =>
      runCli([...words, '--config-file', file()], {})
  const unstable = [
    [/process \d+/g, 'process 1234'],
    [/\/\S+\/second/g, '/srv/svc'],
  ] as const
  const doctor = (about: string, ...words: string[]): Scenario => ({
    command: 'doctor',
    about,
    args: () => ['doctor', ...words, '--config-file', file()],
    env: { LANG: 'C.UTF-8' },
    unstable,
  })
  const args = (command: string) => () => [command, '--config-file', file()]
  const onlySpawned = 'the server that it starts outlives it'
  const notAtTerminal = 'it looks the same there, and a start takes long'
  return [
    { command: 'start', notAtTerminal, onlySpawned, args: args('start'), before: svc('stop'), unstable },
    { command: 'start', notAtTerminal, onlySpawned, about: 'it runs already', args: args('start'), unstable },
    doctor('something should be changed', 'settings', 'certificates', 'locale'),
    doctor('as JSON', 'certificates', 'settings', '-j'),
    doctor('nothing should be changed', 'certificates'),
    doctor('no such check', 'weather'),
    { command: 'reload', args: args('reload'), unstable },
    { command: 'reopen-logs', args: args('reopen-logs'), unstable },
    { command: 'restart', notAtTerminal, onlySpawned, args: args('restart'), unstable },
    { command: 'stop', notAtTerminal, args: args('stop'), before: svc('start'), unstable },
    { command: 'stop', about: 'none runs', args: args('stop'), unstable },
    { command: 'reload', about: 'none runs', args: args('reload'), unstable },
    {
      command: 'start',
      notAtTerminal,
      onlySpawned,
      about: 'not possible',
      args: () => ['start', '--config-file', file()],
      env: { SVC_DATABASE__PATH: '/proc/svc.db', LANG: 'C.UTF-8' },
      // The time at which it said so.
      unstable: [...unstable, [/\d{4}-\d\d-\d\d [\d:,]+/g, '2030-01-01 10:00:00,000']],
    },
  ]
}

function purgeScenarios(server: TestApp): Scenario[] {
  const command = 'purge'
  const old = '--before=2020-01-01T00:00:00Z'
  const runTwo = async (): Promise<void> => {
    for (const cmd of ['true', 'echo two']) await runToEnd(server, { cmd })
  }
  const unstable = [[/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '2030-01-01T00:00:00.000000Z']] as const
  return [
    { command, about: 'nothing is that old', args: () => ['purge', 'executions', old] },
    {
      command,
      about: 'everything of an action',
      before: runTwo,
      args: () => ['purge', 'executions', '--older-than', '0s', '--action-ref', 'core.local'],
      unstable,
    },
    {
      command,
      about: 'only counted, as JSON',
      before: () => runToEnd(server, { cmd: 'true' }),
      args: () => ['purge', 'executions', old, '--dry-run', '-j'],
    },
    {
      command,
      about: 'with those that have not ended',
      args: () => ['purge', 'executions', old, '--purge-incomplete'],
    },
    { command, about: 'no time at all', args: () => ['purge', 'executions'] },
    { command, about: 'two times', args: () => ['purge', 'traces', old, '--older-than', '1d'] },
    { command, about: 'no time', args: () => ['purge', 'output', '--before', 'yesterday'] },
    { command, about: 'no duration', args: () => ['purge', 'tokens', '--older-than', '3 days'] },
    { command, about: 'unknown kind', args: () => ['purge', 'rules', old] },
    {
      command,
      about: 'an action for what has none',
      args: () => ['purge', 'traces', old, '--action-ref', 'core.local'],
    },
  ]
}

function migrateScenarios(server: TestApp): Scenario[] {
  const write = (path: string, text: string): void => {
    const file = join(server.basePath, 'old', path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
  }
  const check = (runner: string) => () => {
    write('packs/web/pack.yaml', 'name: web\ndescription: d\nversion: 1.0.0\nauthor: a\n')
    write('packs/web/actions/get.yaml', `name: get\nrunner_type: ${runner}\n`)
    write('etc/st2.conf', '[system]\nbase_path = /opt/stackstorm\n[auth]\ntoken_ttl = 3600\n')
    return ['migrate', 'check', join(server.basePath, 'old')]
  }
  const notAtTerminal = 'it looks the same there, and starts a server'
  return [
    { command: 'migrate check', args: check('noop'), notAtTerminal },
    { command: 'migrate check', about: 'an action without runner', args: check('mistral-v2'), notAtTerminal },
    {
      command: 'migrate import',
      about: 'only tried',
      args: () => [...check('noop')().toSpliced(1, 1, 'import'), '--dry-run', '--config-file', server.configFile],
    },
    { command: 'migrate check', about: 'no folder', args: () => ['migrate', 'check', '/does-not-exist'] },
  ]
}

/** Nothing is asked of the server: its folder is where the files are. */
function validateScenarios(server: TestApp): Scenario[] {
  const write = (path: string, text: string): string => {
    const file = join(server.basePath, 'written', path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
    return file
  }
  const pack = (runner: string) => () => {
    write('web/actions/get.yaml', `name: get\nrunner_type: ${runner}\nparameters: {url: {default: x}}\n`)
    return [
      'pack',
      'validate',
      dirname(write('web/pack.yaml', 'name: web\ndescription: d\nversion: 1.0.0\nauthor: a\n')),
    ]
  }
  const config = (text: string) => () => {
    const schema = write('schema.yaml', 'port: {type: integer, required: true}\n')
    return ['pack', 'validate-config', '--schema-path', schema, '--config-path', write('web.yaml', text)]
  }
  const sensor = (): string[] => {
    write('eye/pack.yaml', 'name: eye\ndescription: d\nversion: 1.0.0\nauthor: a\n')
    write(
      'eye/sensors/eye.yaml',
      'class_name: Eye\nentry_point: eye.sh\nsensor_type: process\ntrigger_types: [{name: seen}]\n',
    )
    const file = write(
      'eye/sensors/eye.sh',
      `#!/bin/sh\necho '{"trigger": "eye.seen", "payload": {"n": 1}}'\nexec sleep 60\n`,
    )
    chmodSync(file, 0o755)
    return ['sensor', 'test', dirname(dirname(file)), 'Eye', '--count', '1']
  }
  const circle = (): string[] => {
    const path = join(dirname(write('web.yaml', '')), 'circle.yaml')
    rmSync(path, { force: true })
    symlinkSync(basename(path), path)
    return ['--debug', 'pack', 'validate-config', '--schema-path', path, '--config-path', path]
  }
  const notAtTerminal = 'it looks the same there, and starts a server'
  return [
    { command: 'pack validate', args: pack('http-request'), notAtTerminal },
    { command: 'pack validate', about: 'an action without runner', args: pack('nothing'), notAtTerminal },
    { command: 'pack validate', about: 'no folder', args: () => ['pack', 'validate', 'does-not-exist'] },
    { command: 'sensor test', args: sensor, notAtTerminal },
    { command: 'sensor test', about: 'no folder', args: () => ['sensor', 'test', 'does-not-exist'] },
    { command: 'pack validate-config', args: config('port: 8080\n'), notAtTerminal },
    { command: 'pack validate-config', about: 'it does not fit', args: config('port: many\n'), notAtTerminal },
    {
      command: 'pack validate-config',
      about: 'a link to itself',
      unstable: [[/\S+(?=\/written)/g, '…']],
      args: circle,
    },
  ]
}
