/** What criteria can compare by, as the server says: asked for once. */
import { useEffect } from 'preact/hooks'
import { list } from '../../api/client.ts'
import type { OperatorRecord } from '../../api/records.ts'
import { createStore, useStore } from '../../store.ts'
import { noOperators, operatorsByName, type Operators } from './criteria-text.ts'

interface Known {
  /** In the order in which they are offered. */
  records: readonly OperatorRecord[]
  byName: Operators
  /** Why there are none. */
  error: unknown
}

const known = createStore<Known>({ records: [], byName: noOperators, error: undefined })
let loading: Promise<void> | undefined

function load(): void {
  loading ??= list<OperatorRecord>('criteriaoperators').then(
    ({ items }) => known.set({ records: items, byName: operatorsByName(items), error: undefined }),
    (error: unknown) => {
      // The next one who draws criteria asks again.
      loading = undefined
      known.set({ ...known.value, error })
    },
  )
}

/** Empty until loaded: criteria then show the name of their operator. */
export function useOperators(): Known & { reload: () => void } {
  useEffect(load, [])
  return { ...useStore(known), reload: load }
}
