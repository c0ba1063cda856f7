/** Output as its readers ask for it: as one text, by line, by search. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { OutputType } from '../../../runners/index.ts'
import { isFinal } from '../state.ts'
import type { ExecutionStatus, OutputLines, OutputMatches } from '../types.ts'
import { createFindOutput, type FindOutput } from './find.ts'
import { readLines, type LinesRequest } from './lines.ts'
import { createFairQueue, searchOutput, type SearchRequest } from './search.ts'
import type { OutputStore } from './store.ts'

export interface OutputReader {
  /** @param type undefined: all types */
  text(executionId: string, type: OutputType | undefined): AsyncIterable<string>
  lines(executionId: string, wanted: LinesRequest): OutputLines
  /** @throws QUERY_INVALID */
  search(executionId: string, wanted: SearchRequest): Promise<OutputMatches>
  /** Finds executions by their output. */
  readonly find: FindOutput
}

const RECORDS_PER_READ = 8

export function createOutputReader(deps: {
  store: OutputStore
  readonly statusOf: (executionId: string) => ExecutionStatus | undefined
  /** `actionrunner.stream_output` */
  streamOutput: boolean
}): OutputReader {
  const { store } = deps
  const searchQueue = createFairQueue()

  // Asked before reading: all output of an execution with a final status is in the rows.
  function isComplete(executionId: string): boolean {
    const status = deps.statusOf(executionId)
    return status === undefined || isFinal(status)
  }

  return {
    text: (id, type) => readText(store, id, type),
    lines: (id, wanted) => ({
      is_complete: isComplete(id),
      is_stored: deps.streamOutput,
      ...readLines(store, id, wanted),
    }),
    find: createFindOutput(store),
    search: async (id, wanted) => ({
      is_complete: isComplete(id),
      ...(await searchOutput(store, id, wanted, searchQueue)),
    }),
  }
}

/** In slices, so that a gigabyte of output passes through a few hundred kilobytes of memory. */
async function* readText(store: OutputStore, id: string, type: OutputType | undefined): AsyncGenerator<string> {
  let seq = 0
  for (;;) {
    const records = store.outputAfter(id, seq, RECORDS_PER_READ, type)
    const last = records.at(-1)
    if (last === undefined) return
    seq = last.seq
    yield records.map(({ data }) => data).join('')
    // Other requests have the event loop between two slices.
    await nextTurn()
  }
}
