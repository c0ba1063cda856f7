/** Decides which sensors run: starts, restarts and stops them as records, packs and configurations change. */
import { createHash } from 'node:crypto'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Bus } from '../../../bus/index.ts'
import { LONGEST_TIMER_MS, type Clock } from '../../../core/clock.ts'
import type { PackConfig } from '../../../core/pack-content.ts'
import { formatMicros, nowMicros } from '../../../core/time.ts'
import { createKeyedLock } from '../../../lib/concurrency/index.ts'
import { canonical } from '../../../lib/schema/index.ts'
import type { Log } from '../../../lib/log/index.ts'
import type { SensorProcess } from '../../../runners/index.ts'
import type { Triggers } from '../../triggers/index.ts'
import type { TriggerRecord } from '../../triggers/types.ts'
import type { SensorStore } from '../store.ts'
import type { Sensor, SensorRuntime, SensorState } from '../types.ts'
import type { Outputs } from './output.ts'
import type { Partition } from './partition.ts'
import { startHttpPoll, type HttpPollDeps } from './http-poll.ts'
import { startRun, type Run, type RunDeps, type RunEnd } from './process.ts'
import type { RunStore } from './store.ts'
import { measureProcess } from './usage.ts'

export interface ContainerSettings {
  /** `sensorcontainer.enable`. If off, sensors can be listed and none runs. */
  enabled: boolean
  /** `sensorcontainer.sensor_node_name` */
  node: string
  /** `sensorcontainer.respawn_delay`: seconds between an unexpected end and the next start; 0: there is none. */
  respawnDelaySeconds: number
  /** `sensorcontainer.max_respawn_delay`: the longest such time; 0: svc gives up after `MAX_RESPAWNS`. */
  maxRespawnDelaySeconds: number
}

export interface Container {
  /** Ends what a crash left behind, removes what is left of sensors that are gone, then starts all sensors. */
  start(): void
  /** Resolves when no sensor runs. */
  stop(): Promise<void>
  runtimeOf(sensorId: string): SensorRuntime
  /** Starts an enabled sensor that has ended, without the time that it would wait. */
  startNow(sensorId: string): void
  /** Looks again at the sensors of a pack, whose files or configuration may have changed. */
  refresh(pack: string): void
  /** How many sensors are in a state. */
  countIn(state: SensorState): number
  /** Of sensors that run or have run, for totals. */
  totals(): { dispatches: number; dropped: number; restarts: number }
}

/** Fast starts after unexpected ends (contract 05, 5.10). */
const MAX_RESPAWNS = 2
/** A run of this length forgets the ends before it. */
const HEALTHY_MS = 10_000
/** Sensors that start at once. */
const MAX_STARTING = 4
/** Others may start when one has taken this long. */
const MAX_START_MS = 30_000
/** Files that are looked at for changes. */
const MAX_FILES = 5_000

interface Entry {
  sensor: Sensor
  state: SensorState
  signature: string
  run: Run | undefined
  process: SensorProcess | undefined
  since: string | undefined
  /** When it was ready, as `Clock.monotonic`; undefined: it never was. */
  readyAt: number | undefined
  /** Triggers that it knows, by id. */
  triggers: Map<string, TriggerRecord>
  /** Keys of items in the last answer that were dropped. */
  unfit: Set<string>
  /** Calls off the next start; undefined: there is none. */
  cancelStart: (() => void) | undefined
  nextStart: string | undefined
  /** Ends since the last healthy run. */
  respawns: number
  restarts: number
  starts: number
  dispatches: number
  dropped: number
  lastDispatch: string | undefined
  lastError: string | undefined
  lastErrorAt: string | undefined
}

export interface ContainerDeps extends RunDeps, HttpPollDeps {
  bus: Bus
  log: Log
  clock: Clock
  sensors: Pick<SensorStore, 'find' | 'all' | 'ofPack'>
  triggers: Pick<Triggers, 'find' | 'ofType' | 'planInternal'>
  outputs: Outputs
  partition: Partition
  readonly configOf: (pack: string) => PackConfig
  /** Ends the processes of earlier servers. */
  readonly killLeftovers: (
    runs: { executionId: string; process: { pid: number; startTime: string; bootId: string } | undefined }[],
  ) => Promise<number>
  store: RunStore
  settings: ContainerSettings
}

export function createContainer(deps: ContainerDeps): Container {
  const { database, bus, log, clock, sensors, triggers, store, outputs, partition, settings } = deps
  const entries = new Map<string, Entry>()
  const lock = createKeyedLock()
  const slots = createSlots(MAX_STARTING)
  let state: 'new' | 'started' | 'off' | 'stopped' = 'new'
  let recovered: Promise<void> = Promise.resolve()
  const work = new Set<Promise<unknown>>()

  function inBackground(name: string, todo: () => Promise<void>): void {
    const promise = lock(name, todo)
      .catch((error: unknown) => log.error('sensor.failed', 'Could not start or stop a sensor', { error }))
      .finally(() => work.delete(promise))
    work.add(promise)
  }

  const apply = (sensorId: string): void => {
    if (state === 'started') inBackground(sensorId, () => applyNow(sensorId))
  }

  async function applyNow(sensorId: string): Promise<void> {
    await recovered
    const sensor = sensors.find(sensorId)
    const entry = entries.get(sensorId)
    if (sensor === undefined) {
      if (entry !== undefined) {
        await halt(entry)
        entries.delete(sensorId)
      }
      await forget(sensorId)
      return
    }
    const own = entry ?? addEntry(sensor)
    own.sensor = sensor
    const idle = !sensor.enabled ? 'disabled' : !partition.owns(sensor.ref) ? 'elsewhere' : undefined
    if (idle !== undefined || state === 'stopped') {
      await halt(own)
      own.state = idle ?? own.state
      return
    }
    const signature = await signatureOf(sensor)
    const isAlive =
      own.run !== undefined || own.cancelStart !== undefined || own.state === 'finished' || own.state === 'failed'
    if (isAlive && own.signature === signature) return
    await halt(own)
    own.signature = signature
    own.respawns = 0
    begin(own)
  }

  /** The sensor is gone. */
  async function forget(sensorId: string): Promise<void> {
    outputs.forget(sensorId)
    await database.write({ steps: store.deleteAll(sensorId), facts: [], isUnpromised: true })
  }

  function addEntry(sensor: Sensor): Entry {
    const entry: Entry = {
      sensor,
      state: 'disabled',
      signature: '',
      run: undefined,
      process: undefined,
      since: undefined,
      readyAt: undefined,
      triggers: new Map(),
      unfit: new Set(),
      cancelStart: undefined,
      nextStart: undefined,
      respawns: 0,
      restarts: 0,
      starts: 0,
      dispatches: 0,
      dropped: 0,
      lastDispatch: undefined,
      lastError: undefined,
      lastErrorAt: undefined,
    }
    entries.set(sensor.id, entry)
    return entry
  }

  /** Resolves when nothing of it runs. */
  async function halt(entry: Entry): Promise<void> {
    entry.cancelStart?.()
    entry.cancelStart = undefined
    entry.nextStart = undefined
    const { run } = entry
    // First, so that its end is no surprise.
    entry.run = undefined
    await run?.stop()
    entry.process = undefined
    entry.since = undefined
  }

  function fail(entry: Entry, problem: string): void {
    entry.lastError = problem
    entry.lastErrorAt = formatMicros(nowMicros())
  }

  /** Starts a run; how it goes on is up to `ended`. */
  function begin(entry: Entry): void {
    const { sensor } = entry
    entry.state = 'starting'
    entry.nextStart = undefined
    entry.readyAt = undefined
    if (entry.starts > 0) entry.restarts += 1
    entry.starts += 1
    const output = outputs.of(sensor.id)
    let config: PackConfig
    try {
      config = deps.configOf(sensor.pack)
    } catch (error) {
      const problem = error instanceof Error ? error.message : String(error)
      output.add('other', `svc: The sensor does not start: ${problem}\n`)
      over(entry, { problem })
      return
    }
    const known = new Map(sensor.trigger_types.flatMap((type) => triggers.ofType(type)).map((each) => [each.id, each]))
    entry.triggers = known
    const begun = slots.take()
    const startOf = sensor.sensor_type === 'http-poll' ? startHttpPoll : startRun
    const run = startOf(
      deps,
      { sensor, config, triggers: [...known.values()], unfit: entry.unfit },
      output,
      {
        started(process) {
          entry.process = process
          entry.since = formatMicros(nowMicros())
          // What has changed since its first line was written.
          const now = sensor.trigger_types.flatMap((type) => triggers.ofType(type))
          for (const id of new Set([...known.keys(), ...now.map((trigger) => trigger.id)])) tellTrigger(entry, id)
          log.info('sensor.started', 'Sensor started', { sensor: sensor.ref, pid: process.identity.pid })
          tell('core.svc.sensor.process_spawn', {
            id: sensor.class_name,
            timestamp: Math.floor(Date.now() / 1000),
            pid: process.identity.pid,
            cmd: process.command,
          })
        },
        ready() {
          if (entry.run === run && entry.state === 'starting') {
            entry.state = 'running'
            entry.readyAt = clock.monotonic()
            entry.since ??= formatMicros(nowMicros())
          }
          begun.release()
        },
        dispatched() {
          entry.dispatches += 1
          entry.lastDispatch = formatMicros(nowMicros())
        },
        dropped(count) {
          entry.dropped += count
        },
        explained: (problem) => fail(entry, problem),
      },
      begun.taken,
    )
    entry.run = run
    void run.ended.then((end) => {
      begun.release()
      if (end.exitCode !== undefined) {
        log.info('sensor.exited', 'Sensor ended', { sensor: sensor.ref, exit_code: end.exitCode })
        tell('core.svc.sensor.process_exit', {
          id: sensor.class_name,
          timestamp: Math.floor(Date.now() / 1000),
          exit_code: end.exitCode,
        })
      }
      inBackground(sensor.id, async () => {
        if (entry.run !== run) return
        entry.run = undefined
        entry.process = undefined
        entry.since = undefined
        over(entry, end)
      })
    })
  }

  /** The sensor has ended by itself, or could not start. */
  function over(entry: Entry, end: RunEnd): void {
    const { sensor } = entry
    const output = outputs.of(sensor.id)
    if (end.exitCode === 0) {
      entry.respawns = 0
      if (sensor.sensor_type === 'process' && sensor.poll_interval !== undefined) {
        entry.state = 'waiting'
        again(entry, sensor.poll_interval)
        return
      }
      entry.state = 'finished'
      output.add(
        'other',
        'svc: The sensor has ended by itself with exit code 0; only the next start of the server starts it again.\n',
      )
      return
    }
    const problem = end.problem ?? 'It has ended.'
    fail(entry, problem)
    if (entry.readyAt !== undefined && clock.monotonic() - entry.readyAt >= HEALTHY_MS) entry.respawns = 0
    const usual = delayAfter(entry.respawns)
    const asked = 'retryAfterSeconds' in end ? (end.retryAfterSeconds ?? 0) : 0
    const delay = usual === undefined ? undefined : Math.max(usual, asked)
    entry.respawns += 1
    entry.state = delay === undefined || entry.respawns > MAX_RESPAWNS ? 'failed' : 'waiting'
    const next = delay === undefined ? 'svc does not start it again' : `svc starts it again in ${delay} s`
    output.add('other', `svc: The sensor has ended: ${problem} ${next}.\n`)
    const message = `Sensor "${sensor.ref}" has ended; ${next}`
    log[entry.state === 'failed' ? 'error' : 'warning']('sensor.ended', message, { sensor: sensor.ref, problem })
    if (delay !== undefined) again(entry, delay)
  }

  /** Undefined: not again. */
  function delayAfter(respawns: number): number | undefined {
    const { respawnDelaySeconds: first, maxRespawnDelaySeconds: most } = settings
    if (first === 0 || (most === 0 && respawns >= MAX_RESPAWNS)) return undefined
    if (respawns < MAX_RESPAWNS) return first
    return Math.min(most, first * 2 ** Math.min(respawns - MAX_RESPAWNS + 2, 30))
  }

  function again(entry: Entry, seconds: number): void {
    entry.nextStart = formatMicros(clock.now() + Math.round(seconds * 1_000_000))
    const cancel = clock.wait(Math.min(seconds * 1000, LONGEST_TIMER_MS), () => {
      inBackground(entry.sensor.id, async () => {
        if (entry.cancelStart !== cancel || state !== 'started') return
        entry.cancelStart = undefined
        begin(entry)
      })
    })
    entry.cancelStart = cancel
  }

  function tell(ref: string, payload: Record<string, unknown>): void {
    database.write(triggers.planInternal(ref, payload)).catch((error: unknown) => {
      log.warning('sensor.not_told', `Could not dispatch ${ref}`, { error })
    })
  }

  /** Changes when the sensor has to start again. */
  async function signatureOf(sensor: Sensor): Promise<string> {
    const { enabled: _e, enabled_in_file: _f, revision: _r, description: _d, ...definition } = sensor
    const hash = createHash('sha256').update(canonical(definition))
    try {
      hash.update(canonical(deps.configOf(sensor.pack).values))
    } catch {
      // The start says why.
      hash.update('none')
    }
    for (const file of await sourcesOf(sensor.folder)) hash.update(file)
    return hash.digest('hex')
  }

  /** Tells a sensor of a trigger, if it differs from what the sensor knows. */
  function tellTrigger({ run, triggers: known }: Entry, id: string): void {
    const before = known.get(id)
    const now = triggers.find(id)
    if (now === before) return
    if (now !== undefined) {
      known.set(id, now)
      run?.tell(before === undefined ? 'add_trigger' : 'update_trigger', now)
    } else if (before !== undefined) {
      known.delete(id)
      run?.tell('remove_trigger', before)
    }
  }

  function onTrigger({ id, type }: { id: string; type: string }): void {
    for (const entry of entries.values()) {
      // One whose process starts just now is told afterwards.
      if (entry.process !== undefined && entry.sensor.trigger_types.includes(type)) tellTrigger(entry, id)
    }
  }

  bus.subscribe('sensor.changed', ({ id, change, by }) => {
    // Its pack says when all of it is registered: see `refresh`.
    if (by === 'client' || change === 'deleted') apply(id)
    if (state === 'off' && change === 'deleted') inBackground(id, () => forget(id))
  })
  for (const fact of ['trigger.created', 'trigger.updated', 'trigger.deleted'] as const) bus.subscribe(fact, onTrigger)

  async function recover(): Promise<void> {
    const left = store.processes()
    if (left.length === 0) return
    const killed = await deps.killLeftovers(left.map(({ marker, process }) => ({ executionId: marker, process })))
    log.info('sensor.recovered', 'Ended sensors of an earlier run', { processes: killed })
    await database.write({ steps: left.map(({ marker }) => store.deleteProcess(marker)), facts: [] })
  }

  return {
    start() {
      if (state !== 'new') return
      state = settings.enabled ? 'started' : 'off'
      recovered = recover().catch((error: unknown) => {
        log.error('sensor.recovery_failed', 'Could not end sensors of an earlier run', { error })
      })
      for (const id of store.goneSensors()) inBackground(id, () => forget(id))
      if (state === 'off') return
      void partition.start(() => {
        for (const { id } of sensors.all()) apply(id)
      })
    },
    async stop() {
      state = 'stopped'
      outputs.endWaits()
      partition.stop()
      await recovered
      await Promise.all([...entries].map(([id, entry]) => lock(id, () => halt(entry))))
      await Promise.all(work)
    },
    runtimeOf(sensorId) {
      const entry = entries.get(sensorId)
      const usage = entry?.process === undefined ? undefined : measureProcess(entry.process.identity.pid)
      return {
        state: entry?.state ?? 'disabled',
        node: settings.node,
        ...(entry?.process === undefined ? {} : { pid: entry.process.identity.pid }),
        ...(entry?.since === undefined ? {} : { since: entry.since }),
        ...usage,
        restarts: entry?.restarts ?? 0,
        ...(entry?.nextStart === undefined ? {} : { next_start: entry.nextStart }),
        dispatches: entry?.dispatches ?? 0,
        dropped: entry?.dropped ?? 0,
        ...(entry?.lastDispatch === undefined ? {} : { last_dispatch: entry.lastDispatch }),
        ...(entry?.lastError === undefined ? {} : { last_error: entry.lastError }),
        ...(entry?.lastErrorAt === undefined ? {} : { last_error_at: entry.lastErrorAt }),
      }
    },
    startNow(sensorId) {
      if (state !== 'started') return
      inBackground(sensorId, async () => {
        const entry = entries.get(sensorId)
        const mayStart = entry !== undefined && ['waiting', 'failed', 'finished'].includes(entry.state)
        if (!mayStart || state !== 'started') return
        await halt(entry)
        entry.respawns = 0
        begin(entry)
      })
    },
    refresh(pack) {
      for (const { id } of sensors.ofPack(pack)) apply(id)
    },
    countIn: (wanted) => [...entries.values()].filter((entry) => entry.state === wanted).length,
    totals() {
      const sums = { dispatches: 0, dropped: 0, restarts: 0 }
      for (const { dispatches, dropped, restarts } of entries.values()) {
        sums.dispatches += dispatches
        sums.dropped += dropped
        sums.restarts += restarts
      }
      return sums
    },
  }
}

/** What identifies the state of each file that a sensor may import. */
async function sourcesOf(folder: string): Promise<string[]> {
  const files: string[] = []
  const queue = ['sensors', 'lib', 'requirements.txt']
  for (let path = queue.shift(); path !== undefined && files.length < MAX_FILES; path = queue.shift()) {
    const found = await stat(join(folder, path)).catch(() => undefined)
    if (found === undefined) continue
    if (!found.isDirectory()) {
      files.push(`${path} ${found.size} ${found.mtimeMs} ${found.ino}`)
      continue
    }
    const names = await readdir(join(folder, path)).catch(() => [])
    for (const name of names.sort((a, b) => (a < b ? -1 : 1))) {
      if (name !== '__pycache__' && !name.startsWith('.') && !/\.(ya?ml|json|pyc)$/.test(name))
        queue.push(`${path}/${name}`)
    }
  }
  return files
}

interface Slot {
  /** Resolves when it is the sensor's turn to start. */
  taken: Promise<void>
  /** Idempotent. */
  release(): void
}

/** Limits how many sensors start at once. */
function createSlots(size: number): { take(): Slot } {
  let free = size
  const waiting: (() => void)[] = []
  return {
    take() {
      const { promise, resolve } = Promise.withResolvers<void>()
      let state: 'waits' | 'has' | 'done' = 'waits'
      let timer: NodeJS.Timeout | undefined
      const release = (): void => {
        clearTimeout(timer)
        if (state === 'has') {
          free += 1
          waiting.shift()?.()
        }
        state = 'done'
        resolve()
      }
      const begin = (): void => {
        if (state === 'done') {
          waiting.shift()?.()
          return
        }
        free -= 1
        state = 'has'
        timer = setTimeout(release, MAX_START_MS).unref()
        resolve()
      }
      if (free > 0) begin()
      else waiting.push(begin)
      return { taken: promise, release }
    },
  }
}
