/** PagerDuty: Events API v2. A failure opens an alert of its job; a success closes it. */
import { UrlProblem, postJson, textIn, type Channel, type Level, type Notice } from './channel.ts'
import { cut, cutStart } from './text.ts'

const PUBLIC_API = 'https://events.pagerduty.com'
const MAX_SUMMARY_CHARS = 1024
const MAX_KEY_CHARS = 255
const MAX_OUTPUT_CHARS = 8000

const severities: Readonly<Record<Level, string>> = {
  error: 'error',
  warning: 'warning',
  success: 'info',
  info: 'info',
}

export const pagerduty: Channel = {
  kind: 'pagerduty',
  settings: {
    routing_key: { type: 'string', minLength: 1, description: 'Integration key of the service (Events API v2).' },
    api_url: {
      type: 'string',
      minLength: 1,
      description: `Default: ${PUBLIC_API}; accounts in Europe: https://events.eu.pagerduty.com`,
    },
    severity: { enum: ['critical', 'error', 'warning', 'info'], description: 'Default: error; missed runs: warning.' },
  },
  required: ['routing_key'],
  secrets: ['routing_key'],
  schemes: ['pagerduty'],
  fromUrl({ user, host, query }) {
    // The key of the REST API stands behind the @; the Events API needs none.
    const key = user === '' ? host : user
    if (key === '') throw new UrlProblem('must be pagerduty://INTEGRATION_KEY')
    const isEuropean = query.get('region')?.toLowerCase() === 'eu'
    return { routing_key: key, ...(isEuropean ? { api_url: 'https://events.eu.pagerduty.com' } : {}) }
  },
  isDigested: false,
  async send(notice, settings, tools) {
    const api = textIn(settings, 'api_url').replace(/\/+$/, '') || PUBLIC_API
    await postJson(tools, `${api}/v2/enqueue`, payload(notice, textIn(settings, 'routing_key'), settings['severity']))
    return 'accepted'
  },
}

function payload(notice: Notice, routingKey: string, severity: unknown): unknown {
  const { condition, level, job, title, text, facts, output, link, timestamp, id } = notice
  const isOver = condition === 'recovered' || condition === 'succeeded'
  const event = {
    routing_key: routingKey,
    event_action: isOver ? 'resolve' : 'trigger',
    // One alert per job, so that a success closes what failures have opened, and a repetition opens nothing.
    dedup_key: cut(job === '' ? `svc/${id}` : `svc/${job}`, MAX_KEY_CHARS),
  }
  if (isOver) return event
  return {
    ...event,
    client: 'svc',
    ...(link === '' ? {} : { client_url: link, links: [{ href: link, text: 'Open in svc' }] }),
    payload: {
      summary: cut(title, MAX_SUMMARY_CHARS),
      source: cut(job === '' ? 'svc' : job, MAX_KEY_CHARS),
      severity: level === 'error' && typeof severity === 'string' ? severity : severities[level],
      timestamp,
      component: 'svc',
      custom_details: {
        notification: id,
        ...(text === '' ? Object.fromEntries(facts) : { text: cut(text, MAX_OUTPUT_CHARS) }),
        ...(text !== '' || output === '' ? {} : { output: cutStart(output, MAX_OUTPUT_CHARS) }),
      },
    },
  }
}
