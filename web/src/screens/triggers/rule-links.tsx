import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { hrefOf } from '../../router.ts'
import type { CatalogueRule } from './catalogue.ts'

const SHOWN = 5

/** The rules that use a trigger. @param props.rules undefined: the caller may not list them */
export function RuleLinks({ rules }: { rules: readonly CatalogueRule[] | undefined }): JSX.Element {
  const [shown, setShown] = useState(SHOWN)
  if (rules === undefined) return <span class="hint">hidden from you</span>
  if (rules.length === 0) return <span class="hint">no rule</span>
  return (
    <ul class="rule-links">
      {rules.slice(0, shown).map(({ ref, enabled }) => (
        <li key={ref}>
          <a href={hrefOf(['rules', ref])}>{ref}</a> {!enabled && <span class="badge">disabled</span>}
        </li>
      ))}
      {rules.length > shown && (
        <li>
          <button type="button" class="quiet small" onClick={() => setShown(shown + SHOWN * 20)}>
            {rules.length - shown} more
          </button>
        </li>
      )}
    </ul>
  )
}
