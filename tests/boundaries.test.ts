/** Who may import whom: the table of docs/architecture.md, section 3, held against every import of the source tree. */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import * as esbuild from 'esbuild'
import { describe, expect, test } from 'vitest'
import { findCircles, findImports, listSources, readGraph, stripText, type Import } from '../scripts/import-graph.ts'

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)))

/** lib ← core ← config db bus ← runners ← queue http ← modules ← app; doctor and cli stand beside them. */
const LAYERS = {
  migrations: [],
  lib: [],
  core: ['lib'],
  config: ['lib', 'core'],
  db: ['lib', 'core', 'migrations'],
  bus: ['lib', 'core'],
  runners: ['lib', 'core', 'config'],
  queue: ['lib', 'core', 'config', 'db', 'bus', 'runners'],
  http: ['lib', 'core', 'config', 'db', 'bus', 'runners'],
  modules: ['lib', 'core', 'config', 'db', 'bus', 'runners', 'queue', 'http'],
  app: ['lib', 'core', 'config', 'db', 'bus', 'runners', 'queue', 'http', 'modules'],
  doctor: ['lib', 'core', 'config', 'db', 'http'],
  migrate: ['lib', 'core', 'config'],
  cli: ['lib', 'core'],
  web: [],
} as const satisfies Record<string, readonly string[]>

type Layer = keyof typeof LAYERS

/** Module → the modules below it: those that it may import, and those that `app.ts` hands to it. */
const MODULES: Record<string, readonly string[]> = {
  monitoring: [],
  idempotency: [],
  rbac: [],
  auth: ['rbac'],
  datastore: ['rbac'],
  traces: [],
  triggers: ['datastore', 'traces'],
  actions: [],
  executions: ['actions', 'auth', 'datastore', 'rbac', 'traces'],
  policies: ['actions', 'executions'],
  aliases: ['actions', 'executions'],
  inquiries: ['executions', 'rbac'],
  rules: ['actions', 'datastore', 'executions', 'rbac', 'traces', 'triggers'],
  sensors: ['auth', 'datastore', 'rbac', 'traces', 'triggers'],
  notifications: ['actions', 'datastore', 'executions', 'rules'],
  packs: ['actions', 'aliases', 'datastore', 'executions', 'notifications', 'policies', 'rules', 'sensors', 'triggers'],
  webhooks: ['datastore', 'executions', 'rules', 'triggers'],
  timers: ['rules', 'triggers'],
  jobs: ['executions', 'rules', 'timers', 'triggers'],
  stream: ['aliases', 'executions'],
  ui: [],
  maintenance: ['executions'],
  backups: [],
  workflows: ['actions', 'datastore', 'executions', 'inquiries'],
}

/** Who asks upward through a port that `app.ts` fills → who answers. */
const PORTS: Record<string, readonly string[]> = {
  runners: ['packs'],
  monitoring: ['triggers'],
  auth: ['datastore', 'idempotency'],
  datastore: ['triggers'],
  traces: ['executions', 'triggers'],
  triggers: ['rules'],
  actions: ['triggers'],
  executions: ['jobs', 'notifications', 'packs', 'policies', 'rules', 'triggers', 'workflows'],
  rules: ['jobs', 'packs', 'timers'],
  jobs: ['notifications'],
  sensors: ['packs'],
}

/** Files that may use a layer which their own layer may not. */
const EXTRA_LAYERS: Record<string, readonly Layer[]> = {
  'src/cli/commands/serve.ts': ['app', 'config'],
  'src/cli/operator-session.ts': ['config'],
  'src/cli/commands/doctor.ts': ['config', 'doctor'],
  'src/cli/commands/restore.ts': ['db'],
  'src/cli/commands/compact.ts': ['db'],
  'src/cli/commands/chat.ts': ['db'],
  'src/cli/control/clean.ts': ['db'],
  'src/cli/migrate/check.ts': ['migrate'],
  'src/cli/migrate/print-check.ts': ['migrate'],
  'src/cli/migrate/import.ts': ['config', 'migrate'],
  'src/cli/migrate/import-files.ts': ['migrate'],
  'src/cli/migrate/import-history.ts': ['migrate'],
  'src/cli/migrate/import-records.ts': ['migrate'],
  'src/cli/migrate/source.ts': ['migrate'],
  'src/cli/migrate/targets.ts': ['migrate'],
  'src/cli/commands/migrate.ts': ['migrate'],
  // Exact numbers, the same on both sides.
  'web/src/json.ts': ['lib'],
  'web/src/screens/rules/definition-text.ts': ['lib'],
}

/** Importer → the file of a module that it loads: what is in there needs no server. */
const OFFLINE: Record<string, string> = {
  'src/cli/commands/workflow-test.ts': 'src/modules/workflows/offline.ts',
  'src/cli/commands/workflow-graph.ts': 'src/modules/workflows/offline.ts',
}

/** Importer (a file, or a folder with its slash) → files whose types it may name although the table forbids the import. */
const TYPE_ONLY: Record<string, readonly string[]> = {
  'src/core/module.ts': ['src/http/route.ts'],
  'src/db/': ['src/bus/index.ts'],
  'web/src/api/records.ts': ['src/core/backup-record.ts', 'src/lib/schema/index.ts'],
}

/** Package → where it may be imported. What stands behind a port is replaced in one place. */
const PACKAGES: Record<string, RegExp> = {
  kysely: /^(migrations\/|src\/db\/|src\/modules\/(?:[^/]+\/)+store\.ts$)/,
  'better-sqlite3': /^src\/db\//,
  eventemitter3: /^src\/bus\//,
  koffi: /^src\/(cli\/serve\/service-manager\.ts$|runners\/process\/|modules\/auth\/backends\/pam-helper\.ts$)/,
  express: /^src\/((http|modules\/auth)\/|app\.ts$)/,
  commander: /^src\/cli\//,
  ssh2: /^src\/runners\/ssh\//,
  'ssh-config': /^src\/runners\/ssh\//,
  saxes: /^src\/runners\/winrm\/(xml|clixml)\.ts$/,
  undici: /^src\/runners\/http\//,
  tar: /^src\/modules\/packs\/fetch\.ts$/,
  nodemailer: /^src\/(runners\/send-mail|modules\/notifications\/channels\/(email|mailer))\.ts$/,
  bson: /^src\/migrate\//,
  ignore: /^src\/modules\/packs\/files\.ts$/,
  'hot-shots': /^src\/modules\/monitoring\//,
  'prom-client': /^src\/modules\/monitoring\//,
  ldapts: /^src\/modules\/auth\/backends\/ldap\//,
  preact: /^web\//,
  'eventsource-parser': /^web\/src\/api\/events\.ts$/,
}

const RULES = {
  layer: (layer: Layer) =>
    layer === 'cli'
      ? 'The cli imports cli/*, core and lib only; commands/serve.ts also app.ts and config, operator-session.ts also config, commands/restore.ts, commands/compact.ts, commands/chat.ts and control/clean.ts also db, commands/doctor.ts also config and doctor, migrate/* also migrate, and commands/workflow-test.ts and workflow-graph.ts what workflows offer offline.'
      : `The layer "${layer}" may import ${[layer, ...LAYERS[layer]].map((name) => `"${name}"`).join(', ')} only.`,
  unknownPlace: 'Every folder of src belongs to a layer: add it to the table first.',
  unknownModule: 'Every module has its row of edges: add it to the table first.',
  index: 'A folder with an index.ts is imported through it alone; dynamic imports may name the file they load.',
  module: 'Outside of a module only its index.ts is imported, or `import type` from its types.ts and ports.ts.',
  edge: (module: string) =>
    `The module "${module}" may use ${(MODULES[module] ?? []).map((name) => `"${name}"`).join(', ') || 'no other module'}; a new edge is a change of the table first.`,
  package: (name: string) => `The package "${name}" is imported only where ${String(PACKAGES[name])} matches.`,
  queries: 'Only store.ts builds queries.',
  json: 'JSON.parse and JSON.stringify change numbers and the order of keys: use readJson and writeJson of src/lib/json.',
  guard: 'cli.ts imports node: modules only, and cli/main.ts after the guard, dynamically.',
  outside: 'The product does not import tests or scripts.',
}

const QUERY = /\.\s*(?:selectFrom|insertInto|updateTable|deleteFrom|replaceInto|mergeInto)\s*\(/

const NATIVE_JSON = /\bJSON\s*\.\s*(?:parse|stringify)\b/

/** Places that read and write only JSON of svc itself. */
const OWN_JSON =
  /^(?:src\/lib\/(?:json|log)\/|src\/core\/bundle\.ts$|src\/modules\/auth\/backends\/pam-helper\.ts$|migrations\/)/

function layerOf(file: string): Layer | undefined {
  if (file.startsWith('migrations/')) return 'migrations'
  if (file.startsWith('web/')) return 'web'
  if (file === 'src/app.ts') return 'app'
  if (file === 'src/cli.ts') return 'cli'
  const [top, folder, ...rest] = file.split('/')
  if (top !== 'src' || folder === undefined || rest.length === 0) return undefined
  return Object.keys(LAYERS).find((name): name is Layer => name === folder)
}

/** The folder that has to be entered through its index: directly below `src`, or one subject of `lib`. */
function entranceOf(file: string): string | undefined {
  const folder = /^src\/(?:lib\/[^/]+|(?!core\/|cli\/|modules\/|lib\/)[^/]+)(?=\/)/.exec(file)?.[0]
  return folder !== undefined && existsSync(join(ROOT, folder, 'index.ts')) ? folder : undefined
}

function moduleOf(file: string): string | undefined {
  return /^src\/modules\/([^/]+)\//.exec(file)?.[1]
}

function packageOf(specifier: string): string {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')
}

function mayNameTypes(file: string, target: string): boolean {
  if (/^src\/modules\/[^/]+\/(types|ports)\.ts$/.test(target)) return true
  return Object.entries(TYPE_ONLY).some(([importer, targets]) => file.startsWith(importer) && targets.includes(target))
}

/** Why this import of this file is against the table; undefined if it is not. */
function findReason(file: string, { specifier, kind }: Import): string | undefined {
  if (file === 'src/cli.ts') {
    const isFine = kind === 'dynamic' ? specifier === './cli/main.ts' : specifier.startsWith('node:')
    return isFine ? undefined : RULES.guard
  }
  if (specifier.startsWith('node:')) return undefined
  if (!specifier.startsWith('.')) {
    const name = packageOf(specifier)
    const allowed = PACKAGES[name]
    return allowed === undefined || allowed.test(file) ? undefined : RULES.package(name)
  }
  const target = posix.join(posix.dirname(file), specifier)
  if (target.startsWith('tests/') || target.startsWith('scripts/')) return RULES.outside
  const from = layerOf(file)
  const to = layerOf(target)
  if (from === undefined || to === undefined) return target.endsWith('.json') ? undefined : RULES.unknownPlace
  if (kind === 'type' && mayNameTypes(file, target)) return undefined
  if (OFFLINE[file] === target) return undefined

  const fromModule = moduleOf(file)
  const toModule = moduleOf(target)
  const allowed: readonly Layer[] = [from, ...LAYERS[from], ...(EXTRA_LAYERS[file] ?? [])]
  if (!allowed.includes(to)) return RULES.layer(from)
  const entrance = entranceOf(target)
  if (
    kind !== 'dynamic' &&
    entrance !== undefined &&
    entrance !== entranceOf(file) &&
    target !== `${entrance}/index.ts`
  ) {
    return RULES.index
  }
  if (toModule === undefined || toModule === fromModule) return undefined
  if (fromModule !== undefined) {
    const edges = MODULES[fromModule]
    if (edges === undefined) return RULES.unknownModule
    if (!edges.includes(toModule)) return RULES.edge(fromModule)
  }
  return target === `src/modules/${toModule}/index.ts` ? undefined : RULES.module
}

function findBreaches(file: string, source: string): string[] {
  const breaches: string[] = []
  if (layerOf(file) === undefined) breaches.push(`${file}: ${RULES.unknownPlace}`)
  const module = moduleOf(file)
  if (module !== undefined && MODULES[module] === undefined) breaches.push(`${file}: ${RULES.unknownModule}`)
  for (const found of findImports(source)) {
    const reason = findReason(file, found)
    if (reason !== undefined) breaches.push(`${file} imports ${found.specifier}: ${reason}`)
  }
  const mayBuild = file.startsWith('migrations/') || file.startsWith('src/db/') || file.endsWith('/store.ts')
  if (!mayBuild && QUERY.test(stripText(source))) breaches.push(`${file} builds a query: ${RULES.queries}`)
  if (!OWN_JSON.test(file) && NATIVE_JSON.test(stripText(source))) breaches.push(`${file}: ${RULES.json}`)
  return breaches
}

function read(file: string): string {
  return readFileSync(join(ROOT, file), 'utf8')
}

describe('boundaries', () => {
  test('every import of the source tree is in the table', () => {
    const sources = listSources()
    expect(sources).toContain('src/cli.ts')
    expect(sources.flatMap((file) => findBreaches(file, read(file)))).toEqual([])
  })

  test('no files import each other in a circle, not even types', () => {
    expect(findCircles(readGraph())).toEqual([])
  })

  test('the edges between modules have no cycle', () => {
    const reaches = (from: string, path: string[]): string[] => {
      if (path.includes(from)) return [...path, from]
      return (MODULES[from] ?? []).map((next) => reaches(next, [...path, from])).find((cycle) => cycle.length > 0) ?? []
    }
    expect(Object.keys(MODULES).flatMap((name) => reaches(name, []))).toEqual([])
    for (const target of Object.values(MODULES).flat()) expect(MODULES).toHaveProperty(target)
  })

  test('no import that the bundler sees escapes the reader of imports', async () => {
    const sources = listSources()
    const result = await esbuild.build({
      absWorkingDir: ROOT,
      // `a.ts` and `a.tsx` beside each other would both be `a.js`.
      entryPoints: sources.map((source) => ({ in: source, out: source })),
      bundle: true,
      write: false,
      outdir: 'out',
      format: 'esm',
      jsx: 'preserve',
      platform: 'node',
      metafile: true,
      logLevel: 'silent',
      plugins: [
        {
          name: 'leave imports alone',
          setup: (build) => {
            build.onResolve({ filter: /.*/ }, ({ path, kind }) =>
              kind === 'entry-point' ? undefined : { path, external: true },
            )
          },
        },
      ],
    })
    await esbuild.stop()
    const missed = sources.flatMap((file) => {
      const seen = findImports(read(file)).filter(({ kind }) => kind !== 'type')
      const expected = result.metafile.inputs[file]?.imports.map(({ path }) => path) ?? ['(the file itself)']
      return expected
        .filter((path) => seen.every(({ specifier }) => specifier !== path))
        .map((path) => `${file}: ${path}`)
    })
    expect(missed).toEqual([])
    const bundlerSees = Object.values(result.metafile.inputs).flatMap(({ imports }) => imports)
    expect(bundlerSees.length).toBeGreaterThan(sources.length)
  })
})

/** The text between the brace at `from` and the one that closes it. */
function blockAt(text: string, from: number): string {
  let depth = 0
  for (let at = text.indexOf('{', from); at < text.length; at += 1) {
    if (text[at] === '{') depth += 1
    if (text[at] === '}') depth -= 1
    if (depth === 0) return text.slice(text.indexOf('{', from) + 1, at)
  }
  return ''
}

/** Modules that a piece of `app.ts` names, by the constants that hold them. */
function modulesIn(text: string): string[] {
  const words = new Set(
    text
      .replaceAll('...ports.', '')
      .replaceAll('...', ' ')
      .match(/(?<![\w.'])[a-z][A-Za-z]*(?=\.|,|\s*$|\s*\n|\s*\})/g),
  )
  // `templates` is what the datastore offers.
  if (words.has('templates')) words.add('datastore')
  return Object.keys(MODULES)
    .filter((name) => words.has(name))
    .toSorted()
}

describe('app.ts', () => {
  const app = read('src/app.ts')

  test('hands each module only what is below it', () => {
    const given = [...app.matchAll(/= create([A-Z][a-z]+)\(\{/g)]
      .map(({ index, 1: name = '' }) => ({ name: name.toLowerCase(), text: blockAt(app, index) }))
      .filter(({ name }) => MODULES[name] !== undefined)
    expect(given.length).toBeGreaterThan(15)
    const unknown = given.flatMap(({ name, text }) =>
      modulesIn(text)
        .filter((other) => other !== name && MODULES[name]?.includes(other) !== true)
        // Their gauges and tasks are read, whatever they are.
        .map((other) => `${name} gets ${other}`),
    )
    expect(unknown).toEqual([])
  })

  test('fills exactly the ports of the table', () => {
    const filled = blockAt(app, app.indexOf('const ports: Ports ='))
    const asked = [...filled.matchAll(/^ {4}([a-z]+): /gm)].map(({ index, 1: name = '' }) => [
      name,
      modulesIn(blockAt(filled, index)),
    ])
    expect(Object.fromEntries(asked)).toEqual(PORTS)
  })

  test('a port never asks downward: then it would be a call', () => {
    const downward = Object.entries(PORTS).flatMap(([from, answers]) =>
      answers.filter((to) => MODULES[from]?.includes(to)).map((to) => `${from} → ${to}`),
    )
    expect(downward).toEqual([])
  })

  test('docs/architecture.md lists the same ports', () => {
    const rows = [...read('docs/architecture.md').matchAll(/^\| `(\w+)` \| (`\w+`(?:, `\w+`)*) \| port:/gm)]
    const listed = rows.map(([, from = '', to = '']) => [from, to.replaceAll('`', '').split(', ')])
    expect(Object.fromEntries(listed)).toEqual(PORTS)
  })
})

describe('the finder of circles', () => {
  test('finds circles of one, two and three files, and nothing else', () => {
    const edges = (targets: string[]): { target: string; kind: 'type' }[] =>
      targets.map((target) => ({ target, kind: 'type' }))
    const graph = new Map(
      Object.entries({ a: ['b'], b: ['c', 'd'], c: ['a'], d: ['d'], e: ['a', 'f'], f: ['g'], g: ['f'] }).map(
        ([file, targets]) => [file, edges(targets)] as const,
      ),
    )
    expect(findCircles(graph).toSorted((a, b) => a[0]!.localeCompare(b[0]!))).toEqual([
      ['a', 'b', 'c'],
      ['d'],
      ['f', 'g'],
    ])
  })
})

describe('the reader of imports', () => {
  test('finds each kind of import and nothing in comments, templates or regular expressions', () => {
    const source = `
      // import a from './comment.ts'
      /* import b from './block.ts' */
      import './bare.ts'
      import type { C } from './c.ts'
      import d, { type D } from "./d.ts"
      import {
        e, // './not-this.ts'
      } from './e.ts'
      export type { F } from './f.ts'
      export * from './g.ts'
      export const h = /[/'"\`]/.test("import x from './string.ts'")
      const i = \`
        import y from './template.ts'
      \`
      const j = await import('./j.ts')
      export const from = './k.ts'
    `
    expect(findImports(source)).toEqual([
      { specifier: './bare.ts', kind: 'static' },
      { specifier: './c.ts', kind: 'type' },
      { specifier: './d.ts', kind: 'static' },
      { specifier: './e.ts', kind: 'static' },
      { specifier: './f.ts', kind: 'type' },
      { specifier: './g.ts', kind: 'static' },
      { specifier: './j.ts', kind: 'dynamic' },
    ])
  })
})

describe('a broken boundary is reported with its rule', () => {
  test.for<[file: string, source: string, rule: string]>([
    ['src/core/ids.ts', `import { x } from '../db/index.ts'`, RULES.layer('core')],
    ['src/core/ids.ts', `import type { X } from '../http/route.ts'`, RULES.layer('core')],
    ['src/lib/text/json.ts', `import { x } from '../../core/errors.ts'`, RULES.layer('lib')],
    ['src/core/ids.ts', `import { x } from '../lib/text/json.ts'`, RULES.index],
    ['src/modules/rules/store.ts', `import { x } from '../../db/commit.ts'`, RULES.index],
    ['src/core/module.ts', `import { x } from '../http/route.ts'`, RULES.layer('core')],
    ['src/config/load.ts', `import { x } from '../db/database.ts'`, RULES.layer('config')],
    ['src/runners/noop.ts', `import { x } from '../bus/bus.ts'`, RULES.layer('runners')],
    ['src/http/app.ts', `import { x } from '../queue/row-queue.ts'`, RULES.layer('http')],
    ['src/http/app.ts', `import { x } from '../modules/auth/index.ts'`, RULES.layer('http')],
    ['src/bus/facts.ts', `import { x } from '../modules/executions/types.ts'`, RULES.layer('bus')],
    ['src/queue/row-queue.ts', `import { x } from '../../migrations/index.ts'`, RULES.layer('queue')],
    ['migrations/0001-core.ts', `import { x } from '../src/core/ids.ts'`, RULES.layer('migrations')],
    ['src/modules/executions/service.ts', `import { x } from '../../app.ts'`, RULES.layer('modules')],
    ['src/modules/actions/service.ts', `import { x } from '../executions/index.ts'`, RULES.edge('actions')],
    ['src/modules/traces/plan.ts', `import { x } from '../auth/index.ts'`, RULES.edge('traces')],
    ['src/modules/executions/service.ts', `import { x } from '../traces/plan.ts'`, RULES.module],
    ['src/modules/executions/service.ts', `import { x } from '../traces/types.ts'`, RULES.module],
    ['src/modules/executions/service.ts', `import type { X } from '../traces/store.ts'`, RULES.module],
    ['src/app.ts', `import { x } from './modules/traces/plan.ts'`, RULES.module],
    ['src/modules/new/index.ts', ``, RULES.unknownModule],
    ['src/extra/thing.ts', ``, RULES.unknownPlace],
    ['src/cli/connection/client.ts', `import { x } from '../../config/load.ts'`, RULES.layer('cli')],
    ['src/cli/commands/run.ts', `import { x } from '../../app.ts'`, RULES.layer('cli')],
    ['src/cli/commands/serve.ts', `import { x } from '../../db/database.ts'`, RULES.layer('cli')],
    ['src/cli.ts', `import { x } from './core/ids.ts'`, RULES.guard],
    ['src/cli.ts', `import { Command } from 'commander'`, RULES.guard],
    ['src/cli.ts', `import './cli/main.ts'`, RULES.guard],
    ['src/modules/executions/service.ts', `import { sql } from 'kysely'`, RULES.package('kysely')],
    ['src/modules/executions/store.ts', `import Sqlite from 'better-sqlite3'`, RULES.package('better-sqlite3')],
    ['src/modules/stream/routes.ts', `import express from 'express'`, RULES.package('express')],
    ['src/modules/executions/service.ts', `db.build.selectFrom('executions')`, RULES.queries],
    ['src/modules/executions/service.ts', `JSON.parse(text)`, RULES.json],
    ['src/core/ids.ts', `import { x } from '../../tests/helpers/leaks.ts'`, RULES.outside],
  ])('%s: %s', ([file, source, rule]) => {
    expect(findBreaches(file, source)).toEqual([expect.stringContaining(rule)])
  })

  test.for<[file: string, source: string]>([
    ['src/bus/facts.ts', `import type { X } from '../modules/executions/types.ts'`],
    ['src/core/module.ts', `import type { Route } from '../http/route.ts'`],
    ['src/db/migrate.ts', `import { migrations } from '../../migrations/index.ts'`],
    ['src/modules/executions/service.ts', `import { x } from '../traces/index.ts'`],
    ['src/modules/auth/service.ts', `import type { X } from '../executions/types.ts'`],
    ['src/modules/executions/store.ts', `import { sql } from 'kysely'\ndb.build.selectFrom('executions')`],
    ['src/cli/commands/serve.ts', `import { x } from '../../app.ts'\nimport { y } from '../../config/index.ts'`],
    ['src/app.ts', `import { x } from './modules/traces/index.ts'`],
    ['src/core/ids.ts', `import { x } from '../lib/text/index.ts'`],
    ['src/cli/control/clean.ts', `const x = await import('../../db/sqlite/lock.ts')`],
  ])('%s may: %s', ([file, source]) => {
    expect(findBreaches(file, source)).toEqual([])
  })
})
