/** What can be run: find an action, fill in its parameters, watch it run. */
import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { Split } from '../../components/split.tsx'
import { hrefOf, navigate, setQuery, type ScreenProps } from '../../router.ts'
import { ActionList } from './action-list.tsx'
import { ActionPage } from './action-page.tsx'
import { Inquiries, InquiriesLink } from './inquiries.tsx'
import './actions.css'

/** Behind `#/actions/`; a reference of an action has a dot. */
const INQUIRIES = 'inquiries'

export default function Actions({ path: [chosen], query }: ScreenProps): JSX.Element {
  const inAddress = chosen === undefined ? (query.get('search') ?? '') : undefined
  const [search, setSearch] = useState(inAddress ?? '')
  // Only where nothing is chosen: what stands behind an action are its parameters.
  useEffect(() => {
    if (inAddress !== undefined && inAddress !== search) setSearch(inAddress)
  }, [inAddress])
  const opensByKeyboard = useRef(false)

  return (
    <div class="page fill actions">
      <Split
        listLabel="Actions"
        list={
          <>
            <h1>Actions</h1>
            <InquiriesLink isShown={chosen === INQUIRIES} />
            <ActionList
              search={search}
              chosen={chosen}
              onSearch={(text) => {
                setSearch(text)
                if (chosen === undefined) setQuery({ search: text }, { replace: true })
              }}
              onOpen={(ref, byKeyboard) => {
                opensByKeyboard.current = byKeyboard
                if (ref !== chosen) navigate(hrefOf(['actions', ref]))
              }}
            />
          </>
        }
        back={{ title: 'All actions', href: hrefOf(['actions'], { search }) }}
        isChosen={chosen !== undefined}
      >
        {chosen === undefined ? (
          <p class="empty">
            Choose an action to see its parameters and run it. In the search, Enter opens the first match.
          </p>
        ) : chosen === INQUIRIES ? (
          <Inquiries />
        ) : (
          <ActionPage key={chosen} actionRef={chosen} query={query} takesFocus={opensByKeyboard} />
        )}
      </Split>
    </div>
  )
}
