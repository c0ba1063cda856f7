/** What a chain has evaluated, for whoever asks why. Nothing of the run changes. */
import { keysOf } from '../../../lib/json/index.ts'
import { Draft, type InstanceRow, type LogEntry, type Part, type State, type Variables } from '../conductor/index.ts'
import { isCompleted } from '../conductor/status.ts'
import type { Chain } from './definition.ts'
import {
  latestContext,
  logWays,
  nodeOf,
  openTurn,
  parametersOf,
  publishedOf,
  refusalOf,
  renderPart,
  varsOf,
  type ChainWorld,
  type Turn,
} from './conduct.ts'
import { reasonOf } from './template.ts'

/** As `review` of the conductor of workflows. What nodes have published is read from the rows. */
export function reviewChain(chain: Chain, state: State, part: Part, world: ChainWorld): LogEntry[] {
  const turn = openTurn(chain, new Draft(state), { ...world, explains: true }, undefined)
  switch (part.kind) {
    case 'transitions':
      logTaken(turn, part.instance)
      break
    case 'begin':
      if (state.workflow.instances === 0) catchReason(() => renderPart(turn, varsOf(turn)))
      break
    case 'output':
      reviewEnd(turn)
      break
    case 'start':
      // An action that was refused has no template that failed.
      break
  }
  return turn.log
}

function logTaken(turn: Turn, instance: InstanceRow): void {
  const { draft, chain } = turn
  const transitions = chain.graph.tasks[instance.task]?.outgoing ?? []
  const [taken] = instance.taken ?? []
  // One that was stopped, or has broken off, has taken no way.
  if (taken === undefined && !instance.isTerminal) return
  const position = taken === undefined ? (instance.status === 'succeeded' ? 0 : 1) : transitions[taken]?.position
  if (position === undefined) return
  logWays(turn, instance, transitions, position, valuesOf(turn, draft.instance(instance.id)))
}

/** What a node has published: the context that came while it ended. */
function valuesOf(turn: Turn, instance: InstanceRow): Variables {
  const { draft } = turn
  const names = keysOf(nodeOf(turn, instance).publish)
  if (names.length === 0 || refusalOf(turn, instance.id) !== undefined) return {}
  const context = draft.findInstance(instance.id + 1)?.context ?? latestContext(turn)
  return context === instance.context ? {} : draft.context(context).values
}

/** The templates that the chain has failed with: those of its last node. */
function reviewEnd(turn: Turn): void {
  const { draft } = turn
  if (draft.workflow.status !== 'failed') return
  const last = draft.findInstance(draft.workflow.instances - 1)
  if (last === undefined || !isCompleted(last.status)) return
  catchReason(() => renderPart(turn, last.order === null ? parametersOf(turn, last) : publishedOf(turn, last)))
}

/** The log has why it failed. */
function catchReason(work: () => unknown): void {
  try {
    work()
  } catch (error) {
    reasonOf(error)
  }
}
