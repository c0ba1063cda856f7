/** Contract 09, 9.4: waiting for an execution, through the event stream or without it; and what Ctrl-C does meanwhile. */
import { readFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createTestApp } from '../helpers/app.ts'
import { runCli, startCli } from '../helpers/cli.ts'
import { makeFolder } from '../helpers/folders.ts'
import { startFront } from '../helpers/front.ts'
import { startAtTerminal, type TerminalRun } from '../helpers/pty.ts'
import { startRecorder, type Recorder } from '../helpers/recorder.ts'
import { executable, startServer, waitForStatus, type TestApp } from '../helpers/server.ts'
import { findPort } from '../helpers/slapd.ts'
import { fullOnly, tier } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'
import { unknownId } from './support.ts'

const home = makeFolder()
const marks = home.path
let server: TestApp

beforeAll(async () => {
  server = await createTestApp()
})
afterAll(async () => {
  await server.stop()
  home.remove()
})

const env = (more: Record<string, string> = {}): Record<string, string> => ({
  HOME: home.path,
  SVC_API_URL: `${server.urls.api}/v1`,
  ...more,
})

/** A command that ends once `end` is called; each has a name of its own. */
function blocked(name: string): { cmd: string; end: () => Promise<unknown> } {
  const mark = `${marks}/${name}`
  return {
    cmd: `cmd=echo ${name}; while ! test -e ${mark}; do sleep 0.02; done; echo over`,
    end: () => runCli(['run', 'core.local', `cmd=touch ${mark}`], env()),
  }
}

/** Id of the execution that runs this command. */
function idOf(cmd: string, of: TestApp = server): Promise<string> {
  return waitFor('the run', async () => {
    const { body } = await of.call<{ id: string; parameters: { cmd?: string } }[]>(
      'GET',
      '/v1/executions?status=running&limit=100',
    )
    return body.find(({ parameters }) => parameters.cmd === cmd.replace(/^cmd=/, ''))?.id
  })
}

const withStatus = { succeeded: /^status: succeeded/m, canceled: /^status: canceled/m }

describe('09.4 waiting', () => {
  async function throughRecorder(work: (recorder: Recorder) => Promise<void>): Promise<readonly string[]> {
    const recorder = await startRecorder(server.urls.api)
    try {
      await work(recorder)
    } finally {
      await recorder.close()
    }
    return recorder.requests
  }
  const isStream = (request: string): boolean => request.includes('/stream')
  const asks = (requests: readonly string[]): number =>
    requests.filter((request) => /^GET \/v1\/executions\/\w+$/.test(request)).length

  it('09.4 is told by the event stream, and does not ask again and again', async () => {
    const requests = await throughRecorder(async ({ url, requests }) => {
      const { cmd, end } = blocked('told')
      const cli = startCli(['run', 'core.local', cmd], env({ SVC_API_URL: `${url}/v1` }))
      const id = await idOf(cmd)
      await waitFor('the stream, and what was before it', () => requests.some(isStream) && asks(requests) >= 1)
      // As long as many questions would take.
      await runCli(['run', 'core.local', 'sleep', '1'], env())
      await end()
      const { code, stdout } = await cli.exit
      expect([code, stdout]).toEqual([0, expect.stringMatching(withStatus.succeeded)])
      expect(stdout).toContain(`id: ${id}\n`)
    })
    expect(requests.filter(isStream)).toEqual(['GET /stream/v1/stream'])
    // Before the stream was open, after that, all of it in the end; and ever more rarely where all takes very long.
    expect(asks(requests)).toBeLessThanOrEqual(6)
  })

  const fallbacks: [string, (response: ServerResponse) => void][] = [
    ['cut', (response) => response.writeHead(200, eventStream).write('\n', () => response.destroy())],
    ['refused', (response) => response.writeHead(403, { 'Content-Type': 'application/json' }).end('{}')],
    ['missing', (response) => response.writeHead(404).end('nothing here')],
    ['no stream', (response) => response.writeHead(200, { 'Content-Type': 'text/html' }).end('<html>')],
    ['nonsense', (response) => response.writeHead(200, eventStream).write('event: svc.execution__update\ndata: {\n\n')],
    ['that of another server', (response) => response.writeHead(200, eventStream).write('\n')],
    ['silent', () => undefined],
  ]
  // Some of them take a while, for the client to see that nothing comes.
  it.concurrent.each(tier === 'full' ? fallbacks : fallbacks.slice(0, 1))(
    '09.4 goes on without a stream that is %s',
    async (name, answer) => {
      const front = await startFront((_request, response) => answer(response))
      try {
        const { cmd, end } = blocked(`without-${name.replaceAll(' ', '-')}`)
        const more = { SVC_STREAM_URL: `${front.url}/v1` }
        const cli = startCli(['run', 'core.local', '-k', 'stdout', cmd], env(more))
        await idOf(cmd)
        await end()
        const { code, stdout, stderr } = await cli.exit
        expect([code, stdout, stderr.replace(/^\.+\n/, '')]).toEqual([0, expect.stringMatching(/\nover\n$/), ''])
      } finally {
        await front.close()
      }
    },
  )

  it('09.4 goes on without a stream that is nowhere', async () => {
    const { code, stdout } = await runCli(
      ['run', 'core.local', '-k', 'stdout', 'sleep 0.3; echo over'],
      env({ SVC_STREAM_URL: 'http://127.0.0.1:1/v1' }),
    )
    expect([code, stdout]).toEqual([0, 'over\n'])
  })

  it('09.4 ends where somebody has to act, and goes on while it is being delayed or paused', async () => {
    const statuses = ['delayed', 'pausing', 'running', 'paused']
    const front = await startFront((request, response) => {
      const path = request.url ?? ''
      const send = (body: object): unknown =>
        response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(body))
      if (path.includes('/actions/')) return send({ parameters: {} })
      if (path.includes('/stream')) {
        response.writeHead(200, eventStream)
        for (const status of statuses) {
          response.write(`event: svc.execution__update\ndata: ${JSON.stringify({ id: unknownId, status })}\n\n`)
        }
        return undefined
      }
      return send({ id: unknownId, status: path.includes('include_attributes') ? 'requested' : 'paused' })
    })
    try {
      const { code, stdout } = await runCli(['run', 'x.y'], env({ SVC_API_URL: `${front.url}/v1` }))
      expect([code, stdout]).toEqual([0, `id: ${unknownId}\nstatus: paused\n`])
    } finally {
      await front.close()
    }
  })

  fullOnly(it)(
    '09.4 a server that is killed and started again is waited for, and tells the end of what it goes on with',
    async () => {
      const place = makeFolder()
      const settings = { 'api.port': String(await findPort()) }
      const first = await startServer({ basePath: place.path, settings })
      const there = env({ SVC_API_URL: first.urls.api })
      // Not begun when the server dies, so that the next one runs it.
      const cli = startCli(['run', 'core.local', '--delay', '3000', '-k', 'stdout', 'echo', 'over'], there)
      let second: TestApp | undefined
      try {
        // It knows the id: a request that was never answered is not asked again.
        await waitFor('the client to wait', () => first.log().includes('include_attributes=status'))
        await first.stop('SIGKILL')
        second = await createTestApp({ basePath: place.path, settings })
        const { code, stdout } = await cli.exit
        expect([code, stdout]).toEqual([0, 'over\n'])
      } finally {
        cli.process.kill('SIGKILL')
        await second?.stop()
        place.remove()
      }
    },
  )

  it('09.4 outlives its terminal under nohup', async () => {
    const { cmd, end } = blocked('alone')
    const words = [process.execPath, executable, 'run', 'core.local', '-k', 'stdout', cmd]
    const output = `${marks}/nohup.out`
    const script = `nohup "$@" > ${output} 2>&1 & wait`
    const run = await startAtTerminal(['/bin/sh', '-c', script, 'sh', ...words], env())
    await idOf(cmd)
    run.close()
    await run.exit
    await end()
    const printed = await waitFor('the result', () => {
      const text = readFileSync(output, 'utf8')
      return text.includes('over') && text
    })
    expect(printed).toMatch(/^alone\nover\n$/m)
  })

  fullOnly(it)('09.4 ends there by a SIGHUP that is not about the terminal', async () => {
    const { cmd, end } = blocked('hung')
    const words = [process.execPath, executable, 'run', 'core.local', cmd]
    const script =
      'nohup "$@" > /dev/null 2>&1 & job=$!; echo ready.; read line; kill -HUP $job; wait $job; echo "code $?"'
    const run = await startAtTerminal(['/bin/sh', '-c', script, 'sh', ...words], env())
    await idOf(cmd)
    await run.typeAt('ready.', '\r')
    await run.exit
    expect(run.screen()).toContain('code 129')
    await end()
  })

  it('09.4 says at a terminal what is being waited for, and leaves nothing of it behind', async () => {
    const { cmd, end } = blocked('spinner')
    const run = await atTerminal(['run', 'core.local', '-k', 'stdout', cmd])
    const id = await idOf(cmd)
    await waitFor('the status', () =>
      new RegExp(`${clear}\\S Execution ${id} is running \\(\\d+s\\)`).test(run.screen()),
    )
    await end()
    expect(await run.exit).toBe(0)
    expect(rest(run)).toBe('spinner\nover\n')
  })
})

describe('09.5 pause and resume', () => {
  it('09.5 ask the server for each execution, and print it', async () => {
    const asked: string[] = []
    const front = await startFront((request, response) => {
      let body = ''
      request.setEncoding('utf8').on('data', (text: string) => (body += text))
      request.on('end', () => {
        asked.push(`${request.method} ${request.url} ${body}`)
        const { status } = JSON.parse(body) as { status: string }
        const id = request.url?.split('/').at(-1)
        const record = { id, action: { ref: 'x.y', runner_type: 'orquesta' }, status }
        const isRefused = id === 'refused'
        response.writeHead(isRefused ? 400 : 200, { 'Content-Type': 'application/json' })
        response.end(JSON.stringify(isRefused ? { faultstring: 'not now' } : record))
      })
    })
    const svc = (...args: string[]): ReturnType<typeof runCli> =>
      runCli(['execution', ...args], env({ SVC_API_URL: `${front.url}/v1` }))
    try {
      const paused = await svc('pause', 'a1', 'refused', 'a2')
      expect(paused.code).toBe(1)
      expect(paused.stdout).toMatch(
        /^id: a1\naction\.ref: x\.y\nstatus: pausing\nERROR: 400 .*\nMESSAGE: not now for url: .*\nid: a2\n/,
      )
      expect(await svc('resume', 'a1', '-a', 'status')).toEqual({ code: 0, stdout: 'status: resuming\n', stderr: '' })
      expect(JSON.parse((await svc('resume', 'a1', '-j')).stdout)).toMatchObject({ id: 'a1', status: 'resuming' })
      expect(asked.slice(0, 4)).toEqual([
        'PUT /v1/executions/a1 {"status":"pausing"}',
        'PUT /v1/executions/refused {"status":"pausing"}',
        'PUT /v1/executions/a2 {"status":"pausing"}',
        'PUT /v1/executions/a1 {"status":"resuming"}',
      ])
    } finally {
      await front.close()
    }
  })
})

const eventStream = { 'Content-Type': 'text/event-stream' }

function atTerminal(args: readonly string[]): Promise<TerminalRun> {
  return startAtTerminal([process.execPath, executable, ...args], env({ TERM: 'xterm', LANG: 'C.UTF-8' }), 120)
}

/** Clears the line that says what is being waited for; as a pattern. */
const clear = String.raw`\r\u001b\[K`

/** What is on the screen in the end. */
function rest(run: TerminalRun): string {
  return run
    .screen()
    .replaceAll('\r\n', '\n')
    .replace(new RegExp(`[^\n]*${clear}`, 'g'), '')
}

describe('09.1 Ctrl-C at a terminal', () => {
  const question = 'or keep waiting (w)?'

  async function ask(
    name: string,
    flags: string[] = [],
  ): Promise<{ run: TerminalRun; id: string; end: () => unknown }> {
    const { cmd, end } = blocked(name)
    const run = await atTerminal(['run', ...flags, 'core.local', cmd])
    const id = await idOf(cmd)
    await run.typeAt(flags.includes('--tail') ? name : 'is running', '\u0003')
    await waitFor('the question', () => run.screen().includes(question))
    expect(rest(run)).toContain(
      `\nExecution ${id} is still running. Leave it running (Enter), cancel it (c), ${question} `,
    )
    return { run, id, end }
  }

  it('09.1 Enter leaves it running, and says how to go on', async () => {
    const { run, id, end } = await ask('left')
    await run.typeAt(question, '\r')
    expect(await run.exit).toBe(130)
    expect(rest(run)).toMatch(/\(w\)\? leave\n\nThe execution is still running\.\n/)
    for (const command of ['get', 'tail', 'cancel']) expect(rest(run)).toContain(`\n svc execution ${command} ${id}\n`)
    await end()
    expect((await waitForStatus(server, id)).status).toBe('succeeded')
  })

  fullOnly(it)('09.1 so does another Ctrl-C', async () => {
    const { run, id, end } = await ask('left-again')
    await run.typeAt(question, '\u0003')
    expect(await run.exit).toBe(130)
    expect(rest(run)).toContain('The execution is still running.')
    await end()
    expect((await waitForStatus(server, id)).status).toBe('succeeded')
  })

  it('09.1 c cancels it, and shows what came of it', async () => {
    const { run, id } = await ask('canceled')
    await run.typeAt(question, 'c')
    expect(await run.exit).toBe(130)
    expect(rest(run)).toMatch(new RegExp(`\\(w\\)\\? cancel\\nid: ${id}\\n[^]*^status: \\S*canceled`, 'm'))
    expect((await waitForStatus(server, id)).status).toBe('canceled')
  })

  fullOnly(it)('09.1 w waits on; Ctrl-C asks again then', async () => {
    const { run, end } = await ask('waited')
    await run.typeAt(question, 'xw')
    // One key press may come twice within half a second, and counts once.
    const isAsked = (): boolean => run.screen().split(question).length > 2
    while (!isAsked()) {
      await run.typeAt(`${question} wait`, '\u0003')
      await waitFor('the question again', isAsked, 1000).catch(() => undefined)
    }
    await run.typeAt(question, 'w', 2)
    await end()
    expect(await run.exit).toBe(0)
    expect(rest(run)).toMatch(/^status: \S*succeeded/m)
  })

  fullOnly(it)('09.1 the question goes when the execution has ended', async () => {
    const { run, end } = await ask('ended')
    await end()
    expect(await run.exit).toBe(0)
    expect(rest(run)).toMatch(/\(w\)\? the execution has ended\.\nid: [^]*^status: \S*succeeded/m)
  })

  fullOnly(it)('09.1 it asks likewise while it follows the output, which is held meanwhile', async () => {
    const { run, id } = await ask('followed', ['--tail'])
    await run.typeAt(question, 'c')
    expect(await run.exit).toBe(130)
    expect(rest(run)).toContain(`(w)? cancel\n\nExecution ${id} has completed (status=canceled).\n`)
  })
})

describe('09.1 an interruption of a job in the background', () => {
  it('09.1 leaves it running without a question, which would stop the job', async () => {
    const { cmd, end } = blocked('background')
    const script = 'set -m; "$@" & job=$!; echo ready.; read line; kill -INT $job; wait $job; echo "code $?"'
    const shell = ['bash', '--norc', '-c', script, 'bash', process.execPath, executable, 'run', 'core.local', cmd]
    const run = await startAtTerminal(shell, env({ TERM: 'xterm' }))
    const id = await idOf(cmd)
    await run.typeAt('ready.', '\r')
    await run.exit
    expect(run.screen()).toContain('code 130')
    expect(run.screen()).toContain(`svc execution get ${id}`)
    expect(run.screen()).not.toContain('Leave it running')
    await end()
    expect((await waitForStatus(server, id)).status).toBe('succeeded')
  })
})
