/** Inspection of a workflow definition (contract 08, 8.13): every mistake that the text shows without running it. */
import { isObject } from '../../../lib/schema/index.ts'
import { readDefinition } from '../definition/model.ts'
import { loadDefinition } from '../definition/read.ts'
import { inspectShape } from '../definition/schema.ts'
import { inspectChain } from './chain.ts'
import { adviseOn } from './advice.ts'
import { findActionUse, type ActionUse } from './content.ts'
import { findInputDefaults } from './defaults.ts'
import { Findings } from './findings.ts'
import { Hints } from './hints.ts'
import type { Inspection, TextInspection } from './inspection.ts'
import { inspectExpressions } from './mistakes.ts'
import { taskParts, transitionParts, workflowPart, type Part } from './parts.ts'
import { inspectSemantics } from './semantics.ts'
import { Texts } from './texts.ts'
import { inspectVariables } from './variables.ts'

export interface InspectOptions {
  /** Names of variables that have a value before the workflow starts; default: those that svc gives to each workflow. */
  readonly variables?: readonly string[]
  /** Whether entries about unknown names suggest others, and warnings tell what is likely to be a mistake; default false. */
  readonly hints?: boolean
  /** What the text must be; default: a mapping with the key `chain` is a chain. */
  readonly form?: 'workflow' | 'chain'
}

const serverVariables: readonly string[] = ['svc']

export function inspectText(text: string, options: InspectOptions = {}): TextInspection {
  const { form, hints = false } = options
  const chain = form === 'workflow' ? undefined : inspectChain(text, hints, form === 'chain')
  if (chain !== undefined) return chain
  const document = loadDefinition(text)
  return 'problem' in document ? document : inspectDocument(document.value, options)
}

function inspectDocument(value: unknown, { variables = serverVariables, hints = false }: InspectOptions): Inspection {
  const findings = new Findings()
  const document = isObject(value) ? value : {}
  const documents = isObject(document['tasks']) ? document['tasks'] : {}
  const definition = readDefinition(document)
  const texts = new Texts()
  const actions: ActionUse[] = []

  const suggestions = new Hints(hints)
  const inspectPart = (part: Part): void => {
    findings.addAll(inspectExpressions(part, texts))
    if (suggestions.areWanted) findings.addAll(adviseOn(part, texts, suggestions))
  }

  findings.addAll(inspectShape(value, hints ? (name, names) => suggestions.of(name, names) : undefined))
  findings.addAll(inspectSemantics(definition, documents, suggestions))
  findings.addAll(inspectVariables(definition, document, texts, variables, suggestions))
  for (const name of ['vars', 'input', 'output', 'timeout']) inspectPart(workflowPart(document, name))
  for (const task of definition.tasks.filter(({ kind }) => kind === 'task')) {
    const part = documents[task.name]
    const use = findActionUse(task, part, texts)
    if (use !== undefined) actions.push(use)
    for (const each of taskParts(task, part)) inspectPart(each)
    for (const position of task.next.keys()) {
      for (const each of Object.values(transitionParts(task, part, position))) inspectPart(each)
    }
  }
  const { entries, hasMore } = findings
  return { entries, hasMore, actions, defaults: findInputDefaults(document) }
}
