import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { isAbort } from '../../api/client.ts'
import type { OutputLine, OutputPart } from '../../api/records.ts'
import { CopyButton } from '../copy-button.tsx'
import { Failure } from '../failure.tsx'
import { JsonTree } from '../json-tree.tsx'
import { formatBytes } from '../size.ts'
import { findJson } from './find-json.ts'
import { readLines, type OutputFilter } from './output-api.ts'
import { Spans } from './output-row.tsx'
import { plainText, spansOf } from './terminal-text.ts'

/** Of one line, in UTF-16 units: browsers break lines of more very slowly. */
const MAX_SHOWN_LENGTH = 262_144

/** One line as a whole, wrapped. */
export function LinePanel({
  executionId,
  filter,
  number,
  total,
  onStep,
  onClose,
}: {
  executionId: string
  filter: OutputFilter
  number: number
  total: number
  /** To another line. */
  onStep: (number: number) => void
  onClose: () => void
}): JSX.Element {
  const [line, setLine] = useState<OutputLine>()
  const [error, setError] = useState<unknown>()
  const [round, setRound] = useState(0)
  const [showsJson, setShowsJson] = useState(true)
  const element = useRef<HTMLElement>(null)

  useEffect(() => {
    const controller = new AbortController()
    setError(undefined)
    readLines(executionId, filter, { from: number, limit: 1 }, controller.signal)
      .then(({ lines }) => setLine(lines[0]))
      .catch((failure: unknown) => {
        if (!isAbort(failure)) setError(failure)
      })
    return () => controller.abort()
  }, [executionId, filter, number, round])
  useEffect(() => element.current?.focus(), [])

  async function readOn(offset: number): Promise<void> {
    try {
      const { lines } = await readLines(executionId, filter, { from: number, limit: 1, offset })
      const [more] = lines
      if (more === undefined) return
      // Another line may have been opened meanwhile.
      setLine((before) => (before?.number === number && before.next_offset === offset ? joined(before, more) : before))
    } catch (failure) {
      setError(failure)
    }
  }

  const isShown = line?.number === number
  const spans = isShown ? spansOf(line.parts) : []
  const text = plainText(spans)
  const json = isShown && line.next_offset === undefined ? findJson(text) : undefined
  const hosts = isShown ? [...new Set(line.parts.flatMap(({ host }) => host ?? []))] : []
  const types = isShown ? [...new Set(line.parts.map(({ output_type: type }) => type))] : []
  return (
    <section
      ref={element}
      class="output-panel"
      aria-label={`Line ${number}`}
      tabIndex={-1}
      onKeyDown={(event) => {
        if (event.key === 'Escape') onClose()
      }}
    >
      <header>
        <h3>Line {number.toLocaleString()}</h3>
        {isShown && (
          <span class="hint">
            {line.timestamp} · {types.join(' and ') || 'empty'}
            {hosts.length > 0 && ` · ${hosts.join(', ')}`}
            {line.length !== undefined && ` · ${formatBytes(line.length)}`}
          </span>
        )}
        <span class="spacer" />
        {json !== undefined && (
          <button type="button" aria-pressed={showsJson} onClick={() => setShowsJson(!showsJson)}>
            JSON
          </button>
        )}
        {/* Not disabled: the keyboard would lose its place at the last line. */}
        <button
          type="button"
          aria-label="Previous line"
          aria-disabled={number <= 1}
          onClick={() => onStep(Math.max(number - 1, 1))}
        >
          ↑
        </button>
        <button
          type="button"
          aria-label="Next line"
          aria-disabled={number >= total}
          onClick={() => onStep(Math.min(number + 1, total))}
        >
          ↓
        </button>
        {isShown && <CopyButton text={text} title="Copy line" />}
        <button type="button" class="quiet" aria-label="Close line" onClick={onClose}>
          ×
        </button>
      </header>
      {error !== undefined && <Failure error={error} onRetry={() => setRound(round + 1)} />}
      {!isShown && error === undefined && <p class="hint">Loading line…</p>}
      {isShown && (
        <div class="output-whole" tabIndex={0} role="group" aria-label="Line text">
          {json !== undefined && showsJson ? <JsonTree value={json.value} /> : <Spans spans={spans} />}
        </div>
      )}
      {isShown && line.next_offset !== undefined && (
        <p class="hint">
          Showing the first {formatBytes(line.next_offset)}
          {line.length !== undefined && ` of ${formatBytes(line.length)}`}.{' '}
          {text.length < MAX_SHOWN_LENGTH ? (
            <button type="button" onClick={() => void readOn(line.next_offset ?? 0)}>
              Show more
            </button>
          ) : (
            'Download the output to see the whole line.'
          )}
        </p>
      )}
    </section>
  )
}

function joined(line: OutputLine, more: OutputLine): OutputLine {
  const { next_offset: _, ...rest } = line
  const parts: OutputPart[] = [...line.parts, ...more.parts]
  return { ...rest, parts, ...(more.next_offset !== undefined && { next_offset: more.next_offset }) }
}
