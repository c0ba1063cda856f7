import { chmodSync, mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makeFolder, type TemporaryFolder } from '../../tests/helpers/folders.ts'
import { recordRun } from '../../tests/helpers/run-context.ts'
import type { ParameterSchema } from '../lib/schema/index.ts'
import { createRunners, type Runners } from './index.ts'
import { createLauncher } from './process/create-launcher.ts'
import type { Launcher } from './process/launcher.ts'
import type { RunContext, RunResult } from './runner.ts'

let launcher: Launcher
let runners: Runners
let folder: TemporaryFolder
let packFolder: string
let count = 0

beforeAll(async () => {
  ;({ launcher } = await createLauncher())
  folder = makeFolder()
  packFolder = join(folder.path, 'pack')
  mkdirSync(join(packFolder, 'actions'), { recursive: true })
  runners = await createRunners({ launcher, maxResultBytes: 100_000, systemUser: 'svc-no-such-account' })
})
afterAll(async () => {
  await runners.stop()
  await launcher.stop()
  folder.remove()
})

function write(text: string, mode = 0o644): string {
  count += 1
  const path = join(packFolder, 'actions', `script-${count}`)
  writeFileSync(path, text)
  chmodSync(path, mode)
  return path
}

function run(entryPoint: string, more: Partial<RunContext> = {}): Promise<RunResult> {
  const runner = runners.list.find(({ definition }) => definition.name === 'local-shell-script')
  if (runner === undefined) throw new Error('local-shell-script is missing')
  return runner.run(recordRun(more.runnerParameters ?? {}, { entryPoint, packFolder, ...more }).context)
}

const printArguments = `#!/bin/sh\nprintf '%s|' "$@"\n`

describe('arguments', () => {
  it.each([`it's "$HOME"`, '$(id)', '`id`', 'a  b\n', '-n', '--', '*', '\\', 'ä€'])(
    'gives %j as it is',
    async (value) => {
      const schemas: Record<string, ParameterSchema> = { place: { position: 0 } }
      const actionParameters = { place: value, name: value }
      const { result } = await run(write(printArguments), { actionParameters, parameterSchemas: schemas })
      expect(result['stdout']).toBe(`--name=${value}|${value}|`)
    },
  )

  it('refuses what no argument can hold', async () => {
    const { status, result } = await run(write(printArguments), { actionParameters: { name: 'a\0b' } })
    expect([status, result['error']]).toEqual(['failed', expect.stringContaining('NUL')])
  })

  const secret = { parameterSchemas: { password: { secret: true } }, actionParameters: { password: 'geheim' } }
  const look = `#!/bin/sh
    shown="$(tr '\\0' ' ' < /proc/$$/cmdline)"
    case $shown in *geheim*) shown=shown ;; *) shown=hidden ;; esac
    echo "$shown [$*] [$SVC_ACTION_PARAM_password]"`

  it('gives secrets both ways, to scripts of a shell so that nobody sees them', async () => {
    expect((await run(write(look), secret)).result['stdout']).toBe('hidden [--password=geheim] [geheim]')
    expect((await run(write(look.slice(10)), secret)).result['stdout']).toBe('hidden [--password=geheim] [geheim]')
    // An interpreter that is not known to be a shell.
    const path = write(look.replace('/bin/sh', join(packFolder, 'other')))
    symlinkSync('/bin/sh', join(packFolder, 'other'))
    expect((await run(path, secret)).result['stdout']).toBe('shown [--password=geheim] [geheim]')
  })

  it('keeps secrets out of the command line when the author says so', async () => {
    const runnerParameters = { secret_arguments: false }
    expect((await run(write(look), { ...secret, runnerParameters })).result['stdout']).toBe('hidden [] [geheim]')
  })
})

describe('the file', () => {
  it('is made executable for those who may read it', async () => {
    const path = write('#!/bin/sh\necho ran', 0o640)
    expect((await run(path)).result).toMatchObject({ stdout: 'ran', return_code: 0 })
    expect(statSync(path).mode & 0o777).toBe(0o750)
  })

  it('is run by sh when it names no interpreter', async () => {
    const entryPoint = write('echo "$1 of $#"; exit 4')
    const parts = { actionParameters: { a: 'x y' }, parameterSchemas: { a: { position: 0 } } }
    expect((await run(entryPoint, parts)).result).toMatchObject({ stdout: 'x y of 1', return_code: 4 })
  })

  it('finds what lies beside it, also through a link within the pack', async () => {
    mkdirSync(join(packFolder, 'lib'))
    writeFileSync(join(packFolder, 'lib/real.sh'), '#!/bin/sh\necho "$0"')
    const path = join(packFolder, 'actions/linked.sh')
    symlinkSync('../lib/real.sh', path)
    expect((await run(path)).result['stdout']).toBe(path)
  })

  it('is told whether to be talkative', async () => {
    const env = { SVC_ACTION_DEBUG: 'True' }
    expect((await run(write('echo $SVC_ACTION_DEBUG'), { env })).result['stdout']).toBe('True')
  })

  it.each([
    ['leads out by a link', () => link('/bin/true'), /"actions\/link-\d+".*lead out of the folder/],
    ['leads nowhere', () => link('/no/such/file'), /does not exist/],
    ['leads to itself', () => linkToItself(), /circle/],
    ['is named outside', () => join(packFolder, '../other/x.sh'), /outside the folder/],
    ['is a folder', () => join(packFolder, 'actions'), /not a file/],
    ['comes from Windows', () => write('#!/bin/sh\r\necho hi\r\n'), /Windows line ends/],
    ['has a folder for an interpreter', () => write('#!/etc\n'), /"\/etc" is not executable/],
  ])('cannot be used when it %s', async (_, path, error) => {
    const { status, result } = await run(path())
    expect([status, result['error']]).toEqual(['failed', expect.stringMatching(error)])
    expect(JSON.stringify(result)).not.toContain(dirname(packFolder))
  })

  it('cannot come from another revision without packs', async () => {
    const at = (version: string) => run(write('echo ran'), { runnerParameters: { content_version: version } })
    const { status, result } = await at('v1.2')
    expect([status, result['error']]).toEqual(['failed', expect.stringContaining('content_version')])
    expect((await at('')).result['stdout']).toBe('ran')
  })
})

function link(target: string): string {
  count += 1
  const path = join(packFolder, 'actions', `link-${count}`)
  symlinkSync(target, path)
  return path
}

function linkToItself(): string {
  const path = join(packFolder, 'actions', 'self')
  symlinkSync('self', path)
  return path
}
