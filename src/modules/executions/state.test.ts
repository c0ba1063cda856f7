import { describe, expect, it } from 'vitest'
import { makeExecution } from '../../../tests/helpers/execution.ts'
import { isCancelable, isFinal, statusAfter, transition, type ExecutionEvent } from './state.ts'
import { executionStatuses, type Execution, type ExecutionStatus } from './types.ts'

const at = '2030-01-01T00:00:02.500000Z'

function execution(status: ExecutionStatus, more: Partial<Execution> = {}): Execution {
  const timestamp = '2030-01-01T00:00:00.000001Z'
  return makeExecution({
    revision: 4,
    status,
    user: 'alice',
    start_timestamp: timestamp,
    context: { user: 'alice' },
    log: [{ status, timestamp }],
    ...more,
  })
}

const events: Record<ExecutionEvent['kind'], ExecutionEvent> = {
  delay: { kind: 'delay' },
  wait: { kind: 'wait' },
  forbid: { kind: 'forbid', policy: 'p.one' },
  due: { kind: 'due' },
  schedule: { kind: 'schedule' },
  start: { kind: 'start', runner_info: { hostname: 'host', pid: 1 } },
  reject: { kind: 'reject', result: { error: 'no' } },
  cancel: { kind: 'cancel', user: 'bob' },
  pause: { kind: 'pause', user: 'bob' },
  paused: { kind: 'paused' },
  resume: { kind: 'resume', user: 'bob' },
  resumed: { kind: 'resumed' },
  exit: { kind: 'exit', status: 'succeeded', result: { stdout: 'hi' } },
  respond: { kind: 'respond', result: { response: {} } },
  expire: { kind: 'expire' },
  lost: { kind: 'lost' },
  requeue: { kind: 'requeue' },
  settle: { kind: 'settle', status: 'failed', result: { by: 'outside' } },
  import: { kind: 'import', status: 'failed', result: {}, log: [], end: '2020-01-01T00:00:00.000000Z' },
}

/** Rows of docs/architecture.md, section 7; every pair that is not here is refused. */
const allowed: Record<string, ExecutionStatus> = {
  'requested import': 'failed',
  'requested delay': 'delayed',
  'requested wait': 'delayed',
  'requested forbid': 'canceling',
  'requested schedule': 'scheduled',
  'requested reject': 'failed',
  'requested cancel': 'canceled',
  'requested settle': 'failed',
  'delayed due': 'requested',
  'delayed cancel': 'canceled',
  'delayed settle': 'failed',
  'scheduled start': 'running',
  'scheduled reject': 'failed',
  'scheduled cancel': 'canceled',
  'scheduled settle': 'failed',
  'running exit': 'succeeded',
  'running cancel': 'canceling',
  'running lost': 'abandoned',
  'running requeue': 'requested',
  'running settle': 'failed',
  'running expire': 'timeout',
  'running pause': 'pausing',
  'running paused': 'paused',
  'canceling exit': 'canceled',
  'canceling lost': 'canceled',
  'canceling forbid': 'canceled',
  'canceling settle': 'failed',
  'pending respond': 'succeeded',
  'pending expire': 'timeout',
  'pending settle': 'failed',
  'pausing cancel': 'canceled',
  'pausing expire': 'timeout',
  'pausing exit': 'succeeded',
  'pausing paused': 'paused',
  'pausing resume': 'resuming',
  'pausing resumed': 'running',
  'pausing settle': 'failed',
  'paused cancel': 'canceled',
  'paused expire': 'timeout',
  'paused exit': 'succeeded',
  'paused resume': 'resuming',
  'paused resumed': 'running',
  'paused settle': 'failed',
  'resuming cancel': 'canceled',
  'resuming expire': 'timeout',
  'resuming exit': 'succeeded',
  'resuming pause': 'pausing',
  'resuming paused': 'paused',
  'resuming resumed': 'running',
  'resuming settle': 'failed',
}

describe('the state table', () => {
  for (const status of executionStatuses) {
    for (const [kind, event] of Object.entries(events)) {
      const target = allowed[`${status} ${kind}`]
      it(`${status}, ${kind}: ${target ?? 'refused'}`, () => {
        expect(transition(execution(status), event, at)?.status).toBe(target)
      })
    }
  }

  it('knows which statuses are final and which can be cancelled', () => {
    expect(executionStatuses.filter(isFinal)).toEqual(['succeeded', 'failed', 'timeout', 'abandoned', 'canceled'])
    expect(executionStatuses.filter(isCancelable)).toEqual([
      'requested',
      'delayed',
      'scheduled',
      'running',
      'pausing',
      'paused',
      'resuming',
    ])
  })
})

describe('a transition', () => {
  it('adds a log entry and a revision, and leaves the execution it was given alone', () => {
    const before = execution('requested')
    const after = transition(before, { kind: 'schedule' }, at)
    expect(after?.log).toEqual([...before.log, { status: 'scheduled', timestamp: at }])
    expect(after?.revision).toBe(5)
    expect(before.status).toBe('requested')
    expect(before.log).toHaveLength(1)
  })

  it('sets end, duration and result when it is the last one', () => {
    const after = transition(execution('running'), events.exit, at)
    expect(after).toMatchObject({
      end_timestamp: at,
      elapsed_seconds: 2.499999,
      result: { stdout: 'hi' },
      result_size: 15,
    })
  })

  it('is not earlier than the one before it, whatever the clock says', () => {
    const after = transition(execution('running'), events.lost, '2029-12-31T23:00:00.000000Z')
    expect(after).toMatchObject({
      end_timestamp: '2030-01-01T00:00:00.000001Z',
      elapsed_seconds: 0,
      log: [{}, { status: 'abandoned', timestamp: '2030-01-01T00:00:00.000001Z' }],
    })
  })

  it('says who cancelled, in the context at once and in the result at the end', () => {
    const canceling = transition(execution('running'), events.cancel, at)
    expect(canceling?.context).toEqual({ user: 'alice', cancelled_by: 'bob' })
    const canceled = canceling && transition(canceling, events.exit, at)
    expect(canceled?.result).toEqual({ message: 'Action canceled by user.', user: 'bob' })
  })

  it('lets whoever drives the parent agree to the end of a child', () => {
    const child = execution('requested', { parent: '600000000000000000000009' })
    expect(statusAfter(child, events.cancel)).toBe('canceling')
  })

  it('keeps what it asks while it is pending, and knows until when', () => {
    const result = { question: 'Go on?' }
    const pending = transition(execution('running'), { kind: 'exit', status: 'pending', result, ttlSeconds: 60 }, at)
    expect(pending).toMatchObject({
      status: 'pending',
      result,
      due_timestamp: '2030-01-01T00:01:02.500000Z',
      end_timestamp: null,
    })
    const over = pending && transition(pending, events.expire, at)
    expect(over).toMatchObject({ status: 'timeout', result, due_timestamp: null, end_timestamp: at })
    const forEver = transition(execution('running'), { kind: 'exit', status: 'pending', result }, at)
    expect(forEver?.due_timestamp).toBeNull()
  })

  it('says which policy cancelled', () => {
    const canceling = transition(execution('requested'), events.forbid, at)
    expect(canceling).toMatchObject({ status: 'canceling', end_timestamp: null, context: { user: 'alice' } })
    const canceled = canceling && transition(canceling, events.forbid, at)
    expect(canceled?.result).toEqual({ message: 'Action canceled by the policy "p.one".', policy: 'p.one' })
  })

  it('forgets when it was due once it waits for others', () => {
    expect(transition(execution('requested', { due_timestamp: at }), events.wait, at)?.due_timestamp).toBeNull()
  })

  it('forgets when it was due once it is', () => {
    const due = transition(execution('delayed', { due_timestamp: at }), events.due, at)
    expect(due?.due_timestamp).toBeNull()
  })
})
