import type { JSX, RefObject } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { OutputSearch, SearchTerms } from './output-search.ts'

/** After the last letter. */
const TYPING_MS = 300

export interface SearchBarProps {
  input: RefObject<HTMLInputElement | null>
  terms: SearchTerms
  /** Undefined: nothing is searched for. */
  search: OutputSearch | undefined
  /** The found line that is looked at. */
  current: number | undefined
  onTerms: (terms: SearchTerms) => void
  onStep: (direction: 1 | -1) => void
  onLeave: () => void
}

export function SearchBar({ input, terms, search, current, onTerms, onStep, onLeave }: SearchBarProps): JSX.Element {
  const [typed, setTyped] = useState(terms.query)
  // The address may have changed.
  useEffect(() => setTyped(terms.query), [terms.query])
  useEffect(() => {
    if (typed === terms.query) return
    const timer = setTimeout(() => onTerms({ ...terms, query: typed }), TYPING_MS)
    return () => clearTimeout(timer)
  }, [typed, terms.query])
  const hasFound = (search?.state.count ?? 0) > 0

  return (
    <search class="output-search">
      <input
        ref={input}
        type="search"
        aria-label="Search the output"
        placeholder="Search"
        spellcheck={false}
        autocapitalize="none"
        autocomplete="off"
        maxLength={1000}
        value={typed}
        onInput={(event) => setTyped(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === 'Enter') {
            event.preventDefault()
            if (typed === terms.query) onStep(event.shiftKey ? -1 : 1)
            else onTerms({ ...terms, query: typed })
          } else if (event.key === 'Escape') {
            event.preventDefault()
            setTyped('')
            onTerms({ ...terms, query: '' })
            onLeave()
          }
        }}
      />
      <button
        type="button"
        class="output-option"
        aria-pressed={terms.matchesCase}
        aria-label="Match case"
        title="Match case"
        onClick={() => onTerms({ ...terms, query: typed, matchesCase: !terms.matchesCase })}
      >
        Aa
      </button>
      <button
        type="button"
        class="output-option"
        aria-pressed={terms.isPattern}
        aria-label="Regular expression"
        title="Regular expression (RE2)"
        onClick={() => onTerms({ ...terms, query: typed, isPattern: !terms.isPattern })}
      >
        .*
      </button>
      <button
        type="button"
        class="output-option"
        aria-label="Previous"
        title="Previous (Shift+Enter)"
        disabled={!hasFound}
        onClick={() => onStep(-1)}
      >
        ↑
      </button>
      <button
        type="button"
        class="output-option"
        aria-label="Next"
        title="Next (Enter)"
        disabled={!hasFound}
        onClick={() => onStep(1)}
      >
        ↓
      </button>
      {search !== undefined && <Found search={search} current={current} />}
    </search>
  )
}

function Found({ search, current }: { search: OutputSearch; current: number | undefined }): JSX.Element {
  const { phase, count, share, reason } = search.state
  const lines = `${count.toLocaleString()} ${count === 1 ? 'line' : 'lines'}`
  const words = current === undefined ? lines : `${search.placeOf(current).toLocaleString()} of ${lines}`
  const percent = `${Math.floor(share * 100)} %`
  return (
    <span class="output-found">
      {/* What changes many times a second is not read out. */}
      <span role="status">
        {phase === 'done' && (count === 0 ? 'Not found' : words)}
        {phase === 'stopped' && `${words}, stopped at ${percent}`}
      </span>
      {phase === 'failed' && (
        <span class="problem" role="alert">
          {reason}
        </span>
      )}
      {phase === 'searching' && (
        <>
          {words} <progress aria-label="Searching" value={share} max={1} /> {percent}
          <button type="button" class="output-option" onClick={() => search.stop()}>
            Stop
          </button>
        </>
      )}
      {(phase === 'stopped' || phase === 'failed') && share < 1 && (
        <button type="button" class="output-option" onClick={() => search.goOn()}>
          Continue
        </button>
      )}
    </span>
  )
}
