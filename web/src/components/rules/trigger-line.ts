/** Triggers in one line. No markup, no state. */
import type { TriggerRecord } from '../../api/records.ts'
import { writeJson } from '../../json.ts'

/** Of the parameters as many as one line tells. */
const MAX_LINE = 80

/** `core.svc.webhook orders`, `core.svc.IntervalTimer every 5 minutes` */
export function triggerLine({ type, parameters }: Pick<TriggerRecord, 'type' | 'parameters'>): string {
  const said = parametersLine(type, parameters)
  return said === '' ? type : `${type} ${said}`
}

/** The parameters of a trigger in a few words; empty: it has none. */
export function parametersLine(type: string, parameters: Readonly<Record<string, unknown>>): string {
  if (type === 'core.svc.webhook' && typeof parameters['url'] === 'string') return cut(parameters['url'])
  if (type === 'core.svc.IntervalTimer') {
    return cut(`every ${shown(parameters['delta'])} ${shown(parameters['unit'])}`)
  }
  if (type === 'core.svc.DateTimer') return cut(`on ${shown(parameters['date'] ?? parameters['run_at'])}`)
  if (type === 'core.svc.CronTimer' && typeof parameters['cron'] === 'string') {
    const { cron, timezone } = parameters
    return cut(typeof timezone === 'string' ? `${cron} in ${timezone}` : cron)
  }
  const pairs: string[] = []
  let length = 0
  for (const [name, value] of Object.entries(parameters)) {
    const pair = `${name}=${shown(value)}`
    pairs.push(pair)
    length += pair.length
    if (length > MAX_LINE) break
  }
  return cut(pairs.join(' '))
}

function shown(value: unknown): string {
  return typeof value === 'string' ? value.slice(0, MAX_LINE) : cut(writeJson(value) ?? '')
}

function cut(text: string): string {
  return text.length > MAX_LINE ? `${text.slice(0, MAX_LINE).toWellFormed()}…` : text
}
