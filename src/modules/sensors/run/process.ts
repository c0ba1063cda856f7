/** One run of a sensor: its process from the start to the end, and what it dispatches. */
import { once } from 'node:events'
import { join } from 'node:path'
import { newId } from '../../../core/ids.ts'
import type { Database } from '../../../db/index.ts'
import { shown } from '../../../lib/text/index.ts'
import { createSecretValues } from '../../../lib/secrets/index.ts'
import type { SensorEnd, SensorProcess, SensorProcesses } from '../../../runners/index.ts'
import type { SensorTokens } from '../../auth/index.ts'
import type { TriggerRecord } from '../../triggers/types.ts'
import type { Sensor } from '../types.ts'
import type { Dispatches } from './dispatches.ts'
import { createDrops } from './drops.ts'
import type { OutputLog } from './output.ts'
import type { RunStore } from './store.ts'

/** What a run tells while it goes on. */
export interface RunListener {
  started(process: SensorProcess): void
  /** The sensor has done its setup, or a poll of an HTTP server. */
  ready(): void
  dispatched(): void
  /** Dispatches were dropped. */
  dropped(count: number): void
  /** Why one was dropped, without secrets; not for each. */
  explained(problem: string): void
}

export type RunEnd =
  | SensorEnd
  /** `retryAfterSeconds`: not before. */
  | { problem: string; exitCode?: undefined; retryAfterSeconds?: number }

export interface Run {
  /** Never rejects. */
  readonly ended: Promise<RunEnd>
  tell(change: 'add_trigger' | 'update_trigger' | 'remove_trigger', trigger: TriggerRecord): void
  /** Resolves when all its processes are gone. */
  stop(): Promise<void>
}

export interface RunDeps {
  database: Database
  store: RunStore
  dispatches: Dispatches
  processes: SensorProcesses
  bootId: string
  /** Credentials for the API; undefined while authentication is off. */
  readonly tokens: SensorTokens
  /** Public address of the API with its version. */
  readonly apiUrl: () => string
  maskSecrets: boolean
}

/** Dispatches of one sensor that are being stored; while there are more, svc does not read on. */
const MAX_OPEN = 64

export interface RunInput {
  sensor: Sensor
  /** Of the pack, with its secrets. */
  config: { values: Record<string, unknown>; secrets: readonly unknown[] }
  triggers: readonly TriggerRecord[]
  /** Of `http-poll`: keys of items in the last answer that were dropped; each poll replaces them. */
  unfit: Set<string>
}

/** @param turn resolves when the sensor may start */
export function startRun(
  deps: RunDeps,
  input: RunInput,
  output: OutputLog,
  listener: RunListener,
  turn: Promise<void>,
): Run {
  const { database, store, dispatches } = deps
  const { sensor } = input
  const marker = newId()
  const stopping = new AbortController()
  let process: SensorProcess | undefined
  let open = 0
  let room: PromiseWithResolvers<void> | undefined
  let secrets = deps.maskSecrets ? createSecretValues(input.config.secrets) : undefined

  const say = (text: string): void => output.add('other', `svc: ${text}\n`)

  const drops = createDrops({
    secrets: () => secrets,
    say,
    dropped: () => listener.dropped(1),
    explained: (text) => listener.explained(text),
  })
  stopping.signal.addEventListener('abort', () => drops.release())
  const withoutSecrets = (text: string): string => secrets?.maskText(text) ?? text

  /** @returns a promise while there are too many */
  function dispatch(message: Record<string, unknown>): Promise<void> | undefined {
    const { id, trigger, payload = {}, trace_tag: tag, trace_id: trace } = message
    const given = typeof id === 'string' || typeof id === 'number' ? String(id) : undefined
    open += 1
    const wanted = { id: given, trigger, payload: payload ?? {}, trace_tag: textOf(tag), trace_id: textOf(trace) }
    void dispatches
      .store(sensor, wanted, { signal: stopping.signal, mask: withoutSecrets })
      .then((outcome) => {
        if (given !== undefined) process?.send({ type: 'stored', id: given })
        if ('problem' in outcome) return drops.add(outcome.problem)
        if (!outcome.isRepeated) listener.dispatched()
        return undefined
      })
      .catch((error: unknown) => {
        // Without an answer, so that the sensor repeats it.
        if (!stopping.signal.aborted) return drops.add(messageOf(error))
        return undefined
      })
      .finally(() => {
        open -= 1
        if (open >= MAX_OPEN) return
        room?.resolve()
        room = undefined
      })
    if (open < MAX_OPEN) return undefined
    room ??= Promise.withResolvers<void>()
    return room.promise
  }

  function receive(message: Record<string, unknown>): Promise<void> | undefined {
    const { type = 'dispatch' } = message
    if (type === 'dispatch') return dispatch(message)
    if (type === 'ready') listener.ready()
    // What the library of Python sensors cannot send.
    else if (type === 'dropped')
      return drops.add(shown(withoutSecrets(textOf(message['problem']) ?? 'it could not be sent')))
    else return drops.add('a line has an unknown type')
    return undefined
  }

  async function run(): Promise<SensorEnd | { problem: string }> {
    await Promise.race([turn, once(stopping.signal, 'abort')])
    if (stopping.signal.aborted) return { problem: 'It was stopped.' }
    const credential = await deps.tokens.issue(sensor)
    if (credential !== undefined && deps.maskSecrets)
      secrets = createSecretValues([...input.config.secrets, credential.token])
    const streams = new Map<string, { filter(text: string): string; end(): string }>()
    const masked = (type: 'stdout' | 'stderr' | 'other', text: string): string => {
      if (secrets === undefined) return text
      const stream = streams.get(type) ?? secrets.stream()
      streams.set(type, stream)
      return stream.filter(text)
    }
    try {
      // Before the start: whatever becomes of this server, the next one finds the process.
      await database.write({ steps: [store.insertProcess(marker, sensor.id)], facts: [] })
      if (stopping.signal.aborted) return { problem: 'It was stopped.' }
      const request = {
        pack: sensor.pack,
        packFolder: sensor.folder,
        file: join(sensor.folder, 'sensors', sensor.file),
        marker,
        env: {
          SVC_API_URL: deps.apiUrl(),
          SVC_SENSOR_REF: sensor.ref,
          ...(credential === undefined ? {} : { SVC_AUTH_TOKEN: credential.token }),
        },
        job: jobOf(input),
        emit: (type: 'stdout' | 'stderr' | 'other', text: string) => output.add(type, masked(type, text)),
        message: receive,
        wrongLine: drops.addLine,
        signal: stopping.signal,
      }
      const started =
        sensor.sensor_type === 'python'
          ? await deps.processes.startPython(request)
          : await deps.processes.startProgram(request)
      if ('problem' in started) return started
      process = started
      void started.exited.then(() => drops.release())
      if (stopping.signal.aborted) void started.stop()
      await database.write({
        steps: [store.updateProcess(marker, { ...started.identity, bootId: deps.bootId })],
        facts: [],
        isUnpromised: true,
      })
      listener.started(started)
      if (sensor.sensor_type !== 'python') listener.ready()
      return await started.ended
    } finally {
      stopping.abort()
      drops.end()
      for (const [type, stream] of streams) output.add(type as 'stdout', stream.end())
      await output.flush()
      await credential?.end()
      await database.write({ steps: [store.deleteProcess(marker)], facts: [], isUnpromised: true })
    }
  }

  const ended = run().catch((error: unknown) => ({ problem: withoutSecrets(messageOf(error)) }))
  return {
    ended,
    tell: (type, trigger) => process?.send({ type, trigger: shownTrigger(trigger) }),
    async stop() {
      stopping.abort()
      await process?.stop()
      await ended
    },
  }
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
const textOf = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined)

function jobOf({ sensor, config, triggers }: RunInput): Record<string, unknown> {
  return {
    type: 'start',
    pack: sensor.pack,
    class_name: sensor.class_name,
    path: [join(sensor.folder, 'sensors', 'lib'), join(sensor.folder, 'lib')],
    config: config.values,
    poll_interval: sensor.poll_interval ?? null,
    triggers: triggers.map(shownTrigger),
  }
}

/** The author is not for sensors. */
function shownTrigger({ author: _author, ...trigger }: TriggerRecord): Record<string, unknown> {
  return trigger
}
