/** Contract 03, 3.6 to 3.11: what is really run, with what around it, and what comes back. */
import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import { isRunning } from '../helpers/marked-processes.ts'
import { run, runToEnd, waitForStatus, type TestApp } from '../helpers/server.ts'
import { openEvents } from '../helpers/sse.ts'
import { create, rowsOf, startWithExamples } from './support.ts'

let server: TestApp
let folder: string
beforeAll(async () => {
  server = await startWithExamples({
    env: { INHERITED: 'from the server', SVC_LOG__LEVEL: 'DEBUG' },
    settings: { 'actionrunner.pass_environment': 'INHERITED, SVC_*' },
  })
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'svc-cwd-')))
})
afterAll(async () => {
  await server.stop()
  rmSync(folder, { recursive: true })
})

const result = async (parameters: Record<string, unknown>): Promise<Record<string, unknown>> =>
  (await runToEnd(server, parameters)).result
const stdout = async (parameters: Record<string, unknown>): Promise<unknown> => (await result(parameters))['stdout']
const ended = (returnCode: number, out: string, err: string) => ({
  failed: returnCode !== 0,
  succeeded: returnCode === 0,
  return_code: returnCode,
  stdout: out,
  stderr: err,
})

describe('03.6 parameters of local-shell-cmd', () => {
  it('03.6 cmd: given to the shell as it is', async () => {
    expect(await stdout({ cmd: `printf '%s|' "a  b" 'c"d' $((1+2)); echo "\\$HOME"` })).toBe('a  b|c"d|3|$HOME')
  })

  it('03.6 cwd', async () => {
    expect(await stdout({ cmd: 'pwd', cwd: folder })).toBe(folder)
  })

  it('03.6 cwd that does not exist: failed, with error and traceback', async () => {
    const execution = await runToEnd(server, { cmd: 'pwd', cwd: join(folder, 'nothing') })
    expect(execution.status).toBe('failed')
    expect(execution.result).toEqual({
      error: expect.stringContaining(join(folder, 'nothing')),
      traceback: expect.any(String),
    })
  })

  it('03.6 env: values become text', async () => {
    const env = { TEXT: "it's  $HOME", NUMBER: 1.5, YES: true, NONE: null, LIST: [1, 'a'], EMPTY: '' }
    expect(await stdout({ cmd: 'printf "%s|" "$TEXT" "$NUMBER" "$YES" "$NONE" "$LIST" "${EMPTY-unset}"', env })).toBe(
      `it's  $HOME|1.5|True|None|[1,"a"]||`,
    )
  })

  it('03.6 kwarg_op: accepted', async () => {
    expect(await result({ cmd: 'true', kwarg_op: '-' })).toMatchObject({ return_code: 0 })
  })

  it('03.6 timeout: text of a number is accepted, 0 is no limit', async () => {
    expect(await result({ cmd: 'sleep 0.1', timeout: '5' })).toMatchObject({ return_code: 0 })
    expect(await result({ cmd: 'sleep 1.1', timeout: 0 })).toMatchObject({ return_code: 0 })
  })
})

describe('03.7 around the command', () => {
  it('03.7 shell: /bin/sh -c, leading a session of its own, with nothing on stdin', async () => {
    const text = String(
      await stdout({ cmd: 'echo $$; cut -d" " -f6 /proc/$$/stat; readlink /proc/$$/exe; wc -c; readlink -f /bin/sh' }),
    )
    const [pid, session, exe, bytes, shell] = text.split('\n')
    expect(session).toBe(pid)
    expect(exe).toBe(shell)
    expect(bytes?.trim()).toBe('0')
  })

  it('03.7 environment: the server’s, then env, then what the execution is', async () => {
    const execution = await runToEnd(server, {
      cmd: 'env',
      env: { MINE: '1', INHERITED: 'changed', SVC_ACTION_PACK_NAME: 'forged', SVC_ACTION_EXECUTION_ID: 'forged' },
    })
    const variables = new Map(
      String(execution.result['stdout'])
        .split('\n')
        .map((line): [string, string] => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
    )
    expect(variables.get('MINE')).toBe('1')
    expect(variables.get('INHERITED')).toBe('changed')
    expect(variables.get('SVC_ACTION_PACK_NAME')).toBe('core')
    expect(variables.get('SVC_ACTION_EXECUTION_ID')).toBe(execution.id)
    expect(variables.get('SVC_ACTION_API_URL')).toBe(`${server.urls.api}/v1`)
    expect(variables.get('SVC_ACTION_DEBUG')).toBe('False')
    expect(variables.has('SVC_ACTION_AUTH_TOKEN')).toBe(false)
    expect(await stdout({ cmd: 'echo "$INHERITED"' })).toBe('from the server')
  })

  it('03.7 environment: settings of the server are not handed on', async () => {
    expect(await stdout({ cmd: 'env | grep SVC_LOG || echo none' })).toBe('none')
  })

  it('03.7 environment: the API address works', async () => {
    expect(
      await stdout({
        cmd: `"${process.execPath}" -e 'fetch(process.env.SVC_ACTION_API_URL + "/runnertypes/noop").then(async (r) => console.log(r.status))'`,
      }),
    ).toBe('200')
  })
})

describe('03.8 time limit', () => {
  it('03.8 timeout: status, return code, error and what arrived before', async () => {
    const execution = await runToEnd(server, { cmd: 'echo out; echo err >&2; sleep 60', timeout: 3 })
    expect(execution.status).toBe('timeout')
    expect(execution.result).toEqual({
      failed: true,
      succeeded: false,
      return_code: -9,
      stdout: 'out',
      stderr: 'err',
      error: 'Action failed to complete in 3 seconds',
    })
    expect(execution.elapsed_seconds).toBeGreaterThanOrEqual(2.9)
    expect((await server.call('GET', `/v1/executions/${execution.id}/output?output_type=stdout`)).text).toBe('out\n')
  })

  it('03.8 timeout: the whole session is ended, also what ignores TERM', async () => {
    const execution = await runToEnd(server, {
      cmd: 'trap "" TERM; sleep 60 & echo $!; echo $$; while :; do sleep 60; done',
      timeout: 3,
    })
    expect(execution.status).toBe('timeout')
    const pids = String(execution.result['stdout']).split('\n').map(Number)
    expect(pids).toHaveLength(2)
    expect(pids.filter(isRunning)).toEqual([])
  })

  it.each([
    ['-9', 'kill -9 $$', -9],
    ['-15', 'kill -15 $$', -15],
    ['another signal', 'kill -6 $$', -6],
  ])('03.8 a process that ends by itself with %s', async (_, cmd, code) => {
    const execution = await runToEnd(server, { cmd })
    expect([execution.status, execution.result['return_code']]).toEqual(['failed', code])
    expect(execution.result['error']).toMatch(`killed by signal ${-code} (`)
  })
})

describe('03.9 results', () => {
  it('03.9 local: exit 0 succeeds, any other fails', async () => {
    expect(await result({ cmd: 'echo out; echo err >&2' })).toEqual(ended(0, 'out', 'err'))
    for (const code of [1, 2, 126, 255]) expect(await result({ cmd: `exit ${code}` })).toEqual(ended(code, '', ''))
  })

  it('03.9 local: a command that begins with a dash is none of the shell', async () => {
    expect(await result({ cmd: '-c "exit 0"' })).toMatchObject({
      return_code: 127,
      stderr: expect.stringContaining('-c'),
    })
  })

  it('03.6 env: more variables than any system takes are refused before they cost anything', async () => {
    const env = Object.fromEntries(Array.from({ length: 10_001 }, (_, n) => [`V${n}`, '1']))
    expect(await result({ cmd: 'true', env })).toMatchObject({ error: expect.stringContaining('10000 variables') })
  })

  it('03.9 local: unknown command → 127', async () => {
    const execution = await runToEnd(server, { cmd: 'surely-no-such-command' })
    expect(execution.status).toBe('failed')
    expect(execution.result).toMatchObject({ failed: true, succeeded: false, return_code: 127, stdout: '' })
    expect(execution.result['stderr']).toContain('surely-no-such-command')
  })

  it('03.9 local: one trailing newline, then one carriage return, is removed', async () => {
    expect(await stdout({ cmd: String.raw`printf 'a\n'` })).toBe('a')
    expect(await stdout({ cmd: String.raw`printf 'a\n\n'` })).toBe('a\n')
    expect(await stdout({ cmd: String.raw`printf 'a\r\n'` })).toBe('a')
    expect(await stdout({ cmd: String.raw`printf '\n a \n'` })).toBe('\n a ')
  })

  it.each(['1', 'true', '{"a":1}', 'null', '[]'])(
    '03.9 local: stdout is text, also when it reads as JSON: %s',
    async (text) => {
      expect(await stdout({ cmd: `echo '${text}'` })).toBe(text)
    },
  )

  it('03.9 local: any bytes; what is not UTF-8 becomes U+FFFD', async () => {
    expect(await stdout({ cmd: String.raw`printf 'a\377b \303\251 \360\237\230\200 \302'` })).toBe(
      'a\ufffdb é 😀 \ufffd',
    )
  })

  it('03.9 noop', async () => {
    const { body } = await create(server, { action: 'core.noop' })
    expect((await waitForStatus(server, body.id)).result).toEqual({ failed: false, succeeded: true, return_code: 0 })
  })

  it('03.9 start failure: error and traceback, and nothing of the server in them', async () => {
    const execution = await runToEnd(server, { cmd: 'true', cwd: '/does/not/exist' })
    expect(Object.keys(execution.result).toSorted()).toEqual(['error', 'traceback'])
    expect(String(execution.result['traceback'])).not.toMatch(/\.js:|\.ts:|node_modules/)
  })
})

describe('03.10 output records', () => {
  interface Row {
    seq: number
    output_type: string
    data: string
  }
  const records = (id: string): Row[] =>
    rowsOf<Row>(server, 'select seq, output_type, data from output_records where execution_id = ? order by seq', id)

  it('03.10 numbered without gaps, whole lines and the rest at the end, per type in order', async () => {
    const { id } = await runToEnd(server, { cmd: 'seq 1 2000; echo err >&2; printf partial' })
    const rows = records(id)
    expect(rows.map(({ seq }) => seq)).toEqual(rows.map((_, i) => i + 1))
    const text = (type: string): string =>
      rows
        .filter(({ output_type }) => output_type === type)
        .map(({ data }) => data)
        .join('')
    expect(text('stdout')).toBe(`${Array.from({ length: 2000 }, (_, i) => `${i + 1}\n`).join('')}partial`)
    expect(text('stderr')).toBe('err\n')
  })

  it('03.10 hides the secrets of the run and nothing else, in the result as in the output', async () => {
    const execution = await runToEnd(server, { cmd: 'echo visible hidden', sudo_password: 'hidden' })
    expect(execution.result['stdout']).toBe('visible ********')
    expect((await server.call('GET', `/v1/executions/${execution.id}/output`)).text).toBe('visible ********\n')
  })

  it('03.10 actionrunner.stream_output off: no records, result complete, EOF at the end', async () => {
    const silent = await createTestApp({ settings: { 'actionrunner.stream_output': 'False' } })
    try {
      const { id } = await run(silent, { cmd: 'echo hidden; sleep 0.2' })
      const client = await openEvents(`${silent.urls.stream}/v1/executions/${id}/output`)
      expect(await client.ended).toBe('end')
      expect(client.raw()).toBe('event: EOF\ndata:\n\n')
      expect((await waitForStatus(silent, id)).result).toMatchObject({ stdout: 'hidden' })
      expect((await silent.call('GET', `/v1/executions/${id}/output`)).text).toBe('')
    } finally {
      await silent.stop()
    }
  })
})

describe('03.11 health probe', () => {
  it('03.11 an execution of date -R ends without failure', async () => {
    const execution = await runToEnd(server, { cmd: 'date -R' })
    expect(execution.result['failed']).toBe(false)
    expect(Number.isNaN(Date.parse(String(execution.result['stdout'])))).toBe(false)
  })
})
