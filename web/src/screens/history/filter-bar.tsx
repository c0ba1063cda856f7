/** What the history is narrowed down by; all of it is in the address. */
import type { JSX } from 'preact'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { get } from '../../api/client.ts'
import { executionStatuses } from '../../api/execution-status.ts'
import { useLoaded } from '../../api/load.ts'
import { setQuery } from '../../router.ts'
import {
  addressOfFilter,
  hasConditions,
  isHistoryFiltered,
  noFilter,
  timeSpans,
  type HistoryFilter,
} from './filters.ts'

/** While somebody types. */
const PAUSE_MS = 300
const MAX_OFFERED = 500
/** As the server. */
const MAX_OUTPUT_LENGTH = 1000

/** `GET /executions/views/filters` */
type Offered = Partial<Record<'action' | 'user' | 'rule' | 'trigger_type' | 'runner', (string | null)[]>>

/** What was typed takes the place of the address before, which nobody wants to come back to. */
function change(values: Partial<HistoryFilter>, isTyped = false): void {
  setQuery(addressOfFilter(values), { replace: isTyped })
}

export function FilterBar({ filter, isNarrow }: { filter: HistoryFilter; isNarrow: boolean }): JSX.Element {
  const [isUsed, setIsUsed] = useState(false)
  const { data: offered } = useLoaded<Offered>(
    (signal) => (isUsed ? get<Offered>('executions/views/filters', {}, signal) : Promise.resolve({})),
    [isUsed],
  )
  const more = (
    <>
      <Value name="action" title="Action" filter={filter} offered={offered} />
      <Value name="user" title="User" filter={filter} offered={offered} />
      <Value name="rule" title="Rule" filter={filter} offered={offered} />
      <Value name="trigger_type" title="Trigger type" filter={filter} offered={offered} />
      <Value name="runner" title="Runner" filter={filter} offered={offered} />
      <OutputText filter={filter} />
      <Times filter={filter} />
      <label class="check">
        <input
          type="checkbox"
          checked={filter.hasChildren}
          onChange={(event) => change({ hasChildren: event.currentTarget.checked })}
        />
        Include children
      </label>
    </>
  )
  const count = Object.values(addressOfFilter({ ...filter, search: '', status: [] })).filter(
    (value) => value !== undefined,
  ).length
  return (
    <search class="filters" onFocusCapture={() => setIsUsed(true)}>
      <Search filter={filter} />
      <Statuses filter={filter} />
      {isNarrow ? (
        <details class="more-filters">
          <summary class="button">Filters{count > 0 && ` (${count})`}</summary>
          <div class="filters">{more}</div>
        </details>
      ) : (
        more
      )}
      {filter.parent !== '' && (
        <span class="chip">
          Children of <code>{filter.parent}</code>
          <button
            type="button"
            class="quiet"
            aria-label="Remove the parent filter"
            onClick={() => change({ parent: '' })}
          >
            ×
          </button>
        </span>
      )}
      {filter.output !== '' && (
        <span class="chip">
          Output has <code>{filter.output}</code>
          <button
            type="button"
            class="quiet"
            aria-label="Remove the output filter"
            onClick={() => change({ output: '' })}
          >
            ×
          </button>
        </span>
      )}
      {isHistoryFiltered(filter) && (
        <button type="button" class="link" onClick={() => change(noFilter)}>
          Clear
        </button>
      )}
    </search>
  )
}

/** What is typed, before it becomes a part of the address. */
function useTyped(
  value: string,
  commit: (text: string) => void,
): { text: string; type: (text: string, isSure: boolean) => void; finish: () => void } {
  const [text, setText] = useState(value)
  const typed = useRef(value)
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  useEffect(() => {
    // Somebody went back, or followed a link.
    if (value !== typed.current.trim()) {
      clearTimeout(timer.current)
      typed.current = value
      setText(value)
    }
  }, [value])
  useEffect(() => () => clearTimeout(timer.current), [])
  function finish(): void {
    clearTimeout(timer.current)
    if (typed.current.trim() !== value) commit(typed.current)
  }
  return {
    text,
    type(next, isSure) {
      typed.current = next
      setText(next)
      clearTimeout(timer.current)
      if (isSure) timer.current = setTimeout(() => commit(next), PAUSE_MS)
    },
    finish,
  }
}

function Search({ filter }: { filter: HistoryFilter }): JSX.Element {
  const id = useId()
  const { text, type, finish } = useTyped(filter.search, (search) => change({ search }, true))
  const waits = hasConditions(text) && text.trim() !== filter.search
  return (
    <form
      class="search"
      onSubmit={(event) => {
        event.preventDefault()
        finish()
      }}
    >
      <input
        type="search"
        aria-label="Search"
        aria-describedby={id}
        placeholder="Action, rule, user or id"
        autocomplete="off"
        spellcheck={false}
        value={text}
        // The server looks at every execution for these, not at each letter of them.
        onInput={(event) => type(event.currentTarget.value, !hasConditions(event.currentTarget.value))}
      />
      <span id={id} class="hint" hidden={!waits}>
        Press Enter to search {filter.since === '' ? 'all executions' : 'the executions of this period'}.
      </span>
    </form>
  )
}

type ValueName = 'action' | 'user' | 'rule' | 'trigger_type' | 'runner'

/** One of the values that executions have. A part of one finds nothing: it is looked for once it is one of them, or sure. */
function Value({
  name,
  title,
  filter,
  offered = {},
}: {
  name: ValueName
  title: string
  filter: HistoryFilter
  offered: Offered | undefined
}): JSX.Element {
  const id = useId()
  const { text, type, finish } = useTyped(filter[name], (value) => change({ [name]: value }, true))
  const values = (offered[name] ?? []).filter((value) => value !== null)
  return (
    <>
      <input
        class="value"
        aria-label={title}
        placeholder={title}
        list={id}
        autocomplete="off"
        spellcheck={false}
        value={text}
        data-set={filter[name] === '' ? undefined : ''}
        onInput={(event) => {
          const { value } = event.currentTarget
          type(value, value.trim() === '' || values.includes(value.trim()))
        }}
        onChange={finish}
        onKeyDown={(event) => {
          if (event.key === 'Enter') finish()
        }}
      />
      <datalist id={id}>
        {values.slice(0, MAX_OFFERED).map((value) => (
          <option key={value} value={value} />
        ))}
      </datalist>
    </>
  )
}

/** Each search reads outputs: it begins once the text is sure. */
function OutputText({ filter }: { filter: HistoryFilter }): JSX.Element {
  const { text, type, finish } = useTyped(filter.output, (output) => change({ output }, true))
  return (
    <input
      class="value"
      aria-label="Text in output"
      placeholder="Text in output"
      autocomplete="off"
      spellcheck={false}
      maxLength={MAX_OUTPUT_LENGTH}
      value={text}
      data-set={filter.output === '' ? undefined : ''}
      onInput={({ currentTarget: { value } }) => type(value, value.trim() === '')}
      onChange={finish}
      onKeyDown={(event) => {
        if (event.key === 'Enter') finish()
      }}
    />
  )
}

function Statuses({ filter }: { filter: HistoryFilter }): JSX.Element {
  const { status } = filter
  const element = useRef<HTMLDetailsElement>(null)
  const [isOpen, setIsOpen] = useState(false)
  useEffect(() => {
    if (!isOpen) return undefined
    const look = (event: Event): void => {
      if (event.target instanceof Node && element.current?.contains(event.target) === false) setIsOpen(false)
    }
    document.addEventListener('pointerdown', look)
    document.addEventListener('focusin', look)
    return () => {
      document.removeEventListener('pointerdown', look)
      document.removeEventListener('focusin', look)
    }
  }, [isOpen])
  const title = status.length === 0 ? 'Any status' : status.length > 2 ? `${status.length} statuses` : status.join(', ')
  return (
    <details
      ref={element}
      class="menu"
      open={isOpen}
      onToggle={(event) => setIsOpen(event.currentTarget.open)}
      onKeyDown={(event) => {
        if (event.key !== 'Escape' || !isOpen) return
        setIsOpen(false)
        element.current?.querySelector('summary')?.focus()
      }}
    >
      <summary class="button" data-set={status.length === 0 ? undefined : ''}>
        {title}
      </summary>
      <fieldset class="menu-content">
        <legend>Status</legend>
        {executionStatuses.map((one) => (
          <label key={one} class="check">
            <input
              type="checkbox"
              checked={status.includes(one)}
              onChange={(event) =>
                change({
                  status: event.currentTarget.checked ? [...status, one] : status.filter((other) => other !== one),
                })
              }
            />
            {one}
          </label>
        ))}
      </fieldset>
    </details>
  )
}

function Times({ filter: { since, until } }: { filter: HistoryFilter }): JSX.Element {
  const isSpan = until === '' && (since === '' || timeSpans.some(({ name }) => name === since))
  const [isOwn, setIsOwn] = useState(!isSpan)
  const showsOwn = isOwn || !isSpan
  return (
    <>
      <select
        aria-label="Time"
        value={showsOwn ? 'own' : since}
        data-set={since === '' && until === '' ? undefined : ''}
        onChange={(event) => {
          const { value } = event.currentTarget
          setIsOwn(value === 'own')
          if (value !== 'own') change({ since: value, until: '' })
        }}
      >
        <option value="">Any time</option>
        {timeSpans.map(({ name, title }) => (
          <option key={name} value={name}>
            {title}
          </option>
        ))}
        <option value="own">Between…</option>
      </select>
      {showsOwn && (
        <>
          <Moment title="From" value={since} onChange={(value) => change({ since: value }, true)} />
          <Moment title="To" value={until} onChange={(value) => change({ until: value }, true)} />
        </>
      )}
    </>
  )
}

/** Times are entered in the local time zone; the address has them in UTC, to be shared. */
function Moment({
  title,
  value,
  onChange,
}: {
  title: string
  value: string
  onChange: (value: string) => void
}): JSX.Element {
  return (
    <input
      type="datetime-local"
      aria-label={title}
      title={title}
      step={1}
      // Years of more than four digits would be asked for otherwise.
      max="9999-12-31T23:59:59"
      value={localText(value)}
      onChange={(event) => {
        const date = new Date(event.currentTarget.value)
        onChange(Number.isNaN(date.getTime()) ? '' : date.toISOString())
      }}
    />
  )
}

/** `2030-01-31T12:00:00`, as the control wants it. */
function localText(value: string): string {
  const date = new Date(value)
  if (Number.isNaN(date.getTime())) return ''
  const local = new Date(date.getTime() - date.getTimezoneOffset() * 60_000)
  return local.toISOString().slice(0, 19)
}
