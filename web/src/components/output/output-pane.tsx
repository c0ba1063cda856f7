/** The output of an execution, live while it runs, any line of it however much there is. */
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { Failure } from '../failure.tsx'
import { LinePanel } from './line-panel.tsx'
import { outputFilters, type OutputFilter } from './output-api.ts'
import { OutputBar, SelectedLines } from './output-bar.tsx'
import { OutputLines } from './output-lines.tsx'
import type { OutputState } from './output-model.ts'
import { usePaneQuery, type PaneQuery } from './pane-query.ts'
import { SearchBar } from './search-bar.tsx'
import { useOutputView } from './use-output-view.ts'
import './output.css'

export interface OutputPaneProps {
  executionId: string
  /** Of the execution, for words about output that is not there yet. */
  status?: string
  /**
   * Whether the address holds what is shown. Default true; false where the query of the address means something else.
   */
  usesAddress?: boolean
}

export function OutputPane({ executionId, status, usesAddress = true }: OutputPaneProps): JSX.Element {
  const query = usePaneQuery(usesAddress)
  const filter = outputFilters.find((one) => one === query.get('output_type')) ?? 'all'
  // Another execution or stream has a state of its own.
  return (
    <Output key={`${executionId} ${filter}`} executionId={executionId} status={status} filter={filter} query={query} />
  )
}

interface OutputProps {
  executionId: string
  status: string | undefined
  filter: OutputFilter
  query: PaneQuery
}

function Output({ executionId, status, filter, query }: OutputProps): JSX.Element {
  const view = useOutputView(executionId, filter, query)
  const { model, list, selected, pause } = view
  const { state, total } = model
  const showsTimes = query.get('times') !== undefined
  const [opened, setOpened] = useState<number>()
  const digits = `${Math.max(3, String(total).length)}ch`
  if (state.phase === 'failed') return <Failure error={state.error} onRetry={() => model.retry()} />
  if (!view.isReady) return <p class="loading">Loading output…</p>
  return (
    <section class="output" aria-label="Output" style={{ '--output-digits': digits }}>
      <OutputBar executionId={executionId} filter={filter} query={query} view={view} showsTimes={showsTimes} />
      <div class="output-bar">
        <SearchBar
          input={view.searchField}
          terms={view.terms}
          search={view.search}
          current={view.current}
          onTerms={view.setTerms}
          onStep={view.step}
          onLeave={() => list.current?.focus()}
        />
        {selected !== undefined && (
          <SelectedLines
            executionId={executionId}
            filter={filter}
            range={selected}
            total={total}
            onClear={() => query.set({ line: undefined }, { replace: true })}
          />
        )}
      </div>
      {state.about?.is_beginning_removed === true && (
        <p class="hint">The oldest output is deleted: its retention time is over. Line 1 is the first stored line.</p>
      )}
      {state.readFailure !== undefined && (
        <p class="problem" role="alert">
          Could not read lines, retrying: {state.readFailure}
        </p>
      )}
      {total === 0 ? (
        <p class="empty">{emptyText(state, status, filter)}</p>
      ) : (
        <OutputLines
          executionId={executionId}
          filter={filter}
          query={query}
          view={view}
          showsTimes={showsTimes}
          digits={digits}
          onOpen={setOpened}
        />
      )}
      {opened !== undefined && opened <= total && (
        <LinePanel
          executionId={executionId}
          filter={filter}
          number={opened}
          total={total}
          onStep={(number) => {
            setOpened(number)
            pause()
            list.current?.showRow(number - 1)
          }}
          onClose={() => {
            setOpened(undefined)
            list.current?.focus()
          }}
        />
      )}
    </section>
  )
}

function emptyText({ phase, about }: OutputState, status: string | undefined, filter: OutputFilter): string {
  if (about?.is_stored === false) {
    return 'The server stores no output: actionrunner.stream_output is off. See the result of the execution instead.'
  }
  if (filter !== 'all' && about !== undefined && Object.values(about.bytes).some((bytes) => bytes > 0)) {
    return `No output on ${filter} so far.`
  }
  if (phase !== 'complete') {
    return status === undefined || status === 'running'
      ? 'No output yet.'
      : `No output yet: the execution is ${status}.`
  }
  return 'No output: the action wrote nothing, or the retention time of its output is over.'
}
