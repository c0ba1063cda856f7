import { describe, expect, test } from 'vitest'
import { finishSettings, readDestination } from './definition.ts'

const read = (given: Record<string, unknown>) =>
  readDestination({ name: 'd', ...given }, 'notifications/d.yaml', undefined)
function destinationOf(given: Record<string, unknown>) {
  const outcome = read(given)
  if ('problems' in outcome) throw new Error(outcome.problems.map(({ message }) => message).join())
  if (outcome.destination === undefined) throw new Error('disabled')
  return outcome.destination
}
function finished(given: Record<string, unknown>): unknown {
  const { channel, settings } = destinationOf(given)
  const outcome = finishSettings(channel, settings)
  return 'settings' in outcome ? outcome.settings : outcome.problem
}
function problemOf(given: Record<string, unknown>): string {
  const outcome = read(given)
  if (!('problems' in outcome)) return 'none'
  return outcome.problems.map(({ path, message }) => `${path.join('.')}: ${message}`).join('; ')
}

test('reads a whole definition; YAML reads "on" as true', () => {
  const destination = destinationOf({
    channel: 'slack',
    webhook_url: '{{ svckv.system.slack | decrypt_kv }}',
    true: ['failed', 'all'],
    message: '{{ title }}',
    rate_limit: { count: 2, per: '10m' },
    description: 'the team',
  })
  expect(destination).toMatchObject({
    name: 'd',
    on: ['failed', 'all'],
    rateLimit: { count: 2, perSeconds: 600 },
    warnings: [],
    description: 'the team',
  })
  expect(readDestination({ name: 'd', channel: 'slack', webhook_url: 'https://x.example' }, 'f', 'shop')).toMatchObject(
    {
      destination: { name: 'shop.d', pack: 'shop', warnings: [expect.stringContaining('"webhook_url" is a secret')] },
    },
  )
  expect(read({ channel: 'slack', webhook_url: 'https://x.example', enabled: false })).toEqual({
    destination: undefined,
  })
})

test.each<[string, Record<string, unknown>, string]>([
  ['no channel', {}, 'channel: "channel" is needed'],
  ['an unknown channel', { channel: 'irc' }, 'channel: there is no channel "irc"; use one of slack'],
  ['a setting of another channel', { channel: 'slack', webhook_url: 'x', topic: 'y' }, 'topic: '],
  ['a missing setting', { channel: 'ntfy' }, 'topic: "topic" is needed by the channel ntfy'],
  ['a wrong value', { channel: 'ntfy', topic: 'x', priority: 9 }, 'priority: '],
  ['an unknown condition', { channel: 'ntfy', topic: 'x', on: 'broken' }, 'on: '],
  [
    'a wrong span',
    { channel: 'ntfy', topic: 'x', rate_limit: { count: 1, per: 'soon' } },
    'rate_limit.per: "soon" is not',
  ],
  ['a wrong name', { name: '../x', channel: 'ntfy', topic: 'x' }, 'name: '],
  ['a URL of nobody', { url: 'gotify://host/token' }, 'url: "gotify://" is the URL of no channel'],
  ['a URL of another channel', { channel: 'slack', url: 'ntfy://x' }, 'url: the URL begins with "ntfy://"'],
  ['a URL that is too short', { url: 'slack://A/B' }, 'url: the URL must be slack://A/B/C'],
  ['a bot token of Slack', { url: 'slack://xoxb-1-2/B/C' }, 'url: the URL must be slack://A/B/C'],
  ['a whole URL from the datastore without a channel', { url: '{{ svckv.system.x }}' }, 'url: "channel" is needed'],
])('says what is wrong: %s', (_, given, problem) => {
  expect(problemOf(given)).toContain(problem)
})

describe('URLs', () => {
  test.each<[string, Record<string, unknown>]>([
    ['slack://A1/B2/C3', { webhook_url: 'https://hooks.slack.com/services/A1/B2/C3' }],
    ['discord://1234/to-ken', { webhook_url: 'https://discord.com/api/webhooks/1234/to-ken' }],
    [
      'mmosts://chat.example.org:8443/TOKEN?channel=ops',
      { webhook_url: 'https://chat.example.org:8443/hooks/TOKEN', to_channel: 'ops' },
    ],
    ['mmost://chat.example.org/sub/TOKEN', { webhook_url: 'http://chat.example.org/sub/hooks/TOKEN' }],
    ['ntfy://Topic', { topic: 'Topic' }],
    [
      'ntfys://u:p%40@ntfy.example.org/Topic',
      { server: 'https://ntfy.example.org', topic: 'Topic', user: 'u', password: 'p@' },
    ],
    ['pagerduty://KEY@API?region=eu', { routing_key: 'KEY', api_url: 'https://events.eu.pagerduty.com' }],
    [
      'json://u:p@hook.example.org/a/b?c=d',
      { webhook_url: 'http://hook.example.org/a/b?c=d', headers: { authorization: 'Basic dTpw' } },
    ],
    ['jsons://hook.example.org', { webhook_url: 'https://hook.example.org/' }],
    [
      'workflows://prod.example.com:443/WF/SIG',
      {
        webhook_url:
          'https://prod.example.com:443/workflows/WF/triggers/manual/paths/invoke?api-version=2016-06-01&sp=%2Ftriggers%2Fmanual%2Frun&sv=1.0&sig=SIG',
      },
    ],
    [
      'mailtos://jo:pw@example.org?to=a@example.org,b@example.org',
      {
        host: 'example.org',
        port: 587,
        security: 'starttls',
        to: ['a@example.org', 'b@example.org'],
        from: 'jo@example.org',
        user: 'jo',
        password: 'pw',
      },
    ],
    [
      'mailto://mail.example.org?to=a@example.org',
      { host: 'mail.example.org', port: 25, security: 'none', to: ['a@example.org'] },
    ],
  ])('%s', (url, settings) => {
    expect(finished({ url })).toEqual(settings)
  })

  test('may have templates in their parts; what these render to is checked when a message is sent', () => {
    const { channel, settings } = destinationOf({ url: 'slack://{{ svckv.system.slack | decrypt_kv }}' })
    expect(finishSettings(channel, { ...settings, url: 'slack://A/B/C' })).toHaveProperty('settings')
    expect(finishSettings(channel, { ...settings, url: 'slack://SECRET' })).toEqual({
      problem: expect.not.stringContaining('SECRET') as string,
    })
    const ntfy = destinationOf({ channel: 'ntfy', topic: '{{ svckv.system.t }}' })
    expect(finishSettings(ntfy.channel, { topic: '' })).toEqual({
      problem: expect.stringContaining('"topic"') as string,
    })
  })
})
