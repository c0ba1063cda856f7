/** What shall run when something happens. `#/rules`, `#/rules/new`, `#/rules/<ref>`, `#/rules/<ref>/edit`. */
import type { JSX } from 'preact'
import type { ScreenProps } from '../../router.ts'
import { EditRule, NewRule } from './rule-edit.tsx'
import { RuleList } from './rule-list.tsx'
import { RulePage } from './rule-page.tsx'
import './rules.css'

/** No reference of a rule: those have a dot. */
const NEW = 'new'

export default function Rules({ path: [chosen, part], query }: ScreenProps): JSX.Element {
  if (chosen === undefined) return <RuleList query={query} />
  if (chosen === NEW) return <NewRule key={query.get('copy') ?? ''} query={query} />
  if (part === 'edit') return <EditRule key={chosen} ruleRef={chosen} query={query} />
  return <RulePage key={chosen} ruleRef={chosen} query={query} />
}
