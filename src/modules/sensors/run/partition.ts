/** Which sensors this server runs (contract 05, 5.10: distribution). */
import { createHash } from 'node:crypto'
import { basename, dirname } from 'node:path'
import { isObject } from '../../../lib/schema/index.ts'
import { readMetadataFile } from '../../../lib/text/index.ts'
import type { PartitionRule } from '../../../config/index.ts'
import type { Log } from '../../../lib/log/index.ts'

export interface Partition {
  owns(ref: string): boolean
  /** Calls `changed` at once, and whenever the answers may have changed. */
  start(changed: () => void): Promise<void>
  stop(): void
}

/** Time between two looks at the key or the file. */
const LOOK_MS = 10_000
const MAX_FILE_BYTES = 1_048_576

export function createPartition(deps: {
  rule: PartitionRule
  /** `sensorcontainer.sensor_node_name` */
  node: string
  /** `sensorcontainer.sensor_ref`: the only sensor; empty: no such limit. */
  only: string
  log: Log
  /** A key of the datastore; undefined: there is none. */
  readonly readKey: (name: string) => string | undefined
}): Partition {
  const { rule, node, only, log, readKey } = deps
  let listed: ReadonlySet<string> = new Set()
  let timer: NodeJS.Timeout | undefined
  let lastProblem = ''

  async function readList(): Promise<ReadonlySet<string>> {
    if (rule.name === 'kvstore') return new Set(wordsOf(readKey(`${node}.sensor_partition`) ?? ''))
    if (rule.name !== 'file') return new Set()
    const file = await readMetadataFile(dirname(rule.path), basename(rule.path), MAX_FILE_BYTES)
    if (!('document' in file)) throw new Error(`${rule.path}: ${file.problem.message}`)
    const { value } = file.document
    const own = isObject(value) ? value[node] : undefined
    return new Set(Array.isArray(own) ? own.map(String) : typeof own === 'string' ? wordsOf(own) : [])
  }

  /** @returns whether it differs from the list before */
  async function look(): Promise<boolean> {
    try {
      const now = await readList()
      lastProblem = ''
      const isSame = now.size === listed.size && [...now].every((ref) => listed.has(ref))
      listed = now
      return !isSame
    } catch (error) {
      const problem = error instanceof Error ? error.message : String(error)
      if (problem !== lastProblem) {
        log.error(
          'sensor.partition_unreadable',
          `Could not read which sensors run here; the last list counts: ${problem}`,
        )
      }
      lastProblem = problem
      return false
    }
  }

  return {
    owns(ref) {
      if (only !== '') return ref === only
      if (rule.name === 'default') return true
      if (rule.name !== 'hash') return listed.has(ref)
      const place = placeOf(ref)
      return rule.ranges.some(([from, to]) => place >= from && place < to)
    },
    async start(changed) {
      const repeats = rule.name === 'kvstore' || rule.name === 'file'
      if (repeats) await look()
      changed()
      if (!repeats) return
      timer = setInterval(() => {
        void look().then((isNew) => {
          if (isNew && timer !== undefined) changed()
        })
      }, LOOK_MS).unref()
    },
    stop() {
      clearInterval(timer)
      timer = undefined
    },
  }
}

/** From 0 to 2^32 - 1, evenly. */
function placeOf(ref: string): number {
  return createHash('md5').update(ref).digest().readUInt32BE(12)
}

function wordsOf(text: string): string[] {
  return text
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '')
}
