import type { JSX } from 'preact'
import { useEffect, useId, useMemo, useRef } from 'preact/hooks'
import { list } from '../../api/client.ts'
import { useLoaded } from '../../api/load.ts'
import { Failure } from '../../components/failure.tsx'
import { PackRow } from '../../components/split.tsx'
import { VirtualList, type VirtualListHandle } from '../../components/virtual-list.tsx'
import { hrefOf } from '../../router.ts'
import { rowsFor, searchable, type ActionListEntry, type ListRow } from './search.ts'

const ROW_HEIGHT = 46
const ATTRIBUTES = 'ref,pack,name,description,enabled,tags'

export interface ActionListProps {
  search: string
  chosen: string | undefined
  onSearch: (text: string) => void
  onOpen: (ref: string, byKeyboard: boolean) => void
}

export function ActionList({ search, chosen, onSearch, onOpen }: ActionListProps): JSX.Element {
  const { data, error, reload } = useLoaded(
    (signal) => list<ActionListEntry>('actions', { include_attributes: ATTRIBUTES }, signal),
    [],
    ['action'],
  )
  const searchId = useId()
  const frame = useRef<HTMLDivElement>(null)
  const handle = useRef<VirtualListHandle>(null)
  const actions = useMemo(() => searchable(data?.items ?? []), [data])
  const rows = useMemo(() => rowsFor(actions, search), [actions, search])
  const found = rows.filter(({ kind }) => kind === 'action').length

  // Where an address leads to is in sight.
  const isLoaded = data !== undefined
  useEffect(() => {
    const row = rows.findIndex((each) => each.kind === 'action' && each.action.ref === chosen)
    if (isLoaded && row > 5) handle.current?.scrollToRow(row - 3)
  }, [isLoaded])
  useEffect(() => handle.current?.scrollToRow(0), [search])

  /** @returns whether there is a row to go to */
  function focusRow(from: number, step: 1 | -1): boolean {
    for (let row = from; row >= 0 && row < rows.length; row += step) {
      const link = frame.current?.querySelector<HTMLElement>(`a[data-row="${row}"]`)
      if (link === null || link === undefined) continue
      link.focus()
      return true
    }
    return false
  }
  function onKeyDown(event: KeyboardEvent): void {
    const target = event.target instanceof HTMLElement ? event.target : undefined
    const row = Number(target?.dataset['row'] ?? -1)
    if (event.key === 'ArrowDown' && focusRow(row + 1, 1)) event.preventDefault()
    else if (event.key === 'ArrowUp' && row >= 0) {
      event.preventDefault()
      if (!focusRow(row - 1, -1)) document.getElementById(searchId)?.focus()
    }
  }
  function openFirst(event: Event): void {
    event.preventDefault()
    const first = rows.find((row) => row.kind === 'action')
    if (first !== undefined) onOpen(first.action.ref, true)
  }

  return (
    <div class="actions-find" ref={frame} onKeyDown={onKeyDown}>
      <form role="search" onSubmit={openFirst}>
        <label class="visually-hidden" for={searchId}>
          Find an action
        </label>
        <input
          id={searchId}
          type="search"
          placeholder="Find by name, description or tag"
          autocomplete="off"
          spellcheck={false}
          value={search}
          onInput={(event) => onSearch(event.currentTarget.value)}
        />
      </form>
      {error !== undefined && <Failure error={error} onRetry={reload} />}
      {data === undefined && error === undefined && <p class="loading">Loading…</p>}
      {data !== undefined && (
        <>
          <p class="hint" role="status">
            {search === '' ? `${found} actions` : `${found} of ${actions.length} actions`}
          </p>
          {rows.length === 0 ? (
            <Nothing isFiltered={actions.length > 0} onReload={reload} />
          ) : (
            <VirtualList
              label="Actions by pack"
              count={rows.length}
              rowHeight={ROW_HEIGHT}
              handle={handle}
              row={(index) => {
                const row = rows[index]
                return row === undefined ? null : <Row row={row} index={index} chosen={chosen} onOpen={onOpen} />
              }}
            />
          )}
        </>
      )}
    </div>
  )
}

function Nothing({ isFiltered, onReload }: { isFiltered: boolean; onReload: () => void }): JSX.Element {
  return (
    <div class="empty">
      {isFiltered ? (
        <p>No action matches all of these words by name, description or tag. Change the search.</p>
      ) : (
        <p>
          No actions, or none that you may see. Install a pack: <code>svc pack install examples</code>
        </p>
      )}
      <button type="button" onClick={onReload}>
        Reload list
      </button>
    </div>
  )
}

function Row({
  row,
  index,
  chosen,
  onOpen,
}: {
  row: ListRow
  index: number
  chosen: string | undefined
  onOpen: ActionListProps['onOpen']
}): JSX.Element {
  if (row.kind === 'pack') return <PackRow pack={row.pack} count={row.count} />
  const { ref, pack, name, description, enabled } = row.action
  return (
    <a
      class="split-row"
      href={hrefOf(['actions', ref])}
      data-row={index}
      title={ref}
      aria-current={ref === chosen ? 'page' : undefined}
      onClick={(event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return
        event.preventDefault()
        // A click by the keyboard counts no clicks of a mouse.
        onOpen(ref, event.detail === 0)
      }}
    >
      <span class="ref">
        <span class="pack">{pack}.</span>
        {name}
        {!enabled && <span class="off"> disabled</span>}
      </span>
      <span class="description">{description.slice(0, 200)}</span>
    </a>
  )
}
