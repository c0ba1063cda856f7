import { describe, expect, test } from 'vitest'
import type { ExecutionStatus } from '../../core/execution-status.ts'
import {
  createExecutionLines,
  MAX_FAILURES_PER_SECOND,
  MAX_LINES_PER_SECOND,
  type ExecutionLines,
  type ShownExecution,
} from './execution-lines.ts'

function open(options: { isColored?: boolean; isUnicode?: boolean } = {}) {
  const written: string[] = []
  let at = 0
  const lines = createExecutionLines({
    write: (line) => written.push(line),
    isColored: false,
    isUnicode: true,
    now: () => at,
    ...options,
  })
  return { lines, written, text: () => written.join(''), pass: (ms: number) => (at += ms) }
}

const execution = (id: string, fields: Partial<ShownExecution> = {}): ShownExecution => ({
  id,
  action_ref: 'core.local',
  user: 'svc',
  parent: null,
  status: 'running',
  elapsed_seconds: null,
  origin: null,
  ...fields,
})

const start = ({ show }: ExecutionLines, id: string, fields: Partial<ShownExecution> = {}): void =>
  show(execution(id, fields), 'scheduled')

function end(
  { show }: ExecutionLines,
  id: string,
  status: ExecutionStatus = 'succeeded',
  fields: Partial<ShownExecution> = {},
): void {
  show(execution(id, { status, elapsed_seconds: 0.1, ...fields }), 'running')
}

describe('lines of executions', () => {
  test('say start and end; the end names what has ended when another line came between', () => {
    const { lines, text } = open()
    start(lines, 'a')
    end(lines, 'a')
    start(lines, 'b', { origin: { rule: { ref: 'default.on_order' } } })
    start(lines, 'c')
    end(lines, 'b', 'failed', { result: { return_code: 3, stdout: 'canary' }, elapsed_seconds: 75.4 })
    end(lines, 'c', 'timeout', { elapsed_seconds: 3700 })
    start(lines, 'd')
    end(lines, 'd', 'failed', { result: { exit_code: -9, error: 'canary' }, elapsed_seconds: 0.012 })
    start(lines, 'e')
    end(lines, 'e', 'failed', { result: { status_code: 404, body: 'canary' }, elapsed_seconds: 12.3 })
    end(lines, 'f', 'canceled', { elapsed_seconds: null })
    end(lines, 'g', 'failed', { result: 'canary' })
    expect(text()).toBe(
      [
        '▶ core.local  a  svc',
        '✔ 0.1 s',
        '▶ core.local  b  svc  rule default.on_order',
        '▶ core.local  c  svc',
        '✖ core.local  b  exit 3  1 min 15 s',
        '✖ core.local  c  timed out  1 h 1 min',
        '▶ core.local  d  svc',
        '✖ exit -9  12 ms',
        '▶ core.local  e  svc',
        '✖ failed: HTTP status 404  12 s',
        '✖ core.local  f  canceled',
        '✖ core.local  g  failed  0.1 s',
        '',
      ].join('\n'),
    )
  })

  test('indent the executions of a workflow, and say what waits', () => {
    const { lines, text } = open()
    start(lines, 'w', { action_ref: 'demo.flow' })
    start(lines, 'x', { parent: 'w' })
    start(lines, 'y', { parent: 'x' })
    end(lines, 'y', 'succeeded', { parent: 'x' })
    lines.show(execution('x', { parent: 'w', status: 'pending' }), 'running')
    end(lines, 'x', 'succeeded', { parent: 'w' })
    lines.show(execution('w', { action_ref: 'demo.flow', status: 'paused' }), 'pausing')
    lines.show(execution('w', { action_ref: 'demo.flow' }), 'resuming')
    end(lines, 'w', 'abandoned', { action_ref: 'demo.flow' })
    expect(text()).toBe(
      [
        '▶ demo.flow  w  svc',
        '  ▶ core.local  x  svc',
        '    ▶ core.local  y  svc',
        '    ✔ 0.1 s',
        '  … core.local  x  pending',
        '  ✔ core.local  x  0.1 s',
        '… demo.flow  w  paused',
        '✖ demo.flow  w  abandoned  0.1 s',
        '',
      ].join('\n'),
    )
  })

  test('of a flood are counted, with the failures that there is no room for', () => {
    const { lines, written, text, pass } = open()
    for (let n = 0; n < 1000; n += 1) {
      start(lines, `s${n}`)
      end(lines, `s${n}`, n % 10 === 0 ? 'failed' : 'succeeded')
    }
    expect(written).toHaveLength(MAX_LINES_PER_SECOND + MAX_FAILURES_PER_SECOND)
    pass(1000)
    start(lines, 'next')
    expect(written.slice(MAX_LINES_PER_SECOND + MAX_FAILURES_PER_SECOND)).toEqual([
      '… 990 started, 891 succeeded, 89 failed more within a second\n',
      '▶ core.local  next  svc\n',
    ])
    lines.close()
    expect(text().split('\n')).toHaveLength(MAX_LINES_PER_SECOND + MAX_FAILURES_PER_SECOND + 3)
  })

  test('never carry what a terminal obeys, and are of limited length', () => {
    const { lines, text } = open()
    const name = `\u001b[2J\u0007\u202e\n${'x'.repeat(100_000)}`
    start(lines, 'a', { action_ref: name, user: name, origin: { rule: { ref: name } } })
    expect(text()).toMatch(/^▶ [\x20-\x7e]*\\u001b\[2J\\u0007\\u202e\\n[^\p{Cc}]*\n$/u)
    expect(text().length).toBeLessThan(600)
  })

  test('are coloured, or plain where the terminal shows no more', () => {
    const colored = open({ isColored: true })
    start(colored.lines, 'a')
    end(colored.lines, 'a', 'failed')
    expect(colored.text()).toBe(
      '\u001b[36m▶\u001b[39m core.local  \u001b[2ma\u001b[22m  svc\n\u001b[31m✖\u001b[39m \u001b[31mfailed\u001b[39m  0.1 s\n',
    )
    const plain = open({ isUnicode: false })
    start(plain.lines, 'a')
    end(plain.lines, 'a')
    start(plain.lines, 'b')
    end(plain.lines, 'b', 'failed')
    expect(plain.text()).toBe('> core.local  a  svc\n+ 0.1 s\n> core.local  b  svc\nx failed  0.1 s\n')
  })
})
