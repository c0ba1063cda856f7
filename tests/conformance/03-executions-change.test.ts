/** Contract 03, 3.4 and 3.5: cancelling, settling, running again; statuses and their order. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import { run, runToEnd, waitForStatus, type ExecutionAnswer, type TestApp } from '../helpers/server.ts'
import { isRunning } from '../helpers/marked-processes.ts'
import { fullOnly } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'
import {
  countExecutions,
  create,
  impossibleIds,
  rowsOf,
  createAppWithExamples,
  startWithExamples,
  unknownId,
  type ErrorAnswer,
} from './support.ts'

let server: TestApp
/** Runs one action at a time, so that a second one stays in status requested. */
let narrow: TestApp
beforeAll(async () => {
  server = await createAppWithExamples()
  narrow = await createTestApp({ settings: { 'actionrunner.actions_pool_size': '1' } })
})
afterAll(async () => {
  await server.stop()
  await narrow.stop()
})

const cancel = (id: string, on = server) => on.call<ExecutionAnswer>('DELETE', `/v1/executions/${id}`)
const put = (id: string, body: unknown) => server.call<ExecutionAnswer>('PUT', `/v1/executions/${id}`, body)
const rerun = (id: string, body: unknown = {}, query = '') =>
  server.call<ExecutionAnswer>('POST', `/v1/executions/${id}/re_run${query}`, body)
const get = async (id: string): Promise<ExecutionAnswer> =>
  (await server.call<ExecutionAnswer>('GET', `/v1/executions/${id}`)).body
const logOf = ({ log }: ExecutionAnswer): string[] => log.map(({ status }) => status)
const running = async (parameters: Record<string, unknown> = { cmd: 'sleep 60' }, more = {}) =>
  waitForStatus(server, (await run(server, parameters, more)).id, ['running'])
const canceledByUser = { message: 'Action canceled by user.', user: 'svc' }

/** Executions in each completed status, by ways that users have. */
async function finished(status: string): Promise<ExecutionAnswer> {
  switch (status) {
    case 'succeeded':
      return runToEnd(server, { cmd: 'true' })
    case 'failed':
      return runToEnd(server, { cmd: 'false' })
    case 'timeout':
    case 'abandoned': {
      const { id } = await run(server, { cmd: 'true' }, { delay: 3_600_000 })
      return (await server.call<ExecutionAnswer>('PUT', `/v1/executions/${id}`, { status, result: {} })).body
    }
    default: {
      const { id } = await run(server, { cmd: 'true' }, { delay: 3_600_000 })
      return (await cancel(id)).body
    }
  }
}

describe('03.4 cancel', () => {
  it('03.4 cancel: delayed → canceled at once', async () => {
    const { id } = await run(server, { cmd: 'true' }, { delay: 3_600_000 })
    await waitForStatus(server, id, ['delayed'])
    const { status, body } = await cancel(id)
    expect([status, body.status]).toEqual([200, 'canceled'])
    expect(body.result).toEqual(canceledByUser)
    expect(body.context['cancelled_by']).toBe('svc')
    expect(logOf(body)).toEqual(['requested', 'delayed', 'canceled'])
    expect(body.end_timestamp).toBeTypeOf('string')
    expect(await get(id)).toEqual(body)
  })

  it('03.4 cancel: requested → canceled at once, and never run', async () => {
    const blocker = await waitForStatus(narrow, (await run(narrow, { cmd: 'sleep 60' })).id, ['running'])
    const waiting = await run(narrow, { cmd: 'touch ran' })
    const { status, body } = await cancel(waiting.id, narrow)
    expect([status, body.status, logOf(body)]).toEqual([200, 'canceled', ['requested', 'canceled']])
    await cancel(blocker.id, narrow)
    await waitForStatus(narrow, blocker.id)
    // A later one gets the slot, so the canceled one has had its turn.
    const later = await runToEnd(narrow, { cmd: 'ls' })
    expect(later.result['stdout']).not.toContain('ran')
    const after = await narrow.call<ExecutionAnswer>('GET', `/v1/executions/${waiting.id}`)
    expect(after.body).toEqual(body)
  })

  it('03.4 cancel: running → canceling → canceled when the processes are gone; output so far is kept', async () => {
    const execution = await running({ cmd: 'echo $$; sleep 60' })
    const pid = Number(
      await waitFor('output', async () => {
        const { text } = await server.call('GET', `/v1/executions/${execution.id}/output`)
        return text.trim() !== '' && text.trim()
      }),
    )
    expect(isRunning(pid)).toBe(true)
    const { status, body } = await cancel(execution.id)
    expect([status, body.status]).toEqual([200, 'canceling'])
    const after = await waitForStatus(server, execution.id)
    expect(logOf(after)).toEqual(['requested', 'scheduled', 'running', 'canceling', 'canceled'])
    expect(after.result).toEqual(canceledByUser)
    expect(isRunning(pid)).toBe(false)
    expect((await server.call('GET', `/v1/executions/${execution.id}/output`)).text).toBe(`${pid}\n`)
  })

  it('03.4 cancel: one with a parent goes through canceling, whatever its status', async () => {
    const parent = await run(server, { cmd: 'true' })
    const child = await run(
      server,
      { cmd: 'true' },
      { delay: 3_600_000, context: { parent: { execution_id: parent.id } } },
    )
    await waitForStatus(server, child.id, ['delayed'])
    const { status, body } = await cancel(child.id)
    expect([status, body.status]).toEqual([200, 'canceling'])
    const after = await waitForStatus(server, child.id)
    expect(logOf(after)).toEqual(['requested', 'delayed', 'canceling', 'canceled'])
    expect(after.result).toEqual(canceledByUser)
  })

  it('03.4 cancel: canceling → 200 with a fault, unchanged', async () => {
    const execution = await running({ cmd: 'trap "" TERM; echo ready; while :; do sleep 1; done' })
    await waitFor(
      'the trap',
      async () => (await server.call('GET', `/v1/executions/${execution.id}/output`)).text !== '',
    )
    expect((await cancel(execution.id)).body.status).toBe('canceling')
    const again = await cancel(execution.id)
    expect([again.status, again.body.faultstring]).toEqual([200, 'Action cannot be canceled. State = canceling.'])
    const put2 = await put(execution.id, { status: 'canceling' })
    expect([put2.status, put2.body.status]).toEqual([200, 'canceling'])
    expect(logOf(await waitForStatus(server, execution.id))).toEqual([
      'requested',
      'scheduled',
      'running',
      'canceling',
      'canceled',
    ])
  })

  it('03.4 cancel: canceled → 200 with the record, unchanged', async () => {
    const before = await finished('canceled')
    const { status, body } = await cancel(before.id)
    expect([status, body]).toEqual([200, before])
  })

  it.each(['succeeded', 'failed', 'timeout', 'abandoned'])(
    '03.4 cancel: %s → 200 with a fault, unchanged',
    async (name) => {
      const before = await finished(name)
      expect(before.status).toBe(name)
      const { status, body } = await cancel(before.id)
      expect([status, body.faultstring]).toEqual([200, `Action cannot be canceled. State = ${name}.`])
      expect(await get(before.id)).toEqual(before)
    },
  )

  it.each([unknownId, 'last', ...impossibleIds])('03.4 cancel: unknown id %s → 404', async (id) => {
    expect((await cancel(id)).status).toBe(404)
  })
})

describe('03.4 update', () => {
  it.each(['succeeded', 'failed', 'timeout', 'abandoned'])(
    '03.4 PUT: %s with a result settles what something outside has carried out',
    async (status) => {
      const { id } = await run(server, { cmd: 'true' }, { delay: 3_600_000 })
      const answer = await put(id, { status, result: { outside: [1] } })
      expect(answer.status).toBe(200)
      expect(answer.body).toMatchObject({ status, result: { outside: [1] } })
      expect(answer.body.end_timestamp).toBeTypeOf('string')
      expect(answer.body.elapsed_seconds).toBeTypeOf('number')
      expect(logOf(answer.body).at(-1)).toBe(status)
      expect(await get(id)).toEqual(answer.body)
    },
  )

  it('03.4 PUT: the result is optional', async () => {
    const { id } = await run(server, { cmd: 'true' }, { delay: 3_600_000 })
    const { body } = await put(id, { status: 'failed' })
    expect(body.status).toBe('failed')
    expect(body).not.toHaveProperty('result')
  })

  it('03.4 PUT: settling a running one ends its processes, and their outcome is discarded', async () => {
    const execution = await running({ cmd: 'echo $$; sleep 60' })
    const pid = Number(
      await waitFor('output', async () => {
        const { text } = await server.call('GET', `/v1/executions/${execution.id}/output`)
        return text.trim() !== '' && text.trim()
      }),
    )
    const { body } = await put(execution.id, { status: 'succeeded', result: { from: 'outside' } })
    expect(body.status).toBe('succeeded')
    await waitFor('the process to end', () => !isRunning(pid))
    expect(await get(execution.id)).toMatchObject({
      status: 'succeeded',
      result: { from: 'outside' },
      log: [{ status: 'requested' }, { status: 'scheduled' }, { status: 'running' }, { status: 'succeeded' }],
    })
  })

  it.each(['canceling', 'canceled'])('03.4 PUT: %s is a cancel', async (status) => {
    const waiting = await run(server, { cmd: 'true' }, { delay: 3_600_000 })
    expect((await put(waiting.id, { status })).body).toMatchObject({ status: 'canceled', result: canceledByUser })
    const execution = await running()
    expect((await put(execution.id, { status })).body.status).toBe('canceling')
    expect((await waitForStatus(server, execution.id)).status).toBe('canceled')
  })

  it.each(['succeeded', 'failed', 'timeout', 'abandoned', 'canceled'])(
    '03.4 PUT: already %s → 400, unchanged, whatever is asked',
    async (name) => {
      const before = await finished(name)
      for (const status of ['succeeded', 'failed', 'canceled', 'canceling', 'paused', 'resuming', 'running']) {
        const { status: code, body } = await put(before.id, { status })
        expect([status, code, body.faultstring]).toEqual([status, 400, 'Execution is already in completed state.'])
      }
      expect(await get(before.id)).toEqual(before)
    },
  )

  it.each([
    ['pausing', 'pause'],
    ['paused', 'pause'],
    ['resuming', 'resume'],
  ])('03.4 PUT: %s of something that is no workflow → 400', async (status, verb) => {
    const execution = await running()
    const answer = await put(execution.id, { status })
    expect(answer.status).toBe(400)
    expect(answer.body.faultstring).toBe(
      `Failed updating execution. Unable to ${verb} liveaction "${String(execution.liveaction['id'])}" because it is ` +
        'not supported by the "local-shell-cmd" runner.',
    )
    expect((await get(execution.id)).status).toBe('running')
    await cancel(execution.id)
    await waitForStatus(server, execution.id)
  })

  it.each(['requested', 'delayed', 'scheduled', 'running', 'pending'])(
    '03.4 PUT: %s, which only the server can bring about → 400, unchanged',
    async (status) => {
      const { id } = await run(server, { cmd: 'true' }, { delay: 3_600_000 })
      const before = await waitForStatus(server, id, ['delayed'])
      const answer = await put(id, { status })
      expect(answer.status).toBe(400)
      expect(answer.body.faultstring).toContain(`"${status}"`)
      expect(await get(id)).toEqual(before)
      await cancel(id)
    },
  )

  it.each([
    ['status not in the list', { status: 'done' }, /'done' is not one of/],
    ['no status', {}, /'status' is a required property/],
    ['no status but a result', { result: {} }, /'status' is a required property/],
    ['result that is no object', { status: 'failed', result: 'x' }, /result.*'x' is not of type 'object'/],
    ['result null', { status: 'failed', result: null }, /result/],
    ['status null', { status: null }, /status/],
    ['anything else', { status: 'failed', context: {} }, /'context' was unexpected/],
  ])('03.4 PUT: %s → 400, unchanged', async (_, body, text) => {
    const { id } = await run(server, { cmd: 'true' }, { delay: 3_600_000 })
    await waitForStatus(server, id, ['delayed'])
    const answer = await put(id, body)
    expect(answer.status).toBe(400)
    expect(answer.body.faultstring).toMatch(text)
    expect((await get(id)).status).toBe('delayed')
    await cancel(id)
  })

  it.each([unknownId, 'last', ...impossibleIds])('03.4 PUT: unknown id %s → 404', async (id) => {
    expect((await put(id, { status: 'failed' })).status).toBe(404)
  })
})

describe('03.4 re-run', () => {
  it('03.4 re-run: same action and parameters, a new execution that says what it repeats, in the same trace', async () => {
    const original = await runToEnd(
      server,
      { cmd: 'echo again', timeout: 7 },
      { context: { mine: 1, trace_context: { trace_tag: 'again' } } },
    )
    const { status, body } = await rerun(original.id)
    expect(status).toBe(201)
    expect(body.id).not.toBe(original.id)
    expect(body).toMatchObject({ status: 'requested', parameters: { cmd: 'echo again', timeout: 7 } })
    expect(body.context['re-run']).toEqual({ ref: original.id })
    expect(body.liveaction['id']).not.toBe(original.liveaction['id'])
    const traces = rowsOf<{ trace_id: string }>(
      server,
      'select distinct trace_id from executions where id in (?, ?)',
      original.id,
      body.id,
    )
    expect(traces).toHaveLength(1)
    expect(await waitForStatus(server, body.id)).toMatchObject({ result: { stdout: 'again' } })
  })

  it('03.4 re-run: parameters are merged key by key, not deeper', async () => {
    const original = await run(server, { cmd: 'echo $A$B', env: { A: '1', B: '2' }, timeout: 9 })
    const { body } = await rerun(original.id, { parameters: { env: { A: '3' }, cwd: '/' } })
    expect(body.parameters).toEqual({ cmd: 'echo $A$B', env: { A: '3' }, timeout: 9, cwd: '/' })
    expect(await waitForStatus(server, body.id)).toMatchObject({ result: { stdout: '3' } })
  })

  it('03.4 re-run: no_merge=true replaces the parameters', async () => {
    const original = await run(server, { cmd: 'echo a', timeout: 9 })
    const { body } = await rerun(original.id, { parameters: { cmd: 'echo b' } }, '?no_merge=true')
    expect(body.parameters).toEqual({ cmd: 'echo b' })
    const missing = await rerun(original.id, { parameters: {} }, '?no_merge=true')
    expect([missing.status, missing.body.faultstring]).toEqual([400, expect.stringContaining("'cmd'")])
    const merged = await rerun(original.id, { parameters: { cmd: 'echo b' } }, '?no_merge=false')
    expect(merged.body.parameters).toEqual({ cmd: 'echo b', timeout: 9 })
  })

  it('03.4 re-run: with no_merge=true, `keep` names parameters that stay', async () => {
    const original = await run(server, { cmd: 'echo a', timeout: 9, cwd: '/' })
    const again = (body: unknown, query = '?no_merge=true') => rerun(original.id, body, query)
    const { body } = await again({ parameters: { cmd: 'echo b' }, keep: ['cwd', 'cmd', 'unheard_of'] })
    expect(body.parameters).toEqual({ cmd: 'echo b', cwd: '/' })
    expect((await again({ keep: ['cmd'] })).body.parameters).toEqual({ cmd: 'echo a' })
    // What is merged keeps everything.
    expect((await again({ keep: [] }, '')).body.parameters).toEqual({ cmd: 'echo a', timeout: 9, cwd: '/' })
    for (const keep of ['cmd', [1], {}]) {
      const { status, body: refused } = await again({ keep })
      expect([status, refused.faultstring]).toEqual([400, expect.stringContaining('keep')])
    }
  })

  it('03.4 re-run: what is kept is not rendered again, and keeps its secrets; what is left out has none', async () => {
    const rendered = await create(server, {
      action: 'examples.templated',
      parameters: { name: '{{ "{{ 7 * 7 }}" }}', greeting: 'hi' },
    })
    const query = '?no_merge=true&show_secrets=true'
    const same = await rerun(rendered.body.id, { parameters: { greeting: '{{ 7 * 7 }}' }, keep: ['name'] }, query)
    expect(same.body.parameters).toEqual({ name: '{{ 7 * 7 }}', greeting: '49' })
    const original = await create(server, {
      action: 'core.local_sudo',
      parameters: { cmd: 'true', sudo_password: 'kept' },
    })
    const other = { parameters: { cmd: 'false' } }
    const kept = await rerun(original.body.id, { ...other, keep: ['sudo_password'] }, query)
    expect(kept.body.parameters).toEqual({ cmd: 'false', sudo_password: 'kept' })
    const dropped = await rerun(original.body.id, other, query)
    expect(dropped.body.parameters).toEqual({ cmd: 'false' })
  })

  it('03.4 re-run: values that were rendered before are not rendered again; new ones are', async () => {
    const original = await create(server, {
      action: 'examples.templated',
      parameters: { name: '{{ "{{ 7 * 7 }}" }}' },
    })
    expect(original.body.parameters).toEqual({ name: '{{ 7 * 7 }}', greeting: 'hello {{ 7 * 7 }}' })
    const same = await rerun(original.body.id)
    expect([same.status, same.body.parameters]).toEqual([201, original.body.parameters])
    const other = await rerun(original.body.id, { parameters: { greeting: 'hi {{ name }} {{ 7 * 7 }}' } })
    expect(other.body.parameters).toEqual({ name: '{{ 7 * 7 }}', greeting: 'hi {{ 7 * 7 }} 49' })
    expect(await waitForStatus(server, other.body.id)).toMatchObject({
      result: { stdout: 'hi {{ 7 * 7 }} 49 {{ 7 * 7 }}!' },
    })
  })

  it('03.4 re-run: secrets are passed on unmasked', async () => {
    const original = await create(server, { action: 'examples.secretive', parameters: { token: 'passed-on' } })
    const again = await rerun(original.body.id, {}, '?show_secrets=true')
    expect(again.body.parameters).toEqual({ token: 'passed-on' })
  })

  it('03.4 re-run: user and delay', async () => {
    const original = await run(server, { cmd: 'true' }, { user: 'ada', delay: 10 })
    const plain = (await rerun(original.id)).body
    expect(plain.context['user']).toBe('svc')
    expect(plain).not.toHaveProperty('delay')
    const { body } = await rerun(original.id, { user: 'grace', delay: 3_600_000 })
    expect([body.context['user'], body.delay]).toEqual(['grace', 3_600_000])
    await cancel(body.id)
  })

  it('03.4 re-run: works for any status, running included', async () => {
    const original = await running()
    const { status, body } = await rerun(original.id, { parameters: { cmd: 'true' } })
    expect(status).toBe(201)
    expect((await waitForStatus(server, body.id)).status).toBe('succeeded')
    await cancel(original.id)
    await waitForStatus(server, original.id)
    for (const name of ['succeeded', 'failed', 'timeout', 'abandoned', 'canceled']) {
      expect([name, (await rerun((await finished(name)).id)).status]).toEqual([name, 201])
    }
  })

  it.each([
    ['tasks with parameters', { tasks: ['a'], parameters: { cmd: 'x' } }, /Parameters override is not supported/],
    ['reset with parameters', { reset: ['a'], parameters: { cmd: 'x' } }, /Parameters override is not supported/],
    ['reset that is no part of tasks', { tasks: ['a'], reset: ['b'] }, /List of tasks to reset does not match/],
    ['tasks on another runner', { tasks: ['a'] }, /Task option is only supported for Orquesta workflows/],
    ['unknown parameter', { parameters: { x: 1 } }, /'x' was unexpected/],
    ['immutable parameter', { parameters: { sudo: true } }, /immutable/],
    ['wrong type', { parameters: { timeout: 'x' } }, /timeout/],
    ['wrong type of the body', { parameters: [] }, /parameters/],
    ['wrong type of tasks', { tasks: 'a' }, /tasks/],
    ['wrong type of delay', { delay: 'x' }, /delay/],
  ])('03.4 re-run: %s → 400, nothing kept', async (_, body, text) => {
    const original = await run(server, { cmd: 'true' })
    const before = countExecutions(server)
    const answer = await server.call<ErrorAnswer>('POST', `/v1/executions/${original.id}/re_run`, body)
    expect(answer.status).toBe(400)
    expect(answer.body.faultstring).toMatch(text)
    expect(countExecutions(server)).toBe(before)
  })

  it.each([unknownId, 'last', ...impossibleIds])('03.4 re-run: unknown id %s → 404', async (id) => {
    expect((await rerun(id)).status).toBe(404)
  })
})

describe('03.5 statuses', () => {
  it.each([
    ['succeeded', { cmd: 'true' }, ['requested', 'scheduled', 'running', 'succeeded']],
    ['failed', { cmd: 'exit 1' }, ['requested', 'scheduled', 'running', 'failed']],
    ['timeout', { cmd: 'sleep 60', timeout: 1 }, ['requested', 'scheduled', 'running', 'timeout']],
    ['failed', { cmd: 'kill -15 $$' }, ['requested', 'scheduled', 'running', 'failed']],
  ])('03.5 log: %s', async (status, parameters, log) => {
    const execution = await runToEnd(server, parameters)
    expect([execution.status, logOf(execution)]).toEqual([status, log])
    expect(execution.end_timestamp).toBe(execution.log.at(-1)?.timestamp)
    expect(execution.start_timestamp).toBe(execution.log[0]?.timestamp)
  })

  it('03.5 a failure to start: failed with error and traceback', async () => {
    const execution = await runToEnd(server, { cmd: 'true', cwd: '/does/not/exist' })
    expect(execution.status).toBe('failed')
    expect(execution.result).toEqual({
      error: expect.stringContaining('/does/not/exist'),
      traceback: expect.any(String),
    })
  })

  it('03.5 runner_info is there from running on', async () => {
    const execution = await running()
    expect(execution.liveaction['runner_info']).toEqual({ hostname: expect.any(String), pid: process.pid })
    await cancel(execution.id)
    await waitForStatus(server, execution.id)
  })

  it('03.5 a completed status never changes again', async () => {
    const before = await runToEnd(server, { cmd: 'true' })
    await cancel(before.id)
    await put(before.id, { status: 'failed', result: {} })
    expect(await get(before.id)).toEqual(before)
  })

  fullOnly(it)('03.5 graceful stop of the server: what still runs ends abandoned', async () => {
    const own = await startWithExamples({ settings: { 'actionrunner.shutdown_grace_seconds': '0' } })
    try {
      const { id } = await run(own, { cmd: 'echo begun; sleep 60' })
      await waitFor('output', async () => (await own.call('GET', `/v1/executions/${id}/output`)).text !== '')
      const { basePath } = own
      process.kill(own.pid, 'SIGTERM')
      await own.exited
      const next = await createTestApp({ basePath })
      try {
        const { body } = await next.call<ExecutionAnswer>('GET', `/v1/executions/${id}`)
        expect([body.status, logOf(body)]).toEqual(['abandoned', ['requested', 'scheduled', 'running', 'abandoned']])
        expect((await next.call('GET', `/v1/executions/${id}/output`)).text).toBe('begun\n')
      } finally {
        await next.stop()
      }
    } finally {
      await own.stop()
    }
  })

  fullOnly(it)('03.5 delay survives a restart', async () => {
    const own = await startWithExamples()
    try {
      const { id } = await run(own, { cmd: 'echo late' }, { delay: 5000 })
      await waitForStatus(own, id, ['delayed'])
      process.kill(own.pid, 'SIGKILL')
      await own.exited
      const next = await createTestApp({ basePath: own.basePath })
      try {
        const execution = await waitForStatus(next, id)
        expect(execution).toMatchObject({ status: 'succeeded', result: { stdout: 'late' } })
        const [first, last] = [execution.log[0], execution.log.find(({ status }) => status === 'running')]
        expect(Date.parse(last?.timestamp ?? '') - Date.parse(first?.timestamp ?? '')).toBeGreaterThanOrEqual(4900)
      } finally {
        await next.stop()
      }
    } finally {
      await own.stop()
    }
  })
})
