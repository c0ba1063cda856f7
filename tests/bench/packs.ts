/** The start of a server with many packs that have not changed, beside one without any. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { median, ms, times, type Row } from './report.ts'
import { makeFolder, startBenchServer } from './server.ts'

const PACKS = 200
const ACTIONS = 60
const STARTS = 5
const BUDGET_MS = 1_000

/** Half of the packs have a problem: what they need may have come, so that a start decides about them too. */
function writePacks(basePath: string): void {
  for (let p = 0; p < PACKS; p += 1) {
    const folder = join(basePath, 'packs', `pack_${p}`)
    for (const name of ['actions', 'rules']) mkdirSync(join(folder, name), { recursive: true })
    writeFileSync(join(folder, 'pack.yaml'), `name: pack_${p}\ndescription: d\nversion: 1.0.0\nauthor: a\n`)
    for (let a = 0; a < ACTIONS; a += 1) {
      const parameters = 'parameters: {host: {type: string, required: true}, port: {type: integer, default: 22}}'
      const head = `name: a${a}\nrunner_type: python-script\nentry_point: a${a}.py\n`
      writeFileSync(join(folder, `actions/a${a}.yaml`), `${head}${parameters}\n`)
      writeFileSync(join(folder, `actions/a${a}.py`), 'class A(object):\n    pass\n')
    }
    if (p % 2 === 0)
      writeFileSync(join(folder, 'rules/r.yaml'), 'name: r\ntrigger: {type: nothing.there}\naction: {ref: core.noop}\n')
  }
}

export async function startingWithPacks(): Promise<Row[]> {
  const found: Record<'many' | 'none', { starts: number[]; processor: number[] }> = {
    many: { starts: [], processor: [] },
    none: { starts: [], processor: [] },
  }
  const basePaths = { many: makeFolder(), none: makeFolder() }
  try {
    writePacks(basePaths.many)
    // The first start of each registers everything.
    for (let i = 0; i <= STARTS; i += 1) {
      for (const name of ['none', 'many'] as const) {
        const server = await startBenchServer({ basePath: basePaths[name] })
        if (i > 0) {
          found[name].starts.push(server.startMs)
          found[name].processor.push(processorMs(server.pid))
        }
        await server.stop()
      }
    }
  } finally {
    for (const path of Object.values(basePaths)) rmSync(path, { recursive: true, force: true })
  }
  const [many, none] = [median(found.many.starts), median(found.none.starts)]
  return [
    {
      work: `start with ${PACKS} unchanged packs of ${ACTIONS} actions, ready`,
      ours: `${ms(many)}, ${ms(median(found.many.processor))} of processor time`,
      reference: `without packs ${ms(none)}, ${ms(median(found.none.processor))}: ${times(many / none)}`,
      budget: `≤ ${ms(BUDGET_MS)}`,
      isMet: many <= BUDGET_MS,
      note: `medians of ${STARTS} starts in turn; half of the packs have a problem`,
    },
  ]
}

/** Of all threads of a process so far. */
function processorMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ')
  // User and system time in ticks of 10 ms.
  return (Number(fields[11]) + Number(fields[12])) * 10
}
