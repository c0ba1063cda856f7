import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { makeFolder } from '../../../tests/helpers/folders.ts'
import { waitFor } from '../../../tests/helpers/wait.ts'
import { TextSink } from '../../../tests/helpers/text-sink.ts'
import { logLevels, type LogLevel } from './log-levels.ts'
import { createLog, type Log, type LogFile, type LogOptions, type RootLog } from './log.ts'

const now = (): Date => new Date('2030-01-01T10:00:00.123Z')

const unlimited = { maxBytes: 0, backupCount: 1 }

const auditFile = (path: string): LogFile => ({ path, format: 'gelf', takes: [{ level: 'AUDIT' }], ...unlimited })

/** What a log with these options writes while `act` uses it. */
async function written(options: Partial<LogOptions>, act: (log: RootLog) => void): Promise<string> {
  const sink = new TextSink()
  const log = createLog({ level: 'DEBUG', format: 'text', stream: sink, now, ...options })
  act(log)
  await log.close()
  return sink.text
}

const all = (log: Log): Record<LogLevel, Log['info']> => ({
  DEBUG: log.debug,
  INFO: log.info,
  WARNING: log.warning,
  ERROR: log.error,
  CRITICAL: log.critical,
  AUDIT: log.audit,
})

describe('lines', () => {
  it('are text with fields', async () => {
    const text = await written({}, (log) => {
      log.info('server.started', 'Listening.', { port: 9101, path: '/a b', user: 'x', list: [1, 'y'], none: undefined })
      log.audit('token.created', 'Access granted to "x".')
    })
    expect(text).toBe(
      '2030-01-01 10:00:00,123 INFO Listening. (event=server.started, port=9101, path="/a b", user=x, list=[1,"y"])\n' +
        '2030-01-01 10:00:00,123 AUDIT Access granted to "x". (event=token.created)\n',
    )
  })

  it('are JSON on request; fields do not replace our own', async () => {
    const text = await written({ format: 'json' }, (log) =>
      log.warning('a.b', 'Text', { level: 'x', n: 1, event: 'y' }),
    )
    expect(JSON.parse(text)).toEqual({
      timestamp: '2030-01-01T10:00:00.123Z',
      level: 'WARNING',
      event: 'a.b',
      message: 'Text',
      level_: 'x',
      n: 1,
      event_: 'y',
    })
  })

  it.each(logLevels)('of level %s and above are written, AUDIT always', async (level) => {
    const text = await written({ level }, (log) => {
      for (const [name, write] of Object.entries(all(log))) write('a.b', `is ${name}`)
    })
    const levels = text.match(/(?<=is )\w+/g)
    expect(levels).toEqual(logLevels.slice(logLevels.indexOf(level)))
    expect(levels).toContain('AUDIT')
  })

  it('say which levels are enabled, and do not look at the fields of the others', async () => {
    await written({ level: 'WARNING' }, (log) => {
      expect([log.enabled('INFO'), log.enabled('WARNING'), log.enabled('AUDIT')]).toEqual([false, true, true])
      let looked = false
      const fields = {
        get field() {
          looked = true
          return 1
        },
      }
      log.info('a.b', 'Text', fields)
      expect(looked).toBe(false)
      log.warning('a.b', 'Text', fields)
      expect(looked).toBe(true)
    })
  })

  it('let audit events go without a message', async () => {
    const text = await written({}, (log) => log.audit('api_key.created', { id: 1 }))
    expect(text).toContain('AUDIT Api key created. (event=api_key.created, id=1)\n')
  })

  it('carry the fields of child logs', async () => {
    const text = await written({}, (log) => {
      const child = log.child({ request_id: 'r', a: 1 }).child({ a: 2 })
      child.info('a.b', 'Text', { b: 3 })
      log.info('a.b', 'Text')
    })
    expect(text.match(/\(.*\)/g)).toEqual(['(event=a.b, request_id=r, a=2, b=3)', '(event=a.b)'])
  })

  it('tell errors with code and causes', async () => {
    const error = new Error('outer', { cause: Object.assign(new TypeError('inner'), { code: 'E_X' }) })
    const text = await written({}, (log) => log.error('a.b', 'Failed', { error }))
    expect(text).toMatch(/error="Error: outer at .*log\.test\.ts.*; caused by TypeError E_X: inner at .*"\)\n$/)
    const record: unknown = JSON.parse(
      await written({ format: 'json' }, (log) => log.error('a.b', 'Failed', { error })),
    )
    expect(record).toMatchObject({ error: { message: 'outer', cause: { code: 'E_X', message: 'inner' } } })
  })
})

describe.each(['text', 'json'] as const)('hostile content in %s lines', (format) => {
  it('is masked under secret names at any depth, at every level', async () => {
    const canary = 'canary-5f3a'
    const text = await written({ format, maskNames: ['pin'] }, (log) => {
      const fields = {
        password: canary,
        request: { headers: { 'x-auth-token': canary, authorization: [canary] }, query: [{ pin: canary }] },
        details: new Map([['svc_auth_token', { value: canary }]]),
        error: Object.assign(new Error('x'), { config: { token: canary } }),
      }
      for (const write of Object.values(all(log.child({ secret: canary })))) write('a.b', 'Text', fields)
    })
    expect(text.split('\n')).toHaveLength(7)
    expect(text).not.toContain(canary)
    const shown = await written({ format, maskSecrets: false }, (log) => log.info('a.b', 'Text', { password: canary }))
    expect(shown).toContain(canary)
  })

  const nasty = [
    'a\nb',
    'a\r\n2030-01-01 10:00:00,123 AUDIT forged',
    '\0',
    '\u001b[2J\u001b]0;title\u0007',
    '\ud800',
    '\udc00\ud800',
    '\u2028\u2029\u0085\u000b\u000c',
    '\u202e\u2066\ufeff',
    '"}\n{"level":"INFO"',
    Buffer.from([0xff, 0xfe, 0x0a]).toString('latin1'),
    `${'😀'.repeat(5000)}\n`,
  ]
  it('stays one printable line wherever it stands', async () => {
    const text = await written({ format }, (log) => {
      for (const value of nasty) {
        log.info('a.b', value)
        log.info(value, 'Text')
        log.info('a.b', 'Text', { value, [value]: 1, nested: { [value]: [value] }, error: new Error(value) })
      }
    })
    const lines = text.split('\n')
    expect(lines.pop()).toBe('')
    expect(lines).toHaveLength(nasty.length * 3)
    expect(lines.filter((line) => /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u.test(line))).toEqual([])
    const begins = format === 'json' ? '{"timestamp":"2030-01-01T10:00:00.123Z"' : '2030-01-01 10:00:00,123 INFO '
    expect(lines.filter((line) => !line.startsWith(begins))).toEqual([])
    if (format === 'json') for (const line of lines) JSON.parse(line)
  })

  it('is bounded in size, and in what it looks at', async () => {
    const megabyte = '\u001b'.repeat(1_000_000)
    const text = await written({ format }, (log) => {
      const wide = Object.fromEntries(Array.from({ length: 10_000 }, (_, index) => [`key${index}`, megabyte]))
      log.info('a.b', megabyte, wide)
      log.info('a.b', 'Text', { wide, list: Array.from({ length: 100_000 }, () => wide), error: new Error(megabyte) })
    })
    expect(text.length).toBeLessThan(1_000_000)
  })

  it('neither throws nor makes the log call itself', async () => {
    const text = await written({ format }, (log) => {
      const fields = {
        get reentrant() {
          log.error('inner', 'Inner', fields)
          return 1
        },
        get throwing(): number {
          throw new Error('boom')
        },
      }
      log.info('a.b', 'Nested', { fields })
      log.info('a.b', 'Outer', fields)
      const { proxy, revoke } = Proxy.revocable({}, {})
      revoke()
      log.info('a.b', 'Revoked', proxy)
    })
    const lines = text.trim().split('\n')
    expect(lines).toHaveLength(3)
    for (const [index, message] of ['Nested', 'Outer', 'Revoked'].entries()) {
      expect(lines[index]).toContain(message)
      expect(lines[index]).toContain('[unreadable]')
    }
  })
})

describe('the stream', () => {
  it('gets everything before close resolves, and late lines too', async () => {
    let text = ''
    let pending: (() => void) | undefined
    const stream = new Writable({
      write: (chunk: Buffer, _encoding, done) => {
        text += chunk.toString()
        pending = done
      },
    })
    const log = createLog({ level: 'INFO', format: 'text', stream, now })
    for (let index = 0; index < 100; index += 1) log.info('a.b', `line ${index}.`)
    const closed = log.close()
    expect(log.close()).toBe(closed)
    log.info('a.b', 'late.')
    const release = (): void => {
      const done = pending
      pending = undefined
      done?.()
    }
    let resolved = false
    const observed = closed.then(() => (resolved = true))
    while (!resolved) {
      release()
      await new Promise((resolve) => setImmediate(resolve))
    }
    await observed
    for (let index = 0; index < 100; index += 1) expect(text).toContain(`line ${index}.`)
    while (!text.includes('late.')) {
      release()
      await new Promise((resolve) => setImmediate(resolve))
    }
    release()
  })

  it('costs bounded memory while nobody reads, and the loss is told', async () => {
    let stuck = true
    const waiting: (() => void)[] = []
    let last = ''
    const stream = new Writable({
      decodeStrings: false,
      write: (chunk: string, _encoding, done) => {
        last = chunk === '' ? last : chunk
        if (stuck) waiting.push(done)
        else done()
      },
    })
    const log = createLog({ level: 'INFO', format: 'text', stream, now })
    for (let index = 0; index < 20_000; index += 1) {
      log.info('a.b', 'x'.repeat(2000))
      if (index % 10 === 0) await new Promise((resolve) => setImmediate(resolve))
    }
    expect(stream.writableLength).toBeLessThan(9 * 1024 * 1024)
    stuck = false
    for (const done of waiting) done()
    while (stream.writableLength > 0) await new Promise((resolve) => setImmediate(resolve))
    log.info('a.b', 'after.')
    await log.close()
    const dropped = Number(/event=log\.lines_dropped, dropped=(\d+)/.exec(last)?.[1])
    expect(dropped).toBeGreaterThan(10_000)
    expect(dropped).toBeLessThan(20_000)
    expect(last).toContain('after.')
  })

  it('may break without taking the process along', async () => {
    const stream = new Writable({ write: (_chunk, _encoding, done) => done(new Error('EPIPE')) })
    const log = createLog({ level: 'INFO', format: 'text', stream, now })
    log.info('a.b', 'one')
    await new Promise((resolve) => setImmediate(resolve))
    log.info('a.b', 'two')
    await log.close()
    expect(stream.destroyed).toBe(true)
  })

  it('is standard error by default, complete when the process exits after close', async () => {
    const program = `
      const { createLog } = await import(${JSON.stringify(new URL('./log.ts', import.meta.url).href)})
      const log = createLog({ level: 'INFO', format: 'text' })
      for (let i = 0; i < 2000; i += 1) log.info('a.b', 'x'.repeat(1000), { i })
      await log.close()
      process.exit(0)`
    const { stdout, stderr } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program], {
      maxBuffer: 64 * 1024 * 1024,
    })
    expect(stdout).toBe('')
    const lines = stderr.trim().split('\n')
    expect(lines).toHaveLength(2000)
    expect(lines.at(-1)).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} INFO x+ \(event=a\.b, i=1999\)$/)
  })
})

describe('the audit file', () => {
  /** The lines of standard error and of the audit file. */
  async function audited(
    options: Partial<LogOptions>,
    act: (log: Log) => void,
  ): Promise<{ text: string; file: string[] }> {
    const folder = makeFolder()
    try {
      const path = join(folder.path, 'audit.log')
      const text = await written({ ...options, files: [auditFile(path)] }, act)
      return { text, file: readFileSync(path, 'utf8').split('\n').slice(0, -1) }
    } finally {
      folder.remove()
    }
  }

  it('holds audit lines alone, each an object', async () => {
    const { text, file } = await audited({ level: 'DEBUG' }, (log) => {
      log.critical('a.b', 'Not this.')
      log.child({ request_id: 'r1' }).audit('token.issued', 'Access granted to "x y".', { user: 'x y', count: 2 })
    })
    const plain =
      '2030-01-01 10:00:00,123 AUDIT Access granted to "x y". (event=token.issued, request_id=r1, user="x y", count=2)'
    expect(text.split('\n')).toContain(plain)
    expect(file.map((line): unknown => JSON.parse(line))).toEqual([
      {
        version: '1.1',
        host: hostname(),
        short_message: 'Access granted to "x y".',
        full_message: plain,
        timestamp: 1_893_492_000,
        timestamp_f: 1_893_492_000.123,
        level: 6,
        _python: { name: 'svc', process: process.pid, module: 'token' },
        _event: 'token.issued',
        _request_id: 'r1',
        _user: 'x y',
        _count: 2,
      },
    ])
  })

  it('has the plain line also when the log is JSON', async () => {
    const { text, file } = await audited({ format: 'json' }, (log) => log.audit('a.b', 'Text.'))
    expect(JSON.parse(text)).toMatchObject({ level: 'AUDIT', message: 'Text.' })
    expect(JSON.parse(file[0] ?? '')).toMatchObject({ full_message: '2030-01-01 10:00:00,123 AUDIT Text. (event=a.b)' })
  })

  it('tells of an error what it was and where', async () => {
    const { file } = await audited({}, (log) => log.audit('a.b', 'Text.', { error: new RangeError('too far') }))
    const [record] = file.map((line) => JSON.parse(line) as Record<string, unknown>)
    expect(record).toMatchObject({ _exception: 'RangeError: too far', _error: { name: 'RangeError' } })
    expect(record?.['_traceback']).toContain('log.test.ts')
  })

  it('is one line of strict JSON a message, whatever the values hold', async () => {
    const hostile = [
      '\ud800',
      '\udc00x',
      '\\ud800 is text',
      '\\\ud800',
      '\0\n\r\u2028\u001b[31m"',
      '\u{e0041}\u{1f600}',
    ]
    const { file } = await audited({}, (log) => {
      for (const value of hostile) log.audit(value, value, { [value]: value, deep: { [value]: [value] }, id: value })
      log.audit('a.b', 'Names of ours', {
        event: 1,
        python: 2,
        exception: 3,
        traceback: 4,
        id: 5,
        level: 7,
      })
    })
    expect(file).toHaveLength(hostile.length + 1)
    for (const [index, value] of hostile.entries()) {
      const line = file[index] ?? ''
      expect(line).toMatch(/^[\P{Cc}]*$/u)
      const record = JSON.parse(line) as Record<string, unknown>
      const expected = value.toWellFormed()
      expect(record).toMatchObject({ _event: expected, _deep: { [expected]: [expected] }, _id_: expected })
      expect(record['short_message']).toBe(expected)
      expect(JSON.stringify(record)).not.toMatch(/(?<!\\)(\\\\)*\\ud[89a-f]/)
    }
    expect(JSON.parse(file.at(-1) ?? '')).toMatchObject({
      _event: 'a.b',
      _event_: 1,
      _python_: 2,
      _exception_: 3,
      _traceback_: 4,
      _id_: 5,
      _level: 7,
      level: 6,
    })
  })

  it('masks what the log masks', async () => {
    const secret = 'canary-3f9a'
    const { text, file } = await audited({ maskNames: ['pin'] }, (log) =>
      log.child({ token: secret }).audit('a.b', 'Text.', {
        password: secret,
        pin: secret,
        nested: [{ Authorization: secret, 'X-Auth-Token': secret }],
        error: Object.assign(new Error('failed'), { config: { headers: secret } }),
      }),
    )
    expect(text + file.join()).not.toContain(secret)
    expect(JSON.parse(file[0] ?? '')).toMatchObject({ _password: '********', _pin: '********', _token: '********' })
  })

  it('that takes no lines is said once, on standard error, and costs the process nothing', async () => {
    const text = await written({ files: [auditFile('/dev/full')] }, (log) => {
      for (let index = 0; index < 1000; index += 1) log.audit('a.b', `Line ${index}.`)
    })
    expect(text.match(/AUDIT Line/g)).toHaveLength(1000)
    const told = text.split('\n').filter((line) => line.includes('log.audit_lost'))
    expect(told).toEqual([
      expect.stringMatching(/ ERROR .*file=\/dev\/full.*ENOSPC/),
      expect.stringMatching(/ ERROR .*lost=1000/),
    ])
  })
})

describe('AUDIT messages on standard error', () => {
  const act = (log: RootLog): void => {
    log.audit('a.b', 'One.')
    log.info('c.d', 'Two.')
  }

  it('are those that no file takes, if so wanted', async () => {
    const folder = makeFolder()
    try {
      const at = (name: string): string => join(folder.path, name)
      const kept = await written({ audit: 'unfiled', files: [auditFile(at('audit'))] }, act)
      expect(kept).not.toContain('One.')
      expect(kept).toContain('Two.')
      expect(readFileSync(at('audit'), 'utf8')).toContain('One.')
      expect(await written({ audit: 'unfiled' }, act)).toContain('One.')
      const ofPart = { ...auditFile(at('part')), takes: [{ level: 'AUDIT', part: 'auth' }] as const }
      expect(await written({ audit: 'unfiled', files: [ofPart] }, act)).toContain('One.')
    } finally {
      folder.remove()
    }
  })

  it('include those of a file that cannot be written', async () => {
    const sink = new TextSink()
    const files = [auditFile('/dev/full')]
    const log = createLog({ level: 'INFO', format: 'text', stream: sink, now, audit: 'unfiled', files })
    log.audit('a.b', 'First.')
    await waitFor('the failure', () => sink.text.includes('its lines are only on standard error'))
    log.audit('a.b', 'Second.')
    await log.close()
    expect(sink.text).toContain('Second.')
  })
})

describe('files', () => {
  it('hold what is severe enough, of their part, in their form; standard error has its own level', async () => {
    const folder = makeFolder()
    try {
      const at = (name: string): string => join(folder.path, name)
      const text = await written(
        {
          level: 'ERROR',
          files: [
            { path: at('all'), format: 'json', takes: [{ level: 'INFO' }], ...unlimited },
            {
              path: at('some'),
              format: 'text',
              takes: [
                { level: 'DEBUG', part: 'auth' },
                { level: 'AUDIT', part: 'api' },
              ],
              ...unlimited,
            },
          ],
        },
        (log) => {
          const auth = log.of('auth').child({ request_id: 'r' })
          expect([log.enabled('DEBUG'), auth.enabled('DEBUG'), log.enabled('INFO')]).toEqual([false, true, true])
          for (const one of [log, auth, log.of('stream')]) {
            one.debug('a.debug', 'd')
            one.info('a.info', 'i')
            one.error('a.error', 'e')
            one.audit('a.audit', 'a')
          }
        },
      )
      const linesOf = (name: string): string[] => readFileSync(at(name), 'utf8').split('\n').slice(0, -1)
      const events = (lines: string[]): unknown[] => lines.map((line) => /event=a\.(\w+)/.exec(line)?.[1])
      expect(events(text.split('\n').slice(0, -1))).toEqual(['error', 'audit', 'error', 'audit', 'error', 'audit'])
      const all = linesOf('all').map((line) => (JSON.parse(line) as { event: string }).event)
      expect(all).toEqual(Array.from({ length: 3 }, () => ['a.info', 'a.error', 'a.audit']).flat())
      expect(events(linesOf('some'))).toEqual(['audit', 'debug', 'info', 'error', 'audit'])
      expect(linesOf('some')[1]).toBe('2030-01-01 10:00:00,123 DEBUG d (event=a.debug, request_id=r)')
    } finally {
      folder.remove()
    }
  })

  it('say which of them cannot be opened, and leave none open', () => {
    const at = (path: string): LogFile => ({ path, format: 'text', takes: [{ level: 'INFO' }], ...unlimited })
    const open = (): Log => createLog({ level: 'INFO', format: 'text', files: [at('/dev/null'), at('/proc')] })
    expect(open).toThrow(expect.objectContaining({ path: '/proc' }))
  })
})

describe('excludes', () => {
  it('leave out events and those below them, never AUDIT messages', async () => {
    const text = await written({ excludes: ['request', 'pack.changed'] }, (log) => {
      for (const event of ['request', 'request.received', 'requests.x', 'pack.changed', 'pack.gone']) {
        log.error(event, 'Text.')
      }
      log.audit('request.made', 'Text.')
    })
    expect(text.match(/event=[\w.]+/g)).toEqual(['event=requests.x', 'event=pack.gone', 'event=request.made'])
  })
})

describe('what is kept for those who ask', () => {
  it('is the last 50 messages at WARNING or above, masked and cut, whatever the level of the log', () => {
    const log = createLog({ level: 'WARNING', format: 'json', stream: new TextSink(), now })
    for (let i = 0; i < 60; i += 1) log.warning('a.b', `Message ${i}`, { password: 'geheim', long: 'x'.repeat(3000) })
    log.audit('c.d', 'No problem.')
    log.error('e.f', 'The last one')
    const recent = log.recent()
    expect(recent).toHaveLength(50)
    expect(recent[0]?.message).toBe('Message 11')
    expect(recent.at(-1)).toEqual({
      timestamp: '2030-01-01T10:00:00.123Z',
      level: 'ERROR',
      event: 'e.f',
      message: 'The last one',
      line: '2030-01-01 10:00:00,123 ERROR The last one (event=e.f)',
    })
    expect(JSON.stringify(recent)).not.toContain('geheim')
    expect(Math.max(...recent.map(({ line }) => line.length))).toBeLessThan(1100)
    expect(log.counts()).toMatchObject({ DEBUG: 0, WARNING: 60, ERROR: 1, AUDIT: 1 })
  })
})
