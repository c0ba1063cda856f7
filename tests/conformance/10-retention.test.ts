/** Contract 10, 10.5: what is too old goes by itself, in rounds, and on request. The clock is that of the process: faketime. */
import { globSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { ensureDebianPackage } from '../helpers/apt.ts'
import { runCli } from '../helpers/cli.ts'
import { makeFolder, type TemporaryFolder } from '../helpers/folders.ts'
import { createTestApp, type InProcessApp } from '../helpers/app.ts'
import {
  executable,
  run,
  runToEnd,
  startServer,
  waitForLog,
  waitForStatus,
  type TestServer,
  type TestApp,
} from '../helpers/server.ts'
import { waitFor } from '../helpers/wait.ts'
import { createWorkflowApp, writeFlowPack } from '../helpers/workflows.ts'
import { fullOnly } from '../helpers/tiers.ts'

beforeAll(() => ensureDebianPackage('faketime', '/usr/bin/faketime'))

const folders: TemporaryFolder[] = []
const servers: TestApp[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop()
  folders.splice(0).forEach((folder) => folder.remove())
})

function newBasePath(): string {
  const folder = makeFolder()
  folders.push(folder)
  return folder.path
}

const sequence = {
  two: 'version: 1.0\ntasks: {first: {action: core.noop, next: [{do: second}]}, second: {action: core.noop}}\n',
  waits: 'version: 1.0\ntasks: {ask: {action: core.ask}}\n',
}
const quickRounds = { 'garbagecollector.sleep_delay': '0', 'log.level': 'INFO' }

async function start(basePath: string, settings: Record<string, string> = {}): Promise<InProcessApp> {
  const server = await createTestApp({ basePath, settings: { ...quickRounds, ...settings } })
  servers.push(server)
  return server
}

/** In a process, which can be killed and has a clock of its own. */
async function startProcess(basePath: string, daysAgo = 0): Promise<TestServer> {
  const server = await startServer({
    basePath,
    settings: quickRounds,
    ...(daysAgo === 0 ? {} : { env: fakeTime(daysAgo) }),
  })
  servers.push(server)
  return server
}

/** The clock of the process is set back; the time that passes is not touched. */
function fakeTime(daysAgo: number): Record<string, string> {
  const [library = ''] = globSync('/usr/lib/*/faketime/libfaketime.so.1')
  return { LD_PRELOAD: library, FAKETIME: `-${daysAgo}d`, FAKETIME_DONT_FAKE_MONOTONIC: '1' }
}

async function stop(server: TestApp): Promise<void> {
  servers.splice(servers.indexOf(server), 1)
  await server.stop()
}

/** What happened so many days ago: an execution with output, started by a webhook, and one that waits for somebody. */
async function happened(basePath: string, daysAgo: number): Promise<{ direct: string; asked: string }> {
  const server = await startProcess(basePath, daysAgo)
  await server.call('POST', '/v1/rules', {
    name: 'tried',
    pack: 'default',
    enabled: true,
    trigger: { type: 'core.svc.webhook', parameters: { url: 'tried' } },
    criteria: {},
    action: { ref: 'core.local', parameters: { cmd: 'echo by rule' } },
  })
  const { id: direct } = await runToEnd(server, { cmd: 'echo direct' })
  expect((await server.call('POST', '/v1/webhooks/tried', { a: 1 })).status).toBe(202)
  await waitFor('the rule to be enforced', async () => {
    const answer = await server.call<unknown[]>('GET', '/v1/executions?status=succeeded')
    return answer.body.length === 2
  })
  const { id: asked } = await run(server, { ttl: 1_000_000, schema: {} }, { action: 'core.ask' })
  await waitForStatus(server, asked, ['pending'])
  await stop(server)
  return { direct, asked }
}

function counts(basePath: string): Record<string, number> {
  const connection = new Sqlite(join(basePath, 'svc.db'), { readonly: true })
  try {
    const count = (sql: string): number => Number(connection.prepare(sql).pluck().get())
    const tables = [
      'executions',
      'execution_results',
      'output_records',
      'trigger_instances',
      'rule_enforcements',
      'traces',
    ]
    const orphans = {
      results: count('select count(*) from execution_results where execution_id not in (select id from executions)'),
      output: count('select count(*) from output_records where execution_id not in (select id from executions)'),
      components: count('select count(*) from trace_components where trace_id not in (select id from traces)'),
      counted:
        count('select total(count) from execution_counts') -
        count('select count(*) from executions') +
        count('select total(count) from trigger_instance_counts') -
        count('select count(*) from trigger_instances') +
        count('select total(count) from rule_enforcement_counts') -
        count('select count(*) from rule_enforcements') +
        count(`select count from totals where name = 'traces'`) -
        count('select count(*) from traces'),
    }
    expect(orphans).toEqual({ results: 0, output: 0, components: 0, counted: 0 })
    return Object.fromEntries(tables.map((table) => [table, count(`select count(*) from ${table}`)]))
  } finally {
    connection.close()
  }
}

describe('10.5 rounds of the garbage collector', () => {
  test('output goes after seven days and everything else stays, as long as nothing else is asked for', async () => {
    const basePath = newBasePath()
    const { direct } = await happened(basePath, 8)
    const today = await start(basePath)
    const { id: fresh } = await runToEnd(today, { cmd: 'echo fresh' })
    await stop(today)
    const before = counts(basePath)
    const server = await start(basePath)
    await waitForLog(server, 'event=retention.removed, kind=output')
    expect((await server.call('GET', `/v1/executions/${direct}/output`)).text).toBe('')
    expect((await server.call('GET', `/v1/executions/${fresh}/output`)).text).toBe('fresh\n')
    expect((await server.call('GET', `/v1/executions/${direct}`)).body).toMatchObject({ result: { stdout: 'direct' } })
    await stop(server)
    expect(counts(basePath)).toEqual({ ...before, output_records: 1 })
  })

  fullOnly(test)('what is asked for goes with everything that belongs to it; what has not ended stays', async () => {
    const basePath = newBasePath()
    const { direct, asked } = await happened(basePath, 40)
    const today = await start(basePath)
    await runToEnd(today, { cmd: 'echo fresh' })
    await stop(today)
    const server = await start(basePath, {
      'garbagecollector.action_executions_record_ttl': '30',
      'garbagecollector.trigger_instances_ttl': '30',
      'garbagecollector.traces_ttl': '30',
      'garbagecollector.rule_enforcements_ttl': '30',
    })
    await waitForLog(server, 'event=retention.removed, kind=rule-enforcements')
    expect((await server.call('GET', `/v1/executions/${direct}`)).status).toBe(404)
    expect((await server.call('GET', `/v1/executions/${asked}`)).body).toMatchObject({ status: 'pending' })
    expect((await server.call('PUT', `/v1/inquiries/${asked}`, { response: {} })).status).toBe(200)
    await waitForStatus(server, asked, ['succeeded'])
    await stop(server)
    // Its own trace is there too, so that what it leads to has a place.
    expect(counts(basePath)).toMatchObject({ executions: 2, execution_results: 2, rule_enforcements: 0, traces: 2 })
  })

  fullOnly(test)('workflows go, and their executions stay, after the shorter of two times', async () => {
    const basePath = newBasePath()
    writeFlowPack(basePath, sequence)
    const then = await startProcess(basePath, 40)
    const { body } = await then.call<{ id: string }>('POST', '/v1/executions', { action: 'flow.two' })
    await waitForStatus(then, body.id, ['succeeded'])
    await stop(then)
    const today = await start(basePath)
    await runToEnd(today, { cmd: 'echo fresh' })
    await stop(today)
    const before = counts(basePath)
    const server = await start(basePath, {
      'garbagecollector.workflow_executions_ttl': '60',
      'garbagecollector.task_executions_ttl': '30',
    })
    await waitForLog(server, 'event=retention.removed, kind=workflows')
    await stop(server)
    expect(counts(basePath)).toEqual({ ...before, output_records: 1 })
    expect(Object.values(workflowRows(basePath)).filter((count) => count > 0)).toEqual([])
  })

  fullOnly(test)('of more records than are kept the oldest go', async () => {
    const basePath = newBasePath()
    const server = await start(basePath, { 'garbagecollector.max_records': '3' })
    const ids: string[] = []
    for (let n = 0; n < 5; n++) ids.push((await runToEnd(server, { cmd: `echo ${n}` })).id)
    await server.collect()
    await waitForLog(server, /event=retention\.removed, kind=traces/)
    const left = await server.call<{ id: string }[]>('GET', '/v1/executions')
    expect(left.body.map(({ id }) => id)).toEqual(ids.slice(2).toReversed())
    expect(left.headers.get('x-total-count')).toBe('3')
    await stop(server)
    expect(counts(basePath)).toMatchObject({ executions: 3, output_records: 3, traces: 3 })
  })

  fullOnly(test)('a clock that is years ahead deletes nothing', async () => {
    const basePath = newBasePath()
    await happened(basePath, 400)
    const before = counts(basePath)
    const server = await start(basePath, { 'garbagecollector.action_executions_record_ttl': '30' })
    await waitForLog(server, 'event=retention.held')
    await server.collect()
    await waitFor('the second round', () => server.log().split('event=retention.held').length > 2)
    await stop(server)
    expect(counts(basePath)).toEqual(before)
  })
})

describe('10.5 actions and rules that say how long their executions are kept', () => {
  test('the newest of a number stay; the rule decides before its action; wrong values are refused', async () => {
    const server = await start(newBasePath())
    try {
      const action = { name: 'kept', pack: 'default', runner_type: 'noop', keep: { count: 2 } }
      const made = await server.call<{ keep: unknown }>('POST', '/v1/actions', action)
      expect([made.status, made.body.keep]).toEqual([201, { count: 2 }])
      const rule = {
        name: 'kept',
        pack: 'default',
        enabled: true,
        trigger: { type: 'core.svc.webhook', parameters: { url: 'kept' } },
        action: { ref: 'default.kept' },
        keep: { count: 3, days: null },
      }
      const ruled = await server.call<{ keep: unknown }>('POST', '/v1/rules', rule)
      expect([ruled.status, ruled.body.keep]).toEqual([201, { count: 3 }])
      for (const keep of [{}, { days: -1 }, { days: 1.5 }, { count: '3' }, { weeks: 1 }, 'ever']) {
        expect((await server.call('POST', '/v1/rules', { ...rule, name: 'wrong', keep })).status).toBe(400)
        expect((await server.call('POST', '/v1/actions', { ...action, name: 'wrong', keep })).status).toBe(400)
      }
      const ids: string[] = []
      for (let n = 0; n < 4; n += 1) {
        const { body } = await server.call<{ id: string }>('POST', '/v1/executions', { action: 'default.kept' })
        ids.push(body.id)
        const { body: sent } = await server.call<{ executions: { id: string }[] }>(
          'POST',
          '/v1/webhooks/kept',
          {},
          { Prefer: 'wait=10' },
        )
        ids.push(sent.executions[0]?.id ?? '')
      }
      await waitFor('all to end', async () => {
        const { body } = await server.call<unknown[]>('GET', '/v1/executions?action=default.kept&status=succeeded')
        return body.length === 8
      })
      await server.collect()
      const { body: left } = await server.call<{ id: string }[]>('GET', '/v1/executions?action=default.kept')
      const kept = ids.filter((_, index) => index >= 3)
      expect(left.map(({ id }) => id).toSorted()).toEqual(kept.toSorted())
      expect(server.log()).toMatch(/event=retention\.removed.*kind=executions, kept=3/)
      // Null is the same as none.
      const { body: record } = await server.call<object>('GET', '/v1/actions/default.kept')
      const put = await server.call('PUT', '/v1/actions/default.kept', { ...record, keep: null })
      expect([put.status, 'keep' in put.body]).toEqual([200, false])
    } finally {
      await server.stop()
    }
  })
})

describe('10.5 purging', () => {
  test('under the names of existing installations, without a login, by the control socket', async () => {
    const basePath = newBasePath()
    const server = await start(basePath, { 'auth.enable': 'False' })
    const { id } = await runToEnd(server, { cmd: 'echo gone' })
    const folder = makeFolder()
    folders.push(folder)
    const purge = async (name: string, ...args: string[]): Promise<unknown[]> => {
      const program = join(folder.path, `svc-purge-${name}`)
      symlinkSync(executable, program)
      const { code, stdout } = await runCli([...args, '--config-file', server.configFile], {}, { program })
      return [code, stdout]
    }
    const time = new Date().toISOString()
    expect(await purge('executions', `--timestamp=${time}`)).toEqual([
      0,
      expect.stringMatching(/^Deleted 1 record \(executions\) from before /),
    ])
    expect((await server.call('GET', `/v1/executions/${id}`)).status).toBe(404)
    for (const kind of ['rule-enforcements', 'tokens']) {
      expect(await purge(kind, `--timestamp=${time}`)).toEqual([0, expect.stringMatching(/^Deleted 0 records /)])
    }
    expect(await purge('traces')).toEqual([1, expect.stringMatching(/^ERROR: No age given/)])
  })

  test('workflows are purged without their executions, and say so', async () => {
    const server = await createWorkflowApp(sequence, { settings: quickRounds })
    servers.push(server)
    const { id } = await server.run('two')
    const { id: waits } = await server.begin('waits')
    await server.reaches(waits, 'paused')
    const folder = makeFolder()
    folders.push(folder)
    for (const [name, removed] of [
      ['workflows', '1 record'],
      ['task-executions', '0 records'],
    ] as const) {
      const program = join(folder.path, `svc-purge-${name}`)
      symlinkSync(executable, program)
      const args = ['--timestamp=2999-01-01T00:00:00.000000Z', '--config-file', server.configFile]
      expect(await runCli(args, {}, { program })).toMatchObject({
        code: 0,
        stdout: expect.stringMatching(`^Deleted ${removed} \\(workflows\\) from before `) as unknown,
      })
    }
    expect((await server.execution(id)).status).toBe('succeeded')
    expect(await server.children(id)).toHaveLength(2)
    expect(workflowRows(server.basePath)).toMatchObject({ workflow_executions: 1, workflow_actions: 1 })
    for (const path of ['workflow', 'workflow/explain']) {
      const { status, text } = await server.call('GET', `/v1/executions/${id}/${path}`)
      expect([status, text]).toEqual([404, expect.stringContaining('its workflow has been removed.')])
    }
    const again = await server.call<{ id: string }>('POST', `/v1/executions/${id}/re_run`, { tasks: ['first'] })
    const rerun = again.status === 201 ? JSON.stringify((await server.ended(again.body.id)).result) : again.text
    expect(rerun).toContain('has been removed')
    const [ask] = await server.children(waits)
    await server.call('PUT', `/v1/inquiries/${ask?.id}`, { response: { continue: true } })
    expect((await server.ended(waits)).status).toBe('succeeded')
  })

  test('executions that have not ended are cancelled, and go', async () => {
    const basePath = newBasePath()
    const server = await start(basePath)
    const { id: running } = await run(server, { cmd: 'sleep 60' })
    await waitForStatus(server, running, ['running'])
    const { id: waiting } = await run(server, { cmd: 'true' }, { delay: 3_600_000 })
    const purge = (): Promise<{ body: Record<string, unknown> }> =>
      server.call('POST', '/v1/purge/executions', { before: '2999-01-01T00:00:00Z', incomplete: true })
    expect((await purge()).body).toMatchObject({ canceled: 2, records: 1, next: null })
    expect((await server.call('GET', `/v1/executions/${waiting}`)).status).toBe(404)
    await waitForStatus(server, running, ['canceled'])
    expect((await purge()).body).toMatchObject({ canceled: 0, records: 1 })
    await stop(server)
    expect(counts(basePath)).toMatchObject({ executions: 0, execution_results: 0, output_records: 0 })
  })

  test('a workflow that is over goes with its actions; one that runs keeps those that have ended', async () => {
    const server = await createWorkflowApp(
      {
        done: `
version: 1.0
vars: [{list: [1, 2]}]
tasks:
  each:
    with: <% ctx(list) %>
    action: core.noop
    next:
      - publish: [{seen: <% result() %>}]
        do: fail
`,
        outer: 'version: 1.0\ntasks: {inner: {action: flow.done}}\n',
        waits: `
version: 1.0
tasks:
  first: {action: core.noop, next: [{do: ask}]}
  ask: {action: core.ask}
`,
      },
      { settings: quickRounds },
    )
    servers.push(server)
    const { id: outer } = await server.run('outer')
    const { id: done } = await server.run('done')
    const { id: waits } = await server.begin('waits')
    await server.reaches(waits, 'paused')
    const purge = (): Promise<{ body: Record<string, unknown> }> =>
      server.call('POST', '/v1/purge/executions', { before: '2999-01-01T00:00:00Z' })
    // With two actions each, and the inner workflow.
    expect((await purge()).body).toMatchObject({ records: 7, next: null })
    for (const id of [outer, done]) expect((await server.call('GET', `/v1/executions/${id}`)).status).toBe(404)
    const [first, ask] = await server.children(waits)
    expect(first?.status).toBe('succeeded')
    expect(workflowRows(server.basePath)).toMatchObject({
      workflow_executions: 1,
      workflow_actions: 2,
      workflow_tasks: 2,
    })
    await server.call('PUT', `/v1/inquiries/${ask?.id}`, { response: { continue: true } })
    expect((await server.ended(waits)).status).toBe('succeeded')
    expect((await purge()).body).toMatchObject({ records: 3, next: null })
    expect(Object.values(workflowRows(server.basePath)).filter((count) => count > 0)).toEqual([])
  })

  fullOnly(test)('killed in the middle, nothing is half there', async () => {
    const basePath = newBasePath()
    const server = await startProcess(basePath)
    for (let n = 0; n < 30; n++) await runToEnd(server, { cmd: 'seq 1 20000' })
    const purging = server
      .call('POST', '/v1/purge/executions', { before: '2999-01-01T00:00:00Z' })
      .catch(() => undefined)
    await waitFor('the first ones to go', () => {
      const connection = new Sqlite(join(basePath, 'svc.db'), { readonly: true })
      try {
        return Number(connection.prepare('select count(*) from output_records').pluck().get()) < 200
      } finally {
        connection.close()
      }
    }).catch(() => undefined)
    servers.splice(servers.indexOf(server), 1)
    await server.stop('SIGKILL')
    await purging
    const again = await start(basePath)
    counts(basePath)
    const done = await again.call('POST', '/v1/purge/executions', { before: '2999-01-01T00:00:00Z' })
    expect(done.body).toMatchObject({ next: null })
    expect((await runToEnd(again, { cmd: 'echo goes on' })).result['stdout']).toBe('goes on')
    await stop(again)
    expect(counts(basePath)).toMatchObject({ executions: 1 })
  })
})

/** How many rows each table of workflows has. */
function workflowRows(basePath: string): Record<string, number> {
  const connection = new Sqlite(join(basePath, 'svc.db'), { readonly: true })
  const names = connection
    .prepare(`select name from sqlite_schema where type = 'table' and name like 'workflow_%'`)
    .pluck()
    .all() as string[] // names
  const rows = names.map((name) => [name, Number(connection.prepare(`select count(*) from ${name}`).pluck().get())])
  connection.close()
  return Object.fromEntries(rows) as Record<string, number>
}
