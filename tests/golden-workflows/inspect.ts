/** Plays inspections of a folder with golden data: `inspect.jsonl`, and those before the runs of `conduct.jsonl`. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { readJson } from '../../src/lib/json/index.ts'
import type { InspectionEntry } from '../../src/modules/workflows/types.ts'
import type { ActionCatalog, ActionParameters } from '../../src/modules/workflows/inspection/content.ts'
import { createInspector, type InspectRequest } from '../../src/modules/workflows/inspection/inspector.ts'
import type { Difference, Tally } from './tally.ts'

interface Row {
  readonly id: string
  readonly definition: string
  readonly errors?: readonly InspectionEntry[]
  /** The original engine breaks off. */
  readonly raises?: { readonly message: string }
}

interface Run {
  readonly id: string
  readonly definition: string
  readonly final: {
    readonly errors: readonly InspectionEntry[]
    readonly inspection?: boolean
    readonly refused?: boolean
  }
}

interface Action {
  readonly runner_type: string
  readonly parameters: ActionParameters
}

const actionsIn = (folder: string): Record<string, Action> =>
  readJson(readFileSync(join(folder, 'inspect_actions.json'), 'utf8')) as Record<string, Action> // likewise

const runnerParameters: Readonly<Record<string, ActionParameters>> = {
  'local-shell-cmd': { cmd: {}, cwd: {}, env: {}, kwarg_op: {}, sudo: {}, sudo_password: {}, timeout: {} },
  orquesta: { context: {}, notify: {} },
}

function readActions(folder: string): ActionCatalog {
  const actions = new Map(Object.entries(actionsIn(folder)))
  return {
    parametersOf(ref) {
      const action = actions.get(ref)
      return action && { ...runnerParameters[action.runner_type], ...action.parameters }
    },
    refsOfPack: () => [],
  }
}

/** `inspect.jsonl`, with the actions of `inspect_actions.json`. */
export function playInspections(folder: string): Promise<Tally> {
  return play('inspect', readRows<Row>(folder, 'inspect.jsonl'), { actions: readActions(folder) })
}

/** The inspections before the runs of `conduct.jsonl`: most find nothing. The actions of the runs are all known. */
export function playStarts(folder: string): Promise<Tally> {
  const runs = readRows<Run>(folder, 'conduct.jsonl')
  const rows = new Map<string, Row>()
  for (const { id, definition, final } of runs) {
    const errors = final.inspection === true ? final.errors : []
    const [message = ''] = final.errors.map((error) => error.message)
    rows.set(definition, { id, definition, ...(final.refused === true ? { raises: { message } } : { errors }) })
  }
  const actions: ActionCatalog = { parametersOf: () => 'hidden', refsOfPack: () => [] }
  return play('inspect before runs', [...rows.values()], { actions, variables: ['svc', 'parent'] })
}

const readRows = <T>(folder: string, name: string): T[] =>
  readFileSync(join(folder, name), 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => readJson(line) as T) // the generator writes the shapes above

async function play(name: string, rows: readonly Row[], request: InspectRequest): Promise<Tally> {
  const inspector = createInspector()
  let agree = 0
  const differences: Difference[] = []
  for (const row of rows) {
    const actual = await inspector.inspect(row.definition, request).catch((error: Error) => error.message)
    if (agrees(row, actual)) {
      agree += 1
      continue
    }
    const expected = JSON.stringify(row.errors ?? row.raises)
    differences.push({ id: row.id, input: row.definition, expected, actual: JSON.stringify(actual) })
  }
  await inspector.stop()
  return { name, agree, differences }
}

/** Where the engine breaks off, svc refuses what it cannot load, and has entries about everything else. */
function agrees({ errors, raises }: Row, actual: string | readonly InspectionEntry[]): boolean {
  if (raises === undefined) return isDeepStrictEqual(actual, errors)
  const isUnreadable = raises.message.startsWith('Failed to load workflow definition because ')
  return isUnreadable ? typeof actual === 'string' : actual.length > 0
}
