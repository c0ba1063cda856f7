/** Contract 09: the command line client, as a process against a real server; where a server must misbehave, a scripted one. */
import { spawn, spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, statSync, writeFileSync } from 'node:fs'
import type http from 'node:http'
import net, { type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { runCli, startCli, waitForOutput, type CliExit } from '../helpers/cli.ts'
import { startCuttingProxy } from '../helpers/cutting-proxy.ts'
import { makeFolder } from '../helpers/folders.ts'
import { startFront, type Front } from '../helpers/front.ts'
import { createTestApp } from '../helpers/app.ts'
import { executable, runToEnd, type TestApp, startServer } from '../helpers/server.ts'
import { fullOnly } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'
import { findPort } from '../helpers/slapd.ts'
import { unknownId } from './support.ts'

const folder = makeFolder()
let server: TestApp

beforeAll(async () => {
  server = await createTestApp()
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
const svc = (...args: string[]): Promise<CliExit> => runCli(args, env())

/** Without the dots of a wait, which come every two seconds where a run takes that long. */
const apartFromDots = (stderr: string): string => stderr.replace(/^\.+\n?/, '')

/** Id of the execution that was created last. */
async function lastId(): Promise<string> {
  const { body } = await server.call<{ id: string }>('GET', '/v1/executions/last?include_attributes=id')
  return body.id
}

async function statusOf(id: string): Promise<string> {
  const { body } = await server.call<{ status: string }>('GET', `/v1/executions/${id}`)
  return body.status
}

describe('09.1 invocation and exit codes', () => {
  it('09.1 --version tells both releases, and only its own without a server', async () => {
    const version = /\d+\.\d+\.\d+/.source
    // It waits for the server for a second only, which is too short on a machine that stalls.
    await waitFor('both releases', async () => {
      const { code, stdout, stderr } = await svc('--version')
      expect([code, stderr]).toEqual([0, ''])
      return new RegExp(`^svc ${version}\nserver ${version} \\(${server.urls.api}/v1\\)\n$`).test(stdout)
    })
    const alone = await svc('--api-url', 'http://127.0.0.1:1', '--version')
    expect(alone).toEqual({ code: 0, stdout: expect.stringMatching(new RegExp(`^svc ${version}\n$`)), stderr: '' })
  })

  it('09.1 no arguments: usage on standard error, 2', async () => {
    expect(await svc()).toEqual({ code: 2, stdout: '', stderr: expect.stringMatching(/^Usage: svc /) })
  })

  it('09.1 usage errors: on standard error, 2', async () => {
    for (const args of [['frob'], ['run'], ['run', 'core.noop', '--frob'], ['execution', 'list', '-n', '0']]) {
      const { code, stdout, stderr } = await svc(...args)
      expect({ args, code, stdout, stderr }).toEqual({
        args,
        code: 2,
        stdout: '',
        stderr: expect.stringMatching(/^error: /),
      })
    }
  })

  it('09.1 an unknown action is not found, 2', async () => {
    const missing = { code: 2, stdout: 'Action "core.nope" is not found.\n\n', stderr: '' }
    expect(await svc('run', 'core.nope')).toEqual(missing)
    expect(await svc('run', 'core.nope', '-h')).toEqual(missing)
    expect(await svc('action', 'execute', 'core.nope')).toEqual(missing)
    expect(await svc('action', 'get', 'core.nope')).toEqual(missing)
    for (const ref of ['', '..', '%2f', 'a/b', '?x=1', '\u001b']) {
      expect([ref, (await svc('run', ref)).code]).toEqual([ref, 2])
    }
  })

  it('09.1 an unknown execution is not found, 2, whatever is asked of it', async () => {
    const missing = { code: 2, stdout: `Action Execution "${unknownId}" is not found.\n\n`, stderr: '' }
    for (const command of ['get', 'cancel', 're-run', 'tail']) {
      expect({ command, ...(await svc('execution', command, unknownId)) }).toEqual({ command, ...missing })
    }
    expect((await svc('execution', 'get', 'no-id')).code).toBe(2)
    expect((await svc('execution', 'get', '')).code).toBe(2)
  })

  it('09.1 an error of the server: its text, the URL, 1', async () => {
    const { code, stdout, stderr } = await svc('run', 'core.local', 'frob=1', 'cmd=true')
    expect([code, stderr]).toEqual([1, ''])
    expect(stdout).toBe(
      `ERROR: 400 Client Error: Bad Request\nMESSAGE: Additional properties are not allowed ('frob' was unexpected) ` +
        `for url: ${server.urls.api}/v1/executions\n`,
    )
  })

  it('09.1 no server: names the address and what to do, 1', async () => {
    const { code, stdout, stderr } = await svc('--api-url', 'http://127.0.0.1:1/v1', 'run', 'core.noop')
    expect([code, stderr]).toEqual([1, ''])
    expect(stdout).toMatch(
      /^ERROR: Cannot connect to http:\/\/127\.0\.0\.1:1: connection refused\. .*svc serve.*--api-url/,
    )
  })

  it.each([
    ['succeeded', 'true', 0, 60],
    ['failed', 'exit 3', 1, 60],
    ['timeout', 'sleep 60', 1, 1],
  ])('09.1 a run that ends %s', async (status, cmd, code, timeout) => {
    const exit = await svc('run', 'core.local', `timeout=${timeout}`, `cmd=${cmd}`)
    expect(exit.code).toBe(code)
    expect(exit.stdout).toMatch(new RegExp(`^status: ${status} \\(\\d+s elapsed\\)$`, 'm'))
  })

  it('09.1 a run that is canceled ends with 0', async () => {
    const cli = startCli(['run', 'core.local', 'timeout=0', 'cmd=echo canceled-one; sleep 1000'], env())
    const id = await waitFor('the run', async () => {
      const { body } = await server.call<{ id: string; parameters: { cmd?: string } }[]>(
        'GET',
        '/v1/executions?status=running',
      )
      return body.find(({ parameters }) => parameters.cmd?.includes('canceled-one') === true)?.id
    })
    expect(await svc('execution', 'cancel', id)).toEqual({
      code: 0,
      stdout: `action execution with id ${id} canceled.\n`,
      stderr: '',
    })
    const { code, stdout } = await cli.exit
    expect(code).toBe(0)
    expect(stdout).toMatch(/^status: canceled/m)
  })

  it('09.1 Ctrl-C while waiting: 130, tells how to go on, and leaves the execution running', async () => {
    const cli = startCli(['run', 'core.local', 'timeout=0', 'cmd=echo interrupted-one; sleep 1000'], env())
    const id = await waitFor('the run', async () => {
      const { body } = await server.call<{ id: string; parameters: { cmd?: string } }[]>(
        'GET',
        '/v1/executions?status=running',
      )
      return body.find(({ parameters }) => parameters.cmd?.includes('interrupted-one') === true)?.id
    })
    cli.process.kill('SIGINT')
    const { code, stdout, stderr } = await cli.exit
    expect([code, stdout]).toEqual([130, ''])
    for (const command of ['get', 'tail', 'cancel']) expect(stderr).toContain(`\n svc execution ${command} ${id}\n`)
    expect(await statusOf(id)).toBe('running')
    await svc('execution', 'cancel', id)
  })

  fullOnly(it)(
    '09.1 one Ctrl-C that arrives several times ends no command before it has said where its execution is',
    async () => {
      const cli = startCli(['run', '--tail', 'core.local', 'timeout=0', 'cmd=sleep 1000'], env())
      await waitForOutput(cli, 'the start', () => cli.stdout().includes('has started'))
      await waitFor('what it says, or its end', () => {
        const isOver = cli.stderr() !== '' || cli.process.exitCode !== null || cli.process.signalCode !== null
        if (!isOver) cli.process.kill('SIGINT')
        return isOver
      })
      const { code, stderr } = await cli.exit
      expect(code).toBe(130)
      const id = await lastId()
      expect(stderr).toContain(`\n svc execution cancel ${id}\n`)
      await svc('execution', 'cancel', id)
    },
  )

  it('09.1 Ctrl-C while tailing: 130', async () => {
    const { body } = await server.call<{ id: string }>('POST', '/v1/executions', {
      action: 'core.local',
      parameters: { cmd: 'echo first; sleep 1000', timeout: 0 },
    })
    const cli = startCli(['execution', 'tail', body.id], env())
    await waitForOutput(cli, 'the first line', () => cli.stdout().includes('first\n'))
    cli.process.kill('SIGINT')
    expect((await cli.exit).code).toBe(130)
    await svc('execution', 'cancel', body.id)
  })

  it('09.1 --debug: curl lines on standard error, without secrets', async () => {
    const args = [
      '--debug',
      '--api-key',
      'hush-1',
      '--basic-auth',
      'u:hush-2',
      'run',
      '-e',
      'core.local',
      'env=A=hush-3',
      'cmd=true',
    ]
    const { code, stdout, stderr } = await runCli(args, env({ MY_VALUE: 'hush-4' }))
    expect(stderr).toMatch(/^curl -X GET .*\/actions\/views\/parameters\/core\.local$/m)
    expect(stderr).toMatch(/^curl -X POST -H .* --data-binary '\{"action":"core\.local",.*\}' http.*\/v1\/executions$/m)
    expect(stderr).toContain("-H 'Svc-Api-Key: ********'")
    expect(stderr).not.toContain('hush')
    expect(stderr).not.toContain(Buffer.from('u:hush-2').toString('base64'))
    expect(code).toBe(0)
    expect(stdout).toContain('A: hush-3')
  })

  it('09.1 --print-config: the effective configuration, 3', async () => {
    const { code, stdout, stderr } = await runCli(['--print-config'], env({ SVC_AUTH_TOKEN: 'hush' }))
    expect([code, stderr]).toEqual([3, ''])
    expect(stdout).toContain(`# environment variable SVC_API_URL\nurl = ${server.urls.api}/v1\n`)
    expect(stdout).not.toContain('hush')
  })

  fullOnly(it)('09.1 a result that cannot be written is an error; a note that cannot be is none', async () => {
    const into = (target: string, ...args: string[]): Promise<CliExit> => {
      // A limit on the size of files, 512 bytes, stands for a disk that has room for a part.
      const script = `ulimit -f 1; exec "$0" "$@" ${target}`
      return new Promise((resolve) => {
        const child = spawn('/bin/sh', ['-c', script, process.execPath, executable, ...args], { env: env() })
        let [stdout, stderr] = ['', '']
        child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
        child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
        child.once('close', (code) => resolve({ code, stdout, stderr }))
      })
    }
    for (const args of [['--help'], ['action', 'list'], ['action', 'list', '-j'], ['action', 'get', 'core.nope']]) {
      const { code, stderr } = await into('>/dev/full', ...args)
      expect({ args, code, stderr }).toEqual({
        args,
        code: 1,
        stderr: 'ERROR: Cannot write the output: ENOSPC: no space left on device, write\n',
      })
    }
    const file = join(folder.path, 'cut')
    for (const args of [['--help'], ['action', 'list'], ['action', 'list', '-y'], ['completion', 'bash']]) {
      const { code, stderr } = await into(`>${file}`, ...args)
      expect({ args, code, stderr, size: statSync(file).size }).toEqual({
        args,
        code: 1,
        stderr: 'ERROR: Cannot write the output: EFBIG: file too large, write\n',
        size: 512,
      })
    }
    const listed = await into('2>/dev/full', 'action', 'list', '-n', '1')
    expect([listed.code, listed.stdout]).toEqual([0, expect.stringContaining('| ref ')])
    expect((await into('2>/dev/full', 'frob')).code).toBe(2)
    for (const closed of ['>&-', '2>&-', '<&-'])
      expect([closed, (await into(closed, 'whoami')).code]).toEqual([closed, 0])
  })

  it('09.1 an argument that is not UTF-8 is refused, for something else would be done', async () => {
    const before = await lastId()
    const script = `printf 'cmd=echo caf\\351' | { read -r word; exec "$0" "$@" "$word"; }`
    const words = ['-c', script, process.execPath, executable, 'run', '-k', 'stdout', 'core.local']
    const { status, stdout } = spawnSync('/bin/sh', words, { env: { ...process.env, ...env() }, encoding: 'utf8' })
    expect([status, stdout]).toEqual([
      2,
      'ERROR: An argument is not valid UTF-8. Use a UTF-8 locale or correct the argument.\n',
    ])
    expect(await lastId()).toBe(before)
    expect((await svc('run', '-k', 'stdout', 'core.local', 'cmd=echo \ufffd')).stdout).toBe('\ufffd\n')
  })

  fullOnly(it)('09.1 who stops reading ends the command without a word', async () => {
    const cli = startCli(['run', 'core.local', '-k', 'stdout', "cmd=head -c 3000000 /dev/zero | tr '\\0' x"], env())
    cli.process.stdout?.once('data', () => cli.process.stdout?.destroy())
    const { code, stderr } = await cli.exit
    expect([code, apartFromDots(stderr)]).toEqual([141, ''])
  })
})

describe('09.4 run', () => {
  it('09.4 prints the details of the finished execution', async () => {
    const { code, stdout, stderr } = await svc('run', 'core.local', 'date', '-u', '+%Y')
    const id = await lastId()
    const time = /\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d UTC/.source
    expect([code, apartFromDots(stderr)]).toEqual([0, ''])
    expect(stdout).toMatch(
      new RegExp(
        `^id: ${id}
action\\.ref: core\\.local
context\\.user: \\w+
parameters:
  cmd: date -u \\+%Y
status: succeeded \\(\\d+s elapsed\\)
start_timestamp: ${time}
end_timestamp: ${time}
result:
  failed: false
  succeeded: true
  return_code: 0
  stdout: '\\d{4}'
  stderr: ''
$`,
      ),
    )
  })

  fullOnly(it)('09.4 waits with a dot every two seconds, beside the result', async () => {
    const { code, stdout, stderr } = await svc('run', 'core.local', 'sleep', '2.5')
    expect([code, stderr]).toEqual([0, expect.stringMatching(/^\.+\n$/)])
    expect(stdout).toMatch(/^id: /)
  })

  it('09.4 words from the first one without = on are the command', async () => {
    const { stdout } = await svc('run', 'core.local', 'timeout=60', 'printf', '%s,', 'a=b', '-a', '--help', '-j')
    expect(stdout).toContain('  stdout: a=b,-a,--help,-j,\n')
    expect((await svc('run', 'core.local', '-k', 'stdout', '--', 'echo', '--', '-x')).stdout).toBe('-- -x\n')
    expect((await svc('run', '--key', 'stdout', 'core.local', 'echo', 'x')).stdout).toBe('x\n')
  })

  it('09.4 parameters are cast as the action declares them', async () => {
    await svc('run', 'core.local', 'cmd=true', 'timeout=7', 'env=A=1,B=x y')
    const { body } = await server.call('GET', '/v1/executions/last?include_attributes=parameters')
    expect(body['parameters']).toEqual({ cmd: 'true', timeout: 7, env: { A: '1', B: 'x y' } })
  })

  it('09.4 a value that cannot be cast: names it, 1, and nothing is created', async () => {
    const before = await lastId()
    expect(await svc('run', 'core.local', 'timeout=soon', 'cmd=true')).toEqual({
      code: 1,
      stdout: 'ERROR: Invalid value for integer parameter "timeout": "soon" is not a whole number.\n',
      stderr: '',
    })
    expect(await svc('run', 'core.local', 'env={"A": 1e400}', 'cmd=true')).toEqual({
      code: 1,
      stdout: expect.stringMatching(/^ERROR: .*"env".* a number is too large: .*\n$/) as unknown,
      stderr: '',
    })
    expect(await lastId()).toBe(before)
  })

  it('09.4 @key=path is the text of a file', async () => {
    const script = join(folder.path, 'script')
    writeFileSync(script, 'echo one\necho two\n')
    const { stdout } = await svc('run', 'core.local', '-k', 'stdout', `@cmd=${script}`)
    expect(stdout).toBe('one\ntwo\n')
    const missing = await svc('run', 'core.local', '@cmd=/nowhere/x')
    expect(missing).toEqual({ code: 1, stdout: 'ERROR: The file "/nowhere/x" of @cmd does not exist.\n', stderr: '' })
  })

  it('09.4 --async and action execute tell where to look', async () => {
    for (const args of [
      ['run', '-a', 'core.noop'],
      ['run', 'core.noop', '--async'],
      ['action', 'execute', 'core.noop'],
    ]) {
      const { code, stdout, stderr } = await svc(...args)
      const id = await lastId()
      expect({ args, code, stderr }).toEqual({ args, code: 0, stderr: '' })
      expect(stdout).toBe(
        `To get the results, execute:\n svc execution get ${id}\n\n` +
          `To view output in real-time, execute:\n svc execution tail ${id}\n`,
      )
    }
    const { stdout } = await svc('run', '-a', '-j', 'core.noop')
    expect(JSON.parse(stdout)).toMatchObject({ id: await lastId(), status: 'requested' })
  })

  it('09.4 --inherit-env gives the environment, but neither place nor credentials', async () => {
    const more = { MY_VALUE: 'mine', OTHER: 'theirs', PWD: '/x', SVC_API_KEY: 'hush' }
    const { code } = await runCli(['run', '-e', 'core.local', 'env=OTHER=given', 'cmd=true'], env(more))
    const { body } = await server.call('GET', '/v1/executions/last?include_attributes=parameters')
    expect(code).toBe(0)
    expect(body['parameters']).toEqual({ cmd: 'true', env: { MY_VALUE: 'mine', OTHER: 'given' } })
  })

  it('09.4 --user, --trace-tag, --trace-id, --delay', async () => {
    expect((await svc('run', '-u', 'bob', '--trace-tag', 'tag one', '--delay', '150', 'core.noop')).code).toBe(0)
    const { body } = await server.call<{ delay: number; context: { user: string; trace_context: object } }>(
      'GET',
      '/v1/executions/last',
    )
    expect(body).toMatchObject({ delay: 150, context: { user: 'bob', trace_context: { trace_tag: 'tag one' } } })
    for (const spelling of ['trace_tag', 'trace-tag']) {
      expect((await svc('run', 'core.noop', `--${spelling}`, spelling)).code).toBe(0)
      const last = await server.call('GET', '/v1/executions/last')
      expect(last.body).toMatchObject({ context: { trace_context: { trace_tag: spelling } } })
    }
    const echoed = await svc('run', '-k', 'stdout', 'core.local', 'echo', '--trace_tag', '--api_url=x', '-t=x')
    expect(echoed.stdout).toBe('--trace_tag --api_url=x -t=x\n')
    expect((await svc('run', '--trace-tag', '--trace_id=x', 'core.noop')).code).toBe(0)
    const tagged = await server.call('GET', '/v1/executions/last')
    expect(tagged.body).toMatchObject({ context: { trace_context: { trace_tag: '--trace_id=x' } } })
    const tooLong = await svc('run', '--delay', '99999999999', 'core.noop')
    expect([tooLong.code, tooLong.stdout]).toEqual([1, expect.stringContaining('the maximum of 31536000000')])
    const unknown = await svc('run', '--trace-id', unknownId, 'core.noop')
    expect(unknown.code).toBe(1)
    expect(unknown.stdout).toContain(unknownId)
  })

  it('09.4 --key prints that part of the result; what is not there is named', async () => {
    expect(await svc('run', 'core.local', '-k', 'return_code', 'true')).toMatchObject({ code: 0, stdout: '0\n' })
    const { code, stdout } = await svc('run', 'core.local', '-k', 'nope', 'true')
    expect(code).toBe(1)
    expect(stdout).toMatch(/^ERROR: The result of execution \w+ has no key "nope"; its keys: .*stdout.*\n$/)
    const failed = await svc('run', '-k', 'packs', 'packs.install', 'packs=no-such-pack')
    expect(failed.code).toBe(1)
    expect(failed.stdout).toMatch(/has no key "packs"; its keys: .*\nThe execution is failed: .*"no-such-pack"/)
  })

  it('09.2 --width for the tables of an execution', async () => {
    const { code, stdout } = await svc('run', 'core.noop', '-d', '-w', '20', '30')
    expect([code, stdout.split('\n')[0]]).toEqual([0, `+${'-'.repeat(22)}+${'-'.repeat(32)}+`])
  })

  it('09.4 --key says when that part of the result was cut', async () => {
    const whole = await svc('run', '-k', 'stdout', 'core.local', 'echo all')
    expect([whole.code, whole.stdout, apartFromDots(whole.stderr)]).toEqual([0, 'all\n', ''])
    const { code, stdout, stderr } = await svc(
      'run',
      '-k',
      'stdout',
      'core.local',
      'head -c 11000000 /dev/zero | tr "\\0" x',
    )
    expect([code, stdout.length]).toEqual([0, 10_485_760 + 1])
    expect(apartFromDots(stderr)).toBe(
      `WARNING: "stdout" is truncated. To print the whole output: svc execution tail ${await lastId()}\n`,
    )
  })

  it('09.4 --attr, --detail, --json, --yaml', async () => {
    const attr = await svc('run', 'core.local', '--attr', 'status', 'result.stdout', '--', 'echo', 'x')
    expect(attr.stdout).toMatch(/^status: succeeded \(\d+s elapsed\)\nresult\.stdout: x\n$/)
    const detail = await svc('run', 'core.local', '-d', 'echo', 'x')
    expect(detail.stdout).toMatch(/^\+-+\+-+\+\n\| Property +\| Value +\|\n/)
    expect(detail.stdout).toMatch(/^\| runner +\| \{/m)
    const json = await svc('run', 'core.local', '-j', 'echo', 'x')
    expect(apartFromDots(json.stderr)).toBe('')
    expect(json.stdout).toMatch(/^\{\n {4}"action": \{\n {8}"description"/)
    expect(JSON.parse(json.stdout)).toMatchObject({ status: 'succeeded', result: { stdout: 'x' } })
    expect((await svc('run', 'core.local', '-y', 'echo', 'x')).stdout).toMatch(/^---\naction:\n {2}description: /)
  })

  it('09.4 -h after the reference: help of the action', async () => {
    const { code, stdout, stderr } = await svc('run', 'core.local', '-h')
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(
      /^\w.*\n\nRequired Parameters:\n\n {4}cmd\n {8}.+\n {8}Type: string\n\nOptional Parameters:\n/,
    )
    expect(stdout).toMatch(/^ {4}timeout\n {8}.+\n {8}Type: integer\n {8}Default: 60$/m)
    // The action fixes it, so nobody can set it.
    expect(stdout).not.toMatch(/^ {4}sudo$/m)
    // It has required parameters, and a default for each.
    expect((await svc('run', 'core.ask', '-h')).stdout).toMatch(/^\w.*\n\nOptional Parameters:\n/)
  })

  it('09.4 --tail follows the output and ends as the execution does', async () => {
    const { code, stdout, stderr } = await svc('run', '--tail', 'core.local', 'echo one; sleep 0.3; echo two; exit 4')
    const id = await lastId()
    expect({ code, stderr }).toEqual({ code: 1, stderr: '' })
    expect(stdout).toBe(`Execution ${id} has started.\n\none\ntwo\n\nExecution ${id} has completed (status=failed).\n`)
  })

  it('09.4 nothing an action prints reaches the terminal from a record', async () => {
    const cmd = String.raw`printf '\033[31mred\033[0m\r\nnext\302\233'`
    for (const args of [['-d'], ['--attr', 'result'], []]) {
      const { code, stdout } = await svc('run', 'core.local', ...args, '--', cmd)
      expect(code).toBe(0)
      // oxlint-disable-next-line no-control-regex -- these are what is looked for
      expect(stdout).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/)
      expect(stdout).toContain('u001b[31mred')
    }
  })
})

describe('09.5 executions', () => {
  it('09.5 list: a boxed table, the oldest first, and a note when there are more', async () => {
    const ids = []
    for (const cmd of ['echo 1', 'echo 2', 'exit 1']) ids.push((await runToEnd(server, { cmd })).id)
    const { code, stdout, stderr } = await svc('execution', 'list', '-n', '3')
    expect(code).toBe(0)
    const lines = stdout.split('\n')
    expect(lines[0]).toMatch(/^(\+-+){6}\+$/)
    expect(lines[1]?.split('|').map((cell) => cell.trim())).toEqual([
      '',
      'id',
      'action.ref',
      'context.user',
      'status',
      'start_timestamp',
      'end_timestamp',
      '',
    ])
    expect(lines.slice(3, 6).map((line) => line.slice(2, 26))).toEqual(ids)
    expect(lines[5]).toMatch(/ failed \(\d+s elapsed\) .* \w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d UTC /)
    expect(stderr).toBe(
      `+-${'-'.repeat(88)}-+\n| Note: Only first 3 Action Executions are displayed. ` +
        `Use -n/--last flag for more results. |\n+-${'-'.repeat(88)}-+\n`,
    )
    expect((await svc('execution', 'list', '-n', '1')).stderr).toContain('Only one Action Execution is displayed')
    // A program that asks for so many knows that it gets no more.
    for (const form of ['-j', '-y']) expect((await svc('execution', 'list', '-n', '1', form)).stderr).toBe('')
  })

  it('09.5 list: filters, order, children', async () => {
    const parent = await runToEnd(server, { cmd: 'echo parent-of-two' })
    const context = { parent: { execution_id: parent.id } }
    const child = await runToEnd(server, { cmd: 'exit 9' }, { context })
    const idsOf = async (...args: string[]): Promise<string[]> => {
      const { stdout } = await svc('execution', 'list', '-j', '-a', 'id', ...args)
      return (JSON.parse(stdout) as { id: string }[]).map(({ id }) => id)
    }
    expect(await idsOf('-n', '1')).toEqual([parent.id])
    expect(await idsOf('-n', '1', '--showall')).toEqual([child.id])
    expect(await idsOf('-n', '1', '-l', '--status', 'failed')).toEqual([child.id])
    expect(await idsOf('--action', 'core.nope')).toEqual([])
    expect(await svc('execution', 'list', '--status', 'fialed')).toEqual({
      code: 0,
      stdout: 'No matching items found\n',
      stderr: expect.stringMatching(/^WARNING: "fialed" is not an execution status\. Statuses: .*, failed, .*\.\n$/),
    })
    expect(await idsOf('-tg', '2999-01-01T00:00:00Z')).toEqual([])
    expect(await idsOf('-tl', '2000-01-01T00:00:00Z')).toEqual([])
    expect(await idsOf('-tg=2999-01-01T00:00:00Z')).toEqual([])
    expect(await idsOf('-n=1', '-a=id')).toEqual([parent.id])
    const [first] = await idsOf('-n', '1', '-s', 'asc')
    const all = await idsOf('-n', '-1')
    expect(all[0]).toBe(first)
    expect(all.at(-1)).toBe(parent.id)
    expect(all).toEqual(all.toSorted())
    expect((await svc('execution', 'list', '--user', 'nobody-at-all')).stdout).toBe('No matching items found\n')
    const wide = await svc('execution', 'get', parent.id, '--show-tasks', '-w', '30')
    expect(wide.stdout).toContain(`\n+${`${'-'.repeat(32)}+`.repeat(5)}\n`)
    const tasks = await svc('execution', 'get', parent.id, '--show-tasks')
    expect(tasks.stdout).toMatch(new RegExp(`\\| ${child.id} \\| failed \\(\\d+s elapsed\\) \\| +\\| core\\.local \\|`))
    // It is no workflow, whose result is that of its tasks.
    expect(tasks.stdout).toContain('stdout: parent-of-two\n')
  })

  it('09.5 list: more than a page of the server', async () => {
    const total = Number((await server.call('GET', '/v1/executions?limit=1')).headers.get('x-total-count'))
    const missing = Math.max(0, 120 - total)
    await Promise.all(
      Array.from({ length: missing }, () => server.call('POST', '/v1/executions', { action: 'core.noop' })),
    )
    const { stdout } = await svc('execution', 'list', '-l', '-n', '110', '-j', '-a', 'id')
    const ids = (JSON.parse(stdout) as { id: string }[]).map(({ id }) => id)
    expect(new Set(ids).size).toBe(110)
    expect(ids).toEqual(ids.toSorted())
  })

  it('09.5 list: widths, YAML', async () => {
    const narrow = await svc('execution', 'list', '-n', '1', '-a', 'id', 'status', '-w', '12', '30')
    expect(narrow.stdout).toMatch(/^\+-{14}\+-{32}\+\n\| id {11}\| status {25}\|\n/)
    expect((await svc('execution', 'list', '-n', '1', '-y', '-a', 'status')).stdout).toMatch(/^---\n- status: \w+\n$/)
  })

  it('09.2 -a: names with blanks and commas between them; none at all is as if it were not there', async () => {
    // The newest one must not change any more.
    await runToEnd(server, { cmd: 'true' })
    const list = async (...args: string[]): Promise<string> =>
      (await svc('execution', 'list', '-n', '1', ...args)).stdout
    expect(await list('-a', 'id, status')).toBe(await list('-a', 'id', 'status'))
    expect(await list('-a', '')).toBe(await list())
    expect(await list('-j', '-a', ' ,')).toBe(await list('-j'))
  })

  it('09.5 get: several ids in order, missing ones named, 2', async () => {
    const one = await runToEnd(server, { cmd: 'echo one' })
    const two = await runToEnd(server, { cmd: 'echo two' })
    const { code, stdout } = await svc('execution', 'get', one.id, unknownId, two.id, '--attr', 'id')
    expect(code).toBe(2)
    expect(stdout).toBe(`id: ${one.id}\nAction Execution "${unknownId}" is not found.\n\nid: ${two.id}\n`)
  })

  it('09.5 get: last, with its log; the result can be left out', async () => {
    const { id } = await runToEnd(server, { cmd: 'exit 7' })
    const { code, stdout } = await svc('execution', 'get', 'last')
    expect(code).toBe(0)
    expect(stdout).toMatch(
      new RegExp(`^id: ${id}\n[^]*\nlog:\n- status: requested\n  timestamp: [^]*\nresult:\n[^]*return_code: 7\n`),
    )
    expect((await svc('execution', 'get', '-x', 'last')).stdout).not.toContain('result:')
    const chosen = await svc('execution', 'get', 'last', '-a', 'id', 'result.return_code')
    expect(chosen).toMatchObject({ code: 0, stdout: `id: ${id}\nresult.return_code: 7\n` })
  })

  it('09.5 cancel: what has ended is refused, 1', async () => {
    const { id } = await runToEnd(server, { cmd: 'true' })
    const { code, stdout } = await svc('execution', 'cancel', id)
    expect(code).toBe(1)
    expect(stdout).toMatch(/cannot be canceled.*succeeded/)
  })

  it('09.5 re-run: the same, and with other parameters', async () => {
    const { id } = await runToEnd(server, { cmd: 'echo again' })
    const same = await svc('execution', 're-run', id, '-k', 'stdout')
    expect(same).toMatchObject({ code: 0, stdout: 'again\n' })
    const { body } = await server.call<{ context: Record<string, unknown> }>('GET', '/v1/executions/last')
    expect(body.context['re-run']).toEqual({ ref: id })
    expect((await svc('execution', 're-run', id, 'cmd=exit 5')).code).toBe(1)
    expect((await svc('execution', 're-run', id, '-k', 'stdout', 'echo', '-n', 'other')).stdout).toBe('other\n')
    const foreign = await svc('execution', 're-run', id, '--tasks', 'a', '--no-reset', 'b')
    expect(foreign).toMatchObject({ code: 1, stdout: expect.stringContaining('--no-reset names b') })
  })

  it('09.5 re-run: -h after the id shows the parameters of the action, and runs nothing', async () => {
    const { id } = await runToEnd(server, { cmd: 'echo once' })
    for (const flag of ['-h', '--help']) {
      const { code, stdout } = await svc('execution', 're-run', id, flag)
      expect(code).toBe(0)
      expect(stdout).toBe((await svc('run', 'core.local', '-h')).stdout)
    }
    expect(await lastId()).toBe(id)
  })

  it('09.5 tail: a finished execution is printed whole', async () => {
    const { id } = await runToEnd(server, { cmd: 'echo out; echo err >&2; echo end' })
    const end = `\nExecution ${id} has completed (status=succeeded).\n`
    const { code, stdout, stderr } = await svc('execution', 'tail', id)
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout.endsWith(end)).toBe(true)
    expect(stdout.slice(0, -end.length).replace('err\n', '')).toBe('out\nend\n')
    expect((await svc('execution', 'tail', id, '--type', 'stderr')).stdout).toBe(`err\n${end}`)
    expect((await svc('execution', 'tail', '--type', 'other')).stdout).toBe(end)
    const withTimes = await svc('execution', 'tail', 'last', '--include-metadata', '--type', 'stderr')
    expect(withTimes.stdout).toMatch(/^\[\d{4}-\d\d-\d\dT[\d:.]+Z\]\[stderr\] err\n\n/)
    expect((await svc('execution', 'tail', '--type', 'both')).code).toBe(2)
  })

  it('09.5 tail: output comes while it is made, the start is told even of a silent command', async () => {
    const { body } = await server.call<{ id: string }>('POST', '/v1/executions', {
      action: 'core.local',
      parameters: { cmd: 'sleep 0.4; echo one; sleep 1000', timeout: 0 },
    })
    const cli = startCli(['execution', 'tail', body.id], env())
    await waitForOutput(cli, 'the first line', () => cli.stdout() === `Execution ${body.id} has started.\n\none\n`)
    expect(await statusOf(body.id)).toBe('running')
    await svc('execution', 'cancel', body.id)
    expect(await cli.exit).toEqual({
      code: 0,
      stdout: `Execution ${body.id} has started.\n\none\n\nExecution ${body.id} has completed (status=canceled).\n`,
      stderr: '',
    })
  })

  it('09.5 tail: bytes of the action go through as they are', async () => {
    const { id } = await runToEnd(server, { cmd: String.raw`printf '\033[31mred\033[0m\rü€😀'` })
    expect((await svc('execution', 'tail', id)).stdout).toContain('\u001b[31mred\u001b[0m\rü€😀\n\n')
  })

  it('09.5 tail: a connection that is cut again and again loses and repeats nothing', async () => {
    const proxy = await startCuttingProxy(server.urls.api, 24_000)
    try {
      const { body } = await server.call<{ id: string }>('POST', '/v1/executions', {
        action: 'core.local',
        parameters: { cmd: "seq -f 'line %.0f' 0 11999" },
      })
      const stream = `http://127.0.0.1:${proxy.port}/stream/v1`
      const { code, stdout } = await runCli(['--stream-url', stream, 'execution', 'tail', body.id], env())
      expect(code).toBe(0)
      const lines = stdout.split('\n').filter((line) => line.startsWith('line '))
      expect(lines).toEqual(Array.from({ length: 12_000 }, (_, index) => `line ${index}`))
      expect(proxy.cuts()).toBeGreaterThan(3)
    } finally {
      await proxy.stop()
    }
  })

  it('09.5 without any execution', async () => {
    const empty = await createTestApp()
    const there = env({ SVC_API_URL: empty.urls.api })
    try {
      expect(await runCli(['execution', 'list'], there)).toEqual({
        code: 0,
        stdout: 'No matching items found\n',
        stderr: '',
      })
      expect((await runCli(['execution', 'list', '-j'], there)).stdout).toBe('[]\n')
      expect(await runCli(['execution', 'tail'], there)).toEqual({
        code: 2,
        stdout: 'No executions found in db.\n',
        stderr: '',
      })
      const get = await runCli(['execution', 'get', 'last'], there)
      expect(get).toEqual({ code: 2, stdout: 'Action Execution "last" is not found.\n\n', stderr: '' })
    } finally {
      await empty.stop()
    }
  })

  fullOnly(it)('09.4 a run outlives a restart of the server', async () => {
    const place = makeFolder()
    const settings = { 'actionrunner.shutdown_grace_seconds': '0', 'api.port': String(await findPort()) }
    const first = await startServer({ basePath: place.path, settings })
    const cli = startCli(['run', 'core.local', 'timeout=0', 'cmd=sleep 1000'], env({ SVC_API_URL: first.urls.api }))
    let second: TestApp | undefined
    try {
      await waitFor('the run', async () => {
        const { body } = await first.call<unknown[]>('GET', '/v1/executions?status=running')
        return body.length === 1
      })
      await first.stop('SIGKILL')
      second = await createTestApp({ basePath: place.path, settings })
      const { code, stdout } = await cli.exit
      expect(code).toBe(1)
      expect(stdout).toMatch(/^status: abandoned/m)
    } finally {
      cli.process.kill('SIGKILL')
      await second?.stop()
      place.remove()
    }
  })
})

describe('09.2 actions', () => {
  it('09.2 list: ref, pack, description; by pack', async () => {
    const { code, stdout, stderr } = await svc('action', 'list', '-p', 'core')
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).toMatch(/^\+-+\+-+\+-+\+\n\| ref +\| pack +\| description +\|\n/)
    expect(stdout).toMatch(/^\| core\.local +\| core +\| \S.* \|$/m)
    expect((await svc('action', 'list', '-p', 'nope')).stdout).toBe('No matching items found\n')
    const json = await svc('action', 'list', '-j', '-n', '1')
    expect(JSON.parse(json.stdout)).toMatchObject([{ uid: expect.stringMatching(/^action:core:/) }])
  })

  it('09.2 get: Property and Value, nested values as indented JSON', async () => {
    const { code, stdout } = await svc('action', 'get', 'core.local')
    expect(code).toBe(0)
    expect(stdout).toMatch(/^\+-+\+-+\+\n\| Property +\| Value +\|\n/)
    expect(stdout).toMatch(/^\| parameters +\| \{ +\|\n\| +\| {5}"cmd": \{ +\|$/m)
    const json = await svc('action', 'get', 'core.local', '-j', '-a', 'ref', 'parameters.cmd.type')
    expect(JSON.parse(json.stdout)).toEqual({ ref: 'core.local', parameters: { cmd: { type: 'string' } } })
  })
})

describe('09.7 configuration, and servers that misbehave', () => {
  let fake: FakeServer | undefined
  afterEach(async () => {
    await fake?.stop()
    fake = undefined
  })
  const ask = (url: string, args: string[], more: Record<string, string> = {}): Promise<CliExit> =>
    runCli(args, env({ SVC_API_URL: url, ...more }))

  it('09.7 the file of the home folder is read; a flag goes before', async () => {
    const home = makeFolder()
    mkdirSync(join(home.path, '.svc'), { mode: 0o700 })
    const config = join(home.path, '.svc', 'config')
    writeFileSync(config, `[api]\nurl = ${server.urls.api}\n[cli]\ntimezone = Asia/Tokyo\n`, { mode: 0o600 })
    try {
      const there = { HOME: home.path }
      const { code, stdout, stderr } = await runCli(['run', 'core.noop'], there)
      expect(apartFromDots(stderr)).toBe('')
      expect(code).toBe(0)
      expect(stdout).toMatch(/^start_timestamp: .* GMT\+9$/m)
      chmodSync(config, 0o644)
      const open = await runCli(['run', 'core.noop'], there)
      expect(open).toMatchObject({
        code: 0,
        stderr: expect.stringMatching(/^WARNING: .*config is open to other users/),
      })
      expect((await runCli(['--api-url', 'http://127.0.0.1:1', 'run', 'core.noop'], there)).code).toBe(1)
      const missing = await runCli(['--config-file', '/nowhere/config', 'run', 'core.noop'], there)
      expect(missing).toEqual({
        code: 1,
        stdout: 'ERROR: The configuration file /nowhere/config does not exist.\n',
        stderr: '',
      })
    } finally {
      home.remove()
    }
  })

  it('09.7 credentials are sent as headers, one at a time', async () => {
    fake = await startFake(() => ({ body: [] }))
    const sent = async (args: string[], more: Record<string, string> = {}): Promise<http.IncomingHttpHeaders> => {
      expect((await ask(fake?.url ?? '', [...args, 'execution', 'list'], more)).code).toBe(0)
      return fake?.requests.at(-1)?.headers ?? {}
    }
    expect(await sent([], { SVC_AUTH_TOKEN: 'a', SVC_API_KEY: 'b' })).toMatchObject({ 'x-auth-token': 'a' })
    expect(await sent(['-t', 'c', '--api-key', 'd'])).not.toHaveProperty('svc-api-key')
    expect(await sent(['--api-key', 'd'], { SVC_AUTH_TOKEN: 'a' })).toMatchObject({ 'svc-api-key': 'd' })
    expect(await sent([], { SVC_BASIC_AUTH: 'u:p:q' })).toMatchObject({
      authorization: `Basic ${Buffer.from('u:p:q').toString('base64')}`,
    })
  })

  it('09.1 401 with a credential tells where that was given', async () => {
    fake = await startFake(() => ({ status: 401, body: { faultstring: 'Unauthorized - Invalid token.' } }))
    const credentials: [string[], Record<string, string>, string][] = [
      [[], { SVC_AUTH_TOKEN: 'old' }, 'svc sent the token in SVC_AUTH_TOKEN. To create a new one: svc auth <user>'],
      [['-t', 'old'], {}, 'svc sent the token given with --token. To create a new one: svc auth <user>'],
      [['--api-key', 'old'], {}, 'svc sent the API key given with --api-key. To create a new one: svc apikey create'],
    ]
    for (const [flags, more, advice] of credentials) {
      const { code, stdout } = await ask(fake.url, ['action', 'list', ...flags], more)
      expect([code, stdout]).toEqual([1, expect.stringMatching(/^ERROR: 401 /)])
      expect(stdout.endsWith(`\n${advice}\n`)).toBe(true)
    }
  })

  it('09.1 401 without a credential tells how to give one', async () => {
    fake = await startFake(() => ({
      status: 401,
      body: { faultstring: 'Unauthorized - One of Token or API key required.' },
    }))
    const { code, stdout } = await ask(fake.url, ['run', 'core.noop'])
    expect(code).toBe(1)
    expect(stdout).toMatch(
      /^ERROR: 401 Client Error: Unauthorized\nMESSAGE: Unauthorized - One of .*\n.*SVC_AUTH_TOKEN/,
    )
  })

  it.each<[string, Reply, RegExp]>([
    [
      '500',
      { status: 500, body: { faultstring: 'Internal Server Error' } },
      /^ERROR: 500 Server Error: Internal Server Error\nMESSAGE: Internal Server Error for url: /,
    ],
    [
      'an error page',
      { status: 502, text: '<h1>Bad\u001b[2J gateway</h1>' },
      /^ERROR: 502 Server Error: Bad Gateway\nMESSAGE: <h1>Bad\\u001b\[2J gateway<\/h1> for url/,
    ],
    [
      'JSON of something else',
      { text: '[]' },
      /did not return a record\. Check that --api-url is the API of an svc server\./,
    ],
    ['a page', { text: '<html>' }, /is not JSON\. Check that this is the API of an svc server\./],
    [
      'a redirect',
      { status: 308, text: '', headers: { Location: 'https://x.example/' } },
      /redirects to https:\/\/x\.example\/. Set that address/,
    ],
    ['silence', 'hang up', /closed the connection without an answer/],
    ['half an answer', { text: '{"a', headers: { 'Content-Length': '50' }, cut: true }, /closed the connection/],
  ])('09.1 %s is told in words, 1', async (_what, reply, message) => {
    fake = await startFake(() => reply)
    const { code, stdout, stderr } = await ask(fake.url, ['execution', 'get', 'last'])
    expect([code, stderr]).toEqual([1, ''])
    expect(stdout).toMatch(/^ERROR: /)
    expect(stdout).toMatch(message)
  })

  it('09.2 nothing that a server sends is obeyed by the terminal', async () => {
    const evil = '\u009b2J\u007f\u202e'
    const record = { id: 'x', status: 'succeeded', [evil]: evil }
    const replies: Reply[] = [
      { body: record },
      { status: 301, text: '', headers: { Location: `/${evil.slice(0, 1)}` } },
    ]
    for (const reply of replies) {
      fake = await startFake(() => reply)
      for (const flags of [[], ['-j'], ['-y'], ['-d'], ['--debug']]) {
        const { stdout, stderr } = await ask(fake.url, ['execution', 'get', 'x', ...flags])
        expect([flags, stdout + stderr]).toEqual([flags, expect.stringMatching(/^[\x20-\x7e\n]+$/)])
      }
      await fake.stop()
    }
  })

  it('09.1 a list that is none is not taken for an empty one', async () => {
    fake = await startFake(() => ({ body: { message: 'hello' } }))
    const { code, stdout } = await ask(fake.url, ['execution', 'list'])
    expect([code, stdout]).toEqual([
      1,
      expect.stringMatching(/^ERROR: The server did not return a list\. Check that --api-url /),
    ])
  })

  it('09.1 something that is not HTTP is told in words', async () => {
    const listener = net.createServer((socket) =>
      socket
        .on('error', () => undefined)
        .resume()
        .end('220 mail.example ESMTP\r\n'),
    )
    await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
    const { port } = listener.address() as AddressInfo // it listens on a port
    const { code, stdout } = await ask(`http://127.0.0.1:${port}`, ['execution', 'list'])
    expect([code, stdout]).toEqual([1, expect.stringMatching(/does not answer with HTTP/)])
    await new Promise((resolve) => listener.close(resolve))
  })

  it('09.4 a workflow shows its error and the table of its children', async () => {
    const record = (id: string, parent: string | undefined, runner: string, more: object = {}): object => ({
      id,
      ...(parent === undefined ? {} : { parent }),
      action: { ref: `x.${id}`, runner_type: runner },
      status: 'failed',
      start_timestamp: '2030-01-01T10:00:00.000000Z',
      end_timestamp: '2030-01-01T10:00:02.500000Z',
      ...more,
    })
    const children = [
      record('a2', 'a1', 'orquesta', { context: { orquesta: { task_name: 'sub' } } }),
      record('a3', 'a2', 'local-shell-cmd', { context: { orquesta: { task_name: 'leaf' } } }),
    ]
    fake = await startFake((path) => {
      if (path.includes('/children')) return { body: children }
      if (path.includes('/executions/'))
        return { body: record('a1', undefined, 'orquesta', { result: { error: 'boom' } }) }
      return { body: [record('a1', undefined, 'orquesta'), record('a9', undefined, 'noop')] }
    })
    const { code, stdout } = await ask(fake.url, ['execution', 'get', 'a1'])
    expect(code).toBe(0)
    expect(stdout).toBe(
      `id: a1
action.ref: x.a1
status: failed (2s elapsed)
start_timestamp: Tue, 01 Jan 2030 10:00:00 UTC
end_timestamp: Tue, 01 Jan 2030 10:00:02 UTC
error: boom
+------+---------------------+------+--------+-------------------------------+
| id   | status              | task | action | start_timestamp               |
+------+---------------------+------+--------+-------------------------------+
| + a2 | failed (2s elapsed) | sub  | x.a2   | Tue, 01 Jan 2030 10:00:00 UTC |
|   a3 | failed (2s elapsed) | leaf | x.a3   | Tue, 01 Jan 2030 10:00:00 UTC |
+------+---------------------+------+--------+-------------------------------+
`,
    )
    const list = await ask(fake.url, ['execution', 'list', '-a', 'id'])
    expect(list.stdout).toContain('|   a9 |\n| + a1 |\n')
    expect((await ask(fake.url, ['execution', 'get', 'a1', '--raw'])).stdout).not.toContain('x.a2')
  })

  it('09.4 asks again soon, so that the result of a short action comes at once', async () => {
    const asked: number[] = []
    fake = await startFake((path) => {
      if (path.includes('/actions/')) return { body: { parameters: {} } }
      if (path.includes('include_attributes=status')) {
        asked.push(performance.now())
        return { body: { status: asked.length < 5 ? 'running' : 'succeeded' } }
      }
      return { body: { id: unknownId, status: 'succeeded' } }
    })
    expect((await ask(fake.url, ['run', 'x.y'])).code).toBe(0)
    const gaps = asked.slice(1).map((time, index) => time - (asked[index] ?? 0))
    expect(gaps).toHaveLength(4)
    // A busy machine may delay some of them, never all.
    expect(Math.min(...gaps)).toBeLessThan(1000)
  })

  it('09.2 colours only where SVC_COLORIZE or a terminal asks for them', async () => {
    await runToEnd(server, { cmd: 'true' })
    expect((await svc('execution', 'list', '-n', '1')).stdout).not.toContain('\u001b')
    const colored = await runCli(['execution', 'list', '-n', '1'], env({ SVC_COLORIZE: '1' }))
    expect(colored.stdout).toContain('| \u001b[32msucceeded (0s elapsed)\u001b[39m |')
  })
})

interface FakeServer {
  url: string
  requests: { path: string; headers: http.IncomingHttpHeaders }[]
  stop: Front['close']
}

type Reply =
  'hang up' | { status?: number; body?: unknown; text?: string; headers?: Record<string, string>; cut?: boolean }

async function startFake(answer: (path: string) => Reply): Promise<FakeServer> {
  const requests: FakeServer['requests'] = []
  const { url, close } = await startFront((request, response) => {
    const path = request.url ?? ''
    requests.push({ path, headers: request.headers })
    const reply = answer(path)
    if (reply === 'hang up') {
      request.socket.destroy()
      return
    }
    response.writeHead(reply.status ?? 200, { 'Content-Type': 'application/json', ...reply.headers })
    const text = reply.text ?? JSON.stringify(reply.body)
    if (reply.cut === true) response.write(text, () => request.socket.destroy())
    else response.end(text)
  })
  return { url, requests, stop: close }
}
