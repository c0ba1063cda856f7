/** Changes of executions as they happen: one stream for the whole page, while anybody listens. */
import { useEffect, useRef } from 'preact/hooks'
import { createStore } from '../store.ts'
import { followEvents, type EventConnection } from './events.ts'
import { summaryQuery, type ExecutionSummary } from './execution-summary.ts'
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
}

/** Whether what is shown is up to date; undefined while nothing is shown that changes by itself. */
export const liveConnection = createStore<EventConnection | undefined>(undefined)

const INSTEAD_MS = 5000

const listeners = new Set<ExecutionListener>()
let stop: (() => void) | undefined
let instead: ReturnType<typeof setInterval> | undefined

const changes: Record<string, 'create' | 'update' | 'delete'> = {
  'svc.execution__create': 'create',
  'svc.execution__update': 'update',
  'svc.execution__delete': 'delete',
}

function listen(listener: ExecutionListener): () => void {
  listeners.add(listener)
  if (liveConnection.value === 'open') listener.onOpen?.()
  if (stop === undefined) liveConnection.set('connecting')
  stop ??= followEvents('stream/v1/stream', {
    query: { events: Object.keys(changes), ...summaryQuery },
    onEvent({ name, data }) {
      const change = changes[name]
      if (change === undefined) return
      const execution = readJson(data) as ExecutionSummary // what the query asks for
      for (const one of listeners) one.onExecution?.(execution, change)
    },
    onConnection(connection) {
      liveConnection.set(connection)
      if (connection === 'open') tellAll()
      else if (connection === 'ended') instead = setInterval(() => document.hidden || tellAll(), INSTEAD_MS)
    },
  })
  return () => {
    listeners.delete(listener)
    if (listeners.size > 0) return
    stop?.()
    stop = undefined
    clearInterval(instead)
    liveConnection.set(undefined)
  }
}

function tellAll(): void {
  for (const one of listeners) one.onOpen?.()
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
      }),
    [],
  )
}
