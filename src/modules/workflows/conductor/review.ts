/** What the conductor evaluates of a run, evaluated once more for whoever asks why. Nothing of the run changes. */
import type { Definition } from '../definition/model.ts'
import { beginWorkflow } from './begin.ts'
import { openTurn, type World } from './conduct.ts'
import { ContextCache } from './contexts.ts'
import { Draft } from './draft.ts'
import { renderOutput } from './output.ts'
import { wantsRetry } from './retry.ts'
import { planStart } from './start.ts'
import { emptyState, type InstanceRow, type State } from './state.ts'
import { evaluateTransitions } from './transitions.ts'
import { messageOf, taskOf, type Turn } from './turn.ts'
import type { LogEntry } from './types.ts'

/** A part of a run that has expressions. */
export type Part =
  /** Conditions and variables of an instance that has ended, and the condition of its retry. */
  | { readonly kind: 'transitions'; readonly instance: InstanceRow }
  /** Action, input, items, delay and retry of an instance. */
  | { readonly kind: 'start'; readonly instance: InstanceRow }
  | { readonly kind: 'output' }
  /** Defaults of the input, and `vars`. @param input as of the event `started` */
  | { readonly kind: 'begin'; readonly input: Readonly<Record<string, unknown>> }

/**
 * Evaluates a part with the code that conducts the run, on the state as it is now.
 *
 * @returns what the conductor logs, readings included
 * @throws what `world.evaluate` throws besides errors of expressions
 */
export function review(definition: Definition, state: State, part: Part, world: World): LogEntry[] {
  const draft = new Draft(part.kind === 'begin' ? emptyState() : state)
  const memory = {
    contexts: world.memory?.contexts ?? new ContextCache(),
    lists: new Map<string, readonly unknown[]>(),
  }
  const turn = openTurn(definition, draft, { ...world, memory, explains: true }, undefined)
  reviewPart(turn, part)
  return turn.log
}

function reviewPart(turn: Turn, part: Part): void {
  switch (part.kind) {
    case 'transitions': {
      const task = taskOf(turn, part.instance)
      catchMistake(() => wantsRetry(turn, task, part.instance))
      Array.from(evaluateTransitions(turn, task, part.instance))
      return
    }
    case 'start':
      catchMistake(() => planStart(turn, taskOf(turn, part.instance), part.instance))
      return
    case 'output':
      turn.draft.setWorkflow({ output: null })
      renderOutput(turn)
      return
    case 'begin':
      beginWorkflow(turn, part.input)
  }
}

/** The log has the mistakes of expressions. */
function catchMistake(work: () => unknown): void {
  try {
    work()
  } catch (error) {
    messageOf(error)
  }
}
