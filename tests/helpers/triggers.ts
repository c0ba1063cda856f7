/** The triggers module over a real database file; each rule is a trigger that a test says is awaited. */
import { join } from 'node:path'
import type { Bus } from '../../src/bus/bus.ts'
import type { Fact, FactName } from '../../src/bus/facts.ts'
import type { Database } from '../../src/db/database.ts'
import { loadEncryption } from '../../src/core/encryption.ts'
import { createLog } from '../../src/lib/log/log.ts'
import { createTraces, type Traces } from '../../src/modules/traces/index.ts'
import { createTriggers, type Triggers, type TriggersDeps } from '../../src/modules/triggers/index.ts'
import { openDatabase } from './database.ts'
import { TextSink } from './text-sink.ts'

export interface TriggersWorld {
  database: Database
  bus: Bus
  traces: Traces
  triggers: Triggers
  /** Ids of triggers that an enabled rule is bound to. */
  awaited: Set<string>
  /** What was announced since the last call. */
  takeFacts(): Fact[]
  /** Everything logged so far. */
  log(): string
  /** Another server on the same database, started. */
  restart(more?: Partial<TriggersDeps>): Promise<Triggers>
  stop(): Promise<void>
}

const watched = ['trigger.created', 'trigger.updated', 'trigger.deleted', 'trigger_instance.created'] as const

/** @param around puts itself between the module and the database */
export async function startTriggers(
  folder: string,
  { around = (real) => real, ...more }: Partial<TriggersDeps> & { around?: (database: Database) => Database } = {},
): Promise<TriggersWorld> {
  const { database: real, bus } = await openDatabase(folder)
  const database = around(real)
  const sink = new TextSink()
  const awaited = new Set<string>()
  let facts: Fact[] = []
  const listen = <N extends FactName>(name: N): void => {
    bus.subscribe(name, (payload) => void facts.push({ name, payload } as Fact)) // a name with its own payload
  }
  watched.forEach((name) => listen(name))
  const traces = createTraces({
    database,
    log: createLog({ level: 'DEBUG', format: 'text', stream: sink }),
    maxPageSize: 100,
    openTraces: () => [],
  })
  const encryption = await loadEncryption({ enabled: true, keyPath: '', ownKeyPath: join(folder, 'keys', 'keys.json') })

  async function create(changed: Partial<TriggersDeps> = {}): Promise<Triggers> {
    const { settings, ...others } = { ...more, ...changed }
    const triggers = createTriggers({
      database,
      bus,
      log: createLog({ level: 'DEBUG', format: 'text', stream: sink }),
      traces,
      encryption,
      hasRules: (id) => awaited.has(id),
      templates: () => ({ variables: {} }),
      settings: {
        validateParameters: true,
        validatePayload: true,
        emitWhen: ['succeeded', 'failed', 'timeout', 'canceled', 'abandoned'],
        queueLimit: 1000,
        maxPageSize: 100,
        webUrl: () => 'http://web.example',
        ...settings,
      },
      ...others,
    })
    await triggers.start?.()
    return triggers
  }

  const triggers = await create()
  facts = []
  return {
    database,
    bus,
    traces,
    triggers,
    awaited,
    takeFacts() {
      const taken = facts
      facts = []
      return taken
    },
    log: () => sink.text,
    restart: create,
    stop: () => real.close(),
  }
}
