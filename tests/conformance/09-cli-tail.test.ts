/** Contract 09, 9.5: following output, also of all that an execution starts, against a real server; and hostile streams. */
import type { ServerResponse } from 'node:http'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import { runCli, startCli, waitForOutput, type CliExit } from '../helpers/cli.ts'
import { startCuttingProxy } from '../helpers/cutting-proxy.ts'
import { makeFolder } from '../helpers/folders.ts'
import { startFront } from '../helpers/front.ts'
import { firstPassword, signIn } from '../helpers/logins.ts'
import { startAtTerminal } from '../helpers/pty.ts'
import { executable, startServer, type TestApp } from '../helpers/server.ts'
import { findPort } from '../helpers/slapd.ts'
import { fullOnly, tier } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'

const folder = makeFolder()
let server: TestApp

beforeAll(async () => {
  server = await createTestApp({ settings: { 'actionrunner.max_concurrent_executions': '40' } })
})
afterAll(async () => {
  await server.stop()
  folder.remove()
})

const env = (more: Record<string, string> = {}): Record<string, string> => ({
  HOME: folder.path,
  SVC_API_URL: `${server.urls.api}/v1`,
  ...more,
})
const tail = (...args: string[]): Promise<CliExit> => runCli(['execution', 'tail', ...args], env())

let gates = 0
/** Commands that wait for it go on when it is opened. */
function makeGate(): { wait: string; open(): void } {
  const path = join(folder.path, `gate-${(gates += 1)}`)
  return { wait: `until [ -e ${path} ]; do sleep 0.05; done`, open: () => writeFileSync(path, '') }
}

async function run(cmd: string, parent?: string, at = server, headers = {}): Promise<string> {
  const { status, body, text } = await at.call<{ id: string }>(
    'POST',
    '/v1/executions',
    {
      action: 'core.local',
      // What a test holds back does not end by itself, however busy the machine is.
      parameters: { cmd, timeout: 0 },
      ...(parent === undefined ? {} : { context: { parent: { execution_id: parent } } }),
    },
    headers,
  )
  if (status !== 201) throw new Error(text)
  return body.id
}

function untilStatus(id: string, wanted: string, at = server): Promise<unknown> {
  return waitFor(`${id} to be ${wanted}`, async () => {
    const { body } = await at.call<{ status: string }>('GET', `/v1/executions/${id}?include_attributes=status`)
    return body.status === wanted
  })
}

const started = (id: string): string => `Child execution (action=core.local) ${id} has started.`
const finished = (id: string, status = 'succeeded'): string =>
  `Child execution (action=core.local) ${id} has finished (status=${status}).`
const completed = (id: string, status = 'succeeded'): string => `\nExecution ${id} has completed (status=${status}).\n`

/** What each of several has written, by the letter its lines begin with. */
function linesOf(stdout: string, letter: string): string[] {
  return stdout.split('\n').filter((line) => line.startsWith(`${letter} `))
}

describe('09.5 tail --nested', () => {
  it('ends, too, where the stream of events ends before it has begun', async () => {
    let openings = 0
    const fake = await startFront((request, response) => {
      const path = request.url ?? ''
      const isStream = path.includes('/stream') || path.endsWith('/output')
      response.setHeader('Content-Type', isStream ? 'text/event-stream' : 'application/json')
      if (path.includes('/stream')) openings += 1
      else if (path.endsWith('/output')) response.write('event: EOF\ndata:\n\n')
      else if (path.includes('/children')) response.write('[]')
      else response.write(JSON.stringify({ id: 'a1', status: openings === 0 ? 'running' : 'succeeded' }))
      response.end()
    })
    try {
      const address = `${fake.url}/v1`
      const addresses = { HOME: folder.path, SVC_API_URL: address, SVC_STREAM_URL: address }
      const { code, stdout, stderr } = await runCli(['execution', 'tail', 'a1', '--nested'], addresses)
      expect([code, stdout, stderr]).toEqual([0, expect.stringContaining(completed('a1')), ''])
      expect(openings).toBeGreaterThan(0)
    } finally {
      await fake.close()
    }
  })

  it('09.5 children of any depth, made before and after it began; it ends when all have ended', async () => {
    const [first, second, last] = [makeGate(), makeGate(), makeGate()]
    const root = await run(`echo r 1; ${first.wait}; echo r 2`)
    const early = await run(`echo a 1; ${second.wait}; echo a 2; exit 3`, root)
    await untilStatus(early, 'running')
    const cli = startCli(['execution', 'tail', root, '--nested'], env())
    await waitForOutput(
      cli,
      'the output of both',
      () => cli.stdout().includes('r 1\n') && cli.stdout().includes('a 1\n'),
    )
    const late = await run(`echo b 1; ${last.wait}; printf 'b 2'`, root)
    const grandchild = await run('echo c 1', early)
    await waitForOutput(cli, 'the grandchild', () => cli.stdout().includes(finished(grandchild)))
    await waitForOutput(cli, 'the late child', () => cli.stdout().includes('b 1\n'))
    first.open()
    await untilStatus(root, 'succeeded')
    second.open()
    await waitForOutput(cli, 'the end of a child', () => cli.stdout().includes(finished(early, 'failed')))
    expect(cli.stdout()).not.toContain('has completed')
    // Its parent is over by now.
    const afterwards = await run('echo d 1', early)
    await waitForOutput(cli, 'what was made last', () => cli.stdout().includes(finished(afterwards)))
    last.open()
    const { code, stdout, stderr } = await cli.exit
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout.endsWith(`\nb 2\n${finished(late)}\n${completed(root)}`)).toBe(true)
    const told = stdout.split('\n').filter((line) => line !== '')
    expect(told.toSorted()).toEqual(
      [
        'r 1',
        'r 2',
        'a 1',
        'a 2',
        'b 1',
        'b 2',
        'c 1',
        'd 1',
        `Execution ${root} has started.`,
        completed(root).trim(),
        ...[early, late, grandchild, afterwards].map(started),
        ...[late, grandchild, afterwards].map((id) => finished(id)),
        finished(early, 'failed'),
      ].toSorted(),
    )
    for (const id of [early, late, grandchild, afterwards]) {
      expect(told.indexOf(started(id))).toBeLessThan(
        told.findIndex((line) => line.startsWith(finished(id, '').slice(0, -3))),
      )
    }
  })

  it('09.5 as JSON and YAML each piece is a record with its execution; what we say goes to standard error', async () => {
    const root = await run('printf "one\\ntwo"')
    await untilStatus(root, 'succeeded')
    const child = await run('echo three >&2', root)
    await untilStatus(child, 'succeeded')
    const { code, stdout, stderr } = await tail(root, '--nested', '-j')
    expect([code, stdout.endsWith('\n')]).toEqual([0, true])
    const lines = stdout.trimEnd().split('\n')
    const pieces = lines.map((line) => JSON.parse(line) as { data: string; execution_id: string; output_type: string })
    const textOf = (id: string, type: string): string =>
      pieces.map((each) => (each.execution_id === id && each.output_type === type ? each.data : '')).join('')
    expect([textOf(root, 'stdout'), textOf(child, 'stderr')]).toEqual(['one\ntwo', 'three\n'])
    expect(Object.keys(pieces[0] ?? {})).toEqual(['data', 'execution_id', 'output_type', 'timestamp'])
    expect(stderr).toBe(`${started(child)}\n${finished(child)}\nExecution ${root} has completed (status=succeeded).\n`)
    const yaml = await tail(child, '-y')
    expect([yaml.code, yaml.stdout]).toEqual([
      0,
      expect.stringMatching(new RegExp(`^---\\ndata: [^]*three[^]*\\nexecution_id: ${child}\\noutput_type: stderr\\n`)),
    ])
  })

  it('09.5 all over: one after the other, in the order in which they were made', async () => {
    const root = await run('echo r 1')
    await untilStatus(root, 'succeeded')
    const child = await run("echo 'a 1'; echo 'a 2' >&2; printf 'a 3'", root)
    await untilStatus(child, 'succeeded')
    const grandchild = await run('exit 4', child)
    await untilStatus(grandchild, 'failed')
    const last = await run('echo b 1', root)
    await untilStatus(last, 'succeeded')
    const { code, stdout, stderr } = await tail(root, '--nested')
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout.replace('a 2\n', '')).toBe(
      `r 1\n${started(child)}\na 1\na 3\n${finished(child)}\n` +
        `${started(grandchild)}\n${finished(grandchild, 'failed')}\n` +
        `${started(last)}\nb 1\n${finished(last)}\n${completed(root)}`,
    )
    expect(stdout).toContain('a 2\n')
    // Only of itself, without.
    expect((await tail(root)).stdout).toBe(`r 1\n${completed(root)}`)
    const errors = await tail(root, '--nested', '--type', 'stderr', '--include-metadata')
    expect(errors.stdout).toMatch(
      new RegExp(`^Child execution \\S+ ${child} has started\\.\n\\[\\S+Z\\]\\[stderr\\]\\[${child}\\] a 2\n`),
    )
  })

  fullOnly(it)(
    '09.5 lines of many that write at once stay whole; over connections that break, none is lost or comes twice',
    async () => {
      const proxy = await startCuttingProxy(server.urls.api, 24_000)
      const gate = makeGate()
      const letters = 'ABCDEFGHIJKLMNOPQRST'.split('')
      try {
        const root = await run(`${gate.wait}; seq -f 'r %.0f' 1 500`)
        const stream = `http://127.0.0.1:${proxy.port}/stream/v1`
        const cli = startCli(['--stream-url', stream, 'execution', 'tail', root, '--nested'], env())
        await waitForOutput(cli, 'the start', () => cli.stdout().includes('has started'))
        // More than are followed at once, each of which writes in pieces of lines.
        const children = []
        for (const letter of letters) {
          const cmd = `for n in $(seq 1 300); do printf '${letter} '; printf $n; printf ' %0200d' 0; echo ' end'; done`
          children.push(await run(cmd, root))
        }
        gate.open()
        const { code, stdout } = await cli.exit
        expect(code).toBe(0)
        expect(linesOf(stdout, 'r')).toEqual(Array.from({ length: 500 }, (_, index) => `r ${index + 1}`))
        const zeros = '0'.repeat(200)
        for (const letter of letters) {
          const wanted = Array.from({ length: 300 }, (_, index) => `${letter} ${index + 1} ${zeros} end`)
          expect(linesOf(stdout, letter)).toEqual(wanted)
        }
        for (const id of children) {
          expect(stdout.split(started(id))).toHaveLength(2)
          expect(stdout.split(finished(id))).toHaveLength(2)
        }
        expect(proxy.cuts()).toBeGreaterThan(3)
      } finally {
        gate.open()
        await proxy.stop()
      }
    },
  )

  fullOnly(it)('09.5 a server that is killed and started again', async () => {
    const place = makeFolder()
    const settings = { 'actionrunner.shutdown_grace_seconds': '0', 'api.port': String(await findPort()) }
    const first = await startServer({ basePath: place.path, settings })
    let second: TestApp | undefined
    const root = await run('echo r 1; sleep 1000', undefined, first)
    const child = await run('echo a 1; sleep 1000', root, first)
    const cli = startCli(['execution', 'tail', root, '--nested'], env({ SVC_API_URL: first.urls.api }))
    try {
      await waitForOutput(
        cli,
        'the output of both',
        () => cli.stdout().includes('r 1\n') && cli.stdout().includes('a 1\n'),
      )
      await first.stop('SIGKILL')
      second = await createTestApp({ basePath: place.path, settings })
      const { code, stdout } = await cli.exit
      expect(code).toBe(0)
      expect(
        stdout
          .split('\n')
          .filter((line) => line !== '')
          .toSorted(),
      ).toEqual(
        [
          `Execution ${root} has started.`,
          'r 1',
          started(child),
          'a 1',
          finished(child, 'abandoned'),
          completed(root, 'abandoned').trim(),
        ].toSorted(),
      )
    } finally {
      cli.process.kill('SIGKILL')
      await second?.stop()
      place.remove()
    }
  })

  it('09.5 Ctrl-C: 130, whatever is open', async () => {
    const root = await run('echo r 1; sleep 1000')
    const children = await Promise.all(['a', 'b'].map((letter) => run(`echo ${letter} 1; sleep 1000`, root)))
    const cli = startCli(['execution', 'tail', root, '--nested'], env())
    for (const letter of ['r', 'a', 'b']) await waitForOutput(cli, letter, () => cli.stdout().includes(`${letter} 1\n`))
    cli.process.kill('SIGINT')
    expect(await cli.exit).toMatchObject({ code: 130, stderr: '' })
    for (const id of [root, ...children]) await server.call('DELETE', `/v1/executions/${id}`)
  })

  fullOnly(it)('09.5 for who may not follow streams: the output of each when it has ended', async () => {
    const base = makeFolder()
    const settings = { 'auth.enable': 'True', 'rbac.enable': 'True', 'rbac.backend': 'default' }
    const guarded = await createTestApp({ basePath: base.path, settings })
    try {
      const headers = await signIn(guarded, 'admin', firstPassword(base.path))
      const scopes = [{ permission_types: ['execution_view'] }]
      const { body } = await guarded.call<{ key: string }>('POST', '/v1/apikeys', { scopes }, headers)
      const gate = makeGate()
      const root = await run(`echo r 1; ${gate.wait}`, undefined, guarded, headers)
      const there = { HOME: folder.path, SVC_API_URL: `${guarded.urls.api}/v1`, SVC_API_KEY: body.key }
      const cli = startCli(['execution', 'tail', root, '--nested'], there)
      await waitForOutput(cli, 'what it says', () => cli.stderr().includes('No permission to follow streams'))
      const child = await run('echo a 1', root, guarded, headers)
      await waitForOutput(cli, 'the end of the child', () => cli.stdout().includes(finished(child)))
      gate.open()
      const { code, stdout } = await cli.exit
      expect([code, stdout]).toEqual([
        0,
        `Execution ${root} has started.\n\n${started(child)}\na 1\n${finished(child)}\nr 1\n${completed(root)}`,
      ])
    } finally {
      await guarded.stop()
      base.remove()
    }
  })
})

fullOnly(describe)('09.5 colours', () => {
  const red = '\u001b[31merr\u001b[39m'

  it('09.5 errors are red on a terminal, and nowhere else', async () => {
    const root = await run('echo out; echo err >&2')
    await untilStatus(root, 'succeeded')
    const words = [process.execPath, executable, 'execution', 'tail', root]
    for (const nested of [[], ['--nested']]) {
      const onTerminal = async (more: Record<string, string>): Promise<string> => {
        const terminal = await startAtTerminal([...words, ...nested], env({ TERM: 'xterm', ...more }))
        expect(await terminal.exit).toBe(0)
        return terminal.screen()
      }
      expect(await onTerminal({})).toContain(`${red}\r\n`)
      expect(await onTerminal({ NO_COLOR: '1' })).not.toContain('\u001b')
      const piped = await runCli(words.slice(2), env())
      expect(piped.stdout).toContain('err\n')
      expect(piped.stdout).not.toContain('\u001b')
      expect((await runCli(words.slice(2), env({ SVC_COLORIZE: '1' }))).stdout).toContain(`${red}\n`)
    }
  })
})

describe('09.5 streams that misbehave', () => {
  const id = '6000000000000000000000aa'
  const output = (data: string, n: number): string =>
    `id: ${n}\nevent: svc.execution.output__create\ndata: ${JSON.stringify({ data, output_type: 'stdout' })}\n\n`

  /** A server of one execution that has ended, with the given stream. */
  async function withStream(
    answer: (response: ServerResponse, lastId: string | undefined) => void,
    use: (url: string) => Promise<void>,
  ): Promise<void> {
    const fake = await startFront((request, response) => {
      const { pathname } = new URL(request.url ?? '/', 'http://127.0.0.1')
      if (pathname.includes('/stream/') || pathname.endsWith('/output')) {
        response.writeHead(200, { 'Content-Type': 'text/event-stream' })
        const lastId = request.headers['last-event-id']
        answer(response, typeof lastId === 'string' ? lastId : undefined)
        return
      }
      response.writeHead(200, { 'Content-Type': 'application/json' })
      response.end(JSON.stringify({ id, status: 'succeeded', log: [] }))
    })
    try {
      await use(fake.url)
    } finally {
      await fake.close()
    }
  }

  const ends: [string, (response: ServerResponse) => void][] = [
    ['ends without saying so', (response) => void response.end()],
    ['says nothing any more', (response) => void response.write('\n')],
  ]
  it.concurrent.each(tier === 'full' ? ends : ends.slice(0, 1))(
    '09.5 a stream that %s is not followed for ever once the execution has ended',
    async (_what, answer) => {
      await withStream(
        (response, lastId) => {
          if (lastId === undefined) response.write(output('one\n', 1))
          answer(response)
        },
        async (url) => {
          const { code, stdout, stderr } = await runCli(['execution', 'tail', id], env({ SVC_API_URL: url }))
          expect([code, stdout]).toEqual([0, `one\n${completed(id)}`])
          expect(stderr).toMatch(/^WARNING: The stream of execution \S+ did not end; /)
        },
      )
    },
    60_000,
  )

  fullOnly(it)('09.5 a reader that stops reading holds the server back', async () => {
    const piece = output('x'.repeat(60_000), 1)
    // 180 MB fit into no buffer between the two.
    const count = 3000
    let queued = 0
    let isHeld = false
    await withStream(
      (response) => {
        const write = (): void => {
          while (!response.destroyed && queued < count) {
            queued += 1
            if (!response.write(piece)) {
              isHeld = true
              response.once('drain', () => {
                isHeld = false
                write()
              })
              return
            }
          }
          response.end('event: EOF\ndata:\n\n')
        }
        write()
      },
      async (url) => {
        const cli = startCli(['execution', 'tail', id], env({ SVC_API_URL: url }))
        cli.process.stdout?.pause()
        let [seen, looks] = [0, 0]
        await waitFor('the server to wait', () => {
          looks = isHeld && queued === seen ? looks + 1 : 0
          seen = queued
          return looks === 100
        })
        expect(queued).toBeLessThan(count / 2)
        cli.process.stdout?.resume()
        const { code, stdout } = await cli.exit
        expect([code, stdout.length]).toEqual([0, count * 60_000 + 1 + completed(id).length])
      },
    )
  })
})
