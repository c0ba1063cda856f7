/** What creates files for people: folders, packs, actions. No server takes part. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Scenario } from '../../helpers/scenarios.ts'
import type { TestApp } from '../../helpers/server.ts'

export function scaffoldScenarios(server: TestApp): Scenario[] {
  const place = (): string => join(server.basePath, 'scaffold')
  const fresh = (): void => {
    rmSync(place(), { recursive: true, force: true })
    mkdirSync(place())
  }
  const withPack = (): void => {
    fresh()
    mkdirSync(join(place(), 'web'))
    writeFileSync(join(place(), 'web', 'pack.yaml'), 'name: web\ndescription: d\nversion: 1.0.0\nauthor: a\n')
  }
  const shared = {
    env: { USER: 'alice' },
    unstable: [
      [/\/[^\s"']+\/scaffold(?=\/|\s|\.)/g, '/home/alice'],
      // The column depends on the length of the path.
      [/ +(?=# )/g, '  '],
    ],
    before: fresh,
  } as const
  const of = (command: string, words: () => readonly string[], about?: string): Scenario => ({
    ...shared,
    command,
    args: () => [...command.split(' '), ...words()],
    ...(about === undefined ? {} : { about }),
  })
  const at = (name: string): string => join(place(), name)
  const crontab = (text: string) => (): void => {
    fresh()
    writeFileSync(at('jobs.txt'), text)
  }
  const jobs =
    'MAILTO=""\n# Before the shop opens.\n0 6 * * mon-fri /opt/open-shop.sh --all\n@reboot /opt/tunnel\n@daily rm -f /tmp/x\n'
  const nextRuns = [/\d{4}-\d\d-\d\d(?= \d\d:\d\d)/g, '2030-01-01'] as const
  const imports = (about: string | undefined, text: string, ...flags: string[]): Scenario => ({
    ...of('crontab import', () => [at('jobs.txt'), '--path', place(), '--timezone', 'Europe/Berlin', ...flags], about),
    before: crontab(text),
    unstable: [...shared.unstable, nextRuns],
  })
  return [
    imports(undefined, jobs),
    imports('only tried', jobs, '--dry-run', '--enable'),
    imports('invalid lines', '60 * * * * one\n* * * * * two\nthree\n'),
    of('init', () => [at('my-jobs')]),
    of('init', () => [at('my-jobs'), '--pack', 'web', '-j'], 'as JSON'),
    {
      ...of('init', () => [at('.')], 'files in the way'),
      before() {
        fresh()
        writeFileSync(at('svc.conf'), '')
        writeFileSync(at('README.md'), '')
      },
    },
    of('pack create', () => ['web', '--path', place()]),
    of('pack create', () => ['Web-Servers', '--path', place()], 'no name of a pack'),
    {
      ...of('action new', () => ['web.check', '--parameter', 'host', 'tries:integer=3', '--path', place()]),
      before: withPack,
    },
    {
      ...of('action new', () => ['web.check', '--parameter', 'tries:count', '--path', place()], 'no type'),
      before: withPack,
    },
    of('action new', () => ['web.check', '--path', place()], 'no pack'),
    {
      ...of('rule new', () => ['web.push', '--webhook', 'stripe', '--run', 'web.deploy', '--path', place()]),
      before: withPack,
    },
    {
      ...of(
        'rule new',
        () => ['web.often', '--every', '90m', '--run', 'web.check', '--enable', '--path', place()],
        'a timer',
      ),
      before: withPack,
    },
    {
      ...of('rule new', () => ['web.push', '--webhook', 'git', '--run', 'web.deploy'], 'no sender'),
      before: withPack,
    },
  ]
}
