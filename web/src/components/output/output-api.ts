/** What the pane asks of the server. */
import { addressOf, get, messageOf } from '../../api/client.ts'
import { followEvents } from '../../api/events.ts'
import type { OutputLine, OutputLines, OutputMatches, OutputType } from '../../api/records.ts'
import type { LiveRecord } from './line-store.ts'
import type { OutputSource } from './output-model.ts'
import type { SearchSource } from './output-search.ts'
import { plainText, spansOf } from './terminal-text.ts'
import { readJson } from '../../json.ts'

export const outputFilters = ['all', 'stdout', 'stderr', 'other'] as const
export type OutputFilter = 'all' | OutputType

const queryOf = (filter: OutputFilter): { output_type: string | undefined } => ({
  output_type: filter === 'all' ? undefined : filter,
})

export function outputSource(executionId: string, filter: OutputFilter): OutputSource {
  return {
    read: (range, signal) => readLines(executionId, filter, range, signal),
    follow: (lastSeq, listener) =>
      followEvents(`stream/v1/executions/${executionId}/output`, {
        query: queryOf(filter),
        lastEventId: `${executionId}/${lastSeq}`,
        endEvent: 'EOF',
        onEvent({ name, data }) {
          // With `[compat] stackstorm` the server calls it as StackStorm does.
          if (name.endsWith('.execution.output__create')) listener.onRecord(readJson(data) as LiveRecord) // what these events carry
        },
        onConnection: (connection, reason) => listener.onConnection(connection, reason),
      }),
    messageOf,
  }
}

export function searchSource(executionId: string, filter: OutputFilter): SearchSource {
  return {
    search: ({ query, matchesCase, isPattern }, place, signal) =>
      get<OutputMatches>(
        `executions/${executionId}/output/search`,
        { ...queryOf(filter), query, ignore_case: !matchesCase, is_pattern: isPattern, ...place },
        signal,
      ),
    messageOf,
  }
}

export function readLines(
  executionId: string,
  filter: OutputFilter,
  range: { from: number; limit: number; offset?: number },
  signal?: AbortSignal,
): Promise<OutputLines> {
  return get<OutputLines>(`executions/${executionId}/output/lines`, { ...queryOf(filter), ...range }, signal)
}

export function downloadAddress(executionId: string, filter: OutputFilter): string {
  return addressOf(`api/v1/executions/${executionId}/output`, queryOf(filter)).href
}

/** Of what is copied, in UTF-16 units and in lines. */
const MAX_COPIED_LENGTH = 5_000_000
const MAX_COPIED_LINES = 20_000
const LINES_AT_ONCE = 1000

/**
 * Lines as they are shown, for another program.
 *
 * @throws ApiError; Error when that is more than anybody wants to paste
 */
export async function textOfLines(
  executionId: string,
  filter: OutputFilter,
  first: number,
  last: number,
): Promise<string> {
  const refusal = new Error('The selection is too large. Download the output instead.')
  if (last - first >= MAX_COPIED_LINES) throw refusal
  const texts: string[] = []
  let length = 0
  for (let from = first; from <= last;) {
    const { lines } = await readLines(executionId, filter, { from, limit: Math.min(last - from + 1, LINES_AT_ONCE) })
    if (lines.length === 0) break
    for (const line of lines) {
      const text = await wholeText(executionId, filter, line, MAX_COPIED_LENGTH - length)
      length += text.length + 1
      if (length > MAX_COPIED_LENGTH) throw refusal
      texts.push(text)
    }
    from += lines.length
  }
  return texts.join('\n')
}

async function wholeText(executionId: string, filter: OutputFilter, line: OutputLine, room: number): Promise<string> {
  const parts = [...line.parts]
  let length = 0
  for (let offset = line.next_offset; offset !== undefined && length <= room;) {
    const { lines } = await readLines(executionId, filter, { from: line.number, limit: 1, offset })
    parts.push(...(lines[0]?.parts ?? []))
    length += lines[0]?.parts.reduce((sum, { data }) => sum + data.length, 0) ?? 0
    offset = lines[0]?.next_offset
  }
  return plainText(spansOf(parts))
}
