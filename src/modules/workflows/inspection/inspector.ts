/** Inspection and graphs on the server: they keep the event loop free. */
import { locateCode } from '../../../core/bundle.ts'
import { definitionUnreadable, queueFull } from '../../../core/errors.ts'
import { createThread, ThreadTooSlow } from '../../../core/thread.ts'
import { Lru } from '../../../lib/cache/index.ts'
import { createPause } from '../../../lib/concurrency/index.ts'
import { graphOfText } from '../either.ts'
import type { InspectionEntry, WorkflowGraph } from '../types.ts'
import { inspectAction, type ActionCatalog } from './content.ts'
import { inspectDefaults } from './defaults.ts'
import { Findings } from './findings.ts'
import { Hints } from './hints.ts'
import { inspectText, type InspectOptions } from './inspect.ts'
import type { TextInspection } from './inspection.ts'
import type { InspectionAnswer, InspectionQuestion } from './inspection-thread.ts'

/** A longer definition is inspected by a thread; this one takes some 20 ms. */
const MAX_QUICK_CHARS = 16_384
/** Definitions without mistakes in themselves, which every run of a workflow asks for. */
const MAX_KEPT = 500
const MAX_KEPT_CHARS = 16 * 1024 * 1024
/** Definitions that wait for the thread hold their text. */
const MAX_WAITING = 50
/** The largest definitions take seconds. One that takes longer may not keep the others waiting. */
const MAX_SECONDS = 30

export interface InspectRequest extends InspectOptions {
  actions: ActionCatalog
  /** The action that runs the workflow, with its own parameters. With it, inspection warns of defaults without effect. */
  action?: { readonly ref: string; readonly parameters: Readonly<Record<string, unknown>> } | undefined
}

export interface Inspector {
  /**
   * The mistakes of a definition, sorted; none: it can run.
   *
   * @throws DEFINITION_UNREADABLE, QUEUE_FULL, SHUTTING_DOWN
   */
  inspect(text: string, request: InspectRequest): Promise<InspectionEntry[]>
  /**
   * The graph of a definition.
   *
   * @throws DEFINITION_UNREADABLE, QUEUE_FULL, SHUTTING_DOWN
   */
  graph(text: string): Promise<WorkflowGraph>
  stop(): Promise<void>
}

export function createInspector(): Inspector {
  const thread = createThread<InspectionQuestion, InspectionAnswer>({
    name: 'the thread for inspections',
    file: locateCode('./inspection-thread', import.meta.url),
    maxMilliseconds: MAX_SECONDS * 1000,
  })

  // Aliases let a short text stand for much.
  const isQuick = (text: string): boolean => text.length <= MAX_QUICK_CHARS && !text.includes('&')

  const kept = new Lru<string, TextInspection>(MAX_KEPT, MAX_KEPT_CHARS)

  async function inspectAlone(text: string, options: InspectOptions): Promise<TextInspection> {
    const key = `${JSON.stringify(options)} ${text}`
    const known = kept.get(key)
    if (known !== undefined) return known
    const inspection = isQuick(text)
      ? inspectText(text, options)
      : ((await ask({ text, ...options })) as TextInspection) // the answer to that question
    if (!('problem' in inspection) && inspection.entries.length === 0) kept.set(key, inspection, key.length)
    return inspection
  }

  async function ask(question: InspectionQuestion): Promise<InspectionAnswer> {
    if (thread.waitingCount >= MAX_WAITING) throw queueFull('inspections of workflows', MAX_WAITING)
    try {
      return await thread.ask(question)
    } catch (error) {
      if (!(error instanceof ThreadTooSlow)) throw error
      throw definitionUnreadable(`reading it takes more than ${MAX_SECONDS} seconds. Make it smaller.`)
    }
  }

  return {
    async inspect(text, { actions, action, ...options }) {
      const inspection = await inspectAlone(text, options)
      if ('problem' in inspection) throw definitionUnreadable(inspection.problem)
      const findings = new Findings(inspection)
      const hints = new Hints(options.hints === true)
      const pause = createPause()
      for (const use of inspection.actions) {
        findings.addAll(inspectAction(use, actions, hints))
        await pause()
      }
      if (action !== undefined) findings.addAll(inspectDefaults(inspection.defaults, action))
      return findings.sorted()
    },
    async graph(text) {
      const graph = isQuick(text)
        ? graphOfText(text)
        : ((await ask({ text, isGraph: true })) as ReturnType<typeof graphOfText>) // the answer to that question
      if ('problem' in graph) throw definitionUnreadable(graph.problem)
      return graph
    },
    stop: () => thread.stop(),
  }
}
