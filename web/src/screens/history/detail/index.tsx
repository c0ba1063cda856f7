import type { JSX } from 'preact'

export interface DetailProps {
  id: string
  tab: string
  query: URLSearchParams
  /** The list stands beside it. */
  isBeside: boolean
}

export default function Detail({ id }: DetailProps): JSX.Element {
  return <h1>{id}</h1>
}
