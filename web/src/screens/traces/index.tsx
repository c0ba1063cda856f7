import type { JSX } from 'preact'

export default function Screen(): JSX.Element {
  return (
    <div class="page">
      <h1>Traces</h1>
    </div>
  )
}
