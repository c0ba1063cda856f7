/** packaging/docker: the files as their readers take them, and the steps of the image on a bare Debian. */
import { spawn } from 'node:child_process'
import { copyFileSync, existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv } from 'ajv'
import { validate } from 'dockerfile-utils'
import { load } from 'js-yaml'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { extractDebianProgram } from '../helpers/apt.ts'
import { makeDebian, runInside, runLong, type Chroot } from '../helpers/chroot.ts'
import { makeFolder } from '../helpers/folders.ts'
import { basicAuth } from '../helpers/logins.ts'
import { call } from '../helpers/server.ts'
import { findPort } from '../helpers/slapd.ts'
import { fullOnly } from '../helpers/tiers.ts'
import { waitFor } from '../helpers/wait.ts'
import { recipe } from '../recipes/support.ts'
import { ROOT, runToEnd } from './copy.ts'

const folderOf = (name: string): string => join(ROOT, 'packaging/docker', name)
const read = (name: string): string => readFileSync(folderOf(name), 'utf8')

interface Instruction {
  name: string
  words: string
}

/** Of the last stage, with continuation lines joined. */
const instructions: Instruction[] = read('Dockerfile')
  .replaceAll(/^#.*\n/gm, '')
  .replaceAll(/\\\n\s*/g, '')
  .split(/^(?=FROM )/m)
  .at(-1)!
  .trim()
  .split('\n')
  .map((line) => {
    const [, name = '', words = ''] = /^([A-Z]+) (.*)$/.exec(line) ?? []
    return { name, words }
  })
const one = (name: string): string => {
  const found = instructions.filter((instruction) => instruction.name === name)
  if (found.length !== 1) throw new Error(`there are ${found.length} instructions ${name}`)
  return found[0]?.words ?? ''
}
const listOf = (words: string): string[] => JSON.parse(words.slice(words.indexOf('['))) as string[] // its exec form

describe('the files', () => {
  test('a linter finds nothing in the Dockerfile', () => {
    expect(validate(read('Dockerfile'), { deprecatedMaintainer: 2, instructionWorkdirRelative: 2 })).toEqual([])
  })

  test('the image runs as nobody in particular, with its data in a volume and without a secret', () => {
    expect([one('USER'), one('WORKDIR'), one('VOLUME'), one('STOPSIGNAL')]).toEqual([
      'svc',
      '/var/lib/svc',
      '/var/lib/svc',
      'SIGTERM',
    ])
    expect(instructions.findIndex(({ name }) => name === 'USER')).toBeLessThan(
      instructions.findIndex(({ name }) => name === 'ENTRYPOINT'),
    )
    expect(read('Dockerfile')).not.toMatch(/password|secret|token|\bADD\b/i)
  })

  test('the context has what the build reads, and neither data nor repository', () => {
    const lines = read('Dockerfile.dockerignore').split('\n')
    expect(lines[1]).toBe('*')
    const admitted = lines.flatMap((line) => (line.startsWith('!') ? [line.slice(1)] : []))
    expect(admitted.filter((path) => !existsSync(join(ROOT, path)))).toEqual([])
    expect(admitted).toEqual(
      expect.arrayContaining(['package.json', 'package-lock.json', 'src', 'web', 'migrations', 'scripts']),
    )
    expect(admitted).not.toContain('svc_data')
  })

  test('the page shows files that are there', () => {
    for (const [, path = ''] of recipe('docker.md').matchAll(/-f (\S+)/g))
      expect(existsSync(join(ROOT, path))).toBe(true)
  })

  fullOnly(test)('compose accepts its file', async () => {
    const path = 'usr/lib/python3/dist-packages/compose/config/compose_spec.json'
    const text = readFileSync(await extractDebianProgram('docker-compose', path), 'utf8')
    // It names its parts and its dialect of JSON Schema as older drafts do.
    const isName = (key: string, value: unknown): boolean =>
      ['id', '$schema'].includes(key) && typeof value === 'string'
    const schema = JSON.parse(text, (key, value: unknown) => (isName(key, value) ? undefined : value)) as object
    const check = new Ajv({ strict: false, validateFormats: false }).compile(schema)
    const compose = load(read('compose.yaml')) as { services: { svc: { build: Record<string, string> } } }
    expect([check(compose), check.errors]).toEqual([true, null])
    const { context = '', dockerfile = '' } = compose.services.svc.build
    expect(existsSync(join(folderOf(context), dockerfile))).toBe(true)
  })
})

fullOnly(describe)('the image', () => {
  const folder = makeFolder()
  let image: Chroot
  let environment: Record<string, string> = {}

  beforeAll(async () => {
    const [debian, built] = await Promise.all([
      makeDebian(join(folder.path, 'image')),
      runToEnd(process.execPath, [join(ROOT, 'scripts/build-binary.mjs')]),
    ])
    if (built.code !== 0) throw new Error(built.stdout + built.stderr)
    image = debian
    for (const { name, words } of instructions) {
      if (name === 'RUN') {
        const env = {
          PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
          DEBIAN_FRONTEND: 'noninteractive',
        }
        await runLong(image, ['sh', '-c', words], { account: 'root', cwd: '/', env })
      } else if (name === 'COPY') {
        const [, from = '', to = ''] = /^--from=build (\S+) (\S+)$/.exec(words) ?? []
        copyFileSync(from.replace(/^\/src/, ROOT), join(image.path, to))
      } else if (name === 'ENV') {
        environment = { ...environment, ...Object.fromEntries(words.split(' ').map((pair) => pair.split('=', 2))) }
      }
    }
  }, 900_000)
  afterAll(() => folder.remove())

  test('it has nothing but Debian, svc and what actions need', () => {
    const packages = runInside(image, ['dpkg-query', '--show', '--showformat=${Package}\\n'], {
      account: 'root',
      cwd: '/',
    })
    for (const name of ['python3', 'python3-venv', 'curl', 'ca-certificates'])
      expect(packages.split('\n')).toContain(name)
    for (const name of ['nodejs', 'npm', 'git', 'gcc']) expect(packages.split('\n')).not.toContain(name)
    const kilobytes = Number(runInside(image, ['du', '-skx', '/'], { account: 'root', cwd: '/' }).split('\t')[0])
    // A bare Debian of debootstrap has 80 MB more than the image that it stands for.
    expect(kilobytes).toBeLessThan(500_000)
    expect(statSync(join(image.path, 'var/lib/svc')).uid).toBe(10_001)
  })

  test('the server starts on a read-only system, is healthy, runs an action and stops at SIGTERM', async () => {
    const port = await findPort()
    const env = {
      ...environment,
      SVC_API__PORT: String(port),
      SVC_AUTH__PORT: '0',
      SVC_STREAM__PORT: '0',
      SVC_API__HOST: '127.0.0.1',
    }
    const inside = { account: one('USER'), cwd: one('WORKDIR'), env, writable: [one('VOLUME')] }
    const [program, ...words] = image.command(listOf(one('ENTRYPOINT')), inside)
    const child = spawn(program, words, { stdio: ['ignore', 'pipe', 'pipe'] })
    let said = ''
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => (said += text))
    const exited = new Promise<number | null>((resolve) => child.once('exit', resolve))
    try {
      await waitFor('the server', () => {
        if (child.exitCode !== null) throw new Error(said)
        return said.includes('svc is ready')
      })
      const health = listOf(one('HEALTHCHECK')).map((word) => word.replace(':9101', `:${port}`))
      expect(runInside(image, health, inside)).toBe('{"status":"ok"}')
      const api = `http://127.0.0.1:${port}`
      const password = runInside(image, ['cat', 'initial-admin-password'], inside).trim()
      const login = { Authorization: basicAuth('admin', password) }
      const { token } = (await call<{ token: string }>(`${api}/auth/v1/tokens`, 'POST', {}, login)).body
      const headers = { 'X-Auth-Token': token }
      const code = {
        action: 'core.local',
        parameters: { cmd: 'id -un; python3 -c "print(6 * 7)"; touch /usr/x 2>&1 | grep -o Read-only' },
      }
      const { id } = (await call<{ id: string }>(`${api}/v1/executions`, 'POST', code, headers)).body
      const printed = await waitFor('the execution', async () => {
        const { body } = await call<{ result?: { stdout?: string } }>(
          `${api}/v1/executions/${id}`,
          'GET',
          undefined,
          headers,
        )
        return body.result?.stdout
      })
      expect(printed).toBe('svc\n42\nRead-only')
    } finally {
      child.kill('SIGTERM')
    }
    expect(await exited).toBe(0)
  })
})
