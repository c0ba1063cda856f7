/** Runs the Python actions of `metadata.jsonl`: which class is the action, what it imports, how it ends. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createRunners } from '../../src/runners/index.ts'
import { createLauncher } from '../../src/runners/process/create-launcher.ts'
import type { Difference, Tally } from '../golden-workflows/tally.ts'
import { makeFolder } from '../helpers/folders.ts'
import { recordRun } from '../helpers/run-context.ts'
import { compareResults, type ExpectedResult } from './results.ts'
import { readRows } from './values.ts'

interface Row {
  readonly id: string
  readonly note?: string
  readonly pack: { readonly files: Readonly<Record<string, unknown>> }
  readonly expect: {
    readonly run?: readonly (ExpectedResult & {
      readonly parameters: Readonly<Record<string, unknown>>
      readonly wrapper_json?: string
    })[]
  }
}

export async function playModules(folder: string): Promise<Tally> {
  const rows = readRows<Row>(folder, 'metadata').filter(({ expect }) => expect.run !== undefined)
  const temporary = makeFolder()
  const { launcher } = await createLauncher()
  const make = (enableCommonLibs: boolean) =>
    createRunners({
      launcher,
      maxResultBytes: 1 << 20,
      basePath: join(temporary.path, 'base'),
      systemUser: 'svc-no-such-account',
      python: { enableCommonLibs, poolSize: 0 },
    })
  const [without, withLibs] = [await make(false), await make(true)]
  const differences: Difference[] = []
  try {
    for (const { id, note = '', pack, expect } of rows) {
      const packFolder = join(temporary.path, 'packs', id)
      for (const [path, text] of Object.entries(pack.files)) {
        mkdirSync(dirname(join(packFolder, path)), { recursive: true })
        writeFileSync(join(packFolder, path), String(text))
      }
      const runners = note.includes('common libs on') ? withLibs : without
      const runner = runners.list.find(({ definition }) => definition.name === 'python-script')
      if (runner === undefined) throw new Error('python-script is missing in the list')
      for (const expected of expect.run ?? []) {
        const entryPoint = join(packFolder, 'actions', 'a.py')
        const more = { entryPoint, packFolder, pack: id, actionParameters: { ...expected.parameters } }
        const { status, result } = await runner.run(recordRun({}, more).context)
        // Text of Python instead of JSON.
        const quirk = expected.wrapper_json?.startsWith("{'") === true
        differences.push(...compareResults(id, note, expected, quirk, { status, ...result }))
      }
    }
  } finally {
    await without.stop()
    await withLibs.stop()
    await launcher.stop()
    temporary.remove()
  }
  return { name: 'modules', agree: rows.length - differences.length, differences }
}
