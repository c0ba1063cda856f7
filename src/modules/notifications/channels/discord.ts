/** Discord: a webhook, with an embed. */
import { UrlProblem, postJson, textIn, type Channel, type Level, type Notice } from './channel.ts'
import { cut, cutStart, escapeMarkdown, inCodeBlock } from './text.ts'

// Limits of Discord: an embed has 6000 characters at most.
const MAX_TITLE_CHARS = 250
const MAX_TEXT_CHARS = 1900
const MAX_VALUE_CHARS = 1000
const MAX_FACTS_CHARS = 3000
const MAX_FIELDS = 25
const BASE = 'https://discord.com/api/webhooks'

const colors: Readonly<Record<Level, number>> = {
  error: 0xd24b4e,
  warning: 0xf5ab00,
  success: 0x3db887,
  info: 0x5865f2,
}

export const discord: Channel = {
  kind: 'discord',
  settings: {
    webhook_url: { type: 'string', minLength: 1, description: 'Address of the webhook.' },
  },
  required: ['webhook_url'],
  secrets: ['webhook_url'],
  schemes: ['discord'],
  fromUrl({ host, path: [token] }) {
    if (host === '' || token === undefined) throw new UrlProblem('must be discord://ID/TOKEN')
    return { webhook_url: `${BASE}/${encodeURIComponent(host)}/${encodeURIComponent(token)}` }
  },
  isDigested: true,
  async send(notice, settings, tools) {
    await postJson(tools, textIn(settings, 'webhook_url'), payload(notice))
    return 'accepted'
  },
}

function payload({ level, title, text, facts, output, link, timestamp }: Notice): unknown {
  const main = text === '' ? '' : escaped(text, MAX_TEXT_CHARS)
  const code = text !== '' || output === '' ? '' : inCodeBlock(cutStart(output, MAX_TEXT_CHARS / 2))
  let left = MAX_FACTS_CHARS
  const fields: unknown[] = []
  for (const [label, given] of (text === '' ? facts : []).slice(0, MAX_FIELDS)) {
    const value = escaped(given, Math.min(MAX_VALUE_CHARS, left))
    left -= value.length + label.length
    if (left < 20) break
    fields.push({ name: label, value: value === '' ? '-' : value, inline: given.length <= 40 })
  }
  return {
    // Nobody is called, whatever a text contains.
    allowed_mentions: { parse: [] },
    embeds: [
      {
        title: escaped(title, MAX_TITLE_CHARS),
        color: colors[level],
        timestamp: timestamp.replace(/\d{3}Z$/, 'Z'),
        ...(link === '' ? {} : { url: link }),
        ...(main + code === '' ? {} : { description: main + code }),
        ...(fields.length === 0 ? {} : { fields }),
      },
    ],
  }
}

/** Escaping can double a text, so it is cut before, if needed. */
function escaped(text: string, max: number): string {
  const whole = escapeMarkdown(text)
  return whole.length <= max ? whole : escapeMarkdown(cut(text, Math.max(2, Math.floor(max / 2))))
}
