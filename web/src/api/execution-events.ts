/** Changes of executions and of content as they happen: one stream for the whole page, while anybody listens. */
import { useEffect, useRef } from 'preact/hooks'
import { createStore } from '../store.ts'
import { followEvents, type EventConnection } from './events.ts'
import { summaryQuery, type ExecutionSummary } from './execution-summary.ts'
import type { ContentKind } from './records.ts'
import { readJson } from '../json.ts'

export interface ExecutionListener {
  /**
   * Also of executions that the listener knows nothing about yet. Answers and events may cross: see `laterOf`. There is no
   * result, which may have megabytes: whoever shows it asks for it once the execution has ended.
   */
  onExecution?(execution: ExecutionSummary, change: 'create' | 'update' | 'delete'): void
  /**
   * The stream was opened, or opened again: events in between are missing. Load, then listen. Called every few seconds
   * without the permission to follow the stream.
   */
  onOpen?(): void
  /** Some records of these kinds were created, changed or deleted; undefined: perhaps, while the stream was not open. */
  onContent?(kinds: readonly ContentKind[] | undefined): void
}

/** Whether what is shown is up to date; undefined while nothing is shown that changes by itself. */
export const liveConnection = createStore<EventConnection | undefined>(undefined)

const INSTEAD_MS = 5000
/** The next screen goes on with the stream of the one before. */
const LINGER_MS = 1000
/** Content changes less often than executions, and its lists are long: every so many rounds. */
const CONTENT_ROUNDS = 6

const listeners = new Set<ExecutionListener>()
let stop: (() => void) | undefined
let stopping: ReturnType<typeof setTimeout> | undefined
let instead: ReturnType<typeof setInterval> | undefined
let round = 0

const changes: Record<string, 'create' | 'update' | 'delete'> = {
  'svc.execution__create': 'create',
  'svc.execution__update': 'update',
  'svc.execution__delete': 'delete',
}
const CONTENT_EVENT = 'svc.content__change'

function listen(listener: ExecutionListener): () => void {
  listeners.add(listener)
  clearTimeout(stopping)
  if (liveConnection.value === 'open') listener.onOpen?.()
  if (stop === undefined) liveConnection.set('connecting')
  stop ??= followEvents('stream/v1/stream', {
    query: { events: [...Object.keys(changes), CONTENT_EVENT], ...summaryQuery },
    onEvent({ name, data }) {
      if (name === CONTENT_EVENT) {
        const { kinds } = readJson(data) as { kinds: ContentKind[] } // what the server declares
        for (const one of listeners) one.onContent?.(kinds)
        return
      }
      const change = changes[name]
      if (change === undefined) return
      const execution = readJson(data) as ExecutionSummary // what the query asks for
      for (const one of listeners) one.onExecution?.(execution, change)
    },
    onConnection(connection) {
      liveConnection.set(connection)
      if (connection === 'open') tellAll(true)
      else if (connection === 'ended') instead = setInterval(tellAgain, INSTEAD_MS)
    },
  })
  return () => {
    listeners.delete(listener)
    clearTimeout(stopping)
    if (listeners.size === 0) stopping = setTimeout(stopFollowing, LINGER_MS)
  }
}

function stopFollowing(): void {
  stop?.()
  stop = undefined
  clearInterval(instead)
  liveConnection.set(undefined)
}

function tellAgain(): void {
  if (document.hidden) return
  round += 1
  tellAll(round % CONTENT_ROUNDS === 0)
}

function tellAll(withContent: boolean): void {
  for (const one of listeners) {
    one.onOpen?.()
    if (withContent) one.onContent?.(undefined)
  }
}

/** While the component is shown. The listener may be another one at each drawing. */
export function useExecutionEvents(listener: ExecutionListener): void {
  const latest = useRef(listener)
  latest.current = listener
  useEffect(
    () =>
      listen({
        onExecution: (execution, change) => latest.current.onExecution?.(execution, change),
        onOpen: () => latest.current.onOpen?.(),
        onContent: (kinds) => latest.current.onContent?.(kinds),
      }),
    [],
  )
}

/** Calls when records of these kinds may have changed, while the component is shown. No kinds: never. */
export function useContentChanges(kinds: readonly ContentKind[], onChange: () => void): void {
  const latest = useRef(onChange)
  latest.current = onChange
  const names = kinds.join()
  useEffect(() => {
    if (names === '') return undefined
    return listen({
      onContent(changed) {
        if (changed === undefined || kinds.some((kind) => changed.includes(kind))) latest.current()
      },
    })
  }, [names])
}
