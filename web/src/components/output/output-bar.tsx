/** The bars above the lines of an output: stream, state, place and selection. */
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { messageOf } from '../../api/client.ts'
import { notify } from '../notices.tsx'
import { formatBytes } from '../size.ts'
import { writeLineRange, type LineRange } from './line-range.ts'
import { downloadAddress, outputFilters, textOfLines, type OutputFilter } from './output-api.ts'
import type { OutputState } from './output-model.ts'
import type { PaneQuery } from './pane-query.ts'
import type { OutputView } from './use-output-view.ts'

interface OutputBarProps {
  executionId: string
  filter: OutputFilter
  query: PaneQuery
  view: OutputView
  showsTimes: boolean
}

export function OutputBar({ executionId, filter, query, view, showsTimes }: OutputBarProps): JSX.Element {
  const { model, isFollowing, follow, pause } = view
  const { state, total } = model
  return (
    <div class="output-bar">
      <div class="output-choice" role="group" aria-label="Stream">
        {outputFilters
          .filter((one) => one === 'all' || one === filter || hasOutput(state, one))
          .map((one) => (
            <button
              key={one}
              type="button"
              aria-pressed={one === filter}
              onClick={() => query.set({ output_type: one === 'all' ? undefined : one, line: undefined })}
            >
              {one}
            </button>
          ))}
      </div>
      {state.phase !== 'complete' && (
        <button
          type="button"
          aria-pressed={isFollowing}
          title="Scroll to new lines (End or f)"
          onClick={() => (isFollowing ? pause() : follow())}
        >
          Follow
        </button>
      )}
      <button
        type="button"
        aria-pressed={showsTimes}
        title="Show when each line was written"
        onClick={() => query.set({ times: showsTimes ? undefined : '1' }, { replace: true })}
      >
        Times
      </button>
      <StateText state={state} isFollowing={isFollowing} total={total} filter={filter} />
      <span class="spacer" />
      <GoToLine total={total} onLine={(line) => query.set({ line: String(line) })} />
      <a class="button" href={downloadAddress(executionId, filter)} download={fileName(executionId, filter)}>
        Download
      </a>
    </div>
  )
}

function StateText({
  state: { phase, reason, about },
  isFollowing,
  total,
  filter,
}: {
  state: OutputState
  isFollowing: boolean
  total: number
  filter: OutputFilter
}): JSX.Element {
  const { stdout = 0, stderr = 0, other = 0 } = about?.bytes ?? {}
  const size = filter === 'all' ? stdout + stderr + other : (about?.bytes[filter] ?? 0)
  const words = {
    loading: 'Loading',
    live: isFollowing ? 'Live' : 'Live, paused',
    lost: 'Reconnecting',
    complete: 'Complete',
  }
  return (
    <span class="output-state" data-phase={phase}>
      <span role="status" title={reason}>
        {phase === 'failed' ? '' : words[phase]}
      </span>
      {total > 0 && (
        <span class="hint">
          {total.toLocaleString()} {total === 1 ? 'line' : 'lines'}
          {/* While it grows nobody counts its bytes. */}
          {phase === 'complete' && `, ${formatBytes(size)}`}
        </span>
      )}
    </span>
  )
}

function GoToLine({ total, onLine }: { total: number; onLine: (line: number) => void }): JSX.Element {
  const [typed, setTyped] = useState('')
  return (
    <form
      class="output-go"
      onSubmit={(event) => {
        event.preventDefault()
        const line = Number(typed.replaceAll(/[\s,.]/g, ''))
        if (Number.isInteger(line) && line >= 1) onLine(Math.min(line, Math.max(1, total)))
      }}
    >
      <input
        aria-label="Go to line"
        placeholder="Line"
        inputMode="numeric"
        autocomplete="off"
        maxLength={16}
        value={typed}
        onInput={(event) => setTyped(event.currentTarget.value)}
      />
    </form>
  )
}

export function SelectedLines({
  executionId,
  filter,
  range,
  total,
  onClear,
}: {
  executionId: string
  filter: OutputFilter
  range: LineRange
  total: number
  onClear: () => void
}): JSX.Element {
  const [isBusy, setIsBusy] = useState(false)
  const isOne = range.first === range.last
  async function copy(): Promise<void> {
    setIsBusy(true)
    try {
      await navigator.clipboard.writeText(await textOfLines(executionId, filter, range.first, range.last))
      notify(isOne ? 'Line copied.' : 'Lines copied.')
    } catch (error) {
      notify(`Could not copy: ${messageOf(error)}`, 'failure')
    } finally {
      setIsBusy(false)
    }
  }
  return (
    <span class="output-chosen">
      {isOne ? 'Line' : 'Lines'} {writeLineRange(range)}
      {range.first > total && <span class="problem"> (there are {total.toLocaleString()})</span>}
      <button type="button" class="output-option" disabled={isBusy || range.first > total} onClick={() => void copy()}>
        Copy
      </button>
      <button
        type="button"
        class="output-option"
        aria-label="Clear selection"
        title="Clear selection"
        onClick={onClear}
      >
        ×
      </button>
    </span>
  )
}

export function hasOutput({ about }: OutputState, type: OutputFilter): boolean {
  return type !== 'all' && about !== undefined && about.bytes[type] > 0
}

function fileName(executionId: string, filter: OutputFilter): string {
  return filter === 'all' ? `${executionId}.txt` : `${executionId}.${filter}.txt`
}
