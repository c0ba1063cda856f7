/** Services that send webhooks: how they sign, which of their events are meant, what these contain. */
import { quote } from '../../../lib/process/index.ts'

/** How a sender signs, for a test delivery. */
interface Signing {
  /** Text before the body, as `printf` writes it; `$T` is the time in seconds. Empty: the body alone is signed. */
  before?: string
  /** Default: `hex`. */
  encoding?: 'base64'
  /** Whether the secret is the key in base64, after `whsec_`. */
  hasBase64Key?: true
  /** Of the request; `$SIGNATURE`, `$T` and `$SECRET` stand for values. */
  headers: readonly string[]
}

export interface Sender {
  /** For help texts and comments. */
  title: string
  /** Of the trigger, without the secret; absent: the sender does not sign, and needs an API key. */
  signature?: Readonly<Record<string, unknown>>
  criteria: Readonly<Record<string, unknown>>
  /** Values of the event: usual name of a parameter → template. */
  values: Readonly<Record<string, string>>
  /** Headers of the event, besides those of the signature. */
  headers?: readonly string[]
  /** A body that fits the criteria. */
  sample: unknown
  /** Absent: nobody but the sender can sign, or nothing is signed. */
  signing?: Signing
}

const equals = (pattern: unknown): object => ({ type: 'equals', pattern })

const githubPush = {
  criteria: { 'trigger.body.ref': equals('refs/heads/main') },
  values: {
    repository: '{{ trigger.body.repository.full_name }}',
    branch: "{{ trigger.body.ref | replace('refs/heads/', '') }}",
    commit: '{{ trigger.body.after }}',
    user: '{{ trigger.body.pusher.login }}',
  },
  sample: {
    ref: 'refs/heads/main',
    after: '0123456789abcdef0123456789abcdef01234567',
    repository: { full_name: 'example/shop' },
    pusher: { name: 'ada', login: 'ada' },
  },
}

export const senders = {
  github: {
    ...githubPush,
    title: 'GitHub',
    signature: { scheme: 'github' },
    criteria: { "trigger.headers['X-GitHub-Event']": equals('push'), ...githubPush.criteria },
    values: { ...githubPush.values, user: '{{ trigger.body.pusher.name }}' },
    headers: ['X-GitHub-Event: push'],
    signing: { headers: ['X-Hub-Signature-256: sha256=$SIGNATURE'] },
  },
  gitea: {
    ...githubPush,
    title: 'Gitea and Forgejo',
    signature: { scheme: 'github' },
    criteria: { "trigger.headers['X-Gitea-Event']": equals('push'), ...githubPush.criteria },
    headers: ['X-Gitea-Event: push'],
    signing: { headers: ['X-Gitea-Signature: $SIGNATURE'] },
  },
  gitlab: {
    title: 'GitLab',
    signature: { scheme: 'gitlab' },
    criteria: {
      "trigger.headers['X-Gitlab-Event']": equals('Push Hook'),
      'trigger.body.ref': equals('refs/heads/main'),
    },
    values: {
      repository: '{{ trigger.body.project.path_with_namespace }}',
      branch: "{{ trigger.body.ref | replace('refs/heads/', '') }}",
      commit: '{{ trigger.body.checkout_sha }}',
      user: '{{ trigger.body.user_username }}',
    },
    headers: ['X-Gitlab-Event: Push Hook'],
    sample: {
      object_kind: 'push',
      ref: 'refs/heads/main',
      checkout_sha: '0123456789abcdef0123456789abcdef01234567',
      user_username: 'ada',
      project: { path_with_namespace: 'example/shop' },
    },
    signing: { headers: ['X-Gitlab-Token: $SECRET'] },
  },
  stripe: {
    title: 'Stripe',
    signature: { scheme: 'stripe' },
    criteria: { 'trigger.body.type': equals('invoice.payment_failed') },
    values: {
      event: '{{ trigger.body.type }}',
      customer: '{{ trigger.body.data.object.customer_email }}',
      amount: '{{ trigger.body.data.object.amount_due }}',
    },
    sample: {
      object: 'event',
      type: 'invoice.payment_failed',
      data: { object: { customer_email: 'ada@example.org', amount_due: 1200 } },
    },
    signing: { before: '$T.', headers: ['Stripe-Signature: t=$T,v1=$SIGNATURE'] },
  },
  slack: {
    title: 'Slack (Events API)',
    signature: { scheme: 'slack' },
    criteria: { 'trigger.body.type': equals('event_callback'), 'trigger.body.event.type': equals('app_mention') },
    values: {
      text: '{{ trigger.body.event.text }}',
      channel: '{{ trigger.body.event.channel }}',
      user: '{{ trigger.body.event.user }}',
    },
    sample: {
      type: 'event_callback',
      event: { type: 'app_mention', text: '<@U0> deploy', channel: 'C0', user: 'U1' },
    },
    signing: {
      before: 'v0:$T:',
      headers: ['X-Slack-Signature: v0=$SIGNATURE', 'X-Slack-Request-Timestamp: $T'],
    },
  },
  zoom: {
    title: 'Zoom',
    signature: { scheme: 'zoom' },
    criteria: { 'trigger.body.event': equals('meeting.ended') },
    values: { event: '{{ trigger.body.event }}', topic: '{{ trigger.body.payload.object.topic }}' },
    sample: { event: 'meeting.ended', payload: { object: { topic: 'Weekly' } } },
    signing: { before: 'v0:$T:', headers: ['X-Zm-Signature: v0=$SIGNATURE', 'X-Zm-Request-Timestamp: $T'] },
  },
  pagerduty: {
    title: 'PagerDuty (webhooks v3)',
    signature: { scheme: 'hmac', header: 'X-PagerDuty-Signature', prefix: 'v1=' },
    criteria: { 'trigger.body.event.event_type': equals('incident.triggered') },
    values: {
      event: '{{ trigger.body.event.event_type }}',
      service: '{{ trigger.body.event.data.service.summary }}',
      title: '{{ trigger.body.event.data.title }}',
    },
    sample: {
      event: { event_type: 'incident.triggered', data: { title: 'Disk full', service: { summary: 'shop' } } },
    },
    signing: { headers: ['X-PagerDuty-Signature: v1=$SIGNATURE'] },
  },
  grafana: {
    title: 'Grafana (12 or newer, with an HMAC signature and a timestamp header)',
    signature: {
      scheme: 'hmac',
      header: 'X-Grafana-Alerting-Signature',
      timestamp_header: 'X-Grafana-Alerting-Timestamp',
      template: '{timestamp}:{body}',
    },
    criteria: { 'trigger.body.status': equals('firing') },
    values: {
      status: '{{ trigger.body.status }}',
      alert: '{{ trigger.body.commonLabels.alertname }}',
      title: '{{ trigger.body.title }}',
    },
    sample: { status: 'firing', title: '[FIRING:1] Disk full', commonLabels: { alertname: 'Disk full' } },
    signing: {
      before: '$T:',
      headers: ['X-Grafana-Alerting-Signature: $SIGNATURE', 'X-Grafana-Alerting-Timestamp: $T'],
    },
  },
  alertmanager: {
    title: 'Alertmanager',
    criteria: { 'trigger.body.status': equals('firing') },
    values: {
      status: '{{ trigger.body.status }}',
      alert: '{{ trigger.body.commonLabels.alertname }}',
      severity: '{{ trigger.body.commonLabels.severity }}',
    },
    sample: { version: '4', status: 'firing', commonLabels: { alertname: 'DiskFull', severity: 'page' }, alerts: [] },
  },
  registry: {
    title: 'Docker registry',
    criteria: {
      'trigger.body.events': {
        type: 'search',
        condition: 'any',
        pattern: { 'item.action': equals('push'), 'item.target.tag': { type: 'exists', pattern: true } },
      },
    },
    values: {
      repository: '{{ trigger.body.events[0].target.repository }}',
      tag: '{{ trigger.body.events[0].target.tag }}',
    },
    sample: { events: [{ action: 'push', target: { repository: 'shop', tag: '1.2' } }] },
  },
  standard: {
    title: 'services that follow Standard Webhooks or use Svix',
    signature: { scheme: 'standard' },
    criteria: {},
    values: { event: '{{ trigger.body.type }}' },
    sample: { type: 'example' },
    signing: {
      before: 'msg_$T.$T.',
      encoding: 'base64',
      hasBase64Key: true,
      headers: ['webhook-id: msg_$T', 'webhook-timestamp: $T', 'webhook-signature: v1,$SIGNATURE'],
    },
  },
  hmac: {
    title: 'any service that signs the body with HMAC-SHA256 in hexadecimal digits',
    signature: { scheme: 'hmac', header: 'X-Signature' },
    criteria: {},
    values: { event: '{{ trigger.body.type }}' },
    sample: { type: 'example' },
    signing: { headers: ['X-Signature: $SIGNATURE'] },
  },
  plain: {
    title: 'programs of your own, with an API key',
    criteria: {},
    values: { event: '{{ trigger.body.type }}' },
    sample: { type: 'example' },
  },
} as const satisfies Readonly<Record<string, Sender>>

export type SenderName = keyof typeof senders

export const senderNames = Object.keys(senders) as SenderName[] // a literal object has no further keys

/**
 * The command that sends a signed test delivery: words of `sh`, with openssl.
 *
 * @param body path of the file with the body, as people type it
 */
export function testDelivery(name: SenderName, url: string, body: string, secretKey: string): string {
  const { signing, headers = [] }: Sender = senders[name]
  const send = (all: readonly string[]): string =>
    [`svc webhook send ${url} @${quote(body)}`, ...all.map((header) => `-H "${header}"`), '--wait'].join(' ')
  if (signing === undefined) return send(headers)
  const { before = '', encoding, hasBase64Key, headers: own } = signing
  const all = [...headers, ...own]
  const usesTime = [before, ...own].some((text) => text.includes('$T'))
  const signed = before === '' ? `cat ${quote(body)}` : `{ printf %s "${before}"; cat ${quote(body)}; }`
  const key =
    hasBase64Key === true
      ? `-mac HMAC -macopt hexkey:$(printf %s "\${SECRET#whsec_}" | base64 -d | od -An -v -tx1 | tr -d ' \\n')`
      : '-hmac "$SECRET"'
  const digest = encoding === 'base64' ? '-binary | base64' : "| sed 's/.* //'"
  return [
    `SECRET=$(svc key get -d -j ${secretKey} | jq -r .value)`,
    ...(usesTime ? ['T=$(date +%s)'] : []),
    ...(own.some((header) => header.includes('$SIGNATURE'))
      ? [`SIGNATURE=$(${signed} | openssl dgst -sha256 ${key} ${digest})`]
      : []),
    send(all),
  ].join('\n')
}
