/** An execution in a row: what it was given and what brought it about, in a few words. */
import type { ExecutionSummary } from '../../api/execution-summary.ts'
import { formatBytes } from '../../components/size.ts'
import { writeJson } from '../../json.ts'

const MAX_VALUE = 80
const MAX_TEXT = 240

/** `cmd="echo hi" timeout=60` */
export function parametersText({
  parameters,
  parameters_size: size,
}: Pick<ExecutionSummary, 'parameters' | 'parameters_size'>): string {
  if (size !== undefined) return `${formatBytes(size)} of parameters`
  let text = ''
  for (const [name, value] of Object.entries(parameters ?? {})) {
    if (value === null) continue
    text += `${text === '' ? '' : ' '}${name}=${valueText(value)}`
    if (text.length > MAX_TEXT) return `${text.slice(0, MAX_TEXT)}…`
  }
  return text
}

function valueText(value: unknown): string {
  const text = typeof value === 'string' ? value.replace(/\s+/g, ' ').trim() : (writeJson(value) ?? '')
  const short = text.length > MAX_VALUE ? `${text.slice(0, MAX_VALUE)}…` : text
  return typeof value === 'string' && /^$| /.test(short) ? `"${short}"` : short
}

export interface OriginText {
  text: string
  /** What it was, for words before the text. */
  kind: 'rule' | 'parent' | 'rerun' | 'retry'
  /** Of the execution that it comes from. */
  execution?: string
}

/** Undefined: somebody asked for it. */
export function originOf({
  rule,
  parent,
  context,
}: Pick<ExecutionSummary, 'rule' | 'parent' | 'context'>): OriginText | undefined {
  const retry = context.policies?.retry
  const rerun = context['re-run']
  if (retry !== undefined) return { kind: 'retry', text: `retry ${retry.retry_count} (${retry.applied_policy})` }
  if (parent !== undefined) return { kind: 'parent', text: 'another execution', execution: parent }
  if (rerun !== undefined) return { kind: 'rerun', text: 're-run', execution: rerun.ref }
  if (rule !== undefined) return { kind: 'rule', text: rule.ref ?? rule.name }
  return undefined
}
