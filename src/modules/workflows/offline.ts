/** What the command line does with a definition by itself, without a server. */
import { readDefinition } from './definition/model.ts'
import { loadDefinition } from './definition/read.ts'
import { inspectText } from './inspection/inspect.ts'
import { Findings } from './inspection/findings.ts'
import { compare } from './rehearsal/expectations.ts'
import { noMocks, readMocks, unknownInput } from './rehearsal/mocks.ts'
import { rehearse } from './rehearsal/rehearse.ts'
import type { RehearsalAnswer } from './types.ts'

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
  const document = loadDefinition(text)
  if ('problem' in document) return definitionProblem(document.problem)
  const inspection = inspectText(text, { variables: runVariables, hints: true })
  if ('problem' in inspection) return definitionProblem(inspection.problem)
  const mistakes = new Findings(inspection).sorted()
  if (mistakes.length > 0) return { mistakes }
  const definition = readDefinition(document.value)
  const mocks = file === undefined ? noMocks : readMocks(file.text, file.name, definition)
  if ('problem' in mocks) return mocks
  for (const name of Object.keys(input)) {
    const problem = unknownInput(
      name,
      definition.input.map((variable) => variable.name),
    )
    if (problem !== undefined) return { problem: `--input ${name}: ${problem}` }
  }
  const rehearsal = rehearse(definition, { ...mocks, input: { ...mocks.input, ...input } })
  return { rehearsal, differences: compare(mocks.expect, rehearsal) }
}

const definitionProblem = (problem: string): { problem: string } => ({
  problem: `Failed to load workflow definition because ${problem}`,
})
