/**
 * What the server has accepted and still owes. An entry is settled once what it stands for has ended as it should; whatever
 * is neither there nor settled in time is a fault.
 */

export interface Entry {
  /** Its number; commands print it. */
  n: number
  /** Id of the execution, or the trace tag of an event whose rule starts one. */
  id: string | undefined
  traceTag: string | undefined
  /** How the execution may end when nothing disturbs it. */
  expected: readonly string[]
  /** What stdout then holds; undefined: anything. */
  stdout: string | undefined
  /** Milliseconds, as `performance.now()`. */
  acceptedAt: number
}

export interface Faults {
  lost: string[]
  stuck: string[]
  wrong: string[]
}

export interface Ledger {
  readonly faults: Faults
  readonly settled: number
  readonly open: number
  next(): number
  accept(entry: Omit<Entry, 'acceptedAt'>): void
  /** The server was stopped or killed: what was accepted before may have been abandoned. */
  noteRestart(): void
  /** Looks at the oldest entries. Rejects when the server does not answer. */
  settle(look: Look): Promise<void>
}

export interface Finding {
  status: string
  stdout: string
}

/** The execution of an entry: undefined when there is none (yet), `several` when there is more than one. */
export type Look = (entry: Entry) => Promise<Finding | 'several' | undefined>

const FINAL: ReadonlySet<string> = new Set(['succeeded', 'failed', 'timeout', 'canceled', 'abandoned'])
/** Of one call of `settle`. */
const MAX_LOOKS = 400

/** @param patienceMs how long an entry may take, counted anew from each restart */
export function createLedger(patienceMs: number): Ledger {
  const entries = new Map<number, Entry>()
  const faults: Faults = { lost: [], stuck: [], wrong: [] }
  let last = 0
  let settled = 0
  let restartedAt = -Infinity

  function judge(entry: Entry, found: Finding | 'several' | undefined): void {
    const name = `${entry.n} (${entry.id ?? entry.traceTag ?? ''})`
    const isLate = performance.now() - Math.max(entry.acceptedAt, restartedAt) > patienceMs
    if (found === 'several') return close(entry, faults.wrong, `${name} was run more than once`)
    if (found === undefined) {
      // An event leads to its execution a moment later; an execution is there as soon as it is accepted.
      if (entry.id !== undefined || isLate) close(entry, faults.lost, `${name} is not there`)
      return
    }
    if (!FINAL.has(found.status)) {
      if (isLate) close(entry, faults.stuck, `${name} is still ${found.status}`)
      return
    }
    const mayBeAbandoned = entry.acceptedAt < restartedAt
    if (!entry.expected.includes(found.status) && !(mayBeAbandoned && found.status === 'abandoned')) {
      return close(entry, faults.wrong, `${name} is ${found.status} instead of ${entry.expected.join(' or ')}`)
    }
    if (found.status === 'succeeded' && entry.stdout !== undefined && found.stdout !== entry.stdout) {
      return close(entry, faults.wrong, `${name} has other output than it wrote`)
    }
    entries.delete(entry.n)
    settled += 1
  }

  function close(entry: Entry, list: string[], text: string): void {
    entries.delete(entry.n)
    list.push(text)
  }

  return {
    faults,
    get settled() {
      return settled
    },
    get open() {
      return entries.size
    },
    next: () => (last += 1),
    accept(entry) {
      entries.set(entry.n, { ...entry, acceptedAt: performance.now() })
    },
    noteRestart() {
      restartedAt = performance.now()
    },
    async settle(look) {
      for (const entry of [...entries.values()].slice(0, MAX_LOOKS)) judge(entry, await look(entry))
    },
  }
}
