/** What the command line does with a definition by itself, without a server. */
import { readEither, type Either } from './either.ts'
import { inspectText } from './inspection/inspect.ts'
import { Findings } from './inspection/findings.ts'
import { compare } from './rehearsal/expectations.ts'
import { noMocks, readMocks, unknownInput } from './rehearsal/mocks.ts'
import { rehearse } from './rehearsal/rehearse.ts'
import type { RehearsalAnswer } from './types.ts'

export { graphOfText } from './either.ts'

export interface RehearsalRequest {
  /** The definition, YAML. */
  readonly text: string
  /** Default: there are no mocks. */
  readonly mocks?: { readonly name: string; readonly text: string } | undefined
  /** Takes the place of the input in the mocks, name by name. */
  readonly input: Readonly<Record<string, unknown>>
}

/** Variables that a run has besides its own. */
const runVariables = ['svc', 'parent']

export function rehearseText({ text, mocks: file, input }: RehearsalRequest): RehearsalAnswer {
  const inspection = inspectText(text, { variables: runVariables, hints: true })
  if ('problem' in inspection) return definitionProblem(inspection.problem)
  const found = new Findings(inspection).sorted()
  const mistakes = found.filter(({ type }) => type !== 'warning')
  if (mistakes.length > 0) return { mistakes }
  const read = readEither(text)
  if ('problem' in read) return definitionProblem(read.problem)
  const mocks = file === undefined ? noMocks : readMocks(file.text, file.name, inputsOf(read), read.definition)
  if ('problem' in mocks) return mocks
  for (const name of Object.keys(input)) {
    const problem = unknownInput(name, inputsOf(read))
    if (problem !== undefined) return { problem: `--input ${name}: ${problem}` }
  }
  const rehearsal = rehearse(read, { ...mocks, input: { ...mocks.input, ...input } })
  return { rehearsal, differences: compare(mocks.expect, rehearsal), warnings: found }
}

/** undefined: any, as the parameters of a chain are those of its action */
const inputsOf = ({ runner, definition }: Either): readonly string[] | undefined =>
  runner === 'action-chain' ? undefined : definition.input.map(({ name }) => name)

const definitionProblem = (problem: string): { problem: string } => ({
  problem: `Failed to load workflow definition because ${problem}`,
})
