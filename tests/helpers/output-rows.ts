/** Output in rows as executions leave it, without an execution. */
import type { Database } from '../../src/db/database.ts'
import { newId } from '../../src/core/ids.ts'
import { noPlace, placeBehind } from '../../src/modules/executions/output/place.ts'
import type { OutputStore } from '../../src/modules/executions/output/store.ts'
import type { OutputRecord, OutputType } from '../../src/modules/executions/types.ts'

export type Chunk = [type: OutputType, data: string, host?: string]

/**
 * One record for each chunk; their timestamps are `at 1`, `at 2` …
 *
 * @param firstSeq what was before it has been removed
 * @returns the id of the execution
 */
export async function storeChunks(
  { database, store }: { database: Database; store: OutputStore },
  chunks: readonly Chunk[],
  firstSeq = 1,
): Promise<string> {
  const executionId = newId()
  let place = noPlace
  const steps = chunks.flatMap(([output_type, data, host = null], i) => {
    const record: OutputRecord = {
      id: newId(),
      execution_id: executionId,
      seq: i + 1,
      output_type,
      data,
      timestamp: `at ${i + 1}`,
      host,
    }
    const before = place
    place = placeBehind(record, before)
    return i + 1 < firstSeq ? [] : [store.insertOutput(record, before)]
  })
  await database.write({ steps, facts: [] })
  return executionId
}

export function textOf(chunks: readonly Chunk[], type: OutputType | undefined): string {
  return chunks
    .filter(([of]) => type === undefined || of === type)
    .map(([, data]) => data)
    .join('')
}

/** As editors and `sed` count them. */
export function linesIn(text: string): string[] {
  const lines = text.split('\n')
  if (lines.at(-1) === '') lines.pop()
  return lines
}
