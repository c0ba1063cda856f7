/** Slack: an incoming webhook, with blocks. */
import { UrlProblem, postJson, textIn, type Channel, type Notice } from './channel.ts'
import { cut, cutStart } from './text.ts'

// Limits of Slack.
const MAX_HEADER_CHARS = 150
const MAX_SECTION_CHARS = 3000
const MAX_FIELDS = 10
const MAX_FIELD_CHARS = 2000
const BASE = 'https://hooks.slack.com/services'

/** `<`, `>` and `&` are all that begins a mention, a link or an entity. */
const escape = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

const plain = (text: string, max: number) => ({ type: 'plain_text', text: cut(text, max), emoji: false })

export const slack: Channel = {
  kind: 'slack',
  settings: {
    webhook_url: { type: 'string', minLength: 1, description: 'Address of the incoming webhook.' },
  },
  required: ['webhook_url'],
  secrets: ['webhook_url'],
  schemes: ['slack'],
  fromUrl({ host, path }) {
    const parts = [host, ...path].slice(0, 3)
    if (parts.length < 3 || parts.some((part) => part === '' || /^(xox|#)/i.test(part))) {
      throw new UrlProblem('must be slack://A/B/C: the three parts at the end of the address of the incoming webhook')
    }
    return { webhook_url: `${BASE}/${parts.map(encodeURIComponent).join('/')}` }
  },
  isDigested: true,
  async send(notice, settings, tools) {
    return String(await postJson(tools, textIn(settings, 'webhook_url'), payload(notice)))
  },
}

function payload({ title, text, facts, output, link }: Notice): unknown {
  const section = (body: Record<string, unknown>) => ({ type: 'section', ...body })
  const blocks: unknown[] = [{ type: 'header', text: plain(title, MAX_HEADER_CHARS) }]
  if (text !== '') blocks.push(section({ text: plain(text, MAX_SECTION_CHARS) }))
  else {
    const fields = facts.slice(0, MAX_FIELDS).map(([label, value]) => plain(`${label}: ${value}`, MAX_FIELD_CHARS))
    if (fields.length > 0) blocks.push(section({ fields }))
    if (output !== '') {
      // Escaping can make five characters of one, and an entity must stay whole.
      const code = escape(cutStart(output.replaceAll('```', "'''"), Math.floor(MAX_SECTION_CHARS / 5) - 10))
      const whole = escape(output.replaceAll('```', "'''"))
      blocks.push(
        section({
          text: { type: 'mrkdwn', text: `\`\`\`${whole.length <= 2980 ? whole : code}\`\`\``, verbatim: true },
        }),
      )
    }
  }
  // A link is only what svc made itself.
  if (link !== '')
    blocks.push(section({ text: { type: 'mrkdwn', text: `<${encodeURI(decodeURI(link))}|Open in svc>` } }))
  return { text: escape(cut(title, MAX_SECTION_CHARS / 5)), blocks }
}
