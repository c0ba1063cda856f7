/** What has run, and what runs: the list of all executions, and one of them. */
import type { JSX } from 'preact'
import { lazy } from '../../components/lazy.tsx'
import { useMedia } from '../../components/media.ts'
import type { ScreenProps } from '../../router.ts'
import { HistoryList } from './list.tsx'
import './history.css'

// The list is what is seen first.
const Detail = lazy(() => import('./detail/index.tsx'))

export default function History({ path: [id, tab], query }: ScreenProps): JSX.Element {
  const hasRoom = useMedia('(min-width: 1200px)')
  return (
    <div class="page fill history" data-beside={id === undefined ? undefined : ''}>
      {(id === undefined || hasRoom) && <HistoryList query={query} openId={id} />}
      {id !== undefined && <Detail key={id} id={id} tab={tab ?? 'general'} query={query} isBeside={hasRoom} />}
    </div>
  )
}
