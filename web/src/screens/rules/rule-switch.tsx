import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { messageOf } from '../../api/client.ts'
import type { RuleRecord } from '../../api/records.ts'
import { notify } from '../../components/notices.tsx'
import { switchRule } from './switch-rule.ts'

/** Whether a rule reacts; changed in place. */
export function RuleSwitch({
  rule,
  onChange,
}: {
  rule: Pick<RuleRecord, 'ref' | 'enabled'>
  onChange: (rule: RuleRecord) => void
}): JSX.Element {
  const { ref, enabled } = rule
  const [isBusy, setIsBusy] = useState(false)
  async function change(): Promise<void> {
    setIsBusy(true)
    try {
      const changed = await switchRule(ref, !enabled)
      onChange(changed)
      notify(`Rule ${ref} ${changed.enabled ? 'enabled' : 'disabled'}.`)
    } catch (error) {
      notify(`Could not ${enabled ? 'disable' : 'enable'} rule ${ref}: ${messageOf(error)}`, 'failure')
    } finally {
      setIsBusy(false)
    }
  }
  return (
    <button
      type="button"
      role="switch"
      class="switch"
      aria-checked={enabled}
      aria-label={`Rule ${ref} enabled`}
      disabled={isBusy}
      onClick={() => void change()}
    >
      <span class="switch-track" aria-hidden="true" />
      {enabled ? 'enabled' : 'disabled'}
    </button>
  )
}
