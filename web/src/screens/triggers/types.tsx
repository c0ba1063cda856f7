import type { JSX } from 'preact'
import { useEffect, useId, useMemo, useRef, useState } from 'preact/hooks'
import { Failure } from '../../components/failure.tsx'
import { PackRow, Split } from '../../components/split.tsx'
import { VirtualList, type VirtualListHandle } from '../../components/virtual-list.tsx'
import { hrefOf, setQuery } from '../../router.ts'
import { usageText, catalogueRows, type CatalogueRow } from './catalogue.ts'
import { Tabs } from './tabs.tsx'
import { TypePage } from './type-page.tsx'
import { useCatalogue } from './use-catalogue.ts'
import { countText } from '../../text.ts'

const ROW_HEIGHT = 46
const MAX_DESCRIPTION = 200

/** Trigger types by pack, and one of them. */
export function TriggerTypes({ chosen, query }: { chosen: string | undefined; query: URLSearchParams }): JSX.Element {
  const { data, error, reload } = useCatalogue()
  const inAddress = query.get('search') ?? ''
  const [search, setSearch] = useState(inAddress)
  useEffect(() => setSearch(inAddress), [inAddress])
  const rows = useMemo(() => (data === undefined ? [] : catalogueRows(data, search)), [data, search])
  const found = rows.filter(({ kind }) => kind === 'type').length
  const handle = useRef<VirtualListHandle>(null)
  const searchId = useId()

  // Where an address leads to is in sight.
  const isLoaded = data !== undefined
  useEffect(() => {
    const row = rows.findIndex((each) => each.kind === 'type' && each.type.ref === chosen)
    if (isLoaded && row > 5) handle.current?.scrollToRow(row - 3)
  }, [isLoaded])
  useEffect(() => handle.current?.scrollToRow(0), [search])

  return (
    <div class="page fill triggers">
      <Tabs part="types" />
      <Split
        listLabel="Trigger types"
        list={
          <>
            <form role="search" onSubmit={(event) => event.preventDefault()}>
              <label class="visually-hidden" for={searchId}>
                Find a trigger type
              </label>
              <input
                id={searchId}
                type="search"
                placeholder="Find by name, description or parameter"
                autocomplete="off"
                spellcheck={false}
                value={search}
                onInput={(event) => {
                  setSearch(event.currentTarget.value)
                  setQuery({ search: event.currentTarget.value }, { replace: true })
                }}
              />
            </form>
            {error !== undefined && <Failure error={error} onRetry={reload} />}
            {data === undefined && error === undefined && <p class="loading">Loading…</p>}
            {data !== undefined && (
              <>
                <p class="hint" role="status">
                  {search === ''
                    ? countText(found, 'trigger type')
                    : `${found} of ${countText(data.types.length, 'trigger type')}`}
                </p>
                {rows.length === 0 ? (
                  <p class="empty">
                    {data.types.length > 0
                      ? 'No trigger types match all of these words. Change the search.'
                      : 'No trigger types that you may see.'}
                  </p>
                ) : (
                  <VirtualList
                    label="Trigger types by pack"
                    count={rows.length}
                    rowHeight={ROW_HEIGHT}
                    handle={handle}
                    row={(index) => {
                      const row = rows[index]
                      return row === undefined ? null : <Row row={row} chosen={chosen} search={search} />
                    }}
                  />
                )}
              </>
            )}
          </>
        }
        back={{ title: 'All trigger types', href: hrefOf(['triggers'], { search }) }}
        isChosen={chosen !== undefined}
      >
        {chosen === undefined ? (
          <p class="empty">Choose a trigger type to see its payload, its triggers and the rules that use them.</p>
        ) : (
          <TypePage key={chosen} typeRef={chosen} catalogue={data} />
        )}
      </Split>
    </div>
  )
}

function Row({ row, chosen, search }: { row: CatalogueRow; chosen: string | undefined; search: string }): JSX.Element {
  if (row.kind === 'pack') return <PackRow pack={row.pack} count={row.count} />
  const { ref, pack, name, description } = row.type
  return (
    <a
      class="split-row"
      href={hrefOf(['triggers', 'types', ref], { search })}
      title={ref}
      aria-current={ref === chosen ? 'page' : undefined}
    >
      <span class="ref">
        <span class="pack">{pack}.</span>
        {name}
      </span>
      <span class="description">
        {[usageText(row), description.slice(0, MAX_DESCRIPTION)].filter((part) => part !== '').join(' · ')}
      </span>
    </a>
  )
}
