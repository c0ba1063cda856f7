/**
 * Contract 09: every command as it looks, without a terminal and at one, against a live server; and every route of the
 * server has a command.
 */
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { leavesOf, readTree } from '../../src/cli/reference/tree.ts'
import { createTestApp } from '../helpers/app.ts'
import { makeFolder } from '../helpers/folders.ts'
import { startRecorder, type Recorder } from '../helpers/recorder.ts'
import { keptScreen, nameOf, outcomeFile, playScenario, type Scenario, type Stage } from '../helpers/scenarios.ts'
import { projectRoot, type TestApp } from '../helpers/server.ts'
import { tier } from '../helpers/tiers.ts'
import { accessScenarios, prepareAccess } from './scenarios/access.ts'
import { contentScenarios } from './scenarios/content.ts'
import { eventScenarios } from './scenarios/events.ts'
import { notifyScenarios, prepareNotify } from './scenarios/notify.ts'
import { operationScenarios } from './scenarios/operations.ts'
import { runScenarios } from './scenarios/runs.ts'
import { serverScenarios } from './scenarios/server.ts'
import { toolScenarios } from './scenarios/tools.ts'

/** Routes that no command is made of, and why. */
const deliberate: Readonly<Record<string, string>> = {
  'GET /v1/executions/{id}/workflow': '"execution get" of a workflow: 09-cli-workflows',
  'GET /v1/executions/{id}/workflow/graph': 'for the web client; "workflow graph" draws definitions',
  'GET /healthz': 'for load balancers and supervisors; "status" tells more',
  'GET /readyz': 'likewise',
  'GET /v1/openapi.json': 'for programs',
  'GET /v1/docs': 'for browsers',
  'GET /v1/metrics': 'for Prometheus, at /metrics',
  'GET /v1/docs/{file}': 'for browsers',
  'GET /v1/ui/{file}': 'likewise',
  'GET /v1/status/history': 'for the plots of the web client; "status" tells how it is now',
  'DELETE /auth/v1/tokens/current': 'as "logout", for the web client, whose cookie no script can read',
  'GET /v1/packs/views/file/{ref}/icon.png': 'for browsers; "pack file" shows any file',
  'GET /auth/v1/sso': 'for login pages; the command line has user names and passwords',
  'GET /auth/v1/sso/request': 'for browsers',
  'POST /auth/v1/sso/callback': 'for identity providers',
  'GET /v1/packs/index': 'all that "pack search" finds without words',
  'GET /v1/actions/views/overview': 'as "action list", with the parameters of runners besides: for the web client',
  'GET /v1/executions/views/filters': 'choices for menus of the web client',
  'GET /v1/executions/{id}/output': 'for "execution tail" where streams may not be followed: 09-cli-tail.test.ts',
  'GET /v1/executions/{id}/output/lines':
    'for who shows a part of it, such as the web client; "execution tail" shows all of it',
  'GET /v1/executions/{id}/output/search': 'likewise; "execution tail" and grep search all of it',
  'GET /v1/executions/{id}/result': 'as "execution get", as one stream for programs',
  'GET /v1/executions/{id}/attribute/{name}': 'as "execution get -a"',
  'POST /v1/executions/import': 'for "migrate import --history": tests/compat/migrate-history.test.ts',
  'POST /v1/executions/output/import': 'likewise',
  'POST /v1/ruleenforcements/import': 'likewise',
  'POST /v1/traces/import': 'likewise',
  'POST /v1/triggerinstances/import': 'likewise',
  'GET /v1/rules/views': 'as "rule list", with descriptions of triggers: for the web client',
  'GET /v1/criteriaoperators': 'choices for the form of the web client; docs/events.md has them for people',
  'GET /v1/rules/views/{ref_or_id}': 'as "rule get", likewise',
  'GET /v1/ruleenforcements/views': 'as "rule-enforcement list", with executions: for the web client',
  'GET /v1/ruleenforcements/views/{id}': 'as "rule-enforcement get", likewise',
  'GET /v1/traces/{id}/components': 'as "trace get", page by page in the order of time: for the web client',
  'GET /v1/triggers/{id}': 'as "trigger getspecs", only one of them',
  'POST /v1/triggers': 'rules make the triggers that they need',
  'PUT /v1/triggers/{id}': 'likewise',
  'DELETE /v1/triggers/{id}': 'likewise',
  'GET /v1/actionalias/help': 'for chat bots; "action-alias list" and "get" show the same to people',
  'POST /v1/aliasexecution': 'for chat bots that match commands themselves; "action-alias execute" matches them',
  'GET /v1/notifications/destinations/{name}': '"notify destinations" shows all',
  'POST /v1/workflows/graph': 'for the web client: svc workflow graph draws definitions itself',
}

interface StageDefinition {
  /** Also the folder of the outcomes. */
  folder: string
  settings?: Record<string, string>
  /** Writes files into the base path before the server starts. @returns variables for the client */
  prepare?: (basePath: string) => Promise<Record<string, string>>
  of: (server: TestApp) => Scenario[]
}

const stages: readonly StageDefinition[] = [
  {
    folder: 'content',
    settings: { 'content.index_url': pathToFileURL(join(projectRoot, 'tests/fixtures/pack-index.json')).href },
    of: contentScenarios,
  },
  { folder: 'runs', of: runScenarios },
  {
    folder: 'events',
    prepare: prepareNotify,
    of: (server) => [...eventScenarios(server), ...notifyScenarios(server)],
  },
  {
    folder: 'access',
    settings: { 'auth.enable': 'True', 'rbac.enable': 'True', 'rbac.backend': 'default' },
    prepare: prepareAccess,
    of: accessScenarios,
  },
  { folder: 'tools', of: toolScenarios },
  { folder: 'server', of: serverScenarios },
  { folder: 'operations', of: operationScenarios },
]

/** Played once more as processes of their own, which must print the same: what each kind of command, output and failure is. */
const spawned: ReadonlySet<string> = new Set([
  'action list - as YAML',
  'run',
  'key load - broken file',
  'help',
  ...(tier === 'full' ? spawnedInFull() : []),
])

/** The daily run plays these at a terminal, too: one of each look, what is typed, and what a terminal would obey. */
const atTerminal: ReadonlySet<string> = new Set([
  'action list - truncated',
  'action entry-point - that a terminal would obey',
  'pack config',
  'inquiry respond',
  'run - failed',
  'run - following',
  'execution list',
  'rule get',
  'trigger-instance explain',
  'trace get',
  'key set - asked for',
  'login',
  'user passwd',
  'help',
  'mistyped - escape sequence',
  'status',
  // What they make is counted by a scenario behind them.
  'backup create',
  'backup create - without the word',
])

/** Left to the full run: a start of a process or a server each, for a case that another scenario comes close to. */
const fullOnlyScenarios: ReadonlySet<string> = new Set([
  'manual',
  'start - it runs already',
  'start - not possible',
  'pack validate - an action without runner',
  'pack validate-config - it does not fit',
  'migrate check - an action without runner',
  'user add - in a file',
  'pack install - several as JSON',
  'restore - only tried',
])

function spawnedInFull(): string[] {
  return [
    'pack file',
    'run - failed',
    'run - following',
    'execution list',
    'whoami',
    '__complete - by zsh',
    'action list',
    'action get',
    'action list - truncated',
    'pack file - unknown',
    'pack config - refused',
    'pack config - what is there stays',
    'runner list',
    'policy-type get',
    'run - JSON',
    'run - one key',
    'run - wrong value',
    'execution get - several',
    'execution list - nothing',
    'webhook send - not JSON',
    'trigger-instance explain',
    'trace list',
    'login - wrong password',
    'role list - refused',
    'help - a topic with a wide table',
    'help - unknown option',
    '--version',
    '--print-config',
    'mistyped - escape sequence',
    'status - no server',
    'purge - no time',
    'doctor - as JSON',
    'reload - none runs',
  ]
}

const played = new Set<string>()
const requested = new Set<string>()
const spawnedToo = new Set<string>()
const seenAtTerminal = new Set<string>()

for (const { folder, settings = {}, prepare = () => Promise.resolve({}), of } of stages) {
  describe(`scenarios of ${folder}`, () => {
    const home = makeFolder()
    const base = makeFolder()
    let server: TestApp
    let recorder: Recorder
    let stage: Stage
    /** Known once the server is there; their number has to be known before. */
    let scenarios: Scenario[] = []

    beforeAll(async () => {
      const env = await prepare(base.path)
      server = await createTestApp({ settings, basePath: base.path })
      recorder = await startRecorder(server.urls.api)
      stage = { folder, env: { HOME: home.path, SVC_API_URL: `${recorder.url}/v1`, ...env } }
      scenarios = of(server)
    })
    afterAll(async () => {
      for (const request of recorder.requests) requested.add(request)
      await recorder.close()
      await server.stop()
      home.remove()
      base.remove()
    })

    // Titles and commands do not depend on the server.
    for (const [index, placed] of of(placeholder()).entries()) {
      const { command, onlySpawned, notAtTerminal } = placed
      const name = nameOf(placed)
      if (tier === 'daily' && fullOnlyScenarios.has(name)) continue
      const isAtTerminal = notAtTerminal === undefined && (tier === 'full' || atTerminal.has(name))
      const play = async (isSpawned: boolean): Promise<[outcome: string, file: string]> => {
        const scenario = scenarios[index]
        if (scenario === undefined) throw new Error('scenarios depend on the server')
        const args = async (): Promise<readonly string[]> => {
          const words = await scenario.args()
          // What is called by its name, and not only named after it.
          if (`${words.join(' ')} `.startsWith(`${command} `)) played.add(command)
          return words
        }
        const file = outcomeFile(scenario, stage)
        const outcome = await playScenario({ ...scenario, args }, stage, { isSpawned, isAtTerminal })
        const isPart = !isAtTerminal && notAtTerminal === undefined
        return [isPart ? outcome + (await keptScreen(file)) : outcome, file]
      }
      for (const isSpawned of spawned.has(name) ? [false, true] : [onlySpawned !== undefined]) {
        test(`09.3 ${name}${isSpawned ? ', in a process of its own' : ''}`, async () => {
          const [outcome, file] = await play(isSpawned)
          await expect(outcome).toMatchFileSnapshot(file)
          if (isAtTerminal) seenAtTerminal.add(name)
          if (isSpawned && onlySpawned === undefined) spawnedToo.add(name)
        })
      }
    }
  })
}

/** Scenarios may not look at the server before they are played. */
function placeholder(): TestApp {
  return new Proxy({} as TestApp, {
    get: (_target, name) => {
      throw new Error(`a scenario looks at server.${String(name)} before it is played`)
    },
  })
}

describe('completeness', () => {
  test('09.3 every scenario of the sample was played in a process of its own', () => {
    expect(spawnedToo).toEqual(spawned)
  })

  test('09.3 every scenario of the sample was played at a terminal', () => {
    expect([...atTerminal].filter((name) => !seenAtTerminal.has(name))).toEqual([])
  })

  test('09.3 every command has a scenario', async () => {
    const names = leavesOf(await readTree()).map(({ name }) => name)
    expect(names.filter((name) => !played.has(name) && name !== 'serve')).toEqual([])
  })

  test('09.3 every route has a command, or a reason to have none', async () => {
    const server = await createTestApp()
    const { body } = await server.call<{ paths: Record<string, object> }>('GET', '/v1/openapi.json')
    await server.stop()
    const routes = Object.entries(body.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    )
    // The most particular one counts: /views/overview is no id.
    const patterns = routes.map((route) => ({ route, pattern: patternOf(route) }))
    const used = new Set<string>()
    for (const request of requested) {
      const fitting = patterns.filter(({ pattern }) => pattern.test(request)).map(({ route }) => route)
      const [best] = fitting.toSorted((a, b) => (a.match(/\{/g)?.length ?? 0) - (b.match(/\{/g)?.length ?? 0))
      if (best !== undefined) used.add(best)
    }
    const unused = routes.filter((route) => !used.has(route))
    expect(unused.toSorted()).toEqual(Object.keys(deliberate).toSorted())
  })
})

function patternOf(route: string): RegExp {
  const text = route
    .replace(/[.?+*^$()|[\]\\]/g, '\\$&')
    // Addresses of the authentication service need no version.
    .replace(' /auth/v1/', ' /auth/(?:v1/)?')
    .replace(/\{file_path\}/, '.+')
    .replace(/\{\w+\}/g, '[^/]+')
  return new RegExp(
    `^${text.replace(/^(\w+) \/(v1\b)?/, (_all, method: string, v1 = '') => `${method} /(?:api/)?${v1}`)}/?$`,
  )
}
