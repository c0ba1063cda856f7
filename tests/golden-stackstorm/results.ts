/** Plays `results.jsonl` of a folder with golden data: each row is an action, whose result is compared. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { readJson, writeJson } from '../../src/lib/json/index.ts'
import { createRunners } from '../../src/runners/index.ts'
import { createLauncher } from '../../src/runners/process/create-launcher.ts'
import { startScript } from '../../src/runners/python/interpreters.ts'
import type { Difference, Tally } from '../golden-workflows/tally.ts'
import { makeFolder } from '../helpers/folders.ts'
import { recordRun } from '../helpers/run-context.ts'
import { plain, readRows, spell } from './values.ts'

interface Row {
  readonly id: string
  readonly returns: string
  readonly module: string
  readonly quirk?: string
  readonly expect: ExpectedResult
}

/** What StackStorm makes of a run. */
export interface ExpectedResult {
  readonly exit_code: number
  readonly status?: string
  readonly result?: unknown
  readonly stdout?: string
  readonly runner_error?: unknown
}

type Played = Readonly<Record<string, unknown>>

/** Rows that go the whole way of an execution's action. The others run the same Python code in one process. */
const MAX_WHOLE_RUNS = 12

/** @throws when Python cannot play them */
export async function playResults(folder: string): Promise<Tally> {
  const rows = readRows<Row>(folder, 'results')
  const temporary = makeFolder()
  try {
    const inOneProcess = playInOneProcess(rows, temporary.path)
    const differences = rows.flatMap((row, index) => compare(row, inOneProcess[index]))
    const step = Math.max(1, Math.ceil(rows.length / MAX_WHOLE_RUNS))
    const sample = rows.filter((_, index) => index % step === 0)
    const whole = await playWhole(sample, temporary.path)
    const isKnown = (id: string): boolean => differences.some((difference) => difference.id === id)
    differences.push(...sample.flatMap((row, index) => (isKnown(row.id) ? [] : compare(row, whole[index]))))
    return { name: 'results', agree: rows.length - differences.length, differences }
  } finally {
    temporary.remove()
  }
}

function playInOneProcess(rows: readonly Row[], folder: string): Played[] {
  const program = fileURLToPath(new URL('play_results.py', import.meta.url))
  const { stdout, stderr, status } = spawnSync(
    'python3',
    [program, dirname(fileURLToPath(startScript)), join(folder, 'one')],
    {
      input: writeJson(rows.map(({ module }) => module)),
      encoding: 'utf8',
      maxBuffer: 1 << 28,
    },
  )
  if (status !== 0) throw new Error(`Python cannot play the results: ${stderr}`)
  const played = readJson(stdout) as { exit_code: number; stdout: string; reply: string }[] // as the program writes it
  return played.map(({ exit_code, stdout: text, reply }) => {
    const said = reply === '' ? {} : (readJson(reply) as Record<string, unknown>) // an object
    const isGood = exit_code === 0 && 'result' in said && said['succeeded'] !== false
    return { exit_code, stdout: text, status: isGood ? 'succeeded' : 'failed', result: said['result'] }
  })
}

async function playWhole(rows: readonly Row[], folder: string): Promise<Played[]> {
  const { launcher } = await createLauncher()
  const runners = await createRunners({
    launcher,
    maxResultBytes: 1 << 20,
    basePath: join(folder, 'base'),
    systemUser: 'svc-no-such-account',
  })
  const runner = runners.list.find(({ definition }) => definition.name === 'python-script')
  if (runner === undefined) throw new Error('python-script is missing in the list')
  const played: Played[] = []
  try {
    for (const row of rows) {
      const packFolder = join(folder, 'whole', row.id)
      const entryPoint = join(packFolder, 'actions', 'a.py')
      mkdirSync(dirname(entryPoint), { recursive: true })
      writeFileSync(entryPoint, row.module)
      const { status, result } = await runner.run(recordRun({}, { entryPoint, packFolder, pack: row.id }).context)
      const { exit_code, stdout } = result as { exit_code: number; stdout: string } // of this runner
      played.push({ exit_code, stdout, status, result: result['result'] })
    }
  } finally {
    await runners.stop()
    await launcher.stop()
  }
  return played
}

const compare = ({ id, returns, expect, quirk }: Row, played: Played | undefined): Difference[] =>
  compareResults(id, returns, expect, quirk !== undefined, played)

/** @param hasTail the result is Python's text, cut out of that of an object */
export function compareResults(
  id: string,
  input: string,
  expect: ExpectedResult,
  hasTail: boolean,
  played: Played | undefined,
): Difference[] {
  const isRefused = expect.runner_error !== undefined
  // A refused execution has no value.
  const spellOne = ({ exit_code, status, result, stdout }: Played): string =>
    withoutAddresses(spell({ exit_code, status, ...(isRefused ? {} : { result, stdout }) }))
  const expected = spellOne({
    exit_code: expect.exit_code,
    status: expect.status ?? 'failed',
    result: hasTail ? withoutTail(String(expect.result)) : plain(expect.result),
    stdout: expect.stdout ?? '',
  })
  const actual = played === undefined ? 'nothing' : spellOne(played)
  return expected === actual ? [] : [{ id, input, expected, actual }]
}

/** What `quirk` says: the text of the value lies in that of an object, whose rest is left over. */
function withoutTail(text: string): string {
  return text.replace(/^\{'result': /, '').replace(/, 'status': (?:None|True|False)\}$/, '')
}

/** Nor where a module lies, which depends on how Python was built. */
const withoutAddresses = (text: string): string =>
  text.replace(/0x[0-9a-f]+|0xADDRESS/g, '0xADDRESS').replace(/<module '(\w+)'[^>]*>/g, "<module '$1'>")
