/** Mattermost: an incoming webhook, with an attachment. */
import { UrlProblem, originOf, postJson, textIn, type Channel, type Level, type Notice } from './channel.ts'
import { cut, cutStart, escapeMarkdown, inCodeBlock, withoutMentions } from './text.ts'

/** Of the text of an attachment; Mattermost takes 16383 characters in a message. */
const MAX_TEXT_CHARS = 3500

const colors: Readonly<Record<Level, string>> = {
  error: '#d24b4e',
  warning: '#f5ab00',
  success: '#3db887',
  info: '#1c58d9',
}

export const mattermost: Channel = {
  kind: 'mattermost',
  settings: {
    webhook_url: { type: 'string', minLength: 1, description: 'Address of the incoming webhook.' },
    to_channel: { type: 'string', minLength: 1, description: 'Channel instead of the one of the webhook.' },
  },
  required: ['webhook_url'],
  secrets: ['webhook_url'],
  schemes: ['mmost', 'mmosts'],
  fromUrl(url) {
    const token = url.path.at(-1)
    if (token === undefined) throw new UrlProblem('must be mmosts://HOST/TOKEN')
    const before = url.path.slice(0, -1).map((part) => `/${encodeURIComponent(part)}`)
    const channel = url.query.get('channel') ?? url.query.get('to')
    return {
      webhook_url: `${originOf(url, url.scheme === 'mmosts')}${before.join('')}/hooks/${encodeURIComponent(token)}`,
      ...(channel === undefined || channel === null ? {} : { to_channel: channel }),
    }
  },
  isDigested: true,
  async send(notice, settings, tools) {
    return String(
      await postJson(tools, textIn(settings, 'webhook_url'), payload(notice, textIn(settings, 'to_channel'))),
    )
  },
}

function payload({ level, title, text, facts, output, link }: Notice, channel: string): unknown {
  const main = text === '' ? '' : escapeMarkdown(cut(text, MAX_TEXT_CHARS))
  const code = text !== '' || output === '' ? '' : inCodeBlock(cutStart(output, MAX_TEXT_CHARS))
  return {
    ...(channel === '' ? {} : { channel }),
    attachments: [
      {
        fallback: withoutMentions(cut(title, 300)),
        color: colors[level],
        // A title that is a link is no Markdown.
        title: link === '' ? escapeMarkdown(cut(title, 300)) : withoutMentions(cut(title, 300)),
        ...(link === '' ? {} : { title_link: link }),
        text: main + code,
        fields: (text === '' ? facts : []).map(([label, value]) => ({
          title: label,
          value: escapeMarkdown(cut(value, 1000)),
          short: value.length <= 40,
        })),
      },
    ],
  }
}
